"""Fit the constants of serving: ``python -m research.fits.serving``.

Reads the measured runs in ``research/measurements/serving.csv`` and
``research/measurements/serving_2.csv``. Only rows marked ``calibrate`` are fitted; rows marked
``check`` are held out, and their errors are reported. The fit evaluates the solver's own model on
arrays of all runs. Writes the constants of every engine to ``mlsysim/registry/data/serving.toml``,
and prints them with the errors.

Each engine starts from the common constants and is pulled toward them, so a constant that its runs
do not determine stays there. Pools, releases and devices with few runs are pulled more strongly,
toward the most similar engine (`PARENTS`). Constants that depend more on this pull than on the runs
are not written; the registry inherits them.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import least_squares

from mlsysim.core.errors import MLSysError
from mlsysim.core.fields import field_unit, priors
from mlsysim.core.forms import replaced
from mlsysim.core.types import Band, ServingCalibration
from mlsysim.core.units import Q_
from mlsysim.registry.calibration.serving import ServingCalibrations
from mlsysim.registry.tables import read_toml
from mlsysim.solvers import DisaggregatedSolver, ServingSolver
from mlsysim.solvers.disaggregated import DisaggregatedInputs, serve_disaggregated
from mlsysim.solvers.serving.inputs import ServingInputs
from mlsysim.solvers.serving.operators import serve_operators
from research import MEASUREMENTS
from research.fits.files import band_of, with_bands, write_rows
from research.fits.stacks import MeasuredRuns, Stack
from research.readers import energy_runs, serving, serving_runs
from research.readers.aliases import find_model
from research.rows import Row, Skip, read_rows

Floats = NDArray[np.float64]
DATA = MEASUREMENTS
CONSTANTS = {
    name: prior for name, prior in priors(ServingCalibration).items() if math.isfinite(prior.high)
}
"""Constants that runs of engines can determine."""
PULL = 0.3
"""Weight of a constant's distance from its start, so that what rows cannot tell stays there. Three
times less lowers the cross-validated error of times between tokens by 0.3 points, at the price of
pairs of constants that lean against each other."""
FILE = "serving.toml"
PARENTS = {key: row["parent"] for key, row in read_toml(FILE)["rows"].items() if "parent" in row}
"""Rows of the registry, and those from which they inherit constants that their runs do not tell."""
PARENT_PULL, PARENT_SCALE = 0.6, 0.2
"""Weight of a constant's distance from its parent's, and the distance beyond which it counts less
than its square: releases differ in a few constants, by much. This lowers the error of models left
out of the fit by about two points."""
ONLY = {"prompt_parts": ("Blackwell_TensorRT",)}
"""Constants that only some engines have; elsewhere they keep the common value, since they lower
neither the cross-validated error there nor that of models left out of the fit. TensorRT-LLM, as its
scripts start it, replays graphs in decode only."""
FOLDS = 5
BANDED = {
    "itl": ("itl", "latency", "decode_latency", "decode_throughput"),
    "ttft": ("ttft",),
    "throughput": ("request_throughput", "output_throughput", "throughput_per_device"),
}
"""Fields whose errors make a band."""
ENOUGH = 12
"""Runs from which percentiles say something."""
WEIGHTS = {"itl": (1.0, 0.1), "ttft": (0.5, 0.25), "request_throughput": (0.3, 0.1)}
"""Weight of a quantity, and the error from which it counts less than its square."""
POOLS = {"ttft": (0.2, 0.25)}
"""The same for pools, whose queues have waits that the load does not explain."""
OTHERS = (1.0, 0.1)
FIRST = "ttft"
"""Times to the first token have outliers of a factor of ten, of engines that compile while they
are measured: there an error counts by its logarithm."""
FITTED = tuple(
    name
    for name in ServingCalibrations.names()
    if not name.endswith(("_Library", "_Open")) and name != "Uncalibrated"
)


@dataclass(frozen=True)
class Runs(MeasuredRuns[ServingInputs]):
    """Measured runs as arrays of the model's inputs."""

    bits: Floats
    field: NDArray[np.str_]
    value: Floats
    model: NDArray[np.str_]
    free: tuple[str, ...]
    """Constants that may be fitted."""

    def predict(self, constants: Mapping[str, float]) -> Floats:
        """Evaluate the solver's model with other constants than the registry's."""

        def change(i: ServingInputs, places: NDArray[np.intp]) -> ServingInputs:
            return with_constants(i, constants, self.bits[places])

        answer = self.inputs.run(_serve, change)
        found = np.zeros_like(self.value)
        for field in set(self.field):
            found = np.where(self.field == field, answer[field], found)
        return found

    def errors(self, constants: Mapping[str, float]) -> Floats:
        """Return the logarithm of predicted over measured."""
        logs: Floats = np.log(self.predict(constants) / self.value)
        return logs


