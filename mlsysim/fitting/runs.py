"""Measured runs of one cluster: rows that a fit can use, and reasons to reject the others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from mlsysim.core.errors import ConfigError, shown
from mlsysim.core.fields import units_of
from mlsysim.core.types import Calibration, Software
from mlsysim.solvers import DistributedSolver
from mlsysim.solvers.training.inputs import TrainingInputs
from mlsysim.solvers.training.operators import operator_step
from mlsysim.validation.columns import Columns
from mlsysim.validation.rows import Row, Skip, read_each

_MEASURED = "step_latency_total"
_SLOWEST = 30
"""How many times the prediction a step may take before its row counts as a mistake."""


@dataclass(frozen=True)
class Run:
    """One measured run: arguments of `DistributedSolver`, and the model's inputs for them."""

    id: str
    arguments: dict[str, Any]
    admitted: TrainingInputs
    plain: TrainingInputs
    measured: float
    """Time of a step in seconds; NaN for a run that is only planned."""
    predicted: float
    """The same with the base's constants."""
    busy: float
    """Share of the peak rate that the device reaches in this prediction."""


def run_of(name: str, arguments: dict[str, Any], measured: float) -> Run:
    """Return a run from arguments, or raise the error that the solver has for them."""
    admitted = DistributedSolver.admit(arguments)
    for fault in DistributedSolver.faults(admitted):
        raise fault
    plain = admitted.plain()
    outputs = operator_step(plain.but())
    predicted, busy = outputs["step_latency_total"], max(outputs["mfu"], outputs["hfu"])
    return Run(name, arguments, admitted, plain, measured, float(predicted), float(busy))


def runs_of(
    rows: Sequence[Row], base: Calibration | None
) -> tuple[list[Run], list[tuple[str, str]]]:
    """Return the usable runs, and for every other row its identifier and a reason."""
    columns = Columns.of(rows, "training")
    if not any(head.name == _MEASURED for head in columns.measured):
        raise ConfigError(
            f"source has no column {_MEASURED} (s), the measured time of a step: add it",
            argument="source",
        )
    return read_each(rows, partial(_run, columns, base))


def _run(columns: Columns, base: Calibration | None, row: Row) -> Run:
    stated = columns.measured_in(row).get(_MEASURED)
    if stated is None:
        raise Skip(f"{_MEASURED} is empty: nothing was measured")
    measured = columns.in_si(_MEASURED, stated)
    given = columns.arguments_in(row)
    run = run_of(row.name, given if base is None else given | {"calibration": base}, measured)
    share = run.busy * run.predicted / measured
    if share > 1:
        raise Skip(
            f"{_MEASURED} = {measured:g} s is faster than the device allows: its arithmetic alone "
            f"would need {share:.0%} of the peak rate; check the batch size, the number of "
            "devices and the time"
        )
    if measured > _SLOWEST * run.predicted:
        raise Skip(
            f"{_MEASURED} = {measured:g} s is {measured / run.predicted:.0f} times the prediction; "
            f"more than {_SLOWEST} times cannot be a run of this plan: check the unit and the "
            "batch size"
        )
    return run


def check_alike(runs: Sequence[Run], base: Calibration | None) -> None:
    """Reject runs of several devices, or of several frameworks if no base is given."""
    _check_one([run.admitted.device.name for run in runs], "device", "calibrate each on its own")
    if base is None:
        _check_one(
            [run.admitted.calibration.software.release for run in runs],
            "framework",
            "calibrate each on its own, or name the constants to start from with base=",
        )


def _check_one(names: list[str], what: str, way_out: str) -> None:
    known = sorted(set(names))
    if len(known) > 1:
        raise ConfigError(
            f"source has runs of {len(known)} {what}s ({shown(', '.join(known))}): {way_out}",
            argument="source",
        )


def base_of(runs: Sequence[Run]) -> Calibration:
    """Return the one calibration of all runs.

    Recipes switch off some effects of their framework, such as launches. Each run's own columns do
    that too, so the common record leaves them on.
    """
    found = [run.admitted.calibration for run in runs]
    first = found[0]
    on: dict[str, Any] = {}
    for field, _, _ in units_of(Software):
        on[field] = max((getattr(each.software, field) for each in found), key=float_of)
    if all(on[field] == getattr(first.software, field) for field in on):
        return first
    return replace(first, software=replace(first.software, **on))


def float_of(value: Any) -> float:
    """Return the magnitude of a quantity or a number, to compare it with others in its unit."""
    return float(getattr(value, "magnitude", value))
