"""Exercises of the tutorial "On call for a training run": failures, checkpoints and restarts."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

from mlsysim import Q_, Models, Quantity, ReliabilityResult, ReliabilitySolver, Systems
from mlsysim_course.answers import AmountAsked, Parts, exercise

_PROGRESS = Q_(60, "day")
_PRICE = Q_(2.5, "USD/h")
_GPUS = 2048


def _run(gpus: int = _GPUS, **given: Any) -> ReliabilityResult:
    cluster = Systems.Clusters.Research_256
    fleet = dataclasses.replace(cluster, name=f"{gpus:,} H100", count=gpus // 8)
    return ReliabilitySolver.solve(fleet=fleet, job_duration_hours=_PROGRESS, **given)


def _stored(**given: Any) -> ReliabilityResult:
    return _run(model=Models.Llama3_70B, storage_bandwidth=Q_(25, "GB/s"), **given)


def _handover() -> float:
    return _stored(checkpoint_interval=Q_(4, "h")).goodput


def _longest_restart(gpus: int = 16_384) -> Quantity:
    """Return the longest restart that still leaves a goodput of 0.9."""
    low, high = 1.0, 3600.0  # seconds
    while high - low > 0.01:
        middle = math.sqrt(low * high)
        r = _run(gpus, checkpoint_time_s=30, restart_time=Q_(middle, "s"))
        low, high = (middle, high) if r.goodput >= 0.9 else (low, middle)
    return Q_(low, "s")


@exercise
def _failures_1() -> Parts:
    mtbf_of_servers = _run(64, checkpoint_time_s=30).fleet_mtbf
    mtbf_of_the_page = _run(checkpoint_time_s=30).fleet_mtbf
    yield AmountAsked(
        "time",
        asks="the time between failures of the fleet",
        unit="h",
        truth=_run(512, checkpoint_time_s=30).fleet_mtbf,
        hint="Divide the time between failures of one device by the number of devices.",
        mistakes={
            mtbf_of_servers: "Count GPUs, not servers: the record is per GPU.",
            mtbf_of_the_page: "That is the fleet of the page. A smaller one fails less often.",
        },
    )


@exercise
def _failures_2() -> Parts:
    interval = _run(checkpoint_time_s=5).optimal_checkpoint_interval
    page = _stored()
    pause_ratio = float(Q_(5, "s") / page.checkpoint_time)
    interval_in_proportion = page.optimal_checkpoint_interval * pause_ratio
    yield AmountAsked(
        "interval",
        asks="the best time between checkpoints",
        unit="minute",
        truth=interval,
        hint="Put the pause and the time between failures into Young's formula.",
        mistakes={
            interval_in_proportion: "The interval grows with the square root of the pause, "
            "not in proportion to it.",
            interval / math.sqrt(2): "A factor is missing under the square root.",
        },
    )


@exercise
def _failures_3() -> Parts:
    goodput = _handover()
    yield AmountAsked(
        "time",
        asks="how long the run takes",
        unit="day",
        tolerance=0.002,
        truth=_PROGRESS / goodput,
        hint="Each day makes a day's progress times the goodput.",
        mistakes={
            _PROGRESS * (2 - goodput): "The added days lose time too, so divide instead of adding.",
            _PROGRESS * goodput: "Failures make the run longer, not shorter.",
            _PROGRESS / _stored().goodput: "That uses the best interval, not the one in the "
            "handover.",
        },
    )


@exercise
def _failures_4() -> Parts:
    tenth_of_mtbf = 0.1 * _run(16_384, checkpoint_time_s=30).fleet_mtbf
    yield AmountAsked(
        "restart",
        asks="the longest restart",
        unit="minute",
        tolerance=0.03,
        truth=_longest_restart(),
        hint="Try restart times, each with its own best interval, until the goodput fits.",
        mistakes={
            _longest_restart(gpus=8192): "That is the limit for half as many GPUs.",
            tenth_of_mtbf: "Checkpoints and repeated work already use part of the time that "
            "may be lost.",
        },
    )


@exercise
def _failures_5() -> Parts:
    price_of_a_day = _PRICE * Q_(24, "h") * _GPUS
    cost = price_of_a_day * (_stored().goodput - _handover())
    all_lost_time = price_of_a_day * (1 - _handover())
    yield AmountAsked(
        "cost",
        asks="the cost of a day",
        unit="USD",
        tolerance=0.03,
        form=",.0f",
        truth=cost,
        hint="Multiply the difference in goodput by GPU-hours and price.",
        mistakes={
            all_lost_time: "The best interval loses time as well, so compare the two.",
            cost / 24: "That is the cost of an hour.",
        },
    )
