"""Exercises of the tutorial "Serving on one GPU"."""

from __future__ import annotations

import math
from typing import Any

from mlsysim import Q_, Accelerator, Hardware, Models, ServingResult, ServingSolver
from mlsysim_course.answers import AmountAsked, ChoiceAsked, CountAsked, Parts, exercise

_MODEL = Models.Llama3_8B
_DEVICES = (Hardware.A100, Hardware.H100, Hardware.H200, Hardware.B200, Hardware.MI300X)
_PROMISE = Q_(25, "ms")
_CROWD = 10**9  # users, as if memory had no limit


def _textbook(**given: Any) -> ServingResult:
    common = {"model": _MODEL, "hardware": Hardware.H100, "precision": "bf16", "efficiency": 0.5}
    return ServingSolver.solve(**{**common, **given})


def _request(**given: Any) -> ServingResult:
    return _textbook(**{"seq_len": 2048, "output_len": 256, **given})


def _ceiling(context: float, heads: int = _MODEL.kv_heads, vectors: int = 2) -> Any:
    """Return tokens per second if a step reads only the keys and values of a context."""
    token = Q_(2, "byte") * vectors * _MODEL.layers * heads * _MODEL.head_dim
    return Hardware.H100.memory.bandwidth / (context * token)


def _most_users(device: Accelerator, *, room: bool = True) -> int:
    """Return the most users within the latency limit, with or without the memory limit."""
    most = _request(hardware=device, seq_len=8192).max_batch_size

    def keeps_promise(batch: int) -> bool:
        return bool(_request(hardware=device, seq_len=8192, batch_size=batch).itl <= _PROMISE)

    batch = most
    while not room and keeps_promise(batch + 1):
        batch += 1
    while batch and not keeps_promise(batch):
        batch -= 1
    return int(batch)


def _best(*, room: bool = True) -> Accelerator:
    return max(_DEVICES, key=lambda device: _most_users(device, room=room))


def _eight_k(**given: Any) -> int:
    return int(_textbook(seq_len=8192, **given).max_batch_size)


@exercise
def _serving_one_gpu_1() -> Parts:
    weights, cache = _eight_k(weight_precision="int4"), _eight_k(kv_precision="fp8")
    both_changes = _eight_k(weight_precision="int4", kv_precision="fp8")
    yield ChoiceAsked(
        "better",
        asks='which makes room for more users: 4-bit `"weights"` or an 8-bit `"cache"`',
        options=("weights", "cache"),
        truth="weights" if weights > cache else "cache",
        hint="Which of the two fills the memory when many users share it?",
    )
    yield CountAsked(
        "users",
        asks="how many users fit then",
        truth=max(weights, cache),
        hint="Divide the memory that the weights leave free by the cache of one user.",
        mistakes={
            _eight_k(): "That is with 16 bits throughout.",
            min(weights, cache): "That is the number for the other choice.",
            both_changes: "That is the number with both changes at once.",
        },
    )


@exercise
def _serving_one_gpu_2() -> Parts:
    yield AmountAsked(
        "throughput",
        asks="the ceiling in tokens per second, with the contexts of this tutorial",
        unit="token/s",
        form=",.0f",
        truth=_request(batch_size=_CROWD).decode_throughput,
        hint="With many users the weights hardly matter: what does one more user add to a step?",
        mistakes={
            _ceiling(2048): "The context grows during decode, so use its mean.",
            _ceiling(2048 + 256): "The context reaches its full length only at the end, so "
            "use its mean.",
            _ceiling(2048 + 128, _MODEL.heads): "Several query heads share one key-value head.",
            _ceiling(2048 + 128, vectors=1): "Each key-value head stores both a key and a value.",
        },
    )


@exercise
def _serving_one_gpu_3() -> Parts:
    ridge = Hardware.H100.ridge_point("bf16").to("FLOP/B").magnitude
    weights_alone = "That would be so if the weights were all that a step reads."
    yield CountAsked(
        "batch",
        asks="the first batch whose decode is compute-bound, a whole number, or "
        '`"never"` if no batch is',
        truth=math.inf if _request(batch_size=_CROWD).itl_bottleneck == "memory" else _CROWD,
        hint="Each user adds operations and a cache that is not shared. Compare the ratio of "
        "the two with the ridge point.",
        mistakes={math.ceil(0.5 * ridge): weights_alone, math.ceil(ridge): weights_alone},
    )


@exercise
def _serving_one_gpu_4() -> Parts:
    device, fastest = _best(), _best(room=False)
    users = _most_users(device)
    answer = _request(hardware=device, seq_len=8192, batch_size=users)
    throughput = answer.decode_throughput
    yield ChoiceAsked(
        "gpu",
        asks='the device with the most users, by its name or catalog name, such as `"A100"`',
        options=tuple(device.name for device in _DEVICES),
        catalog=Hardware,
        truth=device.name,
        hint="Another device serves more users within the limit. What limits each device: its "
        "memory capacity, or the time that it takes to read all of its memory?",
    )
    yield CountAsked(
        "users",
        asks="how many users that is",
        truth=users,
        hint="Find the largest batch that fits and keeps the limit. Which of the two breaks first?",
        mistakes={
            _most_users(
                fastest, room=False
            ): "That many users would be fast enough, but they do not fit in memory.",
        },
    )
    yield AmountAsked(
        "throughput",
        asks="their tokens per second during decode",
        unit="token/s",
        form=",.0f",
        truth=throughput,
        hint="Each of your users gets one token per step.",
        mistakes={throughput / users: "That is the rate of one user."},
    )
