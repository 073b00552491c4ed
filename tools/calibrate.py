"""Fit the constants of training steps: ``python -m tools.calibrate``.

Reads the measured runs in ``measurements/training.csv``, and those beside peak memory in
``measurements/memory.csv``. Only rows marked ``calibrate`` are fitted;
rows marked ``check`` are reported on and never seen by the fit. The model of the solver itself is
evaluated, on arrays of all runs at once. Prints one literal per calibration, to be pasted into
``mlsysim/registry/calibration/training.py``, and the errors.

The band of a prediction comes from five-fold cross-validation over the ``calibrate`` rows, with
the quantiles of a finite sample.

``python -m tools.calibrate --transfer`` leaves out one family of runs at a time, fits on the
others, and writes those constants to ``measurements/transfer.csv``: how well they carry over is on
the page about the accuracy of training steps.
"""

from __future__ import annotations

import csv
import inspect
import json
import sys
from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import least_squares

from mlsysim.core.errors import MLSysError
from mlsysim.core.fields import derived
from mlsysim.core.forms import replaced
from mlsysim.solvers import DistributedSolver
from mlsysim.solvers.training.inputs import TrainingInputs
from mlsysim.solvers.training.operators import operator_step
from mlsysim.validation import memory, training
from mlsysim.validation.rows import Skip, read_rows
from tools.calibration_fits import (
    BOUNDS,
    FAMILIES,
    FITS,
    SCALES,
    SWITCHED,
    TRANSFERRED,
    Fit,
)
from tools.stacks import Stack

Floats = NDArray[np.float64]
FOLDS = 5
ENOUGH = 20
DATA = Path(__file__).parents[1] / "measurements/training.csv"
TABLES: dict[str, Any] = {"training": training, "memory": memory}
TRANSFER = DATA.with_name("transfer.csv")


@dataclass(frozen=True)
class Runs:
    """Measured runs as arrays of the kernel's inputs."""

    inputs: Stack[TrainingInputs]
    bits: Floats
    time: Floats
    group: tuple[str, ...]
    nodes: Floats
    experts: NDArray[np.bool_]

    def take(self, mask: NDArray[np.bool_]) -> Runs:
        """Return some of the runs."""
        return Runs(
            self.inputs.take(mask),
            self.bits[mask],
            self.time[mask],
            tuple(np.array(self.group, dtype=object)[mask]),
            self.nodes[mask],
            self.experts[mask],
        )

    def predict(self, constants: dict[str, float]) -> Floats:
        """Evaluate the solver's model with other constants than the registry's."""

        def change(i: TrainingInputs, places: NDArray[np.intp]) -> TrainingInputs:
            return with_constants(i, constants, self.bits[places])

        return self.inputs.run(operator_step, change)["step_latency_total"]


def with_constants(i: TrainingInputs, constants: dict[str, float], bits: Floats) -> TrainingInputs:
    """Return inputs with other constants, each in the formats that it holds for."""
    wide, eight, four = bits >= 16, bits == 8, bits == 4
    own: dict[str, Any] = {}
    of_calibration: dict[str, Any] = {}
    for name, value in constants.items():
        if name == "gemm_efficiency":
            own["wide_gemm_efficiency"] = np.full_like(bits, value)
            own[name] = np.where(wide, value, own.get(name, i.gemm_efficiency))
        elif name == "gemm_efficiency_fp8":
            own["gemm_efficiency"] = np.where(
                eight, value, own.get("gemm_efficiency", i.gemm_efficiency)
            )
        elif name == "gemm_efficiency_fp4":
            own["gemm_efficiency"] = np.where(
                four, value, own.get("gemm_efficiency", i.gemm_efficiency)
            )
        elif name == "cast_bytes":
            own[name] = np.where(wide, 0.0, value)
        else:
            scale = SCALES.get(name, 1.0)
            held = i if isinstance(getattr(type(i), name, None), derived) else i.calibration
            # What a run's recipe switches off stays off.
            off = (getattr(held, name) == 0) & (name in SWITCHED)
            (own if held is i else of_calibration)[name] = np.where(off, 0.0, value * scale)
    return i.but(calibration=replaced(i.calibration, **of_calibration), **own)


def load(fit: Fit, split: str) -> Runs:
    """Read the runs of one split that a fit is about."""
    defaults = {
        name: item.default
        for name, item in inspect.signature(DistributedSolver.solve).parameters.items()
    }
    found: list[tuple[TrainingInputs, float, str]] = []
    kind = TABLES[fit.table]
    for row in read_rows(DATA.with_name(f"{fit.table}.csv")):
        if row.group not in fit.groups or row.text("split") != split or not fit.accepts(row):
            continue
        try:
            given = defaults | kind.arguments(row)
            found.append((DistributedSolver.admit(given), kind.measured(row), row.group))
        except (Skip, MLSysError):
            continue
    runs = [inputs for inputs, *_ in found]
    return Runs(
        Stack.of(runs),
        np.array([i.precision.bits for i in runs], dtype=float),
        np.array([time for _, time, _ in found]),
        tuple(group for *_, group in found),
        np.array([i.fleet.count for i in runs], dtype=float),
        np.array([i.model.moe_layers > 0 for i in runs]),
    )


