"""Exercises of the tutorial "Quantization": one graphics card, several number formats."""

from __future__ import annotations

from itertools import count
from typing import Any

from mlsysim import Q_, Hardware, Models, ServingResult, ServingSolver, TransformerModel
from mlsysim.core.types import PRECISIONS
from mlsysim_course.answers import AmountAsked, CountAsked, Parts, exercise


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


def _weight(name: str) -> Any:
    """Return the size of a weight with its share of the scale."""
    form = PRECISIONS[name]
    return Q_(form.bits / 8, "byte") + form.scale_bytes


def _gain(users: int) -> float:
    return float(_card(users).itl / _card(users, weight_precision="int4").itl)


def _room(cache: str) -> int:
    r = _card(model=Models.Qwen3_32B, weight_precision="int4", kv_precision=cache)
    return r.max_batch_size


def _overtakes(weights: str = "int8") -> int:
    """Return the first number of users at which an 8-bit cache beats narrower weights."""

    def faster(users: int) -> bool:
        both = _card(users, weight_precision=weights, kv_precision="int8")
        return bool(both.itl < _card(users, weight_precision="int4").itl)

    return next(filter(faster, count(1)))


@exercise
def _quantization_1() -> Parts:
    yield AmountAsked(
        "size",
        asks="the bytes of a weight, including its share of the scale",
        unit="byte",
        truth=_weight("mxfp4"),
        hint="Divide the bits by eight, and add one byte divided by the weights that share it.",
        mistakes={
            Q_(0.5, "byte"): "You left out the scale.",
            _weight("int4"): "That is the format of AWQ and GPTQ.",
            Q_(0.5 + 1 / 8 / 32, "byte"): "The scale takes a byte, not a bit.",
        },
    )


@exercise
def _quantization_2() -> Parts:
    large = _card(model=Models.Llama3_70B, hardware=Hardware.MI300X, weight_precision="int4")
    all_in_four_bits = _weight("int4") * Models.Llama3_70B.parameters
    yield AmountAsked(
        "size",
        asks="the size of the weights",
        unit="GB",
        truth=large.model_weights_size,
        hint="Count the embedding tables and the other weights separately.",
        mistakes={
            all_in_four_bits: "The embedding tables stay at a higher precision.",
            Q_(0.5, "byte") * Models.Llama3_70B.parameters: "You left out the scales and the "
            "embedding tables.",
        },
    )


@exercise
def _quantization_3() -> Parts:
    yield AmountAsked(
        "factor",
        asks="the ratio of the old token time to the new one",
        truth=_gain(16),
        hint="How much of a step's traffic is cache with so many users?",
        mistakes={
            _gain(1): "That is for one user.",
            4.0: "That would be the ratio of the bits.",
        },
    )


@exercise
def _quantization_4() -> Parts:
    yield CountAsked(
        "wide",
        asks="users with a cache in 16 bits",
        truth=_room("fp16"),
        hint="Look up `max_batch_size`.",
    )
    yield CountAsked(
        "narrow",
        asks="users with a cache in 8 bits",
        truth=_room("int8"),
        hint="Set `kv_precision`, and look up `max_batch_size`.",
        mistakes={_room("fp16"): "That is with the 16-bit cache."},
    )


@exercise
def _quantization_5() -> Parts:
    yield CountAsked(
        "users",
        asks="the first number of users at which it is faster",
        truth=_overtakes(),
        hint="Compare the token times of both choices, user by user.",
        mistakes={_overtakes("fp16"): "That is with weights in 16 bits."},
    )
