"""Runs far slower than the others explain: stragglers, restarts, another job on the machine."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from mlsysim.core.types import Calibration
from mlsysim.fitting.constants import Constant
from mlsysim.fitting.posterior import Posterior, fit, slopes
from mlsysim.fitting.runs import Run
from mlsysim.registry.calibration.priors import SPREAD

__all__ = ["fit_without_outliers"]

_FAR = 4.0
"""Standard deviations beyond which a run is not like the others."""
_FEWEST = 3
"""Runs below which it cannot be told which of them is the odd one."""


def fit_without_outliers(
    runs: Sequence[Run], constants: tuple[Constant, ...], base: Calibration
) -> tuple[list[Run], Posterior, list[tuple[str, str]]]:
    """Fit, and leave out one run after the other that is far slower than the rest explain.

    Only slow runs are left out. There are many ways for a run to be slower than its plan, and
    none to be faster, so a fast run is information about the machine. No more than a third of the
    runs is left out: beyond that, the model is what is wrong.
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