def with_constants(i: ServingInputs, constants: Mapping[str, float], bits: Floats) -> ServingInputs:
    """Return inputs with other constants, each in the formats that it holds for."""
    own: dict[str, Any] = {}
    of_calibration: dict[str, Any] = {}
    for name, value in constants.items():
        width = {"gemm_efficiency_fp8": 8, "gemm_efficiency_fp4": 4}.get(name)
        if name == "gemm_efficiency":
            own["wide_gemm_efficiency"] = np.full_like(bits, value)
            own[name] = np.where(bits >= 16, value, own.get(name, i.gemm_efficiency))
        elif width:
            own["gemm_efficiency"] = np.where(
                bits == width, value, own.get("gemm_efficiency", i.gemm_efficiency)
            )
        elif name.startswith(("expert_efficiency", "expert_overhead")):
            plain, narrow = name.removesuffix("_fp4"), name.endswith("_fp4")
            own[plain] = np.where((bits == 4) == narrow, value, own.get(plain, getattr(i, plain)))
        else:
            of_calibration[name] = value
    if isinstance(i, DisaggregatedInputs):
        own |= {f"prefill_{name}": value for name, value in own.items()}
        own["prefill_calibration"] = replaced(i.prefill_calibration, **of_calibration)
    return i.but(calibration=replaced(i.calibration, **of_calibration), **own)


def _serve(i: ServingInputs) -> dict[str, Any]:
    return serve_disaggregated(i) if isinstance(i, DisaggregatedInputs) else serve_operators(i)


@cache
def _measured(split: str) -> dict[str, list[tuple[ServingInputs, str, float]]]:
    """Read all runs of one split by their constants: inputs, field of the result, and its value."""
    found: dict[str, list[tuple[ServingInputs, str, float]]] = {}
    for table, arguments, told in (
        ("serving.csv", serving.arguments, _one),
        ("serving_2.csv", serving_runs.arguments, _several),
        ("energy_2.csv", energy_runs.arguments, _rates),
    ):
        for row in read_rows(DATA / table):
            if row.text("split") != split:
                continue
            try:
                given = arguments(row)
                if "arrival_rate" in given:  # research/fits/open_loop.py fits to these
                    continue
                if table == "serving_2.csv" and serving_runs.assumption(row):
                    continue
                apart = "decode_workers" in given
                solver: Any = DisaggregatedSolver if apart else ServingSolver
                admitted = solver.admit(given)
                if any(True for _ in solver.faults(admitted)):
                    continue
                if row.text("load"):
                    result = solver.solve(**given)
                    serving_runs.refuse_what_does_not_fit(row, given, result)
                for field, value in told(row, given):
                    name = admitted.calibration.name
                    found.setdefault(name, []).append((admitted, field, value))
            except (Skip, MLSysError):
                continue
    return found


def _one(row: Row, given: dict[str, Any]) -> list[tuple[str, float]]:
    return [(serving.field_of(row), serving.measured(row))]


