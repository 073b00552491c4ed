"""Exercises of the tutorial "Long context"."""

from __future__ import annotations

from typing import Any

from mlsysim import Q_, Hardware, Models, ServingResult, ServingSolver, Systems
from mlsysim_course.answers import AmountAsked, CountAsked, Parts, exercise

_LONG = 131_072
_ANSWER = 256
_BIG = Models.Llama3_70B
_WAIT = Q_(2, "s")


def _read(**given: Any) -> ServingResult:
    arguments: dict[str, Any] = {"hardware": Hardware.H200, "seq_len": _LONG - _ANSWER} | given
    return ServingSolver.solve(
        model=Models.Llama3_8B, precision="bf16", output_len=_ANSWER, efficiency=0.5, **arguments
    )


def _catch(width: int) -> float:
    return float(_BIG.parameters.magnitude / (_BIG.layers * width))


def _faster(tp_size: int) -> float:
    pair = _read(hardware=Systems.Nodes.HGX_H200, tp_size=tp_size)
    return float(_read().ttft / pair.ttft)


@exercise
def _long_context_1() -> Parts:
    small = Models.Llama3_8B
    smaller_model = small.parameters.magnitude / (small.layers * small.hidden_dim)
    yield AmountAsked(
        "tokens",
        asks="the length at which both need the same number of operations",
        form=",.0f",
        truth=_catch(_BIG.hidden_dim),
        hint="Divide the parameters by the number of layers and the width.",
        mistakes={
            _catch(_BIG.kv_heads * _BIG.head_dim): "Every query head takes part in the "
            "arithmetic of attention, not only the heads that are cached.",
            smaller_model: "That is the model of the page.",
        },
    )


@exercise
def _long_context_2() -> Parts:
    cache = _BIG.kv_cache_bytes("bf16", _LONG)
    yield AmountAsked(
        "cache",
        asks="the cache of one text",
        unit="GB",
        truth=cache,
        hint="Use the equation for the cache, with the number of key-value heads.",
        mistakes={
            0.5 * cache: "Keys and values are both cached, and each number takes two bytes.",
            Models.Llama3_8B.kv_cache_bytes("bf16", _LONG): "That is the model of the page.",
        },
    )


@exercise
def _long_context_3() -> Parts:
    yield AmountAsked(
        "factor",
        asks="the ratio of the old time to the new one",
        tolerance=0.01,
        truth=_faster(2),
        hint="Solve for both, and divide the times to the first token.",
        mistakes={
            _faster(4): "That is for four GPUs.",
            1 / _faster(2): "That is the ratio of the new time to the old one.",
        },
    )


@exercise
def _long_context_4() -> Parts:
    yield CountAsked(
        "users",
        asks="the most users that fit",
        truth=_read(kv_precision="fp8").max_batch_size,
        hint="Set `kv_precision`, and look up `max_batch_size`.",
        mistakes={_read().max_batch_size: "That is with the 16-bit cache."},
    )


@exercise
def _long_context_5() -> Parts:
    short, long = 1024, _LONG - _ANSWER
    while long - short > 16:
        middle = (short + long) // 2
        if _read(seq_len=middle).ttft <= _WAIT:
            short = middle
        else:
            long = middle
    tokens_in_proportion = 2048 * _WAIT / _read(seq_len=2048).ttft
    yield AmountAsked(
        "tokens",
        asks="the longest prompt, in tokens",
        tolerance=0.03,
        form=",.0f",
        truth=short,
        hint="Raise `seq_len` until the time to the first token is too long.",
        mistakes={
            tokens_in_proportion: "You scaled a short prompt in proportion. Attention grows "
            "faster than that.",
        },
    )
