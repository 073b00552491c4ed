"""The configurator of Act II: a design, its results, and the rules that it breaks."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any

from mlsysim.core import formulas as f
from mlsysim.core.derivation import Derivation
from mlsysim.solvers import DistributedResult
from mlsysim_course.labs.blocks import (
    Block,
    alert,
    chart,
    controls,
    derivation,
    heading,
    readout,
    readouts,
    series,
    table,
    text,
)
from mlsysim_course.labs.parallelism_paradox.design import (
    BATCH,
    BUBBLE_CEILING,
    FLEET,
    MODEL,
    TARGET_MFU,
    Design,
    Outcome,
    solve,
    states,
)
from mlsysim_course.labs.parallelism_paradox.state import DERIVATION_2, DESIGN
from mlsysim_course.labs.words import band, count, gigabytes, percent, ratio, seconds

__all__ = ["instruments", "outcome"]

_STAGES = (1, 2, 4, 8, 16, 32, 64)
_COUNTS = (4, 16, 64)
_PARTS = {
    "weights_memory": "Weights",
    "gradient_memory": "Gradients",
    "optimizer_memory": "Optimizer state",
    "activation_memory": "Activations",
    "working_memory": "Working memory",
}


def outcome(state: Mapping[str, Any]) -> Outcome:
    """Return the results of the design that the controls describe."""
    return solve(
        Design(
            tp=state["tp"],
            pp=state["pp"],
            microbatches=state["microbatches"],
            sharded=state["zero"] == "sharded",
        )
    )


def instruments(state: Mapping[str, Any]) -> list[Block]:
    """Return the controls and the results of the design that they describe."""
    found = outcome(state)
    is_open = state[DERIVATION_2.id] and found.result is not None
    return [
        heading("a2_configurator_heading", 3, "The configurator"),
        text(
            "a2_configurator_text",
            "The starting design splits each layer within a server and has no pipeline yet. Find a "
            "design that meets the requirements in the email. Break every rule once on the way.",
        ),
        controls("a2_controls", DESIGN, state),
        _chart(found),
        _readouts(found),
        *_alerts(found),
        *([] if found.result is None else [_memory(found.result)]),
        derivation(DERIVATION_2, is_open, _explained(found.design) if is_open else None),
    ]


@functools.lru_cache(maxsize=32)
def _explained(design: Design) -> Derivation | None:
    result = solve(design).result
    return None if result is None else result.explain("bubble_fraction", "memory", "mfu", depth=2)


def _readouts(found: Outcome) -> Block:
    result, design = found.result, found.design
    if result is None:
        names = ("MFU", "Memory per GPU", "Bubble", "Replicas (DP)", "Exposed all-reduces", "Step")
        return readouts("a2_readouts", *(readout(name, "–", tone="bad") for name in names))
    full = ratio(result.memory, result.memory_capacity)
    idles = result.bubble_fraction > BUBBLE_CEILING
    waits = ratio(result.tp_communication_latency, result.step_latency_total)
    return readouts(
        "a2_readouts",
        readout(
            "MFU",
            f"{100 * result.mfu:.1f}",
            "%",
            "good" if result.mfu >= TARGET_MFU and result.feasible else "bad",
            f"target: {percent(TARGET_MFU, 0)} or more"
            if result.feasible
            else "this step does not fit",
        ),
        readout(
            "Memory per GPU",
            gigabytes(result.memory),
            tone="bad" if full > 1 else "warn" if full > 0.9 else "good",
            hint=f"capacity: {gigabytes(result.memory_capacity)}",
        ),
        readout(
            "Bubble",
            f"{100 * result.bubble_fraction:.1f}",
            "%",
            "bad" if idles else "good",
            f"limit: {percent(BUBBLE_CEILING, 0)}",
        ),
        readout(
            "Replicas (DP)",
            f"{result.dp_size:,}",
            hint=f"{FLEET.total_accelerators:,} / ({design.tp} × {design.pp}); "
            f"{count(result.microbatch_size, 'sequence')} per microbatch",
        ),
        readout(
            "Exposed all-reduces",
            seconds(result.tp_communication_latency),
            tone="bad" if design.spans_servers else "plain",
            hint=f"{percent(waits, 0)} of the step",
        ),
        readout("Step", seconds(result.step_latency_total), hint=band(result, seconds)),
    )


def _alerts(found: Outcome) -> list[Block]:
    result, design = found.result, found.design
    if result is None:
        return [alert("a2_sizes", "bad", "These sizes do not work", f"{found.refusal}.")]
    alerts = []
    if not result.fits_memory:
        alerts.append(alert("a2_memory", "bad", "Out of memory", _too_much(result)))
    if not result.whole_microbatches:
        alerts.append(
            alert(
                "a2_microbatches",
                "bad",
                "Fractions of a sequence",
                f"{BATCH:,} sequences over {count(result.dp_size, 'replica')} with "
                f"{count(design.microbatches, 'microbatch', 'es')} each leave "
                f"{result.microbatch_size:.4g} sequences per microbatch. {_dividing(result)}",
            )
        )
    if design.spans_servers:
        each = FLEET.node.accelerators_per_node
        alerts.append(
            alert(
                "a2_servers",
                "warn",
                "Tensor parallelism across servers",
                f"A group of {design.tp} GPUs spans {-(-design.tp // each)} servers of {each}. "
                "Every all-reduce of every layer crosses the network, and no compute hides it. "
                f"GPUs wait {seconds(result.tp_communication_latency)} out of "
                f"{seconds(result.step_latency_total)} per step. Use TP = {each} or less.",
            )
        )
    if result.bubble_fraction > BUBBLE_CEILING:
        alerts.append(
            alert(
                "a2_bubble",
                "warn",
                f"The bubble is above {percent(BUBBLE_CEILING, 0)}",
                f"{design.pp} stages with {count(design.microbatches, 'microbatch', 'es')} idle "
                f"for ({design.pp} − 1) / ({design.microbatches} + {design.pp} − 1) = "
                f"{percent(result.bubble_fraction)} of the time. Use more microbatches or fewer "
                "stages.",
            )
        )
    if design.uneven:
        alerts.append(
            alert(
                "a2_layers",
                "info",
                "Stages of unequal length",
                f"{MODEL.layers} layers do not divide evenly into {design.pp} stages. The longest "
                f"stage has {-(-MODEL.layers // design.pp)} layers, and all others wait for it.",
            )
        )
    if found.accepted:
        alerts.append(
            alert(
                "a2_accepted",
                "info",
                "This design meets the requirements",
                f"It reaches an MFU of {percent(result.mfu)} with {gigabytes(result.memory)} per "
                f"GPU and a bubble of {percent(result.bubble_fraction)}.",
            )
        )
    return alerts


def _too_much(result: DistributedResult) -> str:
    if states(result) > result.memory_capacity:
        advice = (
            "The weights, gradients and optimizer state alone do not fit. TP and PP divide all "
            "three, and ZeRO-1 divides the optimizer state."
        )
    else:
        advice = (
            "The weights, gradients and optimizer state fit, but the activations do not. More "
            "microbatches make each one smaller, and TP divides them."
        )
    return (
        f"Each GPU has {gigabytes(result.memory_capacity)} and needs {gigabytes(result.memory)}. "
        f"{advice}"
    )


def _dividing(result: DistributedResult) -> str:
    own = BATCH / result.dp_size
    if own != int(own):
        return f"{result.dp_size:,} replicas do not divide the batch. Make TP × PP larger."
    return f"Choose a number that divides the {own:.0f} sequences of each replica."


def _memory(result: DistributedResult) -> Block:
    rows = [[words, gigabytes(result[field])] for field, words in _PARTS.items()]
    return table(
        "a2_memory_parts",
        f"Memory of the fullest GPU, out of {gigabytes(result.memory_capacity)}.",
        ["Part", "Size"],
        [*rows, ["Total", gigabytes(result.memory)]],
    )


def _bubble(stages: int, count: int) -> float:
    return 100 * float(f.pipeline_bubble_fraction(stages, count, 1))


def _chart(found: Outcome) -> Block:
    stages, number = found.design.pp, found.design.microbatches
    here, words = _bubble(stages, number), count(number, "microbatch", "es")
    lines = [
        series(f"{m} microbatches", [(p, _bubble(p, m)) for p in _STAGES])
        for m in _COUNTS
        if m != number
    ]
    yours = series(
        f"{words} (yours)",
        [(p, _bubble(p, number)) for p in _STAGES],
        "bad" if here > 100 * BUBBLE_CEILING else "good",
    )
    return chart(
        "a2_chart",
        caption="Bubble by number of stages. More microbatches push the curve down, until each "
        "microbatch is a single sequence.",
        alt=f"With {words}, the bubble rises from 0% for one stage to "
        f"{_bubble(_STAGES[-1], number):.0f}% for {_STAGES[-1]} stages. It is {here:.1f}% for your "
        f"setting of {count(stages, 'stage')}.",
        x={"label": "Stages", "scale": "log2", "ticks": list(_STAGES)},
        y={"label": "Bubble (%)", "unit": "%", "min": 0, "max": 100},
        lines=[yours, *lines],
        marker={"x": stages, "y": here, "label": f"{here:.1f}%"},
        rule={
            "y": 100 * BUBBLE_CEILING,
            "label": f"limit: {percent(BUBBLE_CEILING, 0)}",
        },
    )
