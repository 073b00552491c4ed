"""Exercises of the tutorial "Quantization": one graphics card, several number formats."""

from __future__ import annotations

from itertools import count
from typing import Any

from mlsysim.core.types import PRECISIONS, TransformerModel
from mlsysim.registry import Hardware, Models
from mlsysim.solvers import ServingResult, ServingSolver
from mlsysim_course.answers import AmountAsked, CountAsked, Exercise, Mistake, si

__all__ = ["EXERCISES"]


def _card(
    users: int = 1, model: TransformerModel = Models.Llama3_8B, **given: Any
) -> ServingResult:
    arguments: dict[str, Any] = {"hardware": Hardware.RTX_4090} | given
    return ServingSolver.solve(
        model=model,
        precision="fp16",
        seq_len=1024,
        output_len=256,
        efficiency=0.5,
        batch_size=users,
        **arguments,
    )


def _bytes(name: str) -> float:
    form = PRECISIONS[name]
    return form.bits / 8 + float(form.scale_bytes.magnitude)


def _large() -> float:
    r = _card(model=Models.Llama3_70B, hardware=Hardware.MI300X, weight_precision="int4")
    return si(r.model_weights_size)


def _gain(users: int, narrow: str = "int4") -> float:
    return si(_card(users).itl / _card(users, weight_precision=narrow).itl)


def _room(cache: str, weights: str = "int4") -> int:
    r = _card(model=Models.Qwen3_32B, weight_precision=weights, kv_precision=cache)
    return r.max_batch_size


def _overtakes(weights: str = "int8") -> int:
    """Return the first number of users at which an 8-bit cache beats narrower weights."""

    def faster(users: int) -> bool:
        both = _card(users, weight_precision=weights, kv_precision="int8")
        return si(both.itl) < si(_card(users, weight_precision="int4").itl)

    return next(filter(faster, count(1)))


_FIRST = Exercise(
    "quantization-1",
    {
        "size": AmountAsked(
            asks="the bytes of a weight, including its share of the scale",
            unit="byte",
            truth=lambda: _bytes("mxfp4"),
            hint="Divide the bits by eight, and add one byte divided by the weights that share it.",
            mistakes=(
                Mistake(lambda: 0.5, "You left out the scale."),
                Mistake(lambda: _bytes("int4"), "That is the format of AWQ and GPTQ."),
                Mistake(lambda: 0.5 + 1 / 8 / 32, "The scale takes a byte, not a bit."),
            ),
        )
    },
)

_SECOND = Exercise(
    "quantization-2",
    {
        "size": AmountAsked(
            asks="the size of the weights",
            unit="GB",
            truth=_large,
            hint="Count the embedding tables and the other weights separately.",
            mistakes=(
                Mistake(
                    lambda: _bytes("int4") * si(Models.Llama3_70B.parameters),
                    "The embedding tables stay at a higher precision.",
                ),
                Mistake(
                    lambda: 0.5 * si(Models.Llama3_70B.parameters),
                    "You left out the scales and the embedding tables.",
                ),
            ),
        )
    },
)

_THIRD = Exercise(
    "quantization-3",
    {
        "factor": AmountAsked(
            asks="the ratio of the old token time to the new one",
            truth=lambda: _gain(16),
            hint="How much of a step's traffic is cache with so many users?",
            mistakes=(
                Mistake(lambda: _gain(1), "That is for one user."),
                Mistake(lambda: 4.0, "That would be the ratio of the bits."),
            ),
        )
    },
)

_FOURTH = Exercise(
    "quantization-4",
    {
        "wide": CountAsked(
            asks="users with a cache in 16 bits",
            truth=lambda: _room("fp16"),
            hint="Look up `max_batch_size`.",
        ),
        "narrow": CountAsked(
            asks="users with a cache in 8 bits",
            truth=lambda: _room("int8"),
            hint="Set `kv_precision`, and look up `max_batch_size`.",
            mistakes=(
                Mistake(
                    lambda: _room("fp16"),
                    "That is with the 16-bit cache.",
                ),
            ),
        ),
    },
)

_FIFTH = Exercise(
    "quantization-5",
    {
        "users": CountAsked(
            asks="the first number of users at which it is faster",
            truth=_overtakes,
            hint="Compare the token times of both choices, user by user.",
            mistakes=(
                Mistake(
                    lambda: _overtakes("fp16"),
                    "That is with weights in 16 bits.",
                ),
            ),
        )
    },
)

EXERCISES = (_FIRST, _SECOND, _THIRD, _FOURTH, _FIFTH)
"""In the order of the tutorial."""
