"""Rows of published tables: whole numbers, words and counts in cells."""

from __future__ import annotations

import csv
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from mlsysim.core.errors import MLSysError, shown
from mlsysim.validation import rows as tidy
from mlsysim.validation.report import Comparison
from mlsysim.validation.rows import Skip

__all__ = ["Row", "Skip", "count_of", "read_rows", "rows_of", "usable", "write_table"]

MAX_COUNT = 10**15
T = TypeVar("T")


@dataclass(frozen=True)
class Row(tidy.Row):
    """One measurement of a published table."""

    def whole(
        self,
        column: str,
        default: int | None = None,
        *,
        minimum: int = 1,
        maximum: int = MAX_COUNT,
    ) -> int:
        """Return a cell's whole number.

        Raises
        ------
        Skip
            If there is none and no default, or it is not whole, or not within the limits.
        """
        value = self.number(column)
        if value is None:
            if default is None:
                raise Skip(f"{column} is missing")
            return default
        if value != int(value) or value < minimum:
            raise Skip(f"{column} = {value:g} is not a whole number of at least {minimum}")
        if value > maximum:
            raise Skip(f"{column} = {value:g} is too many: the limit is {maximum:g}")
        return int(value)

    def word(self, column: str, known: Collection[str], default: str) -> str:
        """Return a cell's text, which must be one of the known values.

        Raises
        ------
        Skip
            If it is not; the message lists the known values.
        """
        text = self.text(column) or default
        if text not in known:
            raise Skip(f"{column} = {shown(text)} is not one of {', '.join(known)}")
        return text

    def compared(
        self,
        quantity: str,
        measured: float,
        predicted: float,
        low: float | None = None,
        high: float | None = None,
        *,
        group: str = "",
        note: str = "",
    ) -> Comparison:
        """Return the comparison with a prediction that is not a field of a result as it is."""
        split = self.text("split")
        return Comparison(
            self.name, group or self.group, split, quantity, measured, predicted, low, high, note
        )


def count_of(digits: str) -> int:
    """Return a count embedded in a cell's text, such as the 8 in "EP 8".

    Raises
    ------
    Skip
        If it is beyond any count of devices or bytes.
    """
    if len(digits) > len(str(MAX_COUNT)):
        raise Skip(f"{shown(digits)} is too many: the limit is {MAX_COUNT:g}")
    return int(digits)


def usable(rows: Iterable[Row], read: Callable[[Row], T]) -> Iterator[tuple[Row, T]]:
    """Yield the rows that can be predicted, each with what `read` returns for it."""
    for row in rows:
        try:
            value = read(row)
        except (Skip, MLSysError):
            continue
        yield row, value


def write_table(path: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    """Write a CSV file with the columns of the first row."""
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def read_rows(path: str | Path) -> list[Row]:
    """Read a CSV file of published measurements, as `mlsysim.validation.rows.read_rows` does."""
    return rows_of(tidy.read_rows(path))


def rows_of(source: Any) -> list[Row]:
    """Read the rows of a file, a DataFrame, or an iterable of rows."""
    rows = tidy.rows_of(source)
    return [row if isinstance(row, Row) else Row(row.cells, row.fault) for row in rows]
