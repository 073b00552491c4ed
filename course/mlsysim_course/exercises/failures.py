"""Exercises of the tutorial "On call for a training run": failures, checkpoints and restarts."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

from mlsysim.core.types import Fleet
from mlsysim.core.units import Q_
from mlsysim.registry import Models, Systems
from mlsysim.solvers import ReliabilityResult, ReliabilitySolver
from mlsysim_course.answers import AmountAsked, Parts, exercise, si

_DAYS = 60
_PRICE = 2.5  # USD per GPU-hour, as the exercise says
_GPUS = 2048


def _fleet(gpus: int) -> Fleet:
    return dataclasses.replace(
        Systems.Clusters.Research_256, name=f"{gpus:,} H100", count=gpus // 8
    )


def _run(gpus: int = _GPUS, **given: Any) -> ReliabilityResult:
    return ReliabilitySolver.solve(fleet=_fleet(gpus), job_duration_hours=Q_(_DAYS, "day"), **given)


def _stored(**given: Any) -> ReliabilityResult:
    return _run(model=Models.Llama3_70B, storage_bandwidth=Q_(25, "GB/s"), **given)


def _handover() -> float:
    return _stored(checkpoint_interval=Q_(4, "h")).goodput


def _restart(goodput: float = 0.9, gpus: int = 16_384, pause: float = 30) -> float:
    """Return the longest restart, in seconds, that still leaves a given goodput."""
    low, high = 1.0, 3600.0
    while high - low > 0.01:
        middle = math.sqrt(low * high)
        r = _run(gpus, checkpoint_time_s=pause, restart_time=Q_(middle, "s"))
        low, high = (middle, high) if r.goodput >= goodput else (low, middle)
    return low


def _wasted(goodput: float) -> float:
    return _PRICE * 24 * _GPUS * goodput


@exercise
def _failures_1() -> Parts:
    mtbf_of_servers = si(_run(64, checkpoint_time_s=30).fleet_mtbf)
    mtbf_of_the_page = si(_run(checkpoint_time_s=30).fleet_mtbf)
    yield AmountAsked(
        "time",
        asks="the time between failures of the fleet",
        unit="h",
        truth=si(_run(512, checkpoint_time_s=30).fleet_mtbf),
        hint="Divide the time between failures of one device by the number of devices.",
        mistakes={
            mtbf_of_servers: "Count GPUs, not servers: the record is per GPU.",
            mtbf_of_the_page: "That is the fleet of the page. A smaller one fails less often.",
        },
    )


@exercise
def _failures_2() -> Parts:
    interval_in_proportion = (
        si(_stored().optimal_checkpoint_interval) * 5 / si(_stored().checkpoint_time)
    )
    interval_without_the_factor = si(
        _run(checkpoint_time_s=5).optimal_checkpoint_interval
    ) / math.sqrt(2)
    yield AmountAsked(
        "interval",
        asks="the best time between checkpoints",
        unit="minute",
        truth=si(_run(checkpoint_time_s=5).optimal_checkpoint_interval),
        hint="Put the pause and the time between failures into Young's formula.",
        mistakes={
            interval_in_proportion: "The interval grows with the square root of the pause, "
            "not in proportion to it.",
            interval_without_the_factor: "A factor is missing under the square root.",
        },
    )


@exercise
def _failures_3() -> Parts:
    yield AmountAsked(
        "time",
        asks="how long the run takes",
        unit="day",
        tolerance=0.002,
        truth=_DAYS * 86_400 / _handover(),
        hint="Each day makes a day's progress times the goodput.",
        mistakes={
            _DAYS * 86_400 * (2 - _handover()): "The added days lose time too, so divide "
            "instead of adding.",
            _DAYS * 86_400 * _handover(): "Failures make the run longer, not shorter.",
            _DAYS * 86_400 / _stored().goodput: "That uses the best interval, not the one in "
            "the handover.",
        },
    )


@exercise
def _failures_4() -> Parts:
    tenth_of_mtbf = 0.1 * si(_run(16_384, checkpoint_time_s=30).fleet_mtbf)
    yield AmountAsked(
        "restart",
        asks="the longest restart",
        unit="minute",
        tolerance=0.03,
        truth=_restart(),
        hint="Try restart times, each with its own best interval, until the goodput fits.",
        mistakes={
            _restart(gpus=8192): "That is the limit for half as many GPUs.",
            tenth_of_mtbf: "Checkpoints and repeated work already use part of the time that "
            "may be lost.",
        },
    )


@exercise
def _failures_5() -> Parts:
    yield AmountAsked(
        "cost",
        asks="the cost of a day",
        unit="USD",
        tolerance=0.03,
        truth=_wasted(_stored().goodput - _handover()),
        hint="Multiply the difference in goodput by GPU-hours and price.",
        mistakes={
            _wasted(1 - _handover()): "The best interval loses time as well, so compare the two.",
            _wasted(_stored().goodput - _handover()) / 24: "That is the cost of an hour.",
        },
    )