def solve(fit: Fit, runs: Runs) -> dict[str, float]:
    """Fit the free constants: least absolute log ratios, each family with equal weight.

    The loss is quadratic below three percent and linear above, since the mean absolute error is
    what is reported, and a few runs of any set are troubled by what no model knows.
    """
    names = list(fit.free)
    counts = Counter(runs.group)
    weight = np.array([counts[name] ** -0.5 for name in runs.group])
    start = np.log([fit.free[name] for name in names])
    low, high = np.log(np.array([BOUNDS[name] for name in names]).T)

    def constants(x: Floats) -> dict[str, float]:
        return dict(zip(names, np.exp(x).tolist(), strict=True)) | fit.fixed

    def residuals(x: Floats) -> Floats:
        errors = np.log(runs.predict(constants(x)) / runs.time) * weight
        # A weak pull to the start keeps constants that the runs cannot tell from drifting.
        pull: Floats = 0.01 * (x - start)
        return np.concatenate([errors, pull])

    scale = 0.03 * float(np.median(weight))
    answer = least_squares(
        residuals, start, bounds=(low, high), loss="soft_l1", f_scale=scale, x_scale=0.1
    )
    return constants(answer.x)


def residuals(fit: Fit, runs: Runs) -> tuple[Floats, NDArray[np.intp]]:
    """Return measured over predicted by fits that did not see a run, and its configuration.

    Runs of one configuration, repeated over releases, stay in one fold: they are not independent.
    """
    plan = runs.inputs.plans()
    ratio = np.empty_like(runs.time)
    for number in range(FOLDS):
        out = plan % FOLDS == number
        if out.any():
            held = runs.take(out)
            ratio[out] = held.time / held.predict(solve(fit, runs.take(~out)))
    return ratio, plan


def edges_of(ratio: Floats, plans: int) -> tuple[float, float]:
    """Return the edges that a new run passes once in ten times each, of `plans` independent ones.

    Below the k-th of n values lie, on average over samples, k / (n + 1) of all: so the edges lie
    at k = (n + 1) / 10 from either end, further out than percentiles of the sample. They lie where
    that share of the runs does when plans have several.
    """
    level = max(0.0, ((plans + 1) / 10 - 0.5) / plans)
    low, high = np.quantile(ratio, [level, 1 - level], method="hazen")
    return float(low), float(high)


def bands(fit: Fit, runs: Runs) -> dict[str, float]:
    """Return the edges of the band for each kind of run that there are enough of."""
    ratio, plan = residuals(fit, runs)
    experts = runs.experts
    kinds = {
        "node": (runs.nodes == 1) & ~experts,
        "fleet": (runs.nodes > 1) & ~experts,
        "expert": experts,
    }
    found: dict[str, float] = {}
    for name, part in kinds.items():
        if name == "expert" and not experts.any():
            continue
        # A percentile of a few runs says little: then all runs without experts speak for both.
        part = part if part.sum() >= ENOUGH or name == "expert" else ~experts
        low, high = edges_of(ratio[part], len(np.unique(plan[part])))
        found |= {f"{name}_band_low": low, f"{name}_band_high": high}
    if fit.experts:
        others = load(replace(fit, groups=fit.experts), "calibrate")
        low, high = edges_of(
            others.time / others.predict(solve(fit, runs)), others.inputs.plans().max() + 1
        )
        found |= {"expert_band_low": low, "expert_band_high": high}
    return found


def errors(runs: Runs, constants: dict[str, float]) -> dict[str, str]:
    """Return errors per family, in words."""
    relative = 100 * (runs.predict(constants) / runs.time - 1)
    group = np.array(runs.group, dtype=object)
    return {
        name: f"n={int((group == name).sum())} MAPE {np.abs(relative[group == name]).mean():.1f} "
        f"bias {relative[group == name].mean():+.1f}"
        for name in dict.fromkeys(runs.group)
    }


def without(family: str) -> dict[str, float]:
    """Return the constants that the runs of all other families give."""
    fit = FITS[TRANSFERRED]
    others = tuple(group for group in fit.groups if group not in FAMILIES[family])
    fit = replace(fit, groups=others)
    return {
        name: float(f"{value:.3g}") for name, value in solve(fit, load(fit, "calibrate")).items()
    }


def transfer() -> None:
    """Write the constants that are fitted without each family, and print their error on it."""
    with TRANSFER.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["calibration", "left_out", "constant", "value"])
        for family, groups in FAMILIES.items():
            constants = without(family)
            for name, value in constants.items():
                writer.writerow([TRANSFERRED, family, name, value])
            left_out = replace(FITS[TRANSFERRED], groups=groups)
            print(f"without {family}:", errors(load(left_out, "check"), constants))


def main() -> None:
    """Fit all calibrations, or those named on the command line; or show how constants transfer."""
    if sys.argv[1:] == ["--transfer"]:
        transfer()
        return
    for name in sys.argv[1:] or FITS:
        fit = FITS[name]
        runs = load(fit, "calibrate")
        constants = solve(fit, runs)
        edges = bands(fit, runs)
        rounded = {key: float(f"{value:.3g}") for key, value in constants.items()}
        print(name, json.dumps(rounded | {key: round(edge, 3) for key, edge in edges.items()}))
        print("  fitted:", errors(runs, rounded))

        print("  check: ", errors(load(fit, "check"), rounded))


if __name__ == "__main__":
    main()
