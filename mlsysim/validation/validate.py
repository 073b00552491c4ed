"""Read measurements, predict each one, and report the errors."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, TypeVar

from mlsysim.core.errors import ConfigError
from mlsysim.core.types import Calibration
from mlsysim.scenario.names import named_calibration
from mlsysim.validation.columns import Columns
from mlsysim.validation.report import Comparison, Report
from mlsysim.validation.rows import MAX_NUMBER, Row, Skip, read_each, rows_of, rows_of_split

R = TypeVar("R", bound=Row)
Compared = Comparison | tuple[Comparison, ...]
"""Comparisons of a row: one quantity, or several."""


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
        A CSV file with a header and one measured run per row; or rows in memory, such as those of
        `csv.DictReader` or a pandas DataFrame. Columns have the names of the solver's arguments,
        and measured columns those of the fields of its result.
    kind
        ``"training"``, ``"serving"``, ``"open-loop"``, ``"disaggregated"``, ``"inference"``,
        ``"sustainability"``, ``"economics"`` or ``"reliability"``; `None` infers it from the
        columns.
    split
        Only rows with this value in the ``split`` column; `None` takes all.
    calibration
        Constants for all rows of training, such as those that `calibrate` fitted to your cluster: a
        calibration, its name in `Calibrations`, or the path of its YAML file. `None` takes those of
        the column ``calibration``, or else those of the device.

    Returns
    -------
    Report
        Errors per group and pooled, coverage of the band, and skipped rows with reasons.

    Raises
    ------
    ConfigError
        If `source` cannot be read, its columns fit no kind of measurement, or it has no row of
        `split`.
    """
    rows = rows_of(source)
    if not rows:
        raise ConfigError("source = [] holds no measurements", argument="source")
    columns = Columns.of(rows, kind)
    changes = {}
    if calibration is not None:
        changes["calibration"] = admitted_calibration(calibration, columns.kind)
    return report_on(rows_of_split(rows, split), partial(columns.compare, changes=changes))


def admitted_calibration(calibration: Any, kind: str) -> Calibration:
    """Return constants that apply to a table of this kind."""
    if kind != "training":
        raise ConfigError(
            f"calibration is for training, but these are measurements of {kind}: leave it out",
            argument="calibration",
        )
    return named_calibration(calibration, "calibration")


def report_on(rows: Sequence[R], compare: Callable[[R], Compared]) -> Report:
    """Compare every row; a row that cannot be predicted is skipped, with the reason."""
    compared, skipped = read_each(rows, partial(_compared, compare))
    return Report(chain.from_iterable(compared), skipped)


def _compared(compare: Callable[[R], Compared], row: R) -> tuple[Comparison, ...]:
    """Compare a row, and reject a prediction that is not a number."""
    answer = compare(row)
    compared = (answer,) if isinstance(answer, Comparison) else answer
    for each in compared:
        if not 1 / MAX_NUMBER <= each.predicted <= MAX_NUMBER:
            raise Skip(f"the prediction for this row, {each.predicted:g}, is out of range")
    return compared
