"""The most probable factors, and their remaining uncertainty."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mlsysim.core.types import Calibration
from mlsysim.fitting.constants import SPREAD, Constant, Floats, changed
from mlsysim.fitting.runs import Run
from mlsysim.solvers.training.operators import operator_step

__all__ = ["Posterior", "fit", "log_times", "slopes"]

_STEPS = 30
_NUDGE = 0.01
"""Step of the numerical derivative, in standard deviations of the prior."""
_HALVINGS = 0.5 ** np.arange(8)
_EDGE = 1.2816
"""Standard deviations from the middle of a normal distribution to its ninetieth percentile."""
_MISFIT, _MISFIT_RUNS = 2.0, 4.0
"""What to expect of `Posterior.misfit`, and how many runs that expectation is worth.

Measured by ``python -m research.transfer`` on rows marked ``calibrate``: with these, four of five
runs that a fit to one, three or six others did not see are in its band."""


@dataclass(frozen=True)
class Posterior:
    """Factors given the runs, approximated as a normal distribution (Laplace).

    Attributes
    ----------
    constants : tuple of Constant
        The constants that the factors multiply.
    x : array
        Logarithms of the factors, divided by the standard deviations of the prior.
    covariance : array
        Covariance of `x`; the identity if runs have no information.
    errors : array
        Logarithm of predicted over measured, for each run.
    misfit : float
        Variance of predictions divided by its expected value: how far runs are from what the others
        predict, combined with the usual misfit elsewhere.
    """

    constants: tuple[Constant, ...]
    x: Floats
    covariance: Floats
    errors: Floats
    misfit: float

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
        z, freedom = _EDGE, _MISFIT_RUNS + len(self.errors)
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
