"""Rows of published tables: whole numbers, words and counts in cells."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mlsysim.core.errors import shown
from mlsysim.validation import rows as tidy
from mlsysim.validation.rows import Skip

__all__ = ["Row", "Skip", "count_of", "read_rows", "rows_of"]

MAX_COUNT = 10**15


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


def read_rows(path: str | Path) -> list[Row]:
    """Read a CSV file of published measurements, as `mlsysim.validation.rows.read_rows` does."""
    return rows_of(tidy.read_rows(path))


def rows_of(source: Any) -> list[Row]:
    """Read the rows of a file, a DataFrame, or an iterable of rows."""
    rows = tidy.rows_of(source)
    return [row if isinstance(row, Row) else Row(row.cells, row.fault) for row in rows]
