"""Runs far slower than the others explain: stragglers, restarts, another job on the machine."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import numpy as np

from mlsysim.core.types import Calibration
from mlsysim.fitting.constants import Constant
from mlsysim.fitting.posterior import Posterior, fit, slopes
from mlsysim.fitting.runs import Run
from mlsysim.registry.calibration.priors import SPREAD

__all__ = ["contradictions", "fit_without_outliers"]

_FAR = 4.0
"""Standard deviations beyond which a run is not like the others."""
_FEWEST = 3
"""Runs below which it cannot be told which of them is the odd one."""
_CONTRADICTORY = 2.5
"""Standard deviations beyond which two runs contradict each other."""
_FEW = 3
"""Runs up to which each pair is compared: more of them outvote one that is wrong."""


def fit_without_outliers(
    runs: Sequence[Run], constants: tuple[Constant, ...], base: Calibration
) -> tuple[list[Run], Posterior, list[tuple[str, str]]]:
    """Fit, and leave out one run after the other that is far slower than the rest explain.

    Only slow runs are left out. There are many ways for a run to be slower than its plan, and
    none to be faster, so a fast run is information about the machine. No more than a third of the
    runs is left out: beyond that, the model is what is wrong. Nor is one left out if the rest are
    two runs that contradict each other, because these explain nothing.
    """
    kept, refused = list(runs), []
    found = fit(kept, constants, base)
    for _ in range(len(runs) // 3):
        if len(kept) < _FEWEST:
            break
        slowest = int(np.argmin(found.errors))
        run = kept[slowest]
        if found.errors[slowest] > -_FAR * SPREAD:
            break
        others = kept[:slowest] + kept[slowest + 1 :]
        if len(others) < _FEWEST and contradictions(others, constants):
            break
        without = fit(others, constants, base)
        time, slope = slopes([run], constants, without.x)
        error = float(time[0]) - math.log(run.measured)
        if error > -_FAR * math.sqrt(SPREAD**2 + float(without.variance(slope)[0])):
            break
        refused.append(
            (
                run.id,
                f"step_time_s = {run.measured:g} is {math.exp(-error):.2f} times what the other "
                "runs explain: look for a straggler, a restart or another job, and measure it "
                "again",
            )
        )
        kept, found = others, without
    return kept, found, refused


def contradictions(
    runs: Sequence[Run], constants: tuple[Constant, ...]
) -> list[tuple[str, str, float]]:
    """Return the pairs among two or three runs that differ by more than any machine explains.

    What a machine or a framework does to both runs cancels; what it does to one of them is known
    as well as published constants are. For each pair: the run that is fast for its plan, the one
    that is slow, and how many times longer the slow one took, compared with the fast one, than the
    base predicts.
    """
    if len(runs) > _FEW:
        return []
    times, slope = slopes(runs, constants, np.zeros(len(constants)))
    late = np.log([run.measured for run in runs]) - times
    found = []
    for one, other in itertools.combinations(range(len(runs)), 2):
        fast, slow = (one, other) if late[one] <= late[other] else (other, one)
        apart = float(late[slow] - late[fast])
        own = slope[slow] - slope[fast]
        if apart > _CONTRADICTORY * math.sqrt(2 * SPREAD**2 + float(own @ own)):
            found.append((runs[fast].id, runs[slow].id, math.exp(apart)))
    return found
