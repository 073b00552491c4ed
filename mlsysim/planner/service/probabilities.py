"""How certain it is that a plan of a service keeps its limits, and what more certainty costs.

The band of a calibration contains four of five measured runs. We take the logarithm of measured
over predicted time as normally distributed, with a tenth of the runs below the band and a tenth
above it. The time to first token and the time of decode steps have separate errors; in the
published runs that measure both, they are almost uncorrelated (0.13 in 1,135 runs). The queueing
model adds its own error at the utilization, as in the bands of `OpenLoopResult`. These bands also
solve each engine at other rates, which would take three times as long; here the probability that
the capacity suffices, with the error of the throughput of measured runs, covers slower engines.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mlsysim.core.table import Column, Table
from mlsysim.core.types import Band
from mlsysim.planner.sensitivities.certainty import BAND_WIDTH, normal
from mlsysim.solvers.traffic.bands import law_edges

LEVELS = (0.0, 0.5, 0.8, 0.9, 0.95, 0.99)
"""Probabilities of keeping the limits for which an answer states the cost."""


@dataclass(frozen=True)
class LogError:
    """The logarithm of measured over predicted values."""

    mean: float
    deviation: float

    @classmethod
    def of(cls, band: Band, unmeasured: Band) -> LogError:
        """Return that of a calibration's band.

        Without a band, it is as wide as the band of `unmeasured` devices, whose constants are not
        their own, so that constants with too few runs never seem more certain. It is NaN if these
        have no band either.
        """
        if band.low is not None and band.high is not None:
            middle = math.log(band.low * band.high) / 2
            return cls(middle, math.log(band.high / band.low) / BAND_WIDTH)
        return cls(0.0, cls.of(unmeasured, Band()).deviation if unmeasured.known else math.nan)


def keeping(
    columns: Mapping[str, NDArray[Any]], limits: Mapping[str, float], log_errors: NDArray[Any]
) -> NDArray[Any]:
    """Return the probability, row by row, that all times and the capacity are sufficient.

    Times have the errors of pass times and of the queueing model at this utilization, and the
    capacity has the error of measured throughput. Steps and capacity share most of their error, so
    that of these, and of times to first token, the least probable one decides.
    """
    load = columns["utilization"]
    probability = np.ones(len(load))
    for spot, first in enumerate((True, False)):
        mean, deviation = log_errors[:, spot].T
        scores = [] if first else [_enough(load, *log_errors[:, 3].T)]
        for name, limit in limits.items():
            if name.startswith("ttft") == first:
                low, high = (np.log(edge) for edge in law_edges(name, load))
                width = np.hypot(deviation, (high - low) / BAND_WIDTH)
                scores.append(
                    (np.log(1e3 * limit / columns[name]) - mean - (low + high) / 2) / width
                )
        if scores:
            probability = probability * normal(np.min(scores, axis=0))
    return probability


def _enough(load: NDArray[Any], mean: NDArray[Any], deviation: NDArray[Any]) -> NDArray[Any]:
    """Return the score of a capacity that exceeds the arrivals."""
    score: NDArray[Any] = (mean - np.log(load)) / deviation
    return score


def edges(log_errors: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return the edges of the bands of measured over predicted values, row by row."""
    mean, deviation = log_errors.T
    return np.exp(mean - BAND_WIDTH / 2 * deviation), np.exp(mean + BAND_WIDTH / 2 * deviation)


def certainty(
    columns: Mapping[str, NDArray[Any]], goal: str, unit: str, wanted: float | None
) -> Table:
    """Return the best plan, and its cost, for each probability of keeping the limits.

    `columns` are those of all plans, best first, and `goal` names the one to minimize, in a `unit`.
    """
    rows = []
    value = columns[goal]
    for level in sorted({*LEVELS, wanted or 0.0}):
        certain = np.flatnonzero(columns["keeps_limits"] >= level)
        if len(certain):
            row = int(certain[0])
            names = dict.fromkeys(("devices", "hardware", "replicas", "tp_size", goal))
            rows.append(
                {
                    "confidence": level,
                    "keeps_limits": float(columns["keeps_limits"][row]),
                    "more_devices": int(columns["devices"][row] - columns["devices"][0]),
                    "loss": float(value[row] / value[0] - 1),
                }
                | {name: columns[name][row].item() for name in names}
            )
    return Table(
        {n: Column([row[n] for row in rows], unit if n == goal else "") for n in rows[0]},
        limit=None,
    )


def reached(wanted: float, highest: float) -> float:
    """Return the probability that plans must have: the one that is wanted if any plan has it.

    Otherwise, it is the highest one in whole percents, at which plans count as equally certain.
    """
    return wanted if highest >= wanted else math.floor(100 * highest) / 100


def wins(value: float, other: float, log_error: NDArray[Any], other_error: NDArray[Any]) -> float:
    """Return the probability that a predicted value is really below another one."""
    margin = math.log(other / value) + other_error[0] - log_error[0]
    return float(normal(margin / math.hypot(log_error[1], other_error[1])))
