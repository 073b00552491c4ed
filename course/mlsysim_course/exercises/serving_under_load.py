"""Exercises of the tutorial "A server under load"."""

from __future__ import annotations

from functools import cache
from typing import Any

from mlsysim.registry import Hardware, Models, Systems
from mlsysim.solvers import OpenLoopResult, OpenLoopSolver
from mlsysim_course.answers import AmountAsked, ChoiceAsked, Parts, exercise, si

_HALVINGS = 30
_REPLICAS, _ONE = "replicas", "one server"


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


def _capacity(**given: Any) -> float:
    return si(_monday(1, **given).request_capacity)


def _longer(**given: Any) -> float:
    return _capacity(**given) / _capacity()


@cache
def _highest(**limits: float) -> float:
    """Return the highest rate at which every time is within its limit in seconds, by bisection."""
    low, high = 0.0, _capacity()
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        result = _monday(middle)
        within = result.feasible and all(si(result[name]) <= most for name, most in limits.items())
        low, high = (middle, high) if within else (low, middle)
    return low


def _pair(rate: float = 24) -> OpenLoopResult:
    return _monday(rate, hardware=Systems.Nodes.DGX_H100, tp_size=2)


@exercise
def _serving_under_load_1() -> Parts:
    yield AmountAsked(
        "requests",
        asks="the mean number of requests in the server",
        truth=12 * si(_monday(12).e2e_mean),
        hint="Multiply the arrival rate by the mean time from arrival to the last token.",
        mistakes={
            12 * si(_monday(12).e2e_p99): "Little's law uses the mean time.",
            12 * si(_monday(12).ttft_mean): "A request stays in the server until its last token.",
        },
    )


@exercise
def _serving_under_load_2() -> Parts:
    yield AmountAsked(
        "factor",
        asks="the ratio of the capacity with the cache to that without it",
        truth=_longer(cached_share=0.5),
        hint="Solve twice, and divide `request_capacity`. Half of the prompt is still read.",
        mistakes={
            2.0: "Decode takes time too. Only the time for prompts shrinks.",
            1 / _longer(cached_share=0.5): "Invert the ratio. The capacity grows.",
            _longer(seq_len=500): "A cached token is not read again, but its keys and values "
            "are still there.",
        },
    )


@exercise
def _serving_under_load_3() -> Parts:
    yield AmountAsked(
        "rate",
        asks="the highest arrival rate that meets both limits",
        unit="1/s",
        truth=_highest(ttft_p99=0.15, tpot_p99=0.02),
        hint="Raise the rate until the first of the two limits breaks, or use `capacity`.",
        mistakes={
            _highest(tpot_p99=0.02): "You left out the limit on the first token.",
            _highest(ttft_mean=0.15, tpot_mean=0.02): "The limits apply to 99 of 100 "
            "requests, not to the mean.",
        },
    )


@exercise
def _serving_under_load_4() -> Parts:
    room = 2 * _capacity() / si(_pair().request_capacity)
    faster = _ONE if si(_pair().tpot_p99) < si(_monday(12).tpot_p99) else _REPLICAS
    yield ChoiceAsked(
        "faster",
        asks=f'which has the smaller p99 per token, `"{_REPLICAS}"` or `"{_ONE}"`',
        options=(_REPLICAS, _ONE),
        truth=faster,
        hint="Solve both, with 12 requests per second for a replica and 24 for the server.",
    )
    yield AmountAsked(
        "capacity",
        asks="the ratio of the capacity of both replicas to that of the one server",
        truth=room,
        hint="Divide `request_capacity` of two replicas by that of the one server.",
        mistakes={
            1 / room: "Invert the ratio. The replicas have the larger capacity.",
            room / 2: "There are two replicas.",
            1.0: "Communication between the two GPUs takes time.",
        },
    )
