"""Read measurements, predict each one, and report the errors."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable, Iterable, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from mlsysim.core.errors import ConfigError, MLSysError, shown
from mlsysim.core.types import Calibration
from mlsysim.scenario.names import named_calibration
from mlsysim.validation.report import Comparison, Report
from mlsysim.validation.rows import MAX_NUMBER, Row, Skip, read_rows

__all__ = ["KINDS", "rows_of", "validate"]

_Found = Comparison | tuple[Comparison, ...]
"""Comparisons of a row: one quantity, or several."""

# A column that only this kind of table has.
KINDS = {
    "tiny": "energy_uJ",
    "energy": "tokens_per_s",
    "training": "global_batch",
    "serving": "isl",
    "memory": "zero_stage",
    "kernels": "message_bytes",
    "passes": "sequences",
}


def validate(
    source: str | Path | Iterable[Row | Mapping[str, Any]] | Any,
    *,
    kind: str | None = None,
    split: str | None = None,
    calibration: Calibration | str | Path | None = None,
) -> Report:
    """Compare the model with measurements.

    Parameters
    ----------
    source
        A CSV file with a header and one measurement per row; or rows in memory, such as those of
        `csv.DictReader` or a pandas DataFrame.
    kind
        ``"training"``, ``"serving"``, ``"memory"``, ``"kernels"``, ``"passes"``,
        ``"energy"`` or ``"tiny"``; `None` infers it from the columns.
    split
        Only rows with this value in the ``split`` column; `None` takes all.
    calibration
        Constants for all rows of training, such as those that `calibrate` fitted to your cluster: a
        calibration, its name in `Calibrations`, or the path of its YAML file. `None` chooses them
        by the group and the device of each row.

    Returns
    -------
    Report
        Errors per group and pooled, coverage of the band, and skipped rows with reasons.

    Raises
    ------
    ConfigError
        If `source` cannot be read, holds no measurement of a known kind, or has no row of `split`.
    """
    rows = rows_of(source)
    if not rows:
        raise ConfigError("source = [] holds no measurements", argument="source")
    name = _kind_of(rows) if kind is None or (isinstance(kind, str) and not kind) else kind
    if not isinstance(name, str) or name not in KINDS:
        near = get_close_matches(name, KINDS, n=1) if isinstance(name, str) else []
        hint = f'; did you mean "{near[0]}"?' if near else ""
        raise ConfigError(
            f"kind = {shown(name)} is unknown: choose one of {', '.join(KINDS)}{hint}",
            argument="kind",
        )
    compare: Callable[..., _Found] = importlib.import_module(f"mlsysim.validation.{name}").compare
    if calibration is not None:
        compare = functools.partial(compare, calibration=_admitted(calibration, name))
    comparisons: list[Comparison] = []
    skipped: list[tuple[str, str]] = []
    for row in rows if split is None else _rows_in(rows, split):
        try:
            comparisons += _compared(row, compare)
        except (Skip, MLSysError) as fault:
            skipped.append((row.name, str(fault)))
    return Report(comparisons, skipped)


def _admitted(calibration: Any, kind: str) -> Calibration:
    """Return constants that apply to a table of this kind."""
    if kind != "training":
        raise ConfigError(
            f"calibration is for training, but these are measurements of {kind}: leave it out",
            argument="calibration",
        )
    return named_calibration(calibration, "calibration")


def rows_of(source: Any) -> list[Row]:
    """Read the rows of a file, a DataFrame, or an iterable of rows."""
    if isinstance(source, (str, Path)):
        return read_rows(source)
    if hasattr(source, "to_dict") and hasattr(source, "notna"):  # pandas is optional
        source = source.astype(object).where(source.notna(), None).to_dict("records")
    try:
        rows = iter(source)
    except TypeError:
        rows = iter([source])
    return [row if isinstance(row, Row) else Row.of(row) for row in rows]


def _rows_in(rows: list[Row], split: str) -> list[Row]:
    """Return the rows of one split, which must not be empty."""
    known = sorted({row.text("split") for row in rows})
    if not isinstance(split, str) or split not in known:
        raise ConfigError(
            f"split = {shown(split)} has no rows: choose one of {shown(known)}, the values of the "
            "column split",
            argument="split",
        )
    return [row for row in rows if row.text("split") == split]


def _compared(row: Row, compare: Callable[[Row], _Found]) -> tuple[Comparison, ...]:
    """Compare a valid row, and reject a prediction that is not a number."""
    if row.fault:
        raise Skip(row.fault)
    try:
        answer = compare(row)
    except ArithmeticError as fault:
        raise Skip(f"the numbers of this row are out of range: {fault}") from fault
    found = (answer,) if isinstance(answer, Comparison) else answer
    for each in found:
        if not 1 / MAX_NUMBER <= each.predicted <= MAX_NUMBER:
            raise Skip(f"the prediction for this row, {each.predicted:g}, is out of range")
    return found


def _kind_of(rows: list[Row]) -> str:
    columns = set(rows[0].cells)
    found = [kind for kind, column in KINDS.items() if column in columns]
    if not found:
        raise ConfigError(
            "the columns fit no kind of measurement: name one with kind= (--kind on the command "
            f"line), one of {', '.join(KINDS)}; they differ in the columns "
            f"{', '.join(KINDS.values())}",
            argument="kind",
        )
    return found[0]
