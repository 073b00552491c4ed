"""The most probable factors, and their remaining uncertainty."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mlsysim.core.numeric import NINETIETH
from mlsysim.core.types import Calibration
from mlsysim.fitting.constants import SPREAD, Constant, Floats, changed
from mlsysim.fitting.runs import Run
from mlsysim.solvers.training.operators import operator_step

_STEPS = 30
_NUDGE = 0.01
"""Step of the numerical derivative, in standard deviations of the prior."""
_HALVINGS = 0.5 ** np.arange(8)
_MISFIT, _MISFIT_RUNS = 2.0, 4.0
"""What to expect of `Posterior.misfit`, and how many runs that expectation is worth.

Measured by ``python -m research.transfer`` on rows marked ``calibrate``: with these, four of five
runs that a fit to one, three or six others did not see are in its band."""


@dataclass(frozen=True)
class Posterior:
    """Factors given the runs, approximated as a normal distribution (Laplace)."""

    constants: tuple[Constant, ...]
    x: Floats
    """Logarithms of the factors, divided by the standard deviations of the prior."""
    covariance: Floats
    """Covariance of `x`; the identity if runs have no information."""
    errors: Floats
    """Logarithm of predicted over measured, for each run."""
    misfit: float
    """Variance of predictions divided by its expected value: how far runs are from what the others
    predict, combined with the usual misfit elsewhere."""

    @property
    def spreads(self) -> Floats:
        """Standard deviations of the prior."""
        return np.array([constant.spread for constant in self.constants])

    @property
    def logs(self) -> Floats:
        """Logarithms of the factors."""
        return self.x * self.spreads

    @property
    def shrinkage(self) -> Floats:
        """Standard deviation of each factor's logarithm, divided by that of the prior."""
        return np.sqrt(np.diag(self.covariance))

    def half_band(self, variance: float) -> float:
        """Return half of the band that covers four of five runs, in logarithms.

        `variance` is that of the predictions. The misfit is estimated from a few runs, so the
        quantile is Student's (Abramowitz and Stegun, 26.7.5).
        """
        z, freedom = NINETIETH, _MISFIT_RUNS + len(self.errors)
        student = (
            z + (z**3 + z) / (4 * freedom) + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * freedom**2)
        )
        return student * math.sqrt(self.misfit * (variance + SPREAD**2))

    def variance(self, slope: Floats) -> Floats:
        """Variance of the logarithm of predicted times, given their slopes, one per row."""
        return np.asarray(np.einsum("pi,ij,pj->p", slope, self.covariance, slope))


def log_times(runs: Sequence[Run], constants: Sequence[Constant], logs: Floats) -> Floats:
    """Return the logarithm of predicted times: a row for each run, a column for each of `logs`."""
    found = np.empty((len(runs), len(logs)))
    for place, run in enumerate(runs):
        outputs = operator_step(changed(run.plain, constants, logs))
        found[place] = outputs["step_latency_total"]
    return np.log(found)


def slopes(
    runs: Sequence[Run], constants: Sequence[Constant], x: Floats, high: Floats | None = None
) -> tuple[Floats, Floats]:
    """Return the logarithms of predicted times, and their derivatives by `x`."""
    spreads = np.array([constant.spread for constant in constants])
    nudge = np.full(len(x), _NUDGE)
    if high is not None:
        nudge = np.where(x + nudge > high, -nudge, nudge)
    found = log_times(runs, constants, np.vstack([x, x + np.diag(nudge)]) * spreads)
    return found[:, 0], (found[:, 1:] - found[:, :1]) / nudge


def fit(runs: Sequence[Run], constants: tuple[Constant, ...], base: Calibration) -> Posterior:
    """Find the most probable factors by Gauss-Newton steps.

    Errors are logarithms of ratios, in units of the spread between runs; beyond that they count
    linearly (Charbonnier's loss), as in `research.fits.training`. Runs of the same plan share one
    weight, because they share the model's error for that plan.
    """
    measured = np.log([run.measured for run in runs])
    spreads = np.array([constant.spread for constant in constants])
    low, high = (
        np.array(edge) / spreads
        for edge in zip(*(constant.edges(base) for constant in constants), strict=True)
    )
    x = np.zeros(len(constants))
    weight = np.ones(len(runs))
    best = np.inf

    for step_number in range(_STEPS):
        times, slope = slopes(runs, constants, x, high)
        if step_number == 0:
            weight = _weights(times, slope)
        scaled = (times - measured) / SPREAD
        slope = slope / SPREAD
        pull = weight / np.sqrt(1 + scaled**2)
        gradient = slope.T @ (pull * scaled) + x
        curvature = slope.T @ (pull[:, None] * slope) + np.eye(len(x))
        free = ~((x <= low) & (gradient > 0) | (x >= high) & (gradient < 0))
        if step_number == _STEPS - 1:
            break
        best = min(best, float(_objective(scaled[:, None], x[None], weight)[0]))
        move = np.zeros(len(x))
        move[free] = -np.linalg.solve(curvature[np.ix_(free, free)], gradient[free])
        trials = np.clip(x + _HALVINGS[:, None] * move, low, high)
        tried = (log_times(runs, constants, trials * spreads) - measured[:, None]) / SPREAD
        values = _objective(tried, trials, weight)
        chosen = int(np.argmin(values))
        if not values[chosen] < best - 1e-9:
            break
        x, best = trials[chosen], float(values[chosen])
    covariance: Floats = np.linalg.inv(curvature).astype(float)
    # Without a run, its error would be larger by one over the share not explained by the run
    # itself.
    own = pull * np.einsum("pi,ij,pj->p", slope, covariance, slope)
    misfit = (_MISFIT_RUNS * _MISFIT + float((scaled**2 / (1 - own)).sum())) / (
        _MISFIT_RUNS + len(runs)
    )
    return Posterior(constants, x, covariance, times - measured, misfit)


def _objective(scaled: Floats, x: Floats, weight: Floats) -> Floats:
    """Return minus the logarithm of the probability, for each column of errors and row of `x`."""
    lost = weight @ (np.sqrt(1 + scaled**2) - 1)
    return np.asarray(lost + (x**2).sum(axis=1) / 2)


def _weights(times: Floats, slope: Floats) -> Floats:
    """Return one over the number of runs that share a plan: the same time, and the same slopes."""
    plans = [tuple(row) for row in np.column_stack([times, slope]).round(9).tolist()]
    return np.array([1 / plans.count(plan) for plan in plans])


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
    plausible, refused = list(runs), []
    estimate = fit(plausible, constants, base)
    for _ in range(len(runs) // 3):
        if len(plausible) < _FEWEST:
            break
        slowest = int(np.argmin(estimate.errors))
        run = plausible[slowest]
        if estimate.errors[slowest] > -_FAR * SPREAD:
            break
        others = plausible[:slowest] + plausible[slowest + 1 :]
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
        plausible, estimate = others, without
    return plausible, estimate, refused


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
