"""Fit how fast the scans of linear attention run: ``python -m research.fits.states``.

Reads the runs of models with such layers in ``research/measurements/training.csv``, which ``python
-m research.fits.training`` leaves out. It does not change any other constant. Only rows marked
``calibrate`` are fitted, and errors above a tenth count less than in proportion. Prints the
constant, the value for each machine alone, and the errors.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar

from mlsysim.core.types.attention import LinearAttention
from mlsysim.solvers import DistributedSolver
from research import MEASUREMENTS
from research.readers import training
from research.rows import Row, read_rows, usable

DATA = MEASUREMENTS / "training.csv"
LEAST, MOST = 0.002, 0.5


def runs(split: str) -> list[Row]:
    """Return the runs of one split whose model has linear attention."""
    rows = [row for row in read_rows(DATA) if row.text("split") == split]
    return [
        row
        for row, given in usable(rows, training.arguments)
        if any(isinstance(group.attention, LinearAttention) for group in given["model"].groups)
    ]


def errors(rows: Sequence[Row], efficiency: float) -> NDArray[np.float64]:
    """Return the logarithms of predicted over measured with a constant for all machines."""
    found = []
    for row in rows:
        given = training.arguments(row)
        constants = given["calibration"]
        machine = replace(constants.machine, state_efficiency=efficiency)
        given["calibration"] = replace(constants, machine=machine)
        step = DistributedSolver.solve(**given).step_latency_total
        found.append(np.log(step.to("s").magnitude / training.measured(row)))
    return np.array(found)


def fit(rows: Sequence[Row]) -> float:
    """Return the constant with the least softened error."""

    def loss(log: float) -> float:
        return float(np.sum(np.sqrt(1 + (errors(rows, np.exp(log)) / 0.1) ** 2)))

    found = minimize_scalar(loss, bounds=(np.log(LEAST), np.log(MOST)), method="bounded")
    return float(np.exp(found.x))


def main() -> None:
    """Print the constant and the errors."""
    rows = runs("calibrate")
    best = fit(rows)
    print(f"state_efficiency {best:.3g}")
    for name in sorted({row.text("hardware") for row in rows}):
        own = [row for row in rows if row.text("hardware") == name]
        print(f"  {name}: {fit(own):.3g} (n={len(own)})")
    for split in ("calibrate", "check"):
        percent = 100 * np.expm1(errors(runs(split), best))
        mean, bias = np.abs(percent).mean(), percent.mean()
        print(f"{split}: n={percent.size} mean {mean:.1f} bias {bias:+.1f}")


if __name__ == "__main__":
    main()
