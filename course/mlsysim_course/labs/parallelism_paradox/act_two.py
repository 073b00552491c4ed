"""Act II: three kinds of parallelism at once."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any

from mlsysim.registry.conventions import CONVENTIONS
from mlsysim_course.labs.blocks import Block, message, text
from mlsysim_course.labs.lab import Act
from mlsysim_course.labs.parallelism_paradox import configurator
from mlsysim_course.labs.parallelism_paradox import reveals_two as reveals
from mlsysim_course.labs.parallelism_paradox.design import (
    BATCH,
    BUBBLE_CEILING,
    FLEET,
    MODEL,
    TARGET_MFU,
    Design,
    solve,
    states,
)
from mlsysim_course.labs.parallelism_paradox.state import (
    DERIVATION_2,
    DESIGN,
    PREDICTION_2,
    REFLECTION_2,
)
from mlsysim_course.labs.words import gigabytes, percent

__all__ = ["ACT"]


def _opening() -> list[Block]:
    return [_mail(), _framing()]


def _instruments(state: Mapping[str, Any]) -> list[Block]:
    return [reveals.options(), *configurator.instruments(state)]


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
            " The weights, gradients and optimizer state of one replica take "
            f"{gigabytes(states(alone))}."
        )
    )
    return (
        f"We train {MODEL.name} with {MODEL.parameters.to('Gparam').magnitude:.0f} billion "
        f"parameters on {FLEET.total_accelerators:,} {gpu.name} GPUs: {FLEET.count} servers of "
        f"{FLEET.node.accelerators_per_node}, connected by {FLEET.fabric.name}. Each GPU has "
        f"{gigabytes(gpu.memory.capacity)} of memory.{need}",
        "Split the model three ways: across the GPUs that share a layer, across pipeline stages, "
        f"and across replicas. The global batch is {BATCH:,} sequences of {MODEL.seq_len:,} "
        f"tokens. I want an MFU of at least {percent(TARGET_MFU, 0)}, no GPU out of memory, and a "
        f"pipeline that idles for at most {percent(BUBBLE_CEILING, 0)} of its time. Do not split a "
        "layer across servers: the network is for pipelines and replicas.",
    )


def _framing() -> Block:
    return text(
        "a2_framing",
        "Tensor parallelism (TP) splits every layer across several GPUs, at the cost of four "
        "all-reduces per layer and microbatch. Part of their time is hidden behind the layer's own "
        "compute, and the layer waits for the rest. Pipeline parallelism (PP) groups the layers "
        "into stages. It sends little, but stages wait while the pipeline fills and drains. This "
        "bubble takes a share (p − 1) / (m + p − 1) of the time for p stages and m microbatches. "
        f"Data parallelism (DP) uses the other GPUs: TP × PP × DP = {FLEET.total_accelerators:,}.",
        "Training in 16 bits keeps 2 bytes of weights and 2 bytes of gradients per parameter, plus "
        f"{_state_bytes():.0f} bytes of optimizer state. TP and PP divide all of these. DP divides "
        "none of them unless the replicas shard the optimizer state (ZeRO-1). The GPUs that share "
        "a layer also split its norms and dropouts (sequence parallelism), which sends the same "
        "number of bytes and stores fewer.",
        "Commit to an answer before you see the instruments. You cannot change it afterward. Each "
        "option uses ZeRO-1 and its best number of microbatches.",
    )


def _state_bytes() -> float:
    size: float = (CONVENTIONS.moment_bytes + CONVENTIONS.master_bytes).to("byte").magnitude
    return size


ACT = Act(
    id="a2",
    title="Act II: split three ways",
    opening=_opening,
    prediction=PREDICTION_2,
    explain=reveals.prediction,
    controls=(*DESIGN, DERIVATION_2),
    instruments=_instruments,
    reflection=REFLECTION_2,
    reflect=reveals.reflection,
)
