"""Fit the constants of serving: ``python -m tools.calibrate_serving``.

Reads the measured runs in ``measurements/serving.csv``. Only rows marked ``calibrate`` are fitted;
rows marked ``check`` are reported on and never seen by the fit. The solver's own kernel is
evaluated, on arrays of all runs at once. Prints the constants of every engine, as written in
``mlsysim/registry/calibration/serving.py``, and the errors.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import least_squares

from mlsysim.core.errors import MLSysError
from mlsysim.core.fields import field_unit
from mlsysim.core.forms import replaced
from mlsysim.core.types import Generation, ServingCalibration
from mlsysim.core.units import Q_
from mlsysim.solvers import ServingSolver
from mlsysim.solvers.serving.inputs import ServingInputs
from mlsysim.solvers.serving.operators import serve_operators
from mlsysim.validation import serving
from mlsysim.validation.aliases import find_accelerator
from mlsysim.validation.rows import Row, Skip, read_rows
from tools.stacks import Stack

Floats = NDArray[np.float64]
DATA = Path(__file__).parents[1] / "measurements/serving.csv"
# Where a fit starts and what is physically possible, in SI units: (start, least, most).
CONSTANTS: dict[str, tuple[float, float, float]] = {
    "gemm_efficiency": (0.7, 0.3, 0.85),
    "gemm_efficiency_fp8": (0.6, 0.3, 0.85),
    "gemm_efficiency_fp4": (0.5, 0.2, 0.8),
    "attention_efficiency": (0.4, 0.1, 0.75),
    "memory_efficiency": (0.88, 0.5, 0.93),
    "kv_efficiency": (0.7, 0.3, 0.9),
    "layer_overhead": (50e-6, 1e-6, 200e-6),
    "all_reduce_overhead": (4e-6, 0.5e-6, 30e-6),
    "prompt_overhead": (100e-6, 1e-6, 1000e-6),
    "sequence_overhead": (8e-6, 0.5e-6, 60e-6),
    "admission_steps": (1.5, 0.5, 5),
}
PULL = 0.3
"""Weight of a constant's distance from its start, so that what rows cannot tell stays there. Three
times less lowers the cross-validated error of times between tokens by 0.3 points, at the price of
pairs of constants that lean against each other."""
FOLDS = 5
ENOUGH = 20
"""Runs from which percentiles say something."""
"""Weight of a constant's distance from its start, so that what rows cannot tell stays there."""
WEIGHTS = {"itl": (1.0, 0.1), "ttft": (0.5, 0.2), "output_throughput": (1.0, 0.2)}
"""Weight of a quantity, and the error from which it counts less than its square."""
DECODE = (
    "memory_efficiency",
    "kv_efficiency",
    "layer_overhead",
    "all_reduce_overhead",
)
LOADED = (
    *DECODE,
    "attention_efficiency",
    "prompt_overhead",
    "sequence_overhead",
    "admission_steps",
)


@dataclass(frozen=True)
class Fit:
    """One engine on one generation of devices, and the constants that its runs can tell."""

    free: tuple[str, ...]
    accepts: Callable[[Row], bool]


def _is(engine: str, generation: Generation) -> Callable[[Row], bool]:
    def accepts(row: Row) -> bool:
        name, device = row.text("engine").lower(), find_accelerator(row.text("hardware"))
        same = name.replace("tensorrt-llm", "trtllm").startswith(engine)
        return same and device is not None and device.generation == generation

    return accepts


FITS = {
    "Hopper_TensorRT": Fit(
        ("gemm_efficiency", "gemm_efficiency_fp8", *LOADED), _is("trtllm", "hopper")
    ),
    "Hopper_vLLM": Fit(("gemm_efficiency_fp8", *LOADED), _is("vllm", "hopper")),
    "Hopper_SGLang": Fit(
        ("gemm_efficiency", "gemm_efficiency_fp8", *LOADED), _is("sglang", "hopper")
    ),
    "Blackwell_TensorRT": Fit(
        ("gemm_efficiency_fp8", "gemm_efficiency_fp4", *LOADED), _is("trtllm", "blackwell")
    ),
    "Blackwell_vLLM": Fit(
        ("gemm_efficiency_fp8", "gemm_efficiency_fp4", *LOADED), _is("vllm", "blackwell")
    ),
    "Ampere": Fit(
        ("gemm_efficiency", "memory_efficiency", "layer_overhead", "all_reduce_overhead"),
        _is("", "ampere"),
    ),
}


