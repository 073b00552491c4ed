"""Exercises of the tutorial "A server under load"."""

from __future__ import annotations

from functools import cache
from typing import Any

from mlsysim import (
    Q_,
    Hardware,
    Models,
    OpenLoopResult,
    OpenLoopSolver,
    Quantity,
    Systems,
)
from mlsysim_course.answers import AmountAsked, ChoiceAsked, Parts, exercise

_HALVINGS = 30
_TTFT, _TPOT = Q_(150, "ms"), Q_(20, "ms")


def _monday(rate: float, **given: Any) -> OpenLoopResult:
    """Solve the tutorial's server under its traffic."""
    page: dict[str, Any] = {
        "model": Models.Llama3_8B,
        "hardware": Hardware.H100,
        "precision": "bf16",
        "seq_len": 1000,
        "output_len": 200,
        "burstiness": 1,
        "input_variation": 1,
        "output_variation": 1,
        "arrival_rate": rate,
    }
    return OpenLoopSolver.solve(**page | given)


def _capacity(**given: Any) -> Quantity:
    return _monday(1, **given).request_capacity


def _gain(**given: Any) -> float:
    return float(_capacity(**given) / _capacity())


@cache
def _highest(**limits: Quantity) -> Quantity:
    """Return the highest rate at which every time is within its limit, by bisection."""
    low, high = 0.0, _capacity().to("1/s").magnitude
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        result = _monday(middle)
        within = result.feasible and all(result[name] <= most for name, most in limits.items())
        low, high = (middle, high) if within else (low, middle)
    return Q_(low, "1/s")


@exercise
def _serving_under_load_1() -> Parts:
    rate = Q_(12, "1/s")
    yield AmountAsked(
        "requests",
        asks="the mean number of requests in the server",
        truth=float(rate * _monday(12).e2e_mean),
        hint="Multiply the arrival rate by the mean time from arrival to the last token.",
        mistakes={
            rate * _monday(12).e2e_p99: "Little's law uses the mean time.",
            rate * _monday(12).ttft_mean: "A request stays in the server until its last token.",
        },
    )


@exercise
def _serving_under_load_2() -> Parts:
    yield AmountAsked(
        "factor",
        asks="the ratio of the capacity with the cache to that without it",
        truth=_gain(cached_share=0.5),
        hint="Solve twice, and divide `request_capacity`. Half of the prompt is still read.",
        mistakes={
            2.0: "Decode takes time too. Only the time for prompts shrinks.",
            1 / _gain(cached_share=0.5): "Invert the ratio. The capacity grows.",
            _gain(seq_len=500): "A cached token is not read again, but its keys and values "
            "are still there.",
        },
    )


@exercise
def _serving_under_load_3() -> Parts:
    yield AmountAsked(
        "rate",
        asks="the highest arrival rate that meets both limits",
        unit="1/s",
        truth=_highest(ttft_p99=_TTFT, tpot_p99=_TPOT),
        hint="Raise the rate until the first of the two limits breaks, or use `capacity`.",
        mistakes={
            _highest(tpot_p99=_TPOT): "You left out the limit on the first token.",
            _highest(ttft_mean=_TTFT, tpot_mean=_TPOT): "The limits apply to 99 of 100 "
            "requests, not to the mean.",
        },
    )


@exercise
def _serving_under_load_4() -> Parts:
    replica = _monday(12)
    pair = _monday(24, hardware=Systems.Nodes.DGX_H100, tp_size=2)
    p99: dict[str, Any] = {"replicas": replica.tpot_p99, "one server": pair.tpot_p99}
    capacity = float(2 * replica.request_capacity / pair.request_capacity)
    yield ChoiceAsked(
        "faster",
        asks='which has the smaller p99 per token, `"replicas"` or `"one server"`',
        options=("replicas", "one server"),
        truth=min(p99, key=lambda name: p99[name]),
        hint="Solve both, with 12 requests per second for a replica and 24 for the server.",
    )
    yield AmountAsked(
        "capacity",
        asks="the ratio of the capacity of both replicas to that of the one server",
        truth=capacity,
        hint="Divide `request_capacity` of two replicas by that of the one server.",
        mistakes={
            1 / capacity: "Invert the ratio. The replicas have the larger capacity.",
            capacity / 2: "There are two replicas.",
            1.0: "Communication between the two GPUs takes time.",
        },
    )
