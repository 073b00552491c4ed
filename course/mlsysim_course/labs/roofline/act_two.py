"""Act II: the cheapest devices for a rate."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any

from mlsysim.core.derivation import Derivation
from mlsysim_course.controls import Question, Selector, Slider, Toggle
from mlsysim_course.labs.acts import Act
from mlsysim_course.labs.blocks import (
    Block,
    alert,
    controls,
    derivation,
    heading,
    message,
    readout,
    readouts,
    table,
    text,
)
from mlsysim_course.labs.roofline.act_one import alerts, picture
from mlsysim_course.labs.roofline.model import (
    BATCHES,
    BUDGET,
    DEVICES,
    LONGEST_MS,
    MAIL,
    MODELS,
    PRECISIONS,
    RATE,
    Setup,
    accepted,
    cheapest,
    devices,
    dollars_per_hour,
    dollars_per_million,
    milliseconds,
    solve,
    tokens,
)
from mlsysim_course.labs.words import count, percent

__all__ = ["ACT", "NIGHT", "per_dollar", "plan"]

NIGHT = 8
"""Sequences per batch at night, in the reflection."""

PREDICTION = Question(
    id="act2_prediction",
    label=f"Your prediction: on which device does this cost the least? You may choose 8 or 16 bits "
    f"and any batch up to {BATCHES[-1]}.",
    options={
        key: f"{offer.accelerator.name}, at ${offer.price.m_as('USD/h'):.2f} per hour."
        for key, offer in DEVICES.items()
    },
    right="h100",
    locks=True,
)
REFLECTION = Question(
    id="act2_reflection",
    label=f"Reflection: at night, a batch has only {NIGHT} sequences. Which property of a "
    "device then determines the cost of a token?",
    options={
        "bandwidth": "Memory bandwidth per dollar.",
        "arithmetic": "Compute per dollar.",
        "capacity": "Memory capacity per dollar.",
        "price": "The price per hour alone.",
    },
    right="bandwidth",
)
DERIVATION = Toggle(id="show_derivation_2", label="How the rate of one device follows")
CONTROLS = (
    Selector(
        id="plan_device",
        label="Device to rent",
        options={key: offer.accelerator.name for key, offer in DEVICES.items()},
        first="l4",
    ),
    Selector(id="plan_precision", label="Precision", options=PRECISIONS, first=MAIL.precision),
    Slider(id="plan_batch", label="Batch", values=BATCHES, first=MAIL.batch, unit="sequences"),
)


def plan(state: Mapping[str, Any]) -> Setup:
    """Return the setup that the controls describe."""
    return Setup(
        device=state["plan_device"],
        model=MAIL.model,
        precision=state["plan_precision"],
        batch=state["plan_batch"],
    )


def per_dollar(key: str, what: str) -> float:
    """Return a property of a device per dollar of its hourly price.

    In GB/s of bandwidth, TFLOP/s in 16 bits or GB of capacity; ``"price"`` is one over the price.
    """
    offer = DEVICES[key]
    device = offer.accelerator
    value = {
        "bandwidth": device.memory.bandwidth.m_as("GB/s"),
        "arithmetic": device.compute.rate("fp16").m_as("TFLOP/s"),
        "capacity": device.memory.capacity.m_as("GB"),
        "price": 1.0,
    }[what]
    return float(value / offer.price.m_as("USD/h"))


def _opening() -> list[Block]:
    return [
        message(
            "a2_mail",
            "Product lead",
            f"We launch next week and need {RATE:,} tokens per second from "
            f"{MODELS[MAIL.model].name}, around the clock. No user may wait longer than "
            f"{LONGEST_MS} ms for the next token. Users will keep every batch full.",
            f"Rent as many devices of one kind as that takes, for at most ${BUDGET:g} per hour. "
            "The quality team accepts 8 bits.",
        ),
        text(
            "a2_framing",
            "The prices are those of one cloud on one day, from the package's catalog, which "
            "gives their sources. Every device holds the whole model and has its own batch, so "
            "their rates add up. The solver is the roofline of Act I.",
            "Commit to an answer before you see the instruments. You cannot change it afterward.",
        ),
    ]


def _explain(answer: str) -> str:
    name = DEVICES[answer].accelerator.name
    if cheapest(answer) is None:
        fastest = min((Setup(answer, MAIL.model, one, 1) for one in PRECISIONS), key=milliseconds)
        return (
            f"{name} is too slow for any batch. Even in 8 bits, reading the weights once takes "
            f"{milliseconds(fastest):.1f} ms, and the limit is {LONGEST_MS} ms."
        )
    if answer == PREDICTION.right:
        return (
            f"One {name} costs the most per hour, but it generates so many tokens that the whole "
            "rate costs the least. With which precision and batch, and with how many devices? Find "
            "out below."
        )
    return (
        f"{name} can be fast enough, but even at its best the whole rate costs more than with "
        f"{DEVICES[PREDICTION.right].accelerator.name}. Find the precision, the batch and the "
        "number of devices below, for both."
    )


def _reflect(answer: str) -> str:
    units = {
        "bandwidth": "GB/s for a dollar per hour",
        "arithmetic": "TFLOP/s for a dollar per hour",
        "capacity": "GB for a dollar per hour",
        "price": "hours per dollar",
    }
    cost = {key: dollars_per_million(Setup(key, MAIL.model, "int8", NIGHT)) for key in DEVICES}
    ranked = sorted(DEVICES, key=lambda key: cost[key])
    shown = ", ".join(f"{_short(key)} ${cost[key]:.2f}" for key in ranked)
    order = sorted(DEVICES, key=lambda key: -per_dollar(key, answer))
    told = ", ".join(f"{_short(key)} {per_dollar(key, answer):,.2f}" for key in order)
    line = f"Cost of a million tokens with {NIGHT} sequences in 8 bits: {shown}."
    if answer == "bandwidth":
        return (
            f"{line} That is the order of {units[answer]}: {told}. Every "
            "device is then memory-bound and reads the weights at its full bandwidth."
        )
    return f"{line} By your measure, in {units[answer]}, the order would be: {told}."


def _short(key: str) -> str:
    return key.upper()


def _instruments(state: Mapping[str, Any]) -> list[Block]:
    chosen = plan(state)
    each, wait, cost = tokens(chosen), milliseconds(chosen), dollars_per_hour(chosen)
    is_open = state[DERIVATION.id]
    return [
        heading("a2_planner_heading", 3, "The planner"),
        text(
            "a2_planner_text",
            "Find a setup that meets the email's requirements. Then find out which one each of "
            "the other devices breaks. While your setup meets them all, a table below shows the "
            "best setup of every device.",
        ),
        controls("a2_controls", CONTROLS, state),
        picture("a2_chart", chosen),
        readouts(
            "a2_readouts",
            readout(
                "All devices",
                f"${cost:,.2f}",
                "per hour",
                "good" if cost <= BUDGET else "bad",
                f"budget: ${BUDGET:g}",
            ),
            readout(
                "Time per token",
                f"{wait:,.1f}",
                "ms",
                "good" if wait <= LONGEST_MS else "bad",
                f"limit: {LONGEST_MS} ms",
            ),
            readout("Devices", f"{devices(chosen):,}", hint=f"for {RATE:,} tokens per second"),
            readout("Tokens per second", f"{each:,.0f}", hint="of one device"),
            readout("A million tokens", f"${dollars_per_million(chosen):,.3f}"),
            readout("MFU", percent(solve(chosen).mfu)),
        ),
        *alerts("a2", chosen),
        *_verdict(chosen),
        derivation(DERIVATION, is_open, _explained(chosen) if is_open else None),
    ]


def _options() -> Block:
    """Return the solution: the best setup of each device."""
    rows = []
    for key, offer in DEVICES.items():
        found = cheapest(key)
        rows.append(
            [offer.accelerator.name, *["–"] * 3, "too slow"]
            if found is None
            else [
                offer.accelerator.name,
                f"{PRECISIONS[found.precision]}, {found.batch}",
                f"{milliseconds(found):.1f} ms",
                f"{devices(found)}",
                f"${dollars_per_hour(found):.2f}",
            ]
        )
    return table(
        "a2_options",
        "Each device, with its best precision and batch.",
        ["Device", "Precision, batch", "Per token", "Devices", "Per hour"],
        rows,
    )


def _verdict(chosen: Setup) -> list[Block]:
    if not solve(chosen).feasible:
        return []
    if accepted(chosen):
        return [
            alert(
                "a2_accepted",
                "info",
                "This setup meets the requirements",
                f"{count(devices(chosen), 'device')} generate "
                f"{devices(chosen) * tokens(chosen):,.0f} tokens per second for "
                f"${dollars_per_hour(chosen):.2f} per hour, and a user waits "
                f"{milliseconds(chosen):.1f} ms for a token.",
            ),
            _options(),
        ]
    if milliseconds(chosen) > LONGEST_MS:
        return [
            alert(
                "a2_slow",
                "bad",
                "Users wait too long",
                f"A token takes {milliseconds(chosen):.1f} ms, and the limit is {LONGEST_MS} ms. "
                + (
                    "The batch is beyond the ridge: make it smaller."
                    if solve(chosen).bottleneck == "compute"
                    else "A smaller batch does not help, because reading the weights takes that "
                    "long. Use a lower precision or a device with faster memory."
                ),
            )
        ]
    return []


@functools.lru_cache(maxsize=32)
def _explained(chosen: Setup) -> Derivation:
    return solve(chosen).explain("throughput")


ACT = Act(
    id="a2",
    title="Act II: the cheapest devices for a rate",
    opening=_opening,
    prediction=PREDICTION,
    explain=_explain,
    controls=(*CONTROLS, DERIVATION),
    instruments=_instruments,
    reflection=REFLECTION,
    reflect=_reflect,
)
