"""Runs far slower than the others explain: stragglers, restarts, another job on the machine."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import numpy as np

from mlsysim.core.types import Calibration
from mlsysim.fitting.constants import SPREAD, Constant
from mlsysim.fitting.posterior import Posterior, fit, slopes
from mlsysim.fitting.runs import Run

__all__ = ["contradictions", "fit_without_outliers"]

_FAR = 4.0
"""Standard deviations beyond which a run counts as an outlier."""
_FEWEST = 3
"""Fewest runs among which an outlier can be identified."""
_CONTRADICTORY = 2.5
"""Standard deviations beyond which two runs contradict each other."""
_FEW = 3
"""Most runs for which each pair is compared; among more runs, the majority outvotes a wrong one."""


def fit_without_outliers(
    runs: Sequence[Run], constants: tuple[Constant, ...], base: Calibration
) -> tuple[list[Run], Posterior, list[tuple[str, str]]]:
    """Fit, leaving out runs one by one that are far slower than the rest explain.

    Only slow runs are left out. There are many ways for a run to be slower than its plan, but none
    to be faster, so a fast run is information about the machine. At most a third of the runs are
    left out; beyond that, the model is at fault. No run is left out if the rest are two runs that
    contradict each other, because these explain nothing.
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
                f"step_latency_total = {run.measured:g} s is {math.exp(-error):.2f} times what the "
                "other runs explain: look for a straggler, a restart or another job, and measure "
                "it again",
            )
        )
        kept, found = others, without
    return kept, found, refused


def contradictions(
    runs: Sequence[Run], constants: tuple[Constant, ...]
) -> list[tuple[str, str, float]]:
    """Return the pairs among two or three runs that differ by more than any machine explains.

    Effects of the machine or the framework on both runs cancel; effects on only one of them are as
    uncertain as the published constants. Each item has the run that is fast for its plan, the one
    that is slow, and the ratio of their times divided by the ratio that the base predicts.
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
