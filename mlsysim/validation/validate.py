"""Read measurements, predict each, and report the errors."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from mlsysim.core.errors import ConfigError, MLSysError
from mlsysim.validation.report import Comparison, Report
from mlsysim.validation.rows import MAX_NUMBER, Row, Skip, read_rows

__all__ = ["KINDS", "validate"]

# What sets the tables apart: a column that only this kind has.
KINDS = {
    "energy": "tokens_per_s",
    "training": "global_batch",
    "serving": "isl",
    "memory": "zero_stage",
    "kernels": "message_bytes",
    "passes": "sequences",
}


def validate(
    source: str | Path | Iterable[Row | Mapping[str, Any]],
    *,
    kind: str | None = None,
    split: str | None = None,
) -> Report:
    """Hold the model against measurements.

    Parameters
    ----------
    source
        A CSV file with a head, one measurement a row; or rows that were read, such as those of
        `csv.DictReader`.
    kind
        ``"training"``, ``"serving"``, ``"memory"``, ``"kernels"``, ``"passes"`` or
        ``"energy"``; `None` tells by the columns.
    split
        Only rows whose ``split`` column says so; `None` takes all.

    Returns
    -------
    Report
        Errors per group and pooled, coverage of the band, and skipped rows with reasons.

    Raises
    ------
    ConfigError
        If the file cannot be read, or holds no measurement of a known kind.
    """
    if isinstance(source, (str, Path)):
        rows = read_rows(source)
    else:
        rows = [row if isinstance(row, Row) else Row.of(row) for row in source]
    if not rows:
        raise ConfigError("source = [] holds no measurements", argument="source")
    name = kind or _kind_of(rows)
    if name not in KINDS:
        near = get_close_matches(str(name), KINDS, n=1)
        hint = f'; did you mean "{near[0]}"?' if near else ""
        raise ConfigError(
            f"kind = {name!r} is unknown: choose one of {', '.join(KINDS)}{hint}", argument="kind"
        )
    compare: Callable[[Row], Comparison] = importlib.import_module(
        f"mlsysim.validation.{name}"
    ).compare
    comparisons, skipped = [], []
    for row in rows:
        if split is not None and row.text("split") != split:
            continue
        try:
            comparisons.append(_compared(row, compare))
        except (Skip, MLSysError) as fault:
            skipped.append((row.name, str(fault)))
    return Report(comparisons, skipped)


def _compared(row: Row, compare: Callable[[Row], Comparison]) -> Comparison:
    """Compare a row that can be trusted, and refuse a prediction that is no number."""
    if row.fault:
        raise Skip(row.fault)
    try:
        found = compare(row)
    except ArithmeticError as fault:
        raise Skip(f"the numbers of this row are out of range: {fault}") from fault
    if not 1 / MAX_NUMBER <= found.predicted <= MAX_NUMBER:
        raise Skip(f"the prediction for this row, {found.predicted:g}, is out of range")
    return found


def _kind_of(rows: list[Row]) -> str:
    columns = set(rows[0].cells)
    found = [kind for kind, column in KINDS.items() if column in columns]
    if not found:
        raise ConfigError(
            "the columns fit no kind of measurement: name one with kind= (--kind on the command "
            f"line), one of {', '.join(KINDS)}; what tells them apart are the columns "
            f"{', '.join(KINDS.values())}",
            argument="kind",
        )
    return found[0]
