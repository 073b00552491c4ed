"""The configurator of Act II: a design, what the solver says of it, and which rules it breaks."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any

from mlsysim.core import formulas as f
from mlsysim.core.derivation import Derivation
from mlsysim.labs.blocks import (
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
from mlsysim.labs.parallelism_paradox.design import (
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
from mlsysim.labs.parallelism_paradox.state import DERIVATION_2, DESIGN
from mlsysim.labs.words import band, count, gigabytes, percent, ratio, seconds
from mlsysim.solvers import DistributedResult

__all__ = ["instruments", "outcome"]

_STAGES = (1, 2, 4, 8, 16, 32, 64)
_COUNTS = (4, 16, 64)
_PARTS = {
    "weights_memory": "Weights",
    "gradient_memory": "Gradients",
    "optimizer_memory": "Optimizer's state",
    "activation_memory": "Activations",
    "working_memory": "Working memory",
}


def outcome(state: Mapping[str, Any]) -> Outcome:
    """Return what the solver says of the design that is set."""
    return solve(
        Design(
            tp=state["tp"],
            pp=state["pp"],
            microbatches=state["microbatches"],
            sharded=state["zero"] == "sharded",
        )
    )


def instruments(state: Mapping[str, Any]) -> list[Block]:
    """Return the controls, and what the design that is set comes to."""
    found = outcome(state)
    is_open = state[DERIVATION_2.id] and found.result is not None
    return [
        heading("a2_configurator_heading", 3, "The configurator"),
        text(
            "a2_configurator_text",
            "A server shares each layer, and there is no pipeline yet. Find a design that does "
            "what the mail asks for. Break every rule once on the way.",
        ),
        controls("a2_controls", DESIGN, state),
        _readouts(found),
        *_alerts(found),
        *([] if found.result is None else [_memory(found.result)]),
        _chart(found),
        derivation(DERIVATION_2, is_open, _explained(found.design) if is_open else None),
    ]


@functools.lru_cache(maxsize=32)
def _explained(design: Design) -> Derivation | None:
    result = solve(design).result
    return None if result is None else result.explain("bubble_fraction", "memory", "mfu", depth=2)


def _readouts(found: Outcome) -> Block:
    result, design = found.result, found.design
    if result is None:
        names = ("MFU", "Memory per GPU", "Bubble", "Replicas (DP)", "All-reduces in sight", "Step")
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
            f"the mail asks for {percent(TARGET_MFU, 0)}"
            + ("" if result.feasible else "; this step cannot run"),
        ),
        readout(
            "Memory per GPU",
            gigabytes(result.memory),
            tone="bad" if full > 1 else "warn" if full > 0.9 else "good",
            hint=f"a GPU has {gigabytes(result.memory_capacity)}",
        ),
        readout(
            "Bubble",
            f"{100 * result.bubble_fraction:.1f}",
            "%",
            "bad" if idles else "good",
            f"the mail allows {percent(BUBBLE_CEILING, 0)}",
        ),
        readout(
            "Replicas (DP)",
            f"{result.dp_size:,}",
            hint=f"{FLEET.total_accelerators:,} / ({design.tp} × {design.pp}); "
            f"{count(result.microbatch_size, 'sequence')} per microbatch",
        ),
        readout(
            "All-reduces in sight",
            seconds(result.tp_communication_latency),
            tone="bad" if design.spans_servers else "plain",
            hint=f"{percent(waits, 0)} of the step",
        ),
        readout("Step", seconds(result.step_latency_total), hint=band(result)),
    )


def _alerts(found: Outcome) -> list[Block]:
    result, design = found.result, found.design
    if result is None:
        return [alert("a2_sizes", "bad", "The sizes do not multiply up", f"{found.refusal}.")]
    alerts = []
    if not result.fits_memory:
        alerts.append(alert("a2_memory", "bad", "Out of memory", _too_much(result)))
    if not result.whole_microbatches:
        alerts.append(
            alert(
                "a2_microbatches",
                "bad",
                "Microbatches of fractions of a sequence",
                f"{BATCH:,} sequences over {count(result.dp_size, 'replica')} and "
                f"{count(design.microbatches, 'microbatch', 'es')} leave "
                f"{result.microbatch_size:.4g} of a sequence for each. {_dividing(result)}",
            )
        )
    if design.spans_servers:
        each = FLEET.node.accelerators_per_node
        alerts.append(
            alert(
                "a2_servers",
                "warn",
                "Tensor parallelism over several servers",
                f"A group of {design.tp} GPUs spans {-(-design.tp // each)} servers of {each}. "
                "Every all-reduce of every layer crosses the network, and nothing hides it: "
                f"{seconds(result.tp_communication_latency)} of a step of "
                f"{seconds(result.step_latency_total)}. Take {each} or fewer.",
            )
        )
    if result.bubble_fraction > BUBBLE_CEILING:
        alerts.append(
            alert(
                "a2_bubble",
                "warn",
                f"The bubble is above {percent(BUBBLE_CEILING, 0)}",
                f"{design.pp} stages with {design.microbatches} microbatches idle for "
                f"({design.pp} − 1) / ({design.microbatches} + {design.pp} − 1) = "
                f"{percent(result.bubble_fraction)} of the time. Take more microbatches or fewer "
                "stages.",
            )
        )
    if design.uneven:
        alerts.append(
            alert(
                "a2_layers",
                "info",
                "Stages of unequal length",
                f"{MODEL.layers} layers do not divide into {design.pp} stages. The longest has "
                f"{-(-MODEL.layers // design.pp)}, and all others wait for it.",
            )
        )
    if found.accepted:
        alerts.append(
            alert(
                "a2_accepted",
                "info",
                "This does what the mail asks for",
                f"{percent(result.mfu)} MFU, {gigabytes(result.memory)} per GPU, a bubble of "
                f"{percent(result.bubble_fraction)}.",
            )
        )
    return alerts


def _too_much(result: DistributedResult) -> str:
    parts = ", ".join(
        f"{words.lower()} {gigabytes(getattr(result, name))}" for name, words in _PARTS.items()
    )
    if states(result) > result.memory_capacity:
        advice = (
            "What is kept for the parameters alone does not fit: TP and PP divide it, ZeRO-1 "
            "divides the optimizer's state."
        )
    else:
        advice = (
            "What is kept for the parameters fits, the activations do not: more microbatches make "
            "each smaller, TP divides them."
        )
    return (
        f"A GPU needs {gigabytes(result.memory)} and has {gigabytes(result.memory_capacity)}: "
        f"{parts}. {advice}"
    )


def _dividing(result: DistributedResult) -> str:
    own = BATCH / result.dp_size
    if own != int(own):
        return f"{result.dp_size:,} does not divide the batch: make TP × PP larger."
    return f"Take a number that divides the {own:.0f} sequences of a replica."


def _memory(result: DistributedResult) -> Block:
    rows = [[words, gigabytes(result[field])] for field, words in _PARTS.items()]
    return table(
        "a2_memory_parts",
        f"What the fullest GPU holds, of {gigabytes(result.memory_capacity)}.",
        ["Part", "Size"],
        [*rows, ["Sum", gigabytes(result.memory)]],
    )


def _bubble(stages: int, count: int) -> float:
    return 100 * float(f.pipeline_bubble_fraction(stages, count, 1))


def _chart(found: Outcome) -> Block:
    stages, count = found.design.pp, found.design.microbatches
    here = _bubble(stages, count)
    lines = [
        series(f"{m} microbatches", [(p, _bubble(p, m)) for p in _STAGES])
        for m in _COUNTS
        if m != count
    ]
    yours = series(
        f"{count} microbatches (yours)",
        [(p, _bubble(p, count)) for p in _STAGES],
        "bad" if here > 100 * BUBBLE_CEILING else "good",
    )
    return chart(
        "a2_chart",
        caption="Bubble over the number of stages. Every line rises; more microbatches push it "
        "down, until a microbatch is a single sequence.",
        alt=f"The bubble of {count} microbatches rises from 0% for one stage to "
        f"{_bubble(_STAGES[-1], count):.0f}% for {_STAGES[-1]}; for the {stages} that are set it "
        f"is {here:.1f}%.",
        x={"label": "Stages", "scale": "log2", "ticks": list(_STAGES)},
        y={"label": "Bubble (%)", "min": 0, "max": 100},
        lines=[yours, *lines],
        marker={"x": stages, "y": here, "label": f"{here:.1f}%"},
        rule={
            "y": 100 * BUBBLE_CEILING,
            "label": f"{percent(BUBBLE_CEILING, 0)}, what the mail allows",
        },
    )
