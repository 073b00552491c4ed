"""Fit the constants of networks of fixed shape: ``python -m research.fits.networks``.

Reads ``research/measurements/tiny.csv`` and the passes of ResNet-50 in
``research/measurements/passes.csv``. Only rows marked ``calibrate`` are fitted; rows marked
``check`` are held out, and their errors are reported. A microcontroller's time is the sum of the
times for products, outputs and weights, at a share of the peak rate. Each engine and format has a
cost per output and per weight, and each core has a share of the peak. All of these are pulled
toward the means of their kind, which are fitted as well. A GPU's time is the roofline of the totals
at a share of the peak rate, plus a fixed time per layer; its band comes from leaving devices out,
one at a time. Writes the constants to ``mlsysim/registry/data/networks.csv``, and prints the
errors.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import least_squares

from mlsysim.core.types import Band, FixedShapeModel
from mlsysim.registry.calibration.networks import CORES
from mlsysim.solvers import SingleNodeSolver
from research import MEASUREMENTS
from research.fits.files import band_of, write_cells
from research.readers import passes, tiny
from research.rows import Row, read_rows, usable

DATA = MEASUREMENTS / "tiny.csv"
PASSES = DATA.with_name("passes.csv")
FILE = "networks.csv"
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
    return [run for _, run in usable(read_rows(DATA), _run)]


def single_runs(data: list[Run]) -> tuple[list[Run], list[Run]]:
    """Divide the runs to be fitted into engines with one run, and those with several."""
    runs_of = Counter(run.key[0] for run in data)
    fitted = [run for run in data if run.split == "calibrate"]
    single = [run for run in fitted if runs_of[run.key[0]] == 1]
    return single, [run for run in fitted if run not in single]


def _run(row: Row) -> Run:
    given, engine = tiny.arguments(row), tiny.engine_of(row)
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

    def of_one_run(self, run: Run) -> Floats:
        """Return the constants of an engine with one run, which determines only the share."""
        output, weight = np.exp(self._parts(self.logs)[-1][:2])
        work = run.products + output * run.outputs + weight * run.weights
        return np.array([work / run.seconds, output, weight])

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


def band(data: list[Run], keys: list[Key]) -> Band:
    """Return the band of measured over predicted times, from cross-validation."""
    ratios = []
    for number in range(FOLDS):
        fit = Fit([run for at, run in enumerate(data) if at % FOLDS != number], keys)
        ratios += [np.exp(-fit.error(run)) for run in data[number::FOLDS]]
    return band_of(ratios)


@dataclass(frozen=True)
class Pass:
    """One measured pass on a GPU, with times in seconds."""

    device: str
    compute: float
    """Time of the arithmetic at the peak rate."""
    memory: float
    layers: int
    time: float
    split: str

    def error(self, share: float, layer_time: float) -> float:
        """Return the logarithm of predicted over measured time."""
        time = max(self.compute / share, self.memory) + self.layers * layer_time
        return float(np.log(time / self.time))


def gpu_passes() -> list[Pass]:
    """Read the passes of networks of fixed shape on devices in the registry."""
    measured = []
    for row, given in usable(read_rows(PASSES), passes.arguments):
        network = given["model"]
        if not isinstance(network, FixedShapeModel):
            continue
        peak = SingleNodeSolver.solve(**given, efficiency=1)
        measured.append(
            Pass(
                given["hardware"].name,
                peak.compute_time.to("s").magnitude,
                peak.memory_time.to("s").magnitude,
                network.layers or 0,
                passes.measured(row),
                row.text("split"),
            )
        )
    return measured


def gpu_constants(data: list[Pass]) -> tuple[float, float]:
    """Return the share of the peak and the time per layer."""
    start = np.log([0.5, 5e-6])
    logs = least_squares(lambda logs: [p.error(*np.exp(logs)) for p in data], start).x
    share, layer_time = np.exp(logs)
    return float(share), float(layer_time)


def gpu_band(data: list[Pass]) -> Band:
    """Return the band of measured over predicted times, each device left out in turn."""
    ratios = []
    for device in {p.device for p in data}:
        constants = gpu_constants([p for p in data if p.device != device])
        ratios += [np.exp(-p.error(*constants)) for p in data if p.device == device]
    return band_of(ratios)


def report_gpus() -> None:
    """Write the constants of GPUs and their band, and print the errors of each split."""
    data = gpu_passes()
    fitted = [p for p in data if p.split == "calibrate"]
    share, layer_time = constants = gpu_constants(fitted)
    pass_band = gpu_band(fitted)
    low, high = pass_band.around(1)
    cells: dict[str, float | Band] = {
        "efficiency": round(share, 3),
        "layer_time [us]": float(f"{layer_time * 1e6:.3g}"),
        "pass_band": pass_band,
    }
    write_cells(FILE, {("TensorRT", "NVIDIA GPU", "int8"): cells})
    print("GPU_TensorRT", cells)
    for split in ("calibrate", "check"):
        errors = [p.error(*constants) for p in data if p.split == split]
        inside = np.mean([low <= np.exp(-error) <= high for error in errors])
        error = np.abs(np.expm1(errors)).mean()
        print(f"{split:9s} {len(errors)} passes, mean error {error:.1%}, in band {inside:.0%}")


def main() -> None:
    """Fit; write the constants, and print the errors."""
    report_gpus()
    data = runs()
    single, fitted = single_runs(data)
    data = [run for run in data if run not in single]
    keys = sorted({run.key for run in data})
    fit = Fit(fitted, keys)
    pass_band = band(fitted, keys)
    cells: dict[tuple[str, ...], dict[str, float | Band]] = {}
    for key in keys:
        for fast in (False, True) if key[0] == "HALE" else (False,):
            share, output, weight = fit.constants(key, fast=fast)
            engine, core, precision = key
            engine += FAST if fast else ""
            cells[engine, core, precision] = {
                "efficiency": round(share, 3),
                "output_flops [flop]": float(f"{output:.3g}"),
                "weight_flops [flop]": float(f"{weight:.3g}"),
                "pass_band": pass_band,
            }
    for run in single:
        share, output, weight = fit.of_one_run(run)
        cells[run.key] = {
            "efficiency": round(share, 4),
            "output_flops [flop]": float(f"{output:.3g}"),
            "weight_flops [flop]": float(f"{weight:.3g}"),
        }
    write_cells(FILE, cells)
    for row, numbers in cells.items():
        print(row, numbers)
    for split in ("calibrate", "check"):
        errors = [np.expm1(fit.error(run)) for run in data if run.split == split]
        print(f"{split:9s} {len(errors)} rows, mean error {np.abs(errors).mean():.1%}")


if __name__ == "__main__":
    main()
