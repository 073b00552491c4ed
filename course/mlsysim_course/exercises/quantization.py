"""Exercises of the tutorial "Quantization": one graphics card, several number formats."""

from __future__ import annotations

from itertools import count
from typing import Any

from mlsysim.core.types import PRECISIONS, TransformerModel
from mlsysim.registry import Hardware, Models
from mlsysim.solvers import ServingResult, ServingSolver
from mlsysim_course.answers import AmountAsked, CountAsked, Parts, exercise, si


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


@exercise
def _quantization_1() -> Parts:
    yield AmountAsked(
        "size",
        asks="the bytes of a weight, including its share of the scale",
        unit="byte",
        truth=_bytes("mxfp4"),
        hint="Divide the bits by eight, and add one byte divided by the weights that share it.",
        mistakes={
            0.5: "You left out the scale.",
            _bytes("int4"): "That is the format of AWQ and GPTQ.",
            0.5 + 1 / 8 / 32: "The scale takes a byte, not a bit.",
        },
    )


@exercise
def _quantization_2() -> Parts:
    r = _card(model=Models.Llama3_70B, hardware=Hardware.MI300X, weight_precision="int4")
    large = si(r.model_weights_size)
    all_in_four_bits = _bytes("int4") * si(Models.Llama3_70B.parameters)
    yield AmountAsked(
        "size",
        asks="the size of the weights",
        unit="GB",
        truth=large,
        hint="Count the embedding tables and the other weights separately.",
        mistakes={
            all_in_four_bits: "The embedding tables stay at a higher precision.",
            0.5 * si(Models.Llama3_70B.parameters): "You left out the scales and the "
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