def _several(row: Row, given: dict[str, Any]) -> list[tuple[str, float]]:
    """Return the figures of a run.

    Runs on a Ryzen 7 8745H read prompts eight times as fast as its cores can, so its graphics
    helped. They tell nothing of processors.
    """
    if row.text("hardware").startswith("AMD Ryzen 7 8745H"):
        return []
    return [
        (figure.field, figure.to_field(row.measured(figure.column)))
        for figure in serving_runs.figures(row, given)
    ]


def _rates(row: Row, given: dict[str, Any]) -> list[tuple[str, float]]:
    """Return the rate of a run whose energy was measured, and its median time between tokens.

    Rates of InferenceX are in the other table. Of the median, a prefill in between is no part. Runs
    of GPQA on a single B200 had a slow host: their steps take 15 to 30 ms longer than those of the
    same model in chat, and the device draws little more than when idle. They tell nothing of it.
    """
    slow_host = (row.text("task"), row.text("hardware"), row.whole("n_gpus")) == ("gpqa", "B200", 1)
    if row.group != "mlenergy_llm" or slow_host:
        return []
    found = [("output_throughput", row.measured("tokens_per_s"))]
    if row.text("itl_p50_ms"):
        found.append(("decode_latency", row.measured("itl_p50_ms") / 1000))
    return found


def load(name: str, split: str) -> Runs | None:
    """Return the runs of one split that a row's constants are for; None if there are none."""
    found = _measured(split).get(ServingCalibrations[name].name)
    if not found:
        return None
    return Runs(
        Stack.of([inputs for inputs, *_ in found]),
        np.array([inputs.precision.bits for inputs, *_ in found], dtype=float),
        np.array([field for _, field, _ in found]),
        np.array([value for *_, value in found]),
        np.array([_family(inputs.model.name) for inputs, *_ in found]),
        tuple(constant for constant in CONSTANTS if name in ONLY.get(constant, (name,))),
    )


def _family(name: str) -> str:
    """Return the registry's name of a model that a row describes by its shape."""
    known = find_model(name)
    return name if known is None else known.name


def softened(errors: Floats, scale: Floats, first: NDArray[np.bool_]) -> Floats:
    """Return residuals that grow more slowly beyond `scale`: as their root, or logarithm."""
    ratio = (errors / scale) ** 2
    size = scale**2 * np.where(first, np.log1p(ratio), 2 * (np.sqrt(1 + ratio) - 1))
    signed: Floats = np.sign(errors) * np.sqrt(size)
    return signed


def in_si(name: str, value: float) -> float:
    """Return a constant of the registry in SI units."""
    unit = field_unit(ServingCalibration, name)
    return float(Q_(value, unit).to_base_units().magnitude) if unit else value


@dataclass(frozen=True)
class Found:
    """Constants of a fit, and how its residuals depend on them."""

    constants: dict[str, float]
    jacobian: Floats
    residuals: Floats
    inherited: dict[str, float]
    """Constants that were not fitted."""

    @property
    def whole(self) -> dict[str, float]:
        """All constants."""
        return self.inherited | self.constants

    def without(self, out: NDArray[np.bool_]) -> dict[str, float]:
        """Return all constants without some of the runs: one step of the fit to the others."""
        names = tuple(self.constants)
        kept = np.concatenate([~out, np.ones(len(names), dtype=bool)])
        step = np.linalg.lstsq(self.jacobian[kept], -self.residuals[kept], rcond=None)[0]
        least, most = limits(names)
        logs = np.log(list(self.constants.values())) + np.clip(step, -1, 1)
        fitted = np.exp(np.clip(logs, least, most)).tolist()
        return self.inherited | dict(zip(names, fitted, strict=True))


def limits(names: tuple[str, ...]) -> tuple[Floats, Floats]:
    """Return the logarithms of the least and the largest possible constants."""
    least = np.log([in_si(name, CONSTANTS[name].low) for name in names])
    return least, np.log([in_si(name, CONSTANTS[name].high) for name in names])


