"""Tables: columns with units, and where it matters, the source of each cell.

One type serves sweeps, lists of results and the pages of the registries.
"""

from __future__ import annotations

import html
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mlsysim.core.errors import ConfigError, UnknownEntryError
from mlsysim.core.types import Source
from mlsysim.core.units import Q_, format_number, unit

__all__ = ["Column", "Table"]

_SHOWN_ROWS = 20


@dataclass(frozen=True)
class Column:
    """One column: plain values, all in `unit`.

    Attributes
    ----------
    values : sequence or ndarray
        Numbers in `unit`, or text.
    unit : str
        Unit of the numbers; empty for counts, ratios and text.
    sources : sequence of Source or None
        Where each value stands, if the column says so.
    estimated : sequence of bool or None
        Which values are guesses; they print with "≈".
    """

    values: Any
    unit: str = ""
    sources: Sequence[Source | None] | None = None
    estimated: Sequence[bool] | None = None


class Table:
    """Rows of equal shape, held as columns.

    `table["latency"]` is a column: a quantity of an array where it has a unit. In a notebook or on
    a page a table shows as HTML; `print` gives text.
    """

    def __init__(self, columns: Mapping[str, Column]) -> None:
        self._columns = dict(columns)
        lengths = {len(column.values) for column in self._columns.values()}
        if len(lengths) > 1:
            raise ConfigError(f"columns differ in length: {sorted(lengths)}")
        self._length = lengths.pop() if lengths else 0

    def __len__(self) -> int:
        return self._length

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns."""
        return tuple(self._columns)

    @property
    def units(self) -> dict[str, str]:
        """Unit of each column that has one."""
        return {name: column.unit for name, column in self._columns.items() if column.unit}

    def __getitem__(self, name: str) -> Any:
        column = self._column(name)
        return Q_(column.values, unit(column.unit)) if column.unit else column.values

    def _column(self, name: str) -> Column:
        if name not in self._columns:
            raise UnknownEntryError.build(name, "column", self._columns)
        return self._columns[name]

    def row(self, index: int) -> dict[str, Any]:
        """Return one row by name, with units.

        Raises
        ------
        ConfigError
            If there is no such row.
        """
        if not -self._length <= index < self._length:
            raise ConfigError(
                f"index = {index} is out of range: the table has {self._length} rows",
                argument="index",
            )
        return {name: self._cell(column, index) for name, column in self._columns.items()}

    def _cell(self, column: Column, index: int) -> Any:
        value = column.values[index]
        value = value.item() if hasattr(value, "item") else value
        return Q_(value, unit(column.unit)) if column.unit and value is not None else value

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return (self.row(index) for index in range(self._length))

    def select(self, *names: str) -> Table:
        """Return the table with the named columns only, in that order."""
        return self._rebuilt({name: self._column(name) for name in names})

    def take(self, indices: Sequence[int]) -> Table:
        """Return the rows at `indices`, in that order."""
        return self._rebuilt(
            {name: _taken(column, indices) for name, column in self._columns.items()}
        )

    def _rebuilt(self, columns: Mapping[str, Column]) -> Table:
        return Table(columns)

    def to_dataframe(self) -> Any:
        """Return a pandas DataFrame; the units are in its `attrs["units"]`.

        Raises
        ------
        ConfigError
            If pandas is not installed.
        """
        try:
            import pandas
        except ImportError as fault:
            raise ConfigError("to_dataframe() needs pandas: install the package pandas") from fault
        frame = pandas.DataFrame({name: item.values for name, item in self._columns.items()})
        frame.attrs["units"] = self.units
        return frame

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self._length} rows x {len(self._columns)} columns>"

    def _heads(self) -> list[str]:
        return [
            f"{name} ({column.unit})" if column.unit else name
            for name, column in self._columns.items()
        ]

    def _texts(self, index: int, wrap: Callable[[str, Column, int], str]) -> list[str]:
        return [wrap(_text(column, index), column, index) for column in self._columns.values()]

    def _more(self) -> str:
        hidden = self._length - _SHOWN_ROWS
        return f"... and {hidden:,} more rows" if hidden > 0 else ""

    def __str__(self) -> str:
        rows = [
            self._texts(index, lambda text, *_: text)
            for index in range(min(self._length, _SHOWN_ROWS))
        ]
        grid = [self._heads(), *rows]
        widths = [max(map(len, cells)) for cells in zip(*grid, strict=True)]
        lines = ["  ".join(map(str.rjust, cells, widths)) for cells in grid]
        lines.insert(1, "  ".join("-" * width for width in widths))
        return "\n".join([*lines, *filter(None, [self._more()])])

    def _repr_markdown_(self) -> str:
        rows = [
            self._texts(index, lambda text, *_: text.replace("|", "\\|"))
            for index in range(min(self._length, _SHOWN_ROWS))
        ]
        grid = [self._heads(), ["---"] * len(self._columns), *rows]
        lines = ["| " + " | ".join(cells) + " |" for cells in grid]
        return "\n".join([*lines, *filter(None, ["", self._more()])])

    def _repr_html_(self) -> str:
        return self.to_html(limit=_SHOWN_ROWS)

    def to_html(self, limit: int | None = None, caption: str = "") -> str:
        """Return an HTML table; cells link to their sources."""
        shown = self._length if limit is None else min(self._length, limit)
        heads = "".join(f'<th scope="col">{html.escape(head)}</th>' for head in self._heads())
        body = "\n".join(f"<tr>{''.join(self._texts(i, _html_cell))}</tr>" for i in range(shown))
        title = f"<caption>{html.escape(caption)}</caption>" if caption else ""
        more = f"<p>{self._more()}</p>" if shown < self._length else ""
        return (
            f'<table class="table mls-table">{title}<thead><tr>{heads}</tr></thead>'
            f"<tbody>\n{body}\n</tbody></table>{more}"
        )


def _taken(column: Column, indices: Sequence[int]) -> Column:
    def pick(values: Any) -> Any:
        return None if values is None else [values[index] for index in indices]

    chosen = column.values[indices] if hasattr(column.values, "dtype") else pick(column.values)
    return Column(chosen, column.unit, pick(column.sources), pick(column.estimated))


def _text(column: Column, index: int) -> str:
    value = column.values[index]
    value = value.item() if hasattr(value, "item") else value
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return "–"
    sign = "≈ " if column.estimated and column.estimated[index] else ""
    return sign + format_number(value)


def _html_cell(text: str, column: Column, index: int) -> str:
    value = column.values[index]
    value = value.item() if hasattr(value, "item") else value
    source = column.sources[index] if column.sources else None
    shown = html.escape(text)
    if source is not None and source.url:
        label = html.escape(f"{source}. {source.note}".rstrip(". ") + ".", quote=True)
        shown = f'<a href="{html.escape(source.url, quote=True)}" title="{label}">{shown}</a>'
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    sort = f' class="num" data-sort="{value!r}"' if number else ""
    return f"<td{sort}>{shown}</td>"
