"""Fit the constants of single forward passes: ``python -m research.fits.passes``.

Reads the measured passes in ``research/measurements/passes.csv``. Only rows marked ``calibrate``
are fitted; rows marked ``check`` are held out, and their errors are reported. The fit evaluates the
solver's own model on arrays of all passes. Writes the constants to
``mlsysim/registry/data/serving.toml``, and prints them with the errors.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import least_squares

from mlsysim.core.forms import replaced
from mlsysim.core.types import Band
from mlsysim.solvers import SingleNodeSolver
from mlsysim.solvers.passes import PassInputs, operator_pass
from research import MEASUREMENTS
from research.fits.files import band_of, with_bands, write_rows
from research.fits.serving import (
    CONSTANTS,
    ENOUGH,
    FILE,
    FOLDS,
    PULL,
    Floats,
    in_si,
    limits,
    printed,
    softened,
    summary,
)
from research.fits.stacks import MeasuredRuns, Stack
from research.readers import passes
from research.rows import read_rows

DATA = MEASUREMENTS / "passes.csv"
SCALE = 0.1
"""Error from which a row counts less than its square."""
FITS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "Ampere_Library": (
        ("gemm_efficiency", "memory_efficiency", "attention_efficiency", "prompt_overhead"),
        ("tensorrt_bert_a100", "trtllm_first_token_ampere"),
    ),
    "Hopper_Library": (
        ("gemm_efficiency_fp8", "attention_efficiency", "prompt_overhead"),
        ("trtllm_first_token_hopper",),
    ),
}
"""The constants that passes can tell, and the groups of rows that tell them."""


@dataclass(frozen=True)
class Passes(MeasuredRuns[PassInputs]):
    """Measured passes as arrays of the model's inputs."""

    value: Floats

    def errors(self, constants: dict[str, float]) -> Floats:
        """Return the logarithm of predicted over measured, with other constants."""
        answer = self.inputs.run(operator_pass, lambda i, _: with_constants(i, constants))
        logs: Floats = np.log(answer["latency"] / self.value)
        return logs


def with_constants(i: PassInputs, constants: dict[str, float]) -> PassInputs:
    """Return inputs with other constants."""
    own: dict[str, float] = {}
    of_calibration: dict[str, float] = {}
    for name, value in constants.items():
        products = name.startswith("gemm_efficiency")
        (own if products else of_calibration)[name.removesuffix("_fp8")] = value
    if "gemm_efficiency" in constants:
        own["wide_gemm_efficiency"] = own["gemm_efficiency"]
    return i.but(calibration=replaced(i.calibration, **of_calibration), **own)


def load(name: str, split: str) -> Passes:
    """Read the passes of one split that a fit is about."""
    rows = [row for row in read_rows(DATA) if row.text("split") == split]
    rows = [row for row in rows if row.group in FITS[name][1]]
    return Passes(
        Stack.of([SingleNodeSolver.admit(passes.arguments(row)) for row in rows]),
        np.array([passes.measured(row) for row in rows]),
    )


def fit_constants(name: str, runs: Passes) -> dict[str, float]:
    """Fit to passes marked ``calibrate``."""
    free = FITS[name][0]
    start = np.log([in_si(n, CONSTANTS[n].usual) for n in free])
    least, most = limits(free)

    def constants(logs: Floats) -> dict[str, float]:
        return dict(zip(free, np.exp(logs).tolist(), strict=True))

    def residuals(logs: Floats) -> Floats:
        scale, first = np.full_like(runs.value, SCALE), np.zeros(runs.value.size, dtype=bool)
        errors = softened(runs.errors(constants(logs)), scale, first)
        return np.concatenate([errors, PULL * (logs - start)])

    return constants(least_squares(residuals, start, bounds=(least, most), x_scale=0.1).x)


def band(name: str, runs: Passes) -> Band:
    """Return the band of measured over predicted times, from cross-validation."""
    if runs.value.size < ENOUGH:
        return Band()
    fold = np.arange(runs.value.size) % FOLDS
    ratio = np.empty_like(runs.value)
    for number in range(FOLDS):
        out = fold == number
        ratio[out] = np.exp(-runs.take(out).errors(fit_constants(name, runs.take(~out))))
    return band_of(ratio)


def main() -> None:
    """Fit; print constants and errors."""
    for name in FITS:
        runs = load(name, "calibrate")
        constants = fit_constants(name, runs)
        section = with_bands(
            {constant: printed(constant, value) for constant, value in constants.items()},
            {"pass_band": band(name, runs)},
        )
        write_rows(FILE, {name: {"passes": section}})
        print(f"\n{name}", section)
        for split in ("calibrate", "check"):
            print(f"  {split:9s} {summary(load(name, split).errors(constants))}")


if __name__ == "__main__":
    main()