@dataclass(frozen=True)
class Runs:
    """Measured runs as arrays of the model's inputs."""

    inputs: Stack[ServingInputs]
    bits: Floats
    field: tuple[str, ...]
    value: Floats

    def predict(self, constants: Mapping[str, float]) -> Floats:
        """Evaluate the solver's model with other constants than the registry's."""

        def change(i: ServingInputs, places: NDArray[np.intp]) -> ServingInputs:
            return with_constants(i, constants, self.bits[places])

        answer = self.inputs.run(serve_operators, change)
        found = np.zeros_like(self.value)
        for field in set(self.field):
            found = np.where(np.array(self.field) == field, answer[field], found)
        return found

    def take(self, mask: NDArray[np.bool_]) -> Runs:
        """Return some of the runs."""
        return Runs(
            self.inputs.take(mask),
            self.bits[mask],
            tuple(np.array(self.field)[mask]),
            self.value[mask],
        )

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
        else:
            of_calibration[name] = value
    return i.but(calibration=replaced(i.calibration, **of_calibration), **own)


def load(fit: Fit, split: str) -> Runs | None:
    """Read the runs of one split that a fit is about; None if there are none."""
    parameters = inspect.signature(ServingSolver.solve).parameters
    defaults = {name: item.default for name, item in parameters.items()}
    found: list[tuple[ServingInputs, str, float]] = []
    for row in read_rows(DATA):
        if row.text("split") != split or not fit.accepts(row):
            continue
        try:
            admitted = ServingSolver.admit(defaults | serving.arguments(row))
            found.append((admitted, serving.field_of(row), serving.measured(row)))
        except (Skip, MLSysError):
            continue
    if not found:
        return None
    return Runs(
        Stack.of([inputs for inputs, *_ in found]),
        np.array([inputs.precision.bits for inputs, *_ in found], dtype=float),
        tuple(field for _, field, _ in found),
        np.array([value for *_, value in found]),
    )


def softened(errors: Floats, scale: Floats) -> Floats:
    """Return residuals that grow as their square root beyond `scale`."""
    size = 2 * scale**2 * (np.sqrt(1 + (errors / scale) ** 2) - 1)
    signed: Floats = np.sign(errors) * np.sqrt(size)
    return signed


def fit_constants(fit: Fit, runs: Runs) -> dict[str, float]:
    """Fit to runs marked ``calibrate``."""
    start, least, most = (np.log([CONSTANTS[n][k] for n in fit.free]) for k in range(3))
    weight, scale = (np.array([WEIGHTS.get(f, (1, 0.1))[k] for f in runs.field]) for k in (0, 1))

    def constants(logs: Floats) -> dict[str, float]:
        return dict(zip(fit.free, np.exp(logs).tolist(), strict=True))

    def residuals(logs: Floats) -> Floats:
        errors = runs.errors(constants(logs))
        return np.concatenate([weight * softened(errors, scale), PULL * (logs - start)])

    found = least_squares(residuals, start, bounds=(least, most), x_scale=0.1)
    return constants(found.x)


def bands(fit: Fit, runs: Runs) -> dict[str, float]:
    """Return the percentiles of measured over predicted, from cross-validation.

    What was measured of one configuration stays in one fold: it is not independent.
    """
    fold = runs.inputs.plans() % FOLDS
    ratio = np.empty_like(runs.value)
    for number in range(FOLDS):
        out = fold == number
        constants = fit_constants(fit, runs.take(~out))
        ratio[out] = np.exp(-runs.take(out).errors(constants))
    found: dict[str, float] = {}
    for field in ("itl", "ttft"):
        part = ratio[np.array(runs.field) == field]
        if part.size >= ENOUGH:
            low, high = np.percentile(part, [10, 90])
            found |= {f"{field}_band_low": float(low), f"{field}_band_high": float(high)}
    return found


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
    for name, fit in FITS.items():
        runs = load(fit, "calibrate")
        if runs is None:
            continue
        constants = fit_constants(fit, runs)
        print(f"\n{name}")
        for constant, value in constants.items():
            print(f"        {constant}={printed(constant, value)},")
        for edge, value in bands(fit, runs).items():
            print(f"        {edge}={value:.3f},")
        for split in ("calibrate", "check"):
            part = runs if split == "calibrate" else load(fit, split)
            if part is None:
                continue
            errors = part.errors(constants)
            for field in dict.fromkeys(part.field):
                chosen = errors[np.array(part.field) == field]
                pooled.setdefault((split, field), []).append(chosen)
                print(f"  {split:9s} {field:18s} {summary(chosen)}")
    print("\nAll engines")
    for (split, field), parts in sorted(pooled.items()):
        print(f"  {split:9s} {field:18s} {summary(np.concatenate(parts))}")


if __name__ == "__main__":
    main()
