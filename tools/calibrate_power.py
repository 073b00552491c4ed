"""Fit the constants of `mlsysim.registry.calibration.power` on measured power.

Run ``python -m tools.calibrate_power``. Only rows marked ``calibrate`` in ``docs/data/energy.csv``
are read, and of these only power at the measured rate: an error of the predicted time does not get
into the constants. Errors are relative, those of odd runs count less (a Huber loss).
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
from scipy.optimize import least_squares

from mlsysim.registry.calibration.power import power_calibration_for
from mlsysim.registry.operations import POWER_DRAW
from mlsysim.validation.energy import Drawn, drawn
from mlsysim.validation.rows import read_rows

DATA = Path(__file__).parents[1] / "docs/data/energy.csv"
CONSTANTS = ("constant_share", "compute_share", "memory_share")
_START = (0.2, 2.0, 0.8)
# A device at work draws no less than an idle one.
_LEAST = (POWER_DRAW.idle_share, 0.0, 0.0)


def runs() -> dict[str, list[tuple[Drawn, float]]]:
    """Return work and measured power of the rows to fit on, by calibration."""
    found: dict[str, list[tuple[Drawn, float]]] = {}
    for row in read_rows(DATA):
        if row.text("split") == "calibrate" and row.text("quantity") == "device power":
            work = drawn(row)
            name = power_calibration_for(work.accelerator).name
            found.setdefault(name, []).append((work, row.number("value") or 0.0))
    return found


def fit(rows: list[tuple[Drawn, float]]) -> Mapping[str, float]:
    """Return the constants of one calibration that fit its rows best."""

    def errors(values: np.ndarray) -> np.ndarray:
        constants = dict(zip(CONSTANTS, values, strict=True))
        return np.array([work.power(constants) / measured - 1 for work, measured in rows])

    found = least_squares(errors, _START, bounds=(_LEAST, 10), loss="huber", f_scale=0.05)
    return dict(zip(CONSTANTS, found.x, strict=True))


def main() -> None:
    """Fit all calibrations and print their constants and errors."""
    for name, rows in runs().items():
        found = fit(rows)
        errors = [abs(work.power(found) / measured - 1) for work, measured in rows]
        values = ", ".join(f"{constant}={found[constant]:.3g}" for constant in CONSTANTS)
        print(f"{name}: {values}  ({len(rows)} rows, MAPE {100 * np.mean(errors):.1f} %)")


if __name__ == "__main__":
    main()
