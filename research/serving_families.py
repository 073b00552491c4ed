"""How accurate is serving for models left out of the fit? ``python -m research.serving_families``.

For every engine with runs of at least two models, leave out each model in turn, fit the constants
to the `calibrate` rows of the others, and predict the rows of the model left out. Writes
``research/measurements/serving_families.csv``: measured and predicted time between tokens and to
the first token. Constants belong to a device and an engine, and none of them belongs to a model.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np

from mlsysim.core.types import ServingCalibration
from mlsysim.registry.calibration.serving import ServingCalibrations
from research.fits.serving import CONSTANTS, DATA, FITTED, PARENTS, Runs, fit, in_si, load
from research.rows import write_table

TARGET = DATA / "serving_families.csv"
QUANTITIES = {"itl": "TPOT", "ttft": "TTFT"}
FEWEST = 8
"""Rows of the other models from which constants are fitted."""


def _fitted(name: str) -> dict[str, float]:
    """Return the constants that a row did not inherit, in SI units: where its fit starts."""
    row: ServingCalibration = ServingCalibrations[name]
    parent = ServingCalibrations[PARENTS[name]] if name in PARENTS else None
    found = {}
    for constant in CONSTANTS:
        inherited = parent is not None and parent.source_of(constant) == row.source_of(constant)
        if not inherited and "calibrate rows" in str(row.source_of(constant)):
            value = getattr(row, constant)
            found[constant] = in_si(constant, getattr(value, "magnitude", value))
    return found


def _predicted(runs: Runs, model: str, constants: dict[str, float]) -> Iterator[tuple[str, Any]]:
    chosen = np.array([name == model for name in runs.model])
    own = runs.take(chosen & np.isin(runs.field, tuple(QUANTITIES)))
    if own.value.size:
        yield from zip(own.field, zip(own.value, own.predict(constants), strict=True), strict=True)


@cache
def _without(name: str, model: str) -> dict[str, float]:
    """Return the constants of an engine, and of those it inherits from, without one model."""
    parent = _without(PARENTS[name], model) if name in PARENTS else None
    start, runs = _fitted(name), load(name, "calibrate")
    if runs is None:
        raise ValueError(f"{name} has no runs")
    rest = np.array([other != model for other in runs.model])
    if parent is not None and rest.sum() < FEWEST:
        return parent
    return fit(runs.take(rest), tuple(start), start, parent).whole


def left_out(name: str) -> Iterator[dict[str, Any]]:
    """Yield the rows of each model of an engine, predicted by constants that did not see it."""
    runs = load(name, "calibrate")
    if runs is None or not np.isin(runs.field, tuple(QUANTITIES)).any():
        return
    others = {split: load(name, split) for split in ("calibrate", "check")}
    models = sorted({model for part in others.values() if part for model in part.model})
    for model in models:
        rest = np.array([other != model for other in runs.model])
        if len(models) < 2 or rest.sum() < FEWEST:
            continue
        constants = _without(name, model)
        for split, part in others.items():
            for field, (measured, predicted) in _predicted(part, model, constants) if part else ():
                yield {
                    "engine": ServingCalibrations[name].name,
                    "model": model,
                    "quantity": QUANTITIES[field],
                    "split": split,
                    "measured_s": f"{measured:.6g}",
                    "predicted_s": f"{predicted:.6g}",
                }


def main() -> None:
    """Write the predictions, and print the errors of the held-out models."""
    found: list[dict[str, Any]] = []
    for name in sys.argv[1:] or FITTED:
        own = list(left_out(name))
        found += own
        for model in dict.fromkeys(row["model"] for row in own):
            part = [r for r in own if r["model"] == model and r["quantity"] == "TPOT"]
            sizes = [abs(float(r["predicted_s"]) / float(r["measured_s"]) - 1) for r in part]
            if sizes:
                print(f"{name:24s} {model:24s} n={len(sizes):4d}  {100 * np.mean(sizes):5.1f}%")
                sys.stdout.flush()
    write_table(TARGET, found)
    sizes = [
        abs(float(r["predicted_s"]) / float(r["measured_s"]) - 1)
        for r in found
        if r["quantity"] == "TPOT"
    ]
    print(f"all models, TPOT: n={len(sizes)}, mean error {100 * np.mean(sizes):.1f}%")


if __name__ == "__main__":
    main()
