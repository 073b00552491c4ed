"""Fit the constants of networks on microcontrollers: ``python -m tools.calibrate_tiny``.

Reads ``measurements/tiny.csv``. Only rows marked ``calibrate`` are fitted; rows marked ``check``
are held out, and their errors are reported. A row's time is the sum of the times for products,
outputs and weights, at a share of the peak rate. Each engine and format has a cost per output and
per weight, and each core has a share of the peak. All of these are pulled toward the means of their
kind, which are fitted as well. Prints the rows of ``mlsysim/registry/calibration/networks.py``, and
the errors.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import least_squares

from mlsysim.registry.calibration.networks import CORES
from mlsysim.validation import tiny
from mlsysim.validation.rows import Row, Skip, read_rows

DATA = Path(__file__).parents[1] / "measurements/tiny.csv"
FAST = ", max performance"
SCALE = 0.05
"""Error of a row, as a share of its time."""
SPREAD = {"output": 0.4, "weight": 0.6, "share": 0.3}
"""Spread of the logarithms of a kind of constants. Those of costs predict best in cross-validation
on `calibrate` rows, in which the shares' makes no difference."""
FOLDS = 8

Floats = NDArray[np.float64]
Key = tuple[str, str, str]


@dataclass(frozen=True)
class Run:
    """One measured pass."""

    key: Key
    """Engine, core and format."""
    fast: bool
    products: float
    outputs: float
    weights: float
    seconds: float
    """Measured time, times the peak rate in operations: operations that would have fit in it."""
    split: str


def runs() -> list[Run]:
    """Read the passes of devices in the registry."""
    return [run for row in read_rows(DATA) if (run := _run(row)) is not None]


def _run(row: Row) -> Run | None:
    try:
        given, engine = tiny.arguments(row), tiny.engine_of(row)
    except Skip:
        return None
    network, device, precision = given["model"], given["hardware"], given["precision"]
    return Run(
        key=(engine.removesuffix(FAST), CORES[device.name], precision),
        fast=engine.endswith(FAST),
        products=network.si("flops_per_sample"),
        outputs=network.si("activations_per_sample"),
        weights=network.si("parameters"),
        seconds=row.measured("latency_ms") / 1000 * device.compute.si(precision),
        split=row.text("split"),
    )


class Fit:
    """The constants of all cores, engines and formats, fitted at once."""

    def __init__(self, data: list[Run], keys: list[Key]) -> None:
        self.keys = keys
        self.engines = sorted({key[0] for key in keys})
        self.formats = sorted({(key[0], key[2]) for key in keys})
        counts = (len(keys), len(self.formats), len(self.formats), len(self.engines), 4)
        self.cuts = list(pairwise(np.cumsum((0, *counts)).tolist()))
        start = np.zeros(sum(counts))
        start[-4:] = np.log([20, 2, 1, 1])
        self.logs = least_squares(lambda logs: self._residuals(data, logs), start).x

    def _parts(self, logs: Floats) -> list[Floats]:
        return [logs[low:high] for low, high in self.cuts]

    def constants(self, key: Key, *, fast: bool = False, logs: Floats | None = None) -> Floats:
        """Return the share of the peak, and the operations of an output and of a weight."""
        slow, outputs, weights, _, (_, _, _, quick) = self._parts(
            self.logs if logs is None else logs
        )
        place = self.formats.index((key[0], key[2]))
        weight = weights[place] + (quick if fast else 0)
        logs = np.array([-slow[self.keys.index(key)], outputs[place], weight])
        found: Floats = np.exp(logs)
        return found

    def error(self, run: Run, logs: Floats | None = None) -> float:
        """Return the logarithm of predicted over measured time."""
        share, output, weight = self.constants(run.key, fast=run.fast, logs=logs)
        work = run.products + output * run.outputs + weight * run.weights
        return float(np.log(work / share / run.seconds))

    def _residuals(self, data: list[Run], logs: Floats) -> Floats:
        slow, outputs, weights, engines, (output, weight, wide, quick) = self._parts(logs)
        usual = np.array(
            [engines[self.engines.index(k[0])] + (wide if k[2] == "fp32" else 0) for k in self.keys]
        )
        return np.concatenate(
            [
                [self.error(run, logs) / SCALE for run in data],
                (outputs - output) / SPREAD["output"],
                (weights - weight) / SPREAD["weight"],
                (slow - usual) / SPREAD["share"],
                engines - np.log(2),
                # Weak: they keep the fit of few rows finite.
                [(output - np.log(24)) / 3, (weight - np.log(2)) / 3, wide, (quick + 0.2) / 0.5],
            ]
        )


def band(data: list[Run], keys: list[Key]) -> tuple[float, float]:
    """Return the percentiles of measured over predicted, from cross-validation."""
    ratios = []
    for number in range(FOLDS):
        fit = Fit([run for at, run in enumerate(data) if at % FOLDS != number], keys)
        ratios += [np.exp(-fit.error(run)) for run in data[number::FOLDS]]
    low, high = np.percentile(ratios, [10, 90])
    return float(low), float(high)


def main() -> None:
    """Fit; print constants and errors."""
    data = runs()
    keys = sorted({run.key for run in data})
    fitted = [run for run in data if run.split == "calibrate"]
    fit = Fit(fitted, keys)
    print("_BAND = ({:.3f}, {:.3f})".format(*band(fitted, keys)))
    for key in keys:
        for fast in (False, True) if key[0] == "HALE" else (False,):
            share, output, weight = fit.constants(key, fast=fast)
            engine, core, precision = key
            engine += FAST if fast else ""
            print(f'"{engine}", "{core}", "{precision}", {share:.3f}, {output:.3g}, {weight:.3g}')
    for split in ("calibrate", "check"):
        errors = [np.expm1(fit.error(run)) for run in data if run.split == split]
        print(f"{split:9s} {len(errors)} rows, mean error {np.abs(errors).mean():.1%}")


if __name__ == "__main__":
    main()
