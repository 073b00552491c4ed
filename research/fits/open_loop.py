"""Fit the constants of a server in an open loop: ``python -m research.fits.open_loop``.

Reads the open-loop runs of ``research/measurements/serving_2.csv``. Only rows marked ``calibrate``
are fitted. Writes the constants of `ServingCalibrations.Hopper_vLLM_Open`, and prints them with the
errors of all rows.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from scipy.optimize import least_squares

from mlsysim.core.fields import field_unit
from mlsysim.core.types import Band, ServingCalibration
from mlsysim.core.units import Q_, base_unit
from mlsysim.solvers import OpenLoopSolver
from research import MEASUREMENTS
from research.fits.files import band_of, with_bands, write_rows
from research.fits.serving import CONSTANTS, FILE, PULL, in_si, limits, printed
from research.readers.open_loop import compare_open_loop
from research.readers.serving_runs import arguments
from research.rows import Row, Skip, read_rows, usable

DATA = MEASUREMENTS / "serving_2.csv"
FITTED = (
    "kv_efficiency",
    "layer_overhead",
    "memory_efficiency",
    "sequence_overhead",
    "admission_steps",
)
MEASURED = (("tpot_mean_ms", "tpot_mean", 1.0), ("ttft_p50_ms", "ttft_p50", 0.5))
"""Columns, fields and weights. Means and tails of the first token hold the cold start of a run."""
BANDED = (
    ("itl", "tpot_mean_ms", "tpot_mean"),
    ("ttft", "ttft_mean_ms", "ttft_mean"),
    ("ttft", "ttft_p50_ms", "ttft_p50"),
)
"""Bands, columns and fields."""

Run = tuple[Row, dict[str, Any]]


def runs(split: str) -> list[Run]:
    """Return the rows of a split that have a prediction, with the solver's arguments."""
    rows = [row for row in read_rows(DATA) if row.text("load").startswith("open loop")]
    return list(usable((row for row in rows if row.text("split") == split), arguments))


def residuals(constants: Mapping[str, float], fitted: list[Run]) -> list[float]:
    """Return weighted logarithms of predicted over measured."""
    found = []
    for row, given in fitted:
        result = OpenLoopSolver.solve(**given | {"calibration": changed(given, constants)})
        for column, field, weight in MEASURED:
            if row.text(column):
                said = result[field]
                ratio = 10 if said is None else said.to("ms").magnitude / row.measured(column)
                found.append(weight * math.log(ratio))
    return found


def changed(given: Mapping[str, Any], constants: Mapping[str, float]) -> ServingCalibration:
    """Return the constants of a run with others for what is fitted."""
    made: dict[str, Any] = {}
    for name, value in constants.items():
        unit = field_unit(ServingCalibration, name)
        made[name] = Q_(value, base_unit(unit)) if unit else value
    own: ServingCalibration = given["calibration"]
    return replace(own, **made)


def fit(fitted: list[Run]) -> dict[str, float]:
    """Fit the constants to these runs, in SI units."""
    start = np.array([in_si(name, CONSTANTS[name].usual) for name in FITTED])

    def cost(logs: Any) -> Any:
        at = dict(zip(FITTED, np.exp(logs), strict=True))
        pull = PULL / math.sqrt(len(fitted)) * (logs - np.log(start))
        return np.concatenate([residuals(at, fitted), pull])

    found = least_squares(cost, np.log(start), bounds=limits(FITTED), loss="soft_l1", f_scale=0.1)
    return dict(zip(FITTED, map(float, np.exp(found.x)), strict=True))


def bands(fitted: list[Run]) -> dict[str, Band]:
    """Return the bands of measured over predicted times, for models left out."""
    ratios: dict[str, list[float]] = {"itl": [], "ttft": []}
    for name in sorted({given["model"].name for _, given in fitted}):
        others = fit([run for run in fitted if run[1]["model"].name != name])
        for row, given in fitted:
            if given["model"].name != name:
                continue
            result = OpenLoopSolver.solve(**given | {"calibration": changed(given, others)})
            for band, column, field in BANDED:
                if row.text(column) and result[field] is not None:
                    said = result[field].to("ms").magnitude
                    ratios[band].append(row.measured(column) / said)
    return {f"{name}_band": band_of(ratio) for name, ratio in ratios.items()}


def main() -> int:
    """Fit, write and print."""
    fitted = runs("calibrate")
    constants = {name: printed(name, value) for name, value in fit(fitted).items()}
    section = with_bands(constants, bands(fitted))
    write_rows(FILE, {"Hopper_vLLM_Open": {"open_runs": section}})
    print(section)
    errors = defaultdict(list)
    for split in ("calibrate", "check"):
        for row, given in runs(split):
            try:
                for item in compare_open_loop(row, given):
                    errors[split, item.quantity].append(abs(item.error))
            except Skip as reason:
                print(f"{row.name}: {reason}")
    for (split, quantity), sizes in errors.items():
        mean, median = np.mean(sizes), np.median(sizes)
        print(f"{split:9} {quantity:28} {len(sizes):3} mean {mean:5.1%} median {median:5.1%}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
