"""Exercises of the tutorial "Cost and capacity": a chat service for a campus."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

from mlsysim import (
    Q_,
    EconomicsSolver,
    Hardware,
    Infra,
    Models,
    RentalOffer,
    ServingResult,
    ServingSolver,
    Systems,
)
from mlsysim_course.answers import AmountAsked, ChoiceAsked, CountAsked, Parts, exercise

_PEAK = Q_(60, "1/s")  # requests
_LIMIT = Q_(30, "ms")  # between tokens
_PRICE = 200_000.0  # USD for a server


def _chat(users: int, **given: Any) -> ServingResult:
    arguments: dict[str, Any] = {"hardware": Hardware.H100, "precision": "bf16"} | given
    return ServingSolver.solve(
        model=Models.Llama3_8B, seq_len=2048, output_len=256, batch_size=users, **arguments
    )


def _million(result: ServingResult, offer: RentalOffer = Systems.Lambda_H100) -> Any:
    return 1e6 * offer.price / result.output_throughput


def _small(**given: Any) -> ServingResult:
    return _chat(8, hardware=Hardware.L4, **({"precision": "fp8"} | given))


def _break_even(**given: Any) -> float:
    """Return the cost of an hour on one's own GPU, as a share of the rent."""
    fleet = dataclasses.replace(Systems.Clusters.Research_256, name="8 H100", count=1)
    year = EconomicsSolver.solve(
        fleet=fleet, duration_days=Q_(1, "year"), datacenter=Infra.Hyperscale_US, **given
    )
    return float(year.cost_per_device_hour / Systems.Lambda_H100.price)


def _gpus(precision: str) -> int:
    return math.ceil(float(_PEAK / _chat(64, precision=precision).request_throughput))


@exercise
def _cost_1() -> Parts:
    cost_during_decode = 1e6 * Systems.Lambda_H100.price / _chat(32).decode_throughput
    yield AmountAsked(
        "cost",
        asks="the cost of a million tokens of output",
        unit="USD",
        truth=_million(_chat(32)),
        hint="Divide the price of a second by the tokens of a second.",
        mistakes={
            cost_during_decode: "While a prompt is read, no user gets a token: use "
            "`output_throughput`.",
            _million(_chat(32)) / 32: "`output_throughput` counts all users already.",
        },
    )


@exercise
def _cost_2() -> Parts:
    yield AmountAsked(
        "cost",
        asks="the cost of a million tokens of output",
        unit="USD",
        truth=_million(_small(), Systems.Modal_L4),
        hint="Divide the price of a second by the tokens of a second.",
        mistakes={
            _million(_small(precision="bf16"), Systems.Modal_L4): "That is in 16 bits.",
            _million(_small()): "That is the price of an H100.",
        },
    )
    yield ChoiceAsked(
        "limit",
        asks='whether the limit is `"met"` or `"missed"`',
        options=("met", "missed"),
        truth="met" if _small().itl <= _LIMIT else "missed",
        hint="Look at `itl`.",
    )


@exercise
def _cost_3() -> Parts:
    yield AmountAsked(
        "share",
        asks="the share of the hours",
        truth=_break_even(unit_price=_PRICE),
        hint="Divide the hourly cost of a purchased GPU by the rent of one.",
        mistakes={
            _break_even(): "That uses the price in the catalog.",
            _break_even(unit_price=_PRICE / 8): "The price is for a server, not for a GPU.",
        },
    )


@exercise
def _cost_4() -> Parts:
    yield CountAsked(
        "wide",
        asks="GPUs in bf16",
        truth=_gpus("bf16"),
        hint="Divide by `request_throughput` and round up.",
    )
    yield CountAsked(
        "narrow",
        asks="GPUs in fp8",
        truth=_gpus("fp8"),
        hint="Divide by `request_throughput` and round up.",
        mistakes={_gpus("bf16"): "That is in 16 bits."},
    )
