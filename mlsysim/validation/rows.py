"""Rows of a table of measurements: numbers and text by column."""

from __future__ import annotations

import csv
import io
import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self, TypeVar

from mlsysim.core.errors import ConfigError, MLSysError, shown
from mlsysim.core.files import read_bytes

MAX_BYTES = 64 * 1024**2
MAX_NUMBER = 1e30
# Lines above the header; spreadsheets write commas into empty ones.
_EMPTY_LINES = re.compile(r"(?:[ \t,]*(?:\r\n|\r|\n))*")


class Skip(Exception):  # noqa: N818 - a skipped row is not an error
    """A row cannot be predicted; the message says why."""


@dataclass(frozen=True)
class Row:
    """One measurement."""

    cells: Mapping[str, Any]
    fault: str = ""
    """Why cells may be in the wrong columns; empty if they are not."""

    @classmethod
    def of(cls, cells: Mapping[Any, Any], line: int | None = None) -> Self:
        """Take a row of `csv.DictReader`, with its line where it is known."""
        if not isinstance(cells, Mapping):
            raise ConfigError(
                f"source holds {shown(cells)}: give the path of a CSV file, a DataFrame, or rows "
                "that map columns to cells, such as csv.DictReader(file)",
                argument="source",
            )
        place = "the row" if line is None else f"line {line}"
        fault = ""
        if None in cells:
            fault = (
                f"{place} has more cells than the head: write decimals with a point, and put text "
                "that has a comma in it between quotes"
            )
        elif line is not None and None in cells.values():
            fault = f"{place} has fewer cells than the head: a comma or the rest of it is missing"
        return cls(cells, fault)

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
        value = self.cells.get(column)
        try:
            text = "" if value is None else str(value).strip()
        except Exception:  # a whole number of too many digits
            text = shown(value)
        return "" if text.lower() == "nan" else text

    def number(self, column: str) -> float | None:
        """Return a cell's number, or None where there is none; other content skips the row."""
        text = self.text(column)
        if not text:
            return None
        try:
            # Python reads 9_1 as 91, which may be a slip for 9.1.
            value = float(text.replace("_", "?"))
        except ValueError:
            raise Skip(f"{column} = {shown(text)} is not a number") from None
        if not math.isfinite(value):
            raise Skip(f"{column} = {shown(text)} is not finite")
        if value and not 1 / MAX_NUMBER <= abs(value) <= MAX_NUMBER:
            raise Skip(f"{column} = {value:g} is beyond any measurement")
        return value

    def measured(self, column: str = "value") -> float:
        """Return the measured value, which must be above zero."""
        value = self.number(column)
        if value is None:
            raise Skip(f"{column} is missing: nothing was measured")
        return above_zero(column, value)


R = TypeVar("R", bound=Row)
T = TypeVar("T")


def above_zero(column: str, value: float) -> float:
    """Return a measured value, by which predictions are divided."""
    if not value > 0:
        raise Skip(f"{column} = {value:g} is not above zero, so a relative error is undefined")
    return value


def read_rows(path: str | Path) -> list[Row]:
    """Read a CSV file of measurements, in which every column has its own name."""
    try:
        # Spreadsheets add a byte-order mark before the first name, and people add spaces.
        text = read_bytes(path, MAX_BYTES).decode("utf-8-sig")
        empty = _EMPTY_LINES.match(text)[0]  # type: ignore[index]  # it matches nothing as well
        before = len(empty.splitlines())
        reader = csv.DictReader(io.StringIO(text[len(empty) :], newline=""), strict=True)
        head = [name.strip() for name in reader.fieldnames or ()]
        twice = [name for name, count in Counter(head).items() if name and count > 1]
        if twice:
            raise ConfigError(
                f"{path} has {twice[0]} at the head of two columns: keep one of them",
                argument="source",
            )
        reader.fieldnames = head
        rows = [Row.of(cells, before + reader.line_num) for cells in reader]
    except (UnicodeDecodeError, csv.Error) as fault:
        raise ConfigError(f"{path} cannot be read as a table: {fault}") from fault
    if not rows:
        raise ConfigError(f"{path} holds no measurements: give a CSV file with a head and rows")
    return rows


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


def read_each(rows: Iterable[R], read: Callable[[R], T]) -> tuple[list[T], list[tuple[str, str]]]:
    """Return what `read` returns for each row, and the identifier of each skipped row with why."""
    values: list[T] = []
    skipped: list[tuple[str, str]] = []
    for row in rows:
        try:
            if row.fault:
                raise Skip(row.fault)
            values.append(read(row))
        except (Skip, MLSysError) as fault:
            skipped.append((row.name, str(fault)))
        except ArithmeticError as fault:
            skipped.append((row.name, f"the numbers of this row are out of range: {fault}"))
    return values, skipped


def rows_of_split(rows: Sequence[R], split: str | None) -> Sequence[R]:
    """Return the rows with this value in the column ``split``; all of them for `None`."""
    if split is None:
        return rows
    known = sorted({row.text("split") for row in rows})
    if not isinstance(split, str) or split not in known:
        raise ConfigError(
            f"split = {shown(split)} has no rows: choose one of {shown(known)}, the values of the "
            "column split",
            argument="split",
        )
    return [row for row in rows if row.text("split") == split]
