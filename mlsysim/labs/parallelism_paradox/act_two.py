"""Act II: three ways to split at once."""

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
    locked,
    message,
    question,
    readout,
    readouts,
    series,
    table,
    text,
)
from mlsysim.labs.parallelism_paradox import reveals_two as reveals
from mlsysim.labs.parallelism_paradox.act_one import band
from mlsysim.labs.parallelism_paradox.design import (
    BATCH,
    BUBBLE_CEILING,
    FLEET,
    MODEL,
    TARGET_MFU,
    Design,
    Outcome,
    solve,
)
from mlsysim.labs.parallelism_paradox.state import (
    DERIVATION_2,
    DESIGN,
    PREDICTION_2,
    REFLECTION_2,
)
from mlsysim.labs.words import gigabytes, percent, seconds
from mlsysim.solvers import DistributedResult

__all__ = ["blocks", "outcome"]

_STAGES = (1, 2, 4, 8, 16, 32, 64)
_COUNTS = (4, 16, 64)
_PARTS = {
    "weights_memory": "Weights",
    "gradient_memory": "Gradients",
    "optimizer_memory": "Optimizer's state",
    "activation_memory": "Activations",
    "working_memory": "Working memory",
}


def blocks(state: Mapping[str, Any]) -> list[Block]:
    """Return what Act II shows."""
    answer = state[PREDICTION_2.id]
    found = [
        heading("a2_heading", 2, "Act II: split in three ways"),
        _mail(),
        _framing(),
        question(PREDICTION_2, answer, answer and reveals.prediction(answer)),
    ]
    if answer is None:
        return [*found, locked("a2_locked", "Answer first: the instruments follow.")]
    reflected = state[REFLECTION_2.id]
    return [
        *found,
        reveals.options(),
        *_instruments(state),
        question(REFLECTION_2, reflected, reflected and reveals.reflection(reflected)),
    ]


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


def _mail() -> Block:
    gpu = FLEET.node.accelerator
    alone = solve(Design(1, 1, 1, False)).result
    need = "" if alone is None else f" A replica on one GPU would need {gigabytes(alone.memory)}."
    return message(
        "a2_mail",
        "Architect",
        f"We train {MODEL.name} with {MODEL.parameters.to('Gparam').magnitude:.0f} billion "
        f"parameters on {FLEET.total_accelerators:,} {gpu.name}, {FLEET.count} servers of "
        f"{FLEET.node.accelerators_per_node}, on {FLEET.fabric.name}. A GPU has "
        f"{gigabytes(gpu.memory.capacity)}.{need}",
        f"Split it: over the GPUs of a layer, over the stages of a pipeline, and over replicas. The "
        f"global batch is {BATCH:,} sequences of {MODEL.seq_len:,} tokens. I want an MFU of at "
        f"least {percent(TARGET_MFU, 0)}, no GPU out of memory, and a pipeline that idles for at "
        f"most {percent(BUBBLE_CEILING, 0)} of its time.",
    )


def _framing() -> Block:
    return text(
        "a2_framing",
        "Tensor parallelism (TP) shares every layer among some GPUs: four all-reduces for each "
        "layer and microbatch, and the layer waits for them. Pipeline parallelism (PP) makes "
        "stages of the layers: little to send, but stages wait while the pipeline fills and "
        "drains. That is the bubble, a share (p − 1) / (m + p − 1) of the time for p stages and m "
        "microbatches. Data parallelism (DP) takes the rest: "
        f"TP × PP × DP = {FLEET.total_accelerators:,}.",
        "Training keeps 16 bytes for each parameter: 2 of weight, 2 of gradient, 12 of the "
        "optimizer. TP and PP divide them all. DP divides none, unless the replicas share out the "
        "optimizer's state (ZeRO-1). Ranks of a layer split norms and dropouts as well (sequence "
        "parallelism), which costs nothing here.",
        "Decide before you see the instruments. Each answer gets the microbatches that serve it "
        "best, and ZeRO-1.",
    )


def _instruments(state: Mapping[str, Any]) -> list[Block]:
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
    return result and result.explain("bubble_fraction", "memory", "mfu", depth=2)


def _readouts(found: Outcome) -> Block:
    result, design = found.result, found.design
    if result is None:
        names = ("MFU", "Memory per GPU", "Bubble", "Replicas (DP)", "Tensor all-reduces", "Step")
        return readouts("a2_readouts", *(readout(name, "–", tone="bad") for name in names))
    full = (result.memory / result.memory_capacity).to("").magnitude
    idles = result.bubble_fraction > BUBBLE_CEILING
    waits = (result.tp_communication_latency / result.step_latency_total).to("").magnitude
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
            f"{result.microbatch_size:g} sequences per microbatch",
        ),
        readout(
            "Tensor all-reduces",
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
    alerts = [
        alert(f"a2_{kind}", "bad", _TITLES[kind], f"{reason.partition(': ')[2]}.")
        for reason in result.reasons
        for kind in [reason.partition(":")[0]]
    ]
    if design.spans_servers:
        each = FLEET.node.accelerators_per_node
        alerts.append(
            alert(
                "a2_servers",
                "warn",
                "Tensor parallelism over several servers",
                f"A group of {design.tp} GPUs spans {-(-design.tp // each)} servers of {each}. "
                "Every all-reduce of every layer crosses the network: "
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


_TITLES = {"memory": "Out of memory", "microbatches": "Microbatches of fractions of a sequence"}


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
