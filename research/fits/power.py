"""Fit the constants of `PowerCalibrations` to measured power, and write them to ``power.toml``.

Run ``python -m research.fits.power``. It reads only rows marked ``calibrate`` in
``research/measurements/energy.csv`` and ``energy_2.csv``. The fit uses power at the measured token
rate, so errors of the predicted time do not affect the constants. Errors are relative, and outliers
count less (a Huber loss). The bands are for power at the measured rate and for energy per token;
they come from predicting each model with constants that were fitted to the other models.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import least_squares

from mlsysim.core.types import Band
from mlsysim.registry.calibration.power import power_calibration_for
from mlsysim.registry.operations import POWER_DRAW
from mlsysim.registry.tables import read_toml
from mlsysim.solvers import ServingSolver
from research import MEASUREMENTS
from research.fits.files import band_of, with_bands, write_rows
from research.readers import energy_runs, tiny
from research.readers.energy import drawn, predicted
from research.readers.energy_runs import Drawn
from research.rows import Row, read_rows, usable

DATA = MEASUREMENTS
CONSTANTS = ("constant_share", "compute_share", "memory_share")
BANDED = {"power_band": "device power", "energy_band": "energy per token"}
ENOUGH = 20
"""Runs from which percentiles say something."""
_STARTS = ((0.2, 0.5, 0.5), (0.3, 1.5, 0.8))
# A device at work draws no less than an idle one.
_LEAST = (POWER_DRAW.idle_share, 0.0, 0.0)


@dataclass(frozen=True)
class Run:
    """One measured figure of a run, and the work of its devices."""

    model: str
    quantity: str
    value: float
    work: Drawn
    """At the measured rate for power, at the predicted one for energy."""
    time: float = 0
    """Device seconds of a token, as predicted."""

    def predict(self, constants: Mapping[str, Any]) -> float:
        """Return the figure that constants predict."""
        power = float(self.work.power(constants))
        return power if self.quantity == "device power" else power * self.time


Runs = list[Run]


def runs() -> dict[str, Runs]:
    """Return the figures to fit to by calibration."""
    found: dict[str, Runs] = {}
    for table, figures in (("energy.csv", _narrow), ("energy_2.csv", _wide)):
        rows = [row for row in read_rows(DATA / table) if row.text("split") == "calibrate"]
        for _, read in usable(rows, figures):
            for run in read:
                name = power_calibration_for(run.work.accelerator).name
                found.setdefault(name, []).append(run)
    return found


def _narrow(row: Row) -> Runs:
    work, quantity = drawn(row), row.text("quantity")
    if quantity == "device power":
        return [Run(row.text("model"), quantity, row.measured(), work)]
    return [_energy(row.text("model"), row.measured(), predicted(row)[0], work)]


def _wide(row: Row) -> Runs:
    given = energy_runs.arguments(row)
    result = ServingSolver.solve(**given)
    model, device = given["model"].name, given["hardware"].accelerator
    faster = row.measured("tokens_per_s") / result.output_throughput.to("token/s").magnitude
    work = Drawn.at_rate(device, result, faster)
    return [
        Run(model, "device power", row.measured("power_W") / row.whole("n_gpus"), work),
        _energy(model, row.measured("energy_per_token_J"), result, work),
    ]


def _energy(model: str, value: float, result: Any, work: Drawn) -> Run:
    each, power = result.energy_per_token.to("J").magnitude, result.device_power.to("W").magnitude
    own = Drawn(work.accelerator, result.hfu, result.mbu)
    return Run(model, "energy per token", value, own, each / power)


def of(rows: Runs, quantity: str) -> Runs:
    """Return the figures of one quantity."""
    return [run for run in rows if run.quantity == quantity]


def fit(rows: Runs) -> Mapping[str, float]:
    """Return the constants of one calibration that fit its figures of power best."""
    powers = of(rows, "device power")

    def errors(values: np.ndarray) -> np.ndarray:
        constants = dict(zip(CONSTANTS, values, strict=True))
        return np.array([run.predict(constants) / run.value - 1 for run in powers])

    # The limit of the board makes the errors flat where all runs reach it.
    found = [
        least_squares(errors, start, bounds=(_LEAST, 10), loss="huber", f_scale=0.05)
        for start in _STARTS
    ]
    best = min(found, key=lambda each: each.cost)
    return dict(zip(CONSTANTS, best.x, strict=True))


def band(rows: Runs, quantity: str) -> Band:
    """Return the band of measured over predicted figures of one quantity."""
    ratios = []
    for model in sorted({run.model for run in of(rows, quantity)}):
        others = [run for run in rows if run.model != model]
        if not of(others, "device power"):
            continue
        constants = fit(others)
        own = [run for run in of(rows, quantity) if run.model == model]
        ratios += [run.value / run.predict(constants) for run in own]
    return band_of(ratios) if len(ratios) >= ENOUGH else Band()


def tiny_band() -> Band:
    """Return the band of measured over predicted energy of a pass on a microcontroller.

    The design power of these devices is the mean of their runs: here, that of the others.
    """
    found: dict[str, list[tuple[float, float, float]]] = {}
    fitted = [row for row in read_rows(DATA / "tiny.csv") if row.text("split") == "calibrate"]
    for row, figures in usable(fitted, tiny.compare):
        if len(figures) == 2:
            time, energy = figures
            device = tiny.arguments(row)["hardware"].name
            run = (energy.measured / time.measured, energy.measured, time.predicted)
            found.setdefault(device, []).append(run)
    ratios: list[float] = []
    for rows in found.values():
        for at, (_, measured, predicted_time) in enumerate(rows):
            others = [power for number, (power, *_) in enumerate(rows) if number != at]
            if others:
                ratios.append(measured * len(others) / (sum(others) * predicted_time))
    return band_of(ratios)


def main() -> None:
    """Fit all calibrations; write their constants and bands, and print the errors."""
    listed = read_toml("power.toml")["rows"]
    for name, rows in runs().items():
        found = fit(rows)
        powers = of(rows, "device power")
        errors = [abs(run.predict(found) / run.value - 1) for run in powers]
        section = with_bands(
            {constant: float(f"{found[constant]:.3g}") for constant in CONSTANTS},
            {name: band(rows, quantity) for name, quantity in BANDED.items()},
        )
        print(f"{name}: {section}, {len(powers)} rows, MAPE {100 * np.mean(errors):.1f} %")
        if name in listed:
            write_rows("power.toml", {name: {"run_count": len(powers), "fitted": section}})
    tiny = with_bands(listed["Microcontroller"]["mlperf_tiny"], {"energy_band": tiny_band()})
    write_rows("power.toml", {"Microcontroller": {"mlperf_tiny": tiny}})
    print(f"Microcontroller: {tiny}")


if __name__ == "__main__":
    main()
