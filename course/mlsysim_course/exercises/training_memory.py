"""Exercises of the tutorial "The memory of training": states, activations and logits."""

from __future__ import annotations

import dataclasses
from typing import Any

from mlsysim import Q_, DistributedResult, DistributedSolver, Models, Systems
from mlsysim_course.answers import AmountAsked, Parts, exercise

_SMALL: dict[str, Any] = {"loss": "fused", "recompute": "full"}


def _step(servers: int = 1, **given: Any) -> DistributedResult:
    fleet = dataclasses.replace(
        Systems.Clusters.Research_256, name=f"{8 * servers} H100", count=servers
    )
    arguments: dict[str, Any] = {"recompute": "none", "seq_len": 8192, "zero_stage": 3} | given
    return DistributedSolver.solve(
        model=Models.Llama3_8B, fleet=fleet, batch_size=8 * servers, **arguments
    )


def _states(bytes_per_parameter: int) -> Any:
    return Q_(bytes_per_parameter, "byte") * Models.Llama3_2_3B.parameters


def _longest(**given: Any) -> int:
    """Return the longest text that fits, in steps of 1,024 tokens, up to the model's context."""
    fits, not_any_more = 1, int(Models.Llama3_8B.positions) // 1024 + 1
    while not_any_more - fits > 1:
        middle = (fits + not_any_more) // 2
        if _step(seq_len=1024 * middle, **given).fits_memory:
            fits = middle
        else:
            not_any_more = middle
    return 1024 * fits


@exercise
def _training_memory_1() -> Parts:
    yield AmountAsked(
        "states",
        asks="weights, gradients and optimizer state together",
        unit="GB",
        truth=_states(16),
        hint="Add up the bytes of the first three terms for each parameter.",
        mistakes={
            _states(2): "Those are the weights alone.",
            _states(12): "That is the optimizer state alone.",
            _states(8): "The optimizer keeps its own copy of the weights, and its numbers "
            "take more bits.",
        },
    )


@exercise
def _training_memory_2() -> Parts:
    logits = Q_(4, "byte") * 8192 * Models.Llama3_8B.vocab_size
    yield AmountAsked(
        "saved",
        asks="the memory that the fused loss saves on a GPU",
        unit="GB",
        truth=_step().memory - _step(loss="fused").memory,
        hint="Compare the two settings of `loss`.",
        mistakes={
            logits: "Those are the logits once. The backward pass needs something of the "
            "same size.",
        },
    )


@exercise
def _training_memory_3() -> Parts:
    yield AmountAsked(
        "memory",
        asks="the memory of a GPU",
        unit="GB",
        truth=_step(2, **_SMALL).memory,
        hint="Keep one text on each GPU, so that the batch grows with the servers.",
        mistakes={
            0.5 * _step(**_SMALL).memory: "Only the model state is sharded over more GPUs.",
            _step(**_SMALL).memory: "That is the memory with one server. The state is now "
            "sharded over more GPUs.",
        },
    )


@exercise
def _training_memory_4() -> Parts:
    full, none = (_step(loss="fused", recompute=r).step_latency_total for r in ("full", "none"))
    factor = float(full / none)
    yield AmountAsked(
        "factor",
        asks="the ratio of the time with full recomputation to the time without",
        tolerance=0.03,
        truth=factor,
        hint="Compare `step_latency_total` of the two settings.",
        mistakes={
            4 / 3: "That would be right if a step consisted only of the passes of its layers.",
            1 / factor: "That is the inverse of the ratio.",
        },
    )


@exercise
def _training_memory_5() -> Parts:
    yield AmountAsked(
        "tokens",
        asks="the longest text, in tokens",
        tolerance=0.015,
        form=",.0f",
        truth=_longest(**_SMALL),
        hint="Raise `seq_len` until `fits_memory` is false.",
        mistakes={
            _longest(loss="fused"): "That is without recomputation.",
            _longest(recompute="full"): "That is with the ordinary loss, whose logits grow "
            "with the text as well.",
        },
    )
