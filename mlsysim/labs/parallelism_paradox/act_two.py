"""Act II: three ways to split at once."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any

from mlsysim.labs.blocks import Block, heading, locked, message, question, text
from mlsysim.labs.parallelism_paradox import configurator
from mlsysim.labs.parallelism_paradox import reveals_two as reveals
from mlsysim.labs.parallelism_paradox.design import (
    BATCH,
    BUBBLE_CEILING,
    FLEET,
    MODEL,
    TARGET_MFU,
    Design,
    solve,
    states,
)
from mlsysim.labs.parallelism_paradox.state import (
    PREDICTION_2,
    REFLECTION_2,
)
from mlsysim.labs.words import gigabytes, percent
from mlsysim.registry.conventions import CONVENTIONS

__all__ = ["blocks"]


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
        *configurator.instruments(state),
        question(REFLECTION_2, reflected, reflected and reveals.reflection(reflected)),
    ]


def _mail() -> Block:
    return message("a2_mail", "Architect", *_letter())


@functools.cache
def _letter() -> tuple[str, ...]:
    gpu = FLEET.node.accelerator
    alone = solve(Design(1, 1, 1, False)).result
    need = (
        ""
        if alone is None
        else (
            " Weights, gradients and the optimizer's state of one replica take "
            f"{gigabytes(states(alone))}."
        )
    )
    return (
        f"We train {MODEL.name} with {MODEL.parameters.to('Gparam').magnitude:.0f} billion "
        f"parameters on {FLEET.total_accelerators:,} {gpu.name} GPUs, {FLEET.count} servers of "
        f"{FLEET.node.accelerators_per_node}, on {FLEET.fabric.name}. A GPU has "
        f"{gigabytes(gpu.memory.capacity)}.{need}",
        "Split it: over the GPUs of a layer, over the stages of a pipeline, and over replicas. The "
        f"global batch is {BATCH:,} sequences of {MODEL.seq_len:,} tokens. I want an MFU of at "
        f"least {percent(TARGET_MFU, 0)}, no GPU out of memory, and a pipeline that idles for at "
        f"most {percent(BUBBLE_CEILING, 0)} of its time. And no layer is shared by GPUs of several "
        "servers: the network is for pipelines and replicas.",
    )


def _framing() -> Block:
    return text(
        "a2_framing",
        "Tensor parallelism (TP) shares every layer among some GPUs: four all-reduces for each "
        "layer and microbatch. Part of their time hides under the layer's own work, and the layer "
        "waits for the rest. Pipeline parallelism (PP) makes "
        "stages of the layers: little to send, but stages wait while the pipeline fills and "
        "drains. That is the bubble, a share (p − 1) / (m + p − 1) of the time for p stages and m "
        "microbatches. Data parallelism (DP) takes the rest: "
        f"TP × PP × DP = {FLEET.total_accelerators:,}.",
        "Training in 16 bits keeps 2 bytes of weight and 2 of gradient for each parameter, and "
        f"{_state_bytes():.0f} of the optimizer. TP and PP divide them all. DP divides none, "
        "unless the replicas share out the optimizer's state (ZeRO-1). Ranks of a layer split "
        "norms and dropouts as well (sequence parallelism), which sends as much and keeps less.",
        "Decide before you see the instruments. Each answer gets the microbatches that serve it "
        "best, and ZeRO-1.",
    )


def _state_bytes() -> float:
    size: float = (CONVENTIONS.moment_bytes + CONVENTIONS.master_bytes).to("byte").magnitude
    return size