def center_of(name: str) -> dict[str, float] | None:
    """Return the constants of a row's parent in the registry, in SI units; `None` without one."""
    if name not in PARENTS:
        return None
    row: ServingCalibration = ServingCalibrations[PARENTS[name]]
    values = {constant: getattr(row, constant) for constant in CONSTANTS}
    return {n: in_si(n, getattr(value, "magnitude", value)) for n, value in values.items()}


def fit(
    runs: Runs,
    free: tuple[str, ...] = (),
    start: Mapping[str, float] | None = None,
    parent: Mapping[str, float] | None = None,
) -> Found:
    """Fit on runs marked ``calibrate``: the constants that they tell of, or those that are named.

    What is not fitted keeps its value in `parent`, or the common one.
    """
    names = free or runs.free
    usual = {n: in_si(n, prior.usual) for n, prior in CONSTANTS.items()}
    center = (
        usual if parent is None else {n: (parent if n in runs.free else usual)[n] for n in usual}
    )
    fixed = {name: center[name] for name in CONSTANTS if name not in names}
    common = np.log([center[n] for n in names])
    least, most = limits(names)
    weights = WEIGHTS | (POOLS if "throughput_per_device" in runs.field else {})
    weight, scale = (np.array([weights.get(f, OTHERS)[k] for f in runs.field]) for k in (0, 1))
    first = np.array([field == FIRST for field in runs.field])

    def constants(logs: Floats) -> dict[str, float]:
        return dict(zip(names, np.exp(logs).tolist(), strict=True))

    def pulled(distance: Floats) -> Floats:
        if parent is None:
            return PULL * distance
        every = np.full(len(names), PARENT_SCALE)
        return softened(PARENT_PULL * distance, every, np.zeros(len(names), dtype=bool))

    def residuals(logs: Floats) -> Floats:
        errors = runs.errors(fixed | constants(logs))
        return np.concatenate([weight * softened(errors, scale, first), pulled(logs - common)])

    begins = [common if start is None else np.log([start[n] for n in names])]
    if parent is not None and start is None:
        alone = fit(runs).whole
        begins.append(np.log([alone[n] for n in names]))
    tried = [
        least_squares(
            residuals,
            np.clip(begin, least + 1e-6, most - 1e-6),
            bounds=(least, most),
            x_scale=0.1,
            ftol=1e-4,
            max_nfev=25,
        )
        for begin in begins
    ]
    found = min(tried, key=lambda each: each.cost)
    if not free:
        told = (found.jac[: len(runs.value)] ** 2).sum(axis=0) > PULL**2
        known = tuple(name for name, is_told in zip(names, told, strict=True) if is_told)
        return fit(runs, known, constants(found.x), parent)
    return Found(constants(found.x), found.jac, found.fun, fixed)


def bands(found: Found, runs: Runs) -> dict[str, Band]:
    """Return the bands of measured over predicted, from cross-validation.

    What was measured of one configuration stays in one fold: it is not independent. For models that
    no run served, each model is left out in turn; a single one tells nothing of others.
    """
    families = sorted(set(runs.model))
    model = np.array([families.index(name) for name in runs.model])
    # The band is one of times, and a rate falls as they grow.
    sign = np.where(np.isin(runs.field, ("decode_throughput",)), 1, -1)
    fitted = np.exp(sign * runs.errors(found.whole))
    cross_validated: dict[str, Band] = {}
    for prefix, fold in (("", runs.inputs.plans() % FOLDS), ("unseen_", model)):
        ratio = np.empty_like(runs.value)
        numbers = np.unique(fold)
        if len(numbers) < 2:
            continue
        for number in numbers:
            out = fold == number
            others = found.without(out)
            ratio[out] = np.exp(sign[out] * runs.take(out).errors(others))
        for field, same in BANDED.items():
            chosen = np.isin(runs.field, same)
            if field == "ttft" and not chosen.any():
                chosen = np.isin(runs.field, ("latency",))
            if chosen.sum() >= ENOUGH:
                # One step is not the whole fit: a band is no narrower than that of the fitted runs.
                band = band_of(ratio[chosen]).union(band_of(fitted[chosen]))
                cross_validated[f"{prefix}{field}_band"] = band
    return cross_validated


