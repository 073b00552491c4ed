"""Rows of a table of measurements: numbers and words by column, with documented defaults."""

from __future__ import annotations

import csv
import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path

from mlsysim.core.errors import ConfigError

__all__ = ["Row", "Skip", "read_rows"]


class Skip(Exception):  # noqa: N818 - a row that is passed over is no error
    """A row cannot be predicted; the message says why."""


@dataclass(frozen=True)
class Row:
    """One measurement."""

    cells: Mapping[str, str]

    @property
    def name(self) -> str:
        """Identifier of the row."""
        return self.text("id") or "?"

    @property
    def group(self) -> str:
        """Family that the row is pooled with."""
        return self.text("group") or "all"

    def text(self, column: str) -> str:
        """Return a cell's words; empty where there are none."""
        value = (self.cells.get(column) or "").strip()
        return "" if value.lower() == "nan" else value

    def number(self, column: str) -> float | None:
        """Return a cell's number, or None where there is none.

        Raises
        ------
        Skip
            If the cell holds something else.
        """
        text = self.text(column)
        if not text:
            return None
        try:
            value = float(text)
        except ValueError:
            raise Skip(f"{column} = {text!r} is not a number") from None
        if not math.isfinite(value):
            raise Skip(f"{column} = {text!r} is not finite")
        return value

    def whole(self, column: str, default: int | None = None, *, minimum: int = 1) -> int:
        """Return a cell's whole number.

        Raises
        ------
        Skip
            If there is none and no default, or it is not whole and at least `minimum`.
        """
        value = self.number(column)
        if value is None:
            if default is None:
                raise Skip(f"{column} is missing")
            return default
        if value != int(value) or value < minimum:
            raise Skip(f"{column} = {value:g} is not a whole number of at least {minimum}")
        return int(value)

    def measured(self, column: str = "value") -> float:
        """Return what was measured, which predictions are divided by.

        Raises
        ------
        Skip
            If there is nothing, or nothing above zero.
        """
        value = self.number(column)
        if value is None:
            raise Skip(f"{column} is missing: nothing was measured")
        if value <= 0:
            raise Skip(f"{column} = {value:g} is not above zero: no error can be a share of it")
        return value

    def word(self, column: str, known: Collection[str], default: str) -> str:
        """Return a cell's word, one of those that are known.

        Raises
        ------
        Skip
            If it is another; the message lists them.
        """
        text = self.text(column) or default
        if text not in known:
            raise Skip(f"{column} = {text!r} is not one of {', '.join(known)}")
        return text


def read_rows(path: str | Path) -> list[Row]:
    """Read a CSV file of measurements.

    Raises
    ------
    ConfigError
        If the file cannot be read, is not text, or has no rows.
    """
    try:
        # Spreadsheets put a mark before the first column's name, and people put spaces around them.
        with Path(path).open(encoding="utf-8-sig", newline="") as file:
            reader = csv.DictReader(file)
            reader.fieldnames = [name.strip() for name in reader.fieldnames or ()]
            rows = [Row(cells) for cells in reader]
    except (OSError, UnicodeDecodeError, csv.Error) as fault:
        raise ConfigError(f"{path} cannot be read as a table: {fault}") from fault
    if not rows:
        raise ConfigError(f"{path} holds no measurements: give a CSV file with a head and rows")
    return rows
