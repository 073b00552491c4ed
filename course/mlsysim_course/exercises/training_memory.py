"""Exercises of the tutorial "The memory of training": states, activations and logits."""

from __future__ import annotations

import dataclasses
from typing import Any

from mlsysim.registry import Models, Systems
from mlsysim.solvers import DistributedResult, DistributedSolver
from mlsysim_course.answers import AmountAsked, Exercise, Mistake, si

__all__ = ["EXERCISES"]

_SMALL: dict[str, Any] = {"loss": "fused", "recompute": "full"}


def _step(servers: int = 1, **given: Any) -> DistributedResult:
    fleet = dataclasses.replace(
        Systems.Clusters.Research_256, name=f"{8 * servers} H100", count=servers
    )
    arguments: dict[str, Any] = {"recompute": "none", "seq_len": 8192, "zero_stage": 3} | given
    return DistributedSolver.solve(
        model=Models.Llama3_8B, fleet=fleet, batch_size=8 * servers, **arguments
    )


def _states(bytes_per_parameter: int) -> float:
    return bytes_per_parameter * si(Models.Llama3_2_3B.parameters)


def _logits(bytes_per_logit: int) -> float:
    return 8192.0 * Models.Llama3_8B.vocab_size * bytes_per_logit


def _factor() -> float:
    full, none = (_step(loss="fused", recompute=r).step_latency_total for r in ("full", "none"))
    return si(full / none)


def _longest(servers: int = 1, **given: Any) -> float:
    """Return the longest text that fits, in steps of 1,024 tokens, up to the model's context."""
    fits, not_any_more = 1, int(Models.Llama3_8B.positions) // 1024 + 1
    while not_any_more - fits > 1:
        middle = (fits + not_any_more) // 2
        if _step(servers, seq_len=1024 * middle, **given).fits_memory:
            fits = middle
        else:
            not_any_more = middle
    return 1024.0 * fits


_FIRST = Exercise(
    "training-memory-1",
    {
        "states": AmountAsked(
            asks="weights, gradients and optimizer state together",
            unit="GB",
            truth=lambda: _states(16),
            hint="Add up the bytes of the first three terms for each parameter.",
            mistakes=(
                Mistake(lambda: _states(2), "Those are the weights alone."),
                Mistake(lambda: _states(12), "That is the optimizer state alone."),
                Mistake(
                    lambda: _states(8),
                    "The optimizer keeps its own copy of the weights, and its numbers take more "
                    "bits.",
                ),
            ),
        )
    },
)

_SECOND = Exercise(
    "training-memory-2",
    {
        "saved": AmountAsked(
            asks="the memory that the fused loss saves on a GPU",
            unit="GB",
            truth=lambda: si(_step().memory - _step(loss="fused").memory),
            hint="Compare the two settings of `loss`.",
            mistakes=(
                Mistake(
                    lambda: _logits(4),
                    "Those are the logits once. The backward pass needs something of the same "
                    "size.",
                ),
            ),
        )
    },
)

_THIRD = Exercise(
    "training-memory-3",
    {
        "memory": AmountAsked(
            asks="the memory of a GPU",
            unit="GB",
            truth=lambda: si(_step(2, **_SMALL).memory),
            hint="Keep one text on each GPU, so that the batch grows with the servers.",
            mistakes=(
                Mistake(
                    lambda: 0.5 * si(_step(**_SMALL).memory),
                    "Only the model state is sharded over more GPUs.",
                ),
                Mistake(
                    lambda: si(_step(**_SMALL).memory),
                    "That is the memory with one server. The state is now sharded over more GPUs.",
                ),
            ),
        )
    },
)

_FOURTH = Exercise(
    "training-memory-4",
    {
        "factor": AmountAsked(
            asks="the ratio of the time with full recomputation to the time without",
            tolerance=0.03,
            truth=_factor,
            hint="Compare `step_latency_total` of the two settings.",
            mistakes=(
                Mistake(
                    lambda: 4 / 3,
                    "That would be right if a step consisted only of the passes of its layers.",
                ),
                Mistake(lambda: 1 / _factor(), "That is the inverse of the ratio."),
            ),
        )
    },
)

_FIFTH = Exercise(
    "training-memory-5",
    {
        "tokens": AmountAsked(
            asks="the longest text, in tokens",
            tolerance=0.015,
            truth=lambda: _longest(**_SMALL),
            hint="Raise `seq_len` until `fits_memory` is false.",
            mistakes=(
                Mistake(
                    lambda: _longest(loss="fused"),
                    "That is without recomputation.",
                ),
                Mistake(
                    lambda: _longest(recompute="full"),
                    "That is with the ordinary loss, whose logits grow with the text as well.",
                ),
            ),
        )
    },
)

EXERCISES = (_FIRST, _SECOND, _THIRD, _FOURTH, _FIFTH)
"""In the order of the tutorial."""