def population() -> dict[str, Band]:
    """Return bands for a device that no run was measured on, and that has the common constants.

    They hold between engines as far as these differ, so each counts the same, however many runs it
    has.
    """
    ratios: dict[str, list[tuple[Floats, Floats]]] = {name: [] for name in BANDED}
    for name in FITTED:
        runs = load(name, "calibrate")
        if runs is None or name.endswith("_Pools"):
            continue
        sign = np.where(np.isin(runs.field, ("decode_throughput",)), 1, -1)
        ratio = np.exp(
            sign * runs.errors({n: in_si(n, prior.usual) for n, prior in CONSTANTS.items()})
        )
        for field, same in BANDED.items():
            own = ratio[np.isin(runs.field, same)]
            if own.size:
                ratios[field].append((own, np.full_like(own, 1 / own.size)))
    bands: dict[str, Band] = {}
    for field, parts in ratios.items():
        value, weight = (np.concatenate(column) for column in zip(*parts, strict=True))
        order = np.argsort(value)
        share = np.cumsum(weight[order]) / weight.sum()
        low, high = (value[order][np.searchsorted(share, at)] for at in (0.1, 0.9))
        bands[f"{field}_band"] = Band(low=min(1.0, low), high=max(1.0, high))
    return bands


def printed(name: str, value: float) -> float:
    """Return a constant as the registry has it: three digits, in the unit of the field."""
    unit = field_unit(ServingCalibration, name)
    return float(f"{Q_(value, 's').to(unit).magnitude if unit else value:.3g}")


def summary(errors: Floats) -> str:
    """Write n, mean and median error, bias and share within ten percent."""
    percent = 100 * np.expm1(errors)
    size = np.abs(percent)
    return (
        f"n={size.size:4d}  mean {size.mean():5.1f}  median {np.median(size):5.1f}  "
        f"bias {percent.mean():+5.1f}  within 10% {100 * (size <= 10).mean():3.0f}%"
    )


def main() -> None:
    """Fit every engine; print constants and errors."""
    pooled: dict[tuple[str, str], list[Floats]] = {}
    for name in sys.argv[1:] or FITTED:
        runs = load(name, "calibrate")
        if runs is None:
            continue
        found = fit(runs, parent=center_of(name))
        constants = found.constants
        formats = {16: ("fp16", "bf16"), 8: ("fp8",), 4: ("fp4",)}
        row = {
            "models": sorted(
                {model for model in runs.model.tolist() if find_model(model) is not None}
            ),
            "formats": [one for bits in sorted(set(runs.bits))[::-1] for one in formats[int(bits)]],
            "fitted": with_bands(
                {constant: printed(constant, value) for constant, value in constants.items()},
                bands(found, runs),
            ),
        }
        write_rows(FILE, {name: row})
        print(f"\n{name}", row, flush=True)
        for split in ("calibrate", "check"):
            part = runs if split == "calibrate" else load(name, split)
            if part is None:
                continue
            errors = part.errors(found.whole)
            for field in dict.fromkeys(part.field):
                chosen = errors[part.field == field]
                pooled.setdefault((split, field), []).append(chosen)
                print(f"  {split:9s} {field:18s} {summary(chosen)}")
    uncalibrated = {"fitted": with_bands({}, population())}
    write_rows(FILE, {"Uncalibrated": uncalibrated})
    print("\nUncalibrated", uncalibrated)
    print("\nAll engines")
    for (split, field), parts in sorted(pooled.items()):
        print(f"  {split:9s} {field:18s} {summary(np.concatenate(parts))}")


if __name__ == "__main__":
    main()
