"""Exercises of the tutorial "A fleet of servers"."""

from __future__ import annotations

import math
from functools import cache
from typing import Any

from mlsysim import (
    Q_,
    DisaggregatedSolver,
    Fleet,
    Models,
    Quantity,
    ServingResult,
    ServingSolver,
    Systems,
)
from mlsysim_course.answers import AmountAsked, ChoiceAsked, CountAsked, Parts, exercise

_SERVERS, _CLIENTS = 4, 128
_MEMORY = Q_(141, "GB")


def _million(gpus: int = 8, busy: float = 0.5) -> Any:
    """Return the price of a million tokens."""
    return 1e6 * gpus * Q_(3, "USD/h") / (Q_(1500, "1/s") * busy)


def _devices(form: str) -> int:
    """Return how many devices hold the weights."""
    r = ServingSolver.solve(
        model=Models.DeepSeek_V3,
        hardware=Systems.Nodes.HGX_H200,
        tp_size=8,
        precision="bf16",
        weight_precision=form,
    )
    return math.ceil(float(r.model_weights_size / _MEMORY))


_ASKED: dict[str, Any] = {
    "model": Models.DeepSeek_V3,
    "precision": "fp8",
    "seq_len": 2048,
    "output_len": 512,
}


@cache
def _pools(readers: int) -> Quantity:
    """Return tokens per second of four servers when some of them only run prefill."""
    four = Fleet(
        name="4 servers",
        node=Systems.Nodes.HGX_H200,
        count=_SERVERS,
        fabric=Systems.Fabrics.InfiniBand_NDR,
    )
    r = DisaggregatedSolver.solve(
        **_ASKED,
        hardware=four,
        batch_size=_CLIENTS,
        tp_size=8,
        prefill_tp_size=8,
        prefill_workers=readers,
        decode_workers=_SERVERS - readers,
    )
    return r.output_throughput


@cache
def _copy(clients: int) -> Quantity:
    r = ServingSolver.solve(
        **_ASKED, hardware=Systems.Nodes.HGX_H200, tp_size=8, batch_size=clients
    )
    return r.output_throughput


@exercise
def _serving_fleet_1() -> Parts:
    yield AmountAsked(
        "price",
        asks="the price of a million tokens in dollars",
        unit="USD",
        truth=_million(),
        hint="Divide the rent of an hour by the tokens of an hour.",
        mistakes={
            _million(busy=1): "You pay for the idle half, too.",
            _million(gpus=1): "The rent is for each of the eight GPUs.",
        },
    )


@exercise
def _serving_fleet_2() -> Parts:
    yield CountAsked(
        "narrow",
        asks="GPUs for the weights in 8 bits",
        truth=_devices("fp8"),
        hint="Divide `model_weights_size` by the memory, and round up.",
        mistakes={1: "All experts have to be in memory, used or not."},
    )
    yield CountAsked(
        "wide",
        asks="GPUs for the weights in 16 bits",
        truth=_devices("bf16"),
        hint="Divide `model_weights_size` by the memory, and round up.",
    )


@exercise
def _serving_fleet_3() -> Parts:
    def solve(tp_size: int, batch_size: int) -> ServingResult:
        return ServingSolver.solve(
            model=Models.Llama3_70B,
            hardware=Systems.Nodes.DGX_H100,
            precision="bf16",
            efficiency=0.5,
            seq_len=2048,
            output_len=256,
            tp_size=tp_size,
            batch_size=batch_size,
        )

    eight, four = solve(8, 64), solve(4, 32)
    faster = float(four.itl / eight.itl)
    more_throughput = float(2 * four.output_throughput / eight.output_throughput)
    differs = "itl" if abs(math.log(faster)) > abs(math.log(more_throughput)) else "throughput"
    yield ChoiceAsked(
        "differs",
        asks='which differs more: the time between tokens, `"itl"`, or the `"throughput"`',
        options=("itl", "throughput"),
        truth=differs,
        hint="One group reads the weights once for all users, two groups read them twice. "
        "Which of the numbers also includes prefill?",
    )
    yield AmountAsked(
        "faster",
        asks="the factor by which tokens come faster from the group of eight",
        tolerance=0.03,
        truth=faster,
        hint="Solve both with 64 users in total, and divide the times between tokens.",
        mistakes={
            1 / faster: "Invert the ratio. The group of eight is the faster one.",
            faster - 1: "That is only the gain. The factor also includes the original rate.",
            2.0: "Each GPU reads half as many weights, but a GPU reads more than weights.",
        },
    )


@exercise
def _serving_fleet_4() -> Parts:
    readers = max(range(1, _SERVERS), key=_pools)
    factor = float(_pools(readers) / (_SERVERS * _copy(_CLIENTS // _SERVERS)))
    gain_over_all_clients = _pools(readers) / (_SERVERS * _copy(_CLIENTS))
    yield CountAsked(
        "readers",
        asks="how many of the four servers should read prompts",
        truth=readers,
        hint="Solve with one, two and three such servers, and compare the tokens per second.",
    )
    yield AmountAsked(
        "factor",
        asks="the ratio of its tokens per second to those of four copies",
        truth=factor,
        tolerance=0.01,
        hint="Each of the four copies has a quarter of the clients, and there are four.",
        mistakes={
            _SERVERS * factor: "There are four copies.",
            gain_over_all_clients: "Each copy has a quarter of the clients.",
        },
    )
