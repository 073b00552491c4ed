"""Fit the constants of `mlsysim.registry.calibration.power` on measured power.

Run ``python -m tools.calibrate_power``. Only rows marked ``calibrate`` in
``measurements/energy.csv`` are read, and of these only power at the measured rate: an error of the
predicted time does not get into the constants. Errors are relative, those of odd runs count less (a
Huber loss). The band is that of energy per token, of each model by constants that were fitted to
the others.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
from scipy.optimize import least_squares

from mlsysim.registry.calibration.power import PowerCalibrations, power_calibration_for
from mlsysim.registry.operations import POWER_DRAW
from mlsysim.validation.energy import Drawn, drawn, predicted
from mlsysim.validation.rows import Row, read_rows

DATA = Path(__file__).parents[1] / "measurements/energy.csv"
CONSTANTS = ("constant_share", "compute_share", "memory_share")
_START = (0.2, 2.0, 0.8)
# A device at work draws no less than an idle one.
_LEAST = (POWER_DRAW.idle_share, 0.0, 0.0)
Runs = list[tuple[Row, Drawn]]


def runs() -> dict[str, Runs]:
    """Return the rows to fit to, with their work, by calibration."""
    found: dict[str, Runs] = {}
    for row in read_rows(DATA):
        if row.text("split") == "calibrate":
            work = drawn(row)
            found.setdefault(power_calibration_for(work.accelerator).name, []).append((row, work))
    return found


def of(rows: Runs, quantity: str) -> Runs:
    """Return the rows of one quantity."""
    return [(row, work) for row, work in rows if row.text("quantity") == quantity]


def _value(row: Row) -> float:
    return row.number("value") or np.nan


def fit(rows: Runs) -> Mapping[str, float]:
    """Return the constants of one calibration that fit its rows of power best."""
    powers = of(rows, "device power")

    def errors(values: np.ndarray) -> np.ndarray:
        constants = dict(zip(CONSTANTS, values, strict=True))
        return np.array([work.power(constants) / _value(row) - 1 for row, work in powers])

    found = least_squares(errors, _START, bounds=(_LEAST, 10), loss="huber", f_scale=0.05)
    return dict(zip(CONSTANTS, found.x, strict=True))


def band(name: str, rows: Runs) -> tuple[float, float] | None:
    """Return measured over predicted energy per token at the edges of the band."""
    ratios = []
    for row, _ in of(rows, "energy per token"):
        others = [run for run in rows if run[0].text("model") != row.text("model")]
        constants = replace(PowerCalibrations[name], **fit(others))
        energy = predicted(row, constants)[0].energy_per_token.to("J").magnitude
        ratios.append(_value(row) / energy)
    if not ratios:
        return None
    # A band contains its prediction, also where most runs lie on one side.
    return min(1.0, np.quantile(ratios, 0.1)), max(1.0, np.quantile(ratios, 0.9))


def main() -> None:
    """Fit all calibrations and print their constants, bands and errors."""
    for name, rows in runs().items():
        found, edges = fit(rows), band(name, rows)
        powers = of(rows, "device power")
        errors = [abs(work.power(found) / _value(row) - 1) for row, work in powers]
        values = ", ".join(f"{constant}={found[constant]:.3g}" for constant in CONSTANTS)
        print(f"{name}: {values}, {len(powers)} rows, MAPE {100 * np.mean(errors):.1f} %")
        if edges is not None:
            print(f"  energy_band_low={edges[0]:.3f}, energy_band_high={edges[1]:.3f}")


if __name__ == "__main__":
    main()
