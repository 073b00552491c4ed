"""Act I: where the ridge is."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from mlsysim.core.derivation import Derivation
from mlsysim.registry.conventions import TEXTBOOK_EFFICIENCY
from mlsysim_course.controls import Estimate, Question, Selector, Slider, Toggle
from mlsysim_course.labs.acts import Act
from mlsysim_course.labs.blocks import (
    Block,
    alert,
    chart,
    controls,
    derivation,
    heading,
    log_axis,
    message,
    readout,
    readouts,
    series,
    text,
)
from mlsysim_course.labs.roofline.model import (
    BATCHES,
    DEVICES,
    MAIL,
    MODELS,
    PRECISIONS,
    Setup,
    crossing,
    dollars_per_million,
    milliseconds,
    roof,
    solve,
    tokens,
)
from mlsysim_course.labs.words import count, gigabytes, percent

__all__ = ["ACT", "alerts", "picture", "setup"]

_INTENSITIES = tuple(2**k for k in range(11))

PREDICTION = Estimate(
    id="act1_prediction",
    label="Your prediction: how many sequences have to be in a batch before the limit of the H100 "
    "is compute rather than memory?",
    truth=lambda: float(crossing(MAIL)),
    unit="sequences",
    low=1,
    high=1_000_000,
    factor=1.5,
)
REFLECTION = Question(
    id="act1_reflection",
    label="Reflection: the H100 computes twice as fast in 8 bits as in 16. What happens to the "
    "batch at which it reaches its ridge when weights and arithmetic go to 8 bits?",
    options={
        "same": "It stays about the same.",
        "double": "It doubles, because the ridge moves to twice the intensity.",
        "half": "It halves, because the weights are half as large.",
        "quarter": "It falls to a quarter, because both effects help.",
    },
    right="same",
)
DERIVATION = Toggle(id="show_derivation_1", label="How this time follows from the inputs")
CONTROLS = (
    Selector(
        id="device",
        label="Device",
        options={key: offer.accelerator.name for key, offer in DEVICES.items()},
        first=MAIL.device,
    ),
    Selector(
        id="model",
        label="Model",
        options={key: row.name for key, row in MODELS.items()},
        first=MAIL.model,
    ),
    Selector(id="precision", label="Precision", options=PRECISIONS, first=MAIL.precision),
    Slider(id="batch", label="Batch", values=BATCHES, first=MAIL.batch, unit="sequences"),
)


def setup(state: Mapping[str, Any]) -> Setup:
    """Return the setup that the controls describe."""
    return Setup(state["device"], state["model"], state["precision"], state["batch"])


def _opening() -> list[Block]:
    return [message("a1_mail", "Product engineer", *_letter()), _framing()]


@functools.cache
def _letter() -> tuple[str, ...]:
    now, device = solve(MAIL), MAIL.offer.accelerator
    rate = device.compute.rate("fp16").m_as("TFLOP/s")
    return (
        f"We generate text with {MODELS[MAIL.model].name} on an {device.name}, in 16 bits. Each "
        f"pass through the model generates the next token of {MAIL.batch} users and reads all "
        f"{gigabytes(now.memory)} of weights. The datasheet promises {rate:,.0f} TFLOP/s, and we "
        f"use {percent(now.mfu)} of them.",
        f"The memory is rated at {device.memory.bandwidth.m_as('TB/s'):g} TB/s. A token takes "
        "about two operations per parameter, and a parameter takes two bytes. A colleague says "
        "that we are left of the ridge of the roofline and should make our batches larger. How "
        "much larger?",
    )


def _framing() -> Block:
    return text(
        "a1_framing",
        "The engineer and the email are fictional, but mlsysim's SingleNodeSolver computes the "
        "numbers. It uses the textbook's roofline: a pass takes as long as its "
        "arithmetic or its memory traffic, whichever is longer. Arithmetic reaches "
        f"{percent(TEXTBOOK_EFFICIENCY.value, 0)} of its peak, and memory reaches all of its "
        "bandwidth. The traffic is the weights. The KV cache is left out, so real servers stay "
        "memory-bound for longer.",
        "The arithmetic intensity of a pass is its operations divided by the bytes that it moves. "
        "The ridge of a device is the intensity at which arithmetic and memory take equally long.",
        "Commit to a number before you see the instruments. You cannot change it afterward.",
    )


def _explain(answer: float) -> str:
    right = crossing(MAIL)
    now, there = solve(MAIL), solve(replace(MAIL, batch=right))
    tried = replace(MAIL, batch=max(1, round(answer)))
    return (
        f"The ridge is at {_intensity(now.ridge_point)}: half of the peak rate divided by the "
        f"bandwidth. The batch of {MAIL.batch} has an intensity of "
        f"{_intensity(now.arithmetic_intensity)}. Each sequence adds its operations and hardly any "
        f"bytes, so the intensity grows almost in proportion to the batch, to "
        f"{_intensity(there.arithmetic_intensity)} for {right} sequences. With your {answer:g}, "
        f"the limit is {_limit(tried)} and the H100 gives {tokens(tried):,.0f} tokens per second. "
        "If you ignored that arithmetic reaches only half of its peak, your answer is twice as "
        "large."
    )


def _intensity(value: Any) -> str:
    return f"{value.m_as('FLOP/byte'):,.1f} operations per byte"


def _limit(chosen: Setup) -> str:
    return "arithmetic" if solve(chosen).bottleneck == "compute" else "memory"


def _reflect(answer: str) -> str:
    narrow = replace(MAIL, precision="int8")
    ridge = (
        f"The ridge moves from {_intensity(solve(MAIL).ridge_point)} to "
        f"{_intensity(solve(narrow).ridge_point)}"
    )
    both = f"the batch at the ridge goes from {crossing(MAIL)} to {crossing(narrow)}"
    own = (
        f"the intensity of {MAIL.batch} sequences goes from "
        f"{_intensity(solve(MAIL).arithmetic_intensity)} to "
        f"{_intensity(solve(narrow).arithmetic_intensity)}"
    )
    if answer == "same":
        return (
            f"{ridge}, and {own}. The two nearly cancel: {both}. The gain is elsewhere: a pass of "
            f"{MAIL.batch} takes {milliseconds(narrow):.2f} ms instead of {milliseconds(MAIL):.2f}."
        )
    if answer == "double":
        return f"{ridge}, but the bytes shrink as well: {own}. So {both}."
    if answer == "half":
        return f"The bytes do shrink: {own}. But the arithmetic is faster too. {ridge}, so {both}."
    return f"The two effects work against each other. {ridge}, while {own}. So {both}."


def _instruments(state: Mapping[str, Any]) -> list[Block]:
    chosen = setup(state)
    is_open = state[DERIVATION.id]
    return [
        heading("a1_explorer_heading", 3, "The explorer"),
        text(
            "a1_explorer_text",
            "The explorer starts with the email. Make the batch larger and watch the ring climb "
            "the slope. Note what happens to the time per token on the slope, and what happens to "
            "it beyond the ridge. Then find a device that reaches its ridge with a smaller "
            "batch.",
        ),
        controls("a1_controls", CONTROLS, state),
        picture("a1_chart", chosen),
        _readouts(chosen),
        *alerts("a1", chosen),
        derivation(DERIVATION, is_open, _explained(chosen) if is_open else None),
    ]


@functools.lru_cache(maxsize=32)
def _explained(chosen: Setup) -> Derivation:
    return solve(chosen).explain("ridge_point", "latency")


def _readouts(chosen: Setup) -> Block:
    result = solve(chosen)
    return readouts(
        "a1_readouts",
        readout("Limit", _limit(chosen), hint=f"ridge at a batch of {crossing(chosen):,}"),
        readout("Tokens per second", f"{tokens(chosen):,.0f}"),
        readout("Time per token", f"{milliseconds(chosen):,.1f}", "ms", hint="for each user"),
        readout(
            "Intensity",
            f"{result.arithmetic_intensity.m_as('FLOP/byte'):,.1f}",
            "FLOP/byte",
            hint=f"ridge: {result.ridge_point.m_as('FLOP/byte'):,.1f}",
        ),
        readout("MFU", f"{100 * result.mfu:.1f}", "%", hint="of the peak rate"),
        readout(
            "A million tokens",
            f"${dollars_per_million(chosen):,.3f}",
            hint=f"at {chosen.offer.price.m_as('USD/h'):,.2f} dollars per hour",
        ),
    )


def alerts(act: str, chosen: Setup) -> list[Block]:
    """Return what is wrong with a setup."""
    result = solve(chosen)
    if not result.feasible:
        return [
            alert(
                f"{act}_memory",
                "bad",
                "Out of memory",
                f"The weights take {gigabytes(result.memory)}, and the device has "
                f"{gigabytes(result.memory_capacity)}. The times shown assume enough memory.",
            )
        ]
    beyond = chosen.batch / crossing(chosen)
    if beyond < 2:
        return []
    return [
        alert(
            f"{act}_beyond",
            "info",
            "Far beyond the ridge",
            f"The batch is {beyond:.1f} times as large as at the ridge. More sequences yield no "
            f"more tokens per second, and a token takes {milliseconds(chosen):,.1f} ms.",
        )
    ]


def picture(name: str, chosen: Setup) -> Block:
    """Return the roofline of a setup, and that of the email."""
    result = solve(chosen)
    here = result.arithmetic_intensity.m_as("FLOP/byte")
    rate = (result.flops / result.latency).m_as("TFLOP/s")

    def points(one: Setup) -> list[tuple[float, float]]:
        corner = round(solve(one).ridge_point.m_as("FLOP/byte"))
        return [(x, roof(one, x)) for x in sorted({*_INTENSITIES, corner})]

    email = replace(chosen, device=MAIL.device, precision=MAIL.precision)
    others = [] if email == chosen else [series("The email's device", points(email), "warn")]
    rates = [y for line in (chosen, email) for _, y in points(line)]
    return chart(
        name,
        caption=f"Rate that {chosen.offer.accelerator.name} can reach in "
        f"{PRECISIONS[chosen.precision]}, by arithmetic intensity. The ring marks "
        f"{count(chosen.batch, 'sequence')}.",
        alt=f"The roof rises with the intensity up to {_intensity(result.ridge_point)} and is flat "
        f"at {points(chosen)[-1][1]:.0f} TFLOP/s beyond. Your setting is at "
        f"{_intensity(result.arithmetic_intensity)} and {rate:.1f} TFLOP/s.",
        x={
            "label": "Operations per byte",
            "scale": "log2",
            "ticks": list(_INTENSITIES),
        },
        y=log_axis("Rate (TFLOP/s)", [rate, *rates], " TFLOP/s"),
        lines=[series("Your device", points(chosen)), *others],
        marker={"x": here, "y": rate, "label": f"batch {chosen.batch}"},
    )


ACT = Act(
    id="a1",
    title="Act I: where the ridge is",
    opening=_opening,
    prediction=PREDICTION,
    explain=_explain,
    controls=(*CONTROLS, DERIVATION),
    instruments=_instruments,
    reflection=REFLECTION,
    reflect=_reflect,
)
