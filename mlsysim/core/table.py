"""Tables: columns with units, and optionally the source of each cell.

Sweeps, lists of results and registry pages all use this type.
"""

from __future__ import annotations

import html
import math
import operator
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from mlsysim.core.calls import expects
from mlsysim.core.errors import ConfigError, UnknownEntryError, shown
from mlsysim.core.files import printable
from mlsysim.core.provenance import escaped, linked
from mlsysim.core.types import Source
from mlsysim.core.units import Q_, format_number, has_dimension, si_factor, unit

_SHOWN_ROWS = 20


@dataclass(frozen=True)
class Column:
    """One column: plain values, all in `unit`."""

    values: Any
    """Numbers in `unit`, or text."""
    unit: str = ""
    """Unit of the numbers; empty for counts, ratios and text."""
    head: str = ""
    """Heading of the column; if empty, its name."""
    sources: Sequence[Source | None] | None = None
    """The source of each value, if known."""
    estimated: Sequence[bool] | None = None
    """Which values are estimates; they print with "≈"."""
    code: str = ""
    """Prefix of values that are names in code, such as ``"Hardware."``."""

    def __post_init__(self) -> None:
        if hasattr(self.values, "flags"):  # an array: columns returned by a table are read-only
            fixed = self.values.view()
            fixed.flags.writeable = False
            object.__setattr__(self, "values", fixed)

    def __len__(self) -> int:
        return len(self.values)

    def picked(self, rows: Any) -> Column:
        """Return the column of some rows, given by an array of their numbers."""
        return Column(self.values[rows], self.unit)


class Table:
    """Rows with the same fields, stored as columns.

    `table["latency"]` is a column: a quantity that holds an array if it has a unit. In a notebook
    or on a page a table is shown as HTML; `print` gives text. Both show the first `limit` rows;
    `None` shows all of them.
    """

    def __init__(self, columns: Mapping[str, Column], *, limit: int | None = _SHOWN_ROWS) -> None:
        self._columns = dict(columns)
        self._limit = limit
        lengths = {len(column) for column in self._columns.values()}
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
        if not isinstance(name, str) or name not in self._columns:
            raise UnknownEntryError.build(name, "column", self._columns)
        return self._columns[name]

    def row(self, index: int) -> dict[str, Any]:
        """Return one row by name, with units; unknown values are `None`.

        Raises
        ------
        ConfigError
            If there is no such row.
        """
        row = self._position("index", index)
        return {name: self._cell(column, row) for name, column in self._columns.items()}

    def _position(self, argument: str, index: Any) -> int:
        """Return the number of a row; negative numbers count from the end."""
        row = self._length
        with suppress(TypeError):
            row = operator.index(index)
        if not -self._length <= row < self._length:
            raise ConfigError(
                f"{argument} = {shown(index)} is out of range: give the number of one of the "
                f"table's {self._length} rows",
                argument=argument,
            )
        return row

    def _cell(self, column: Column, index: int) -> Any:
        value = _plain(column, index)
        return Q_(value, unit(column.unit)) if column.unit and value is not None else value

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return (self.row(index) for index in range(self._length))

    def select(self, *names: str) -> Table:
        """Return the table with only the named columns, in that order."""
        return self._rebuilt({name: self._column(name) for name in names})

    def take(self, indices: Sequence[int]) -> Table:
        """Return the rows at `indices`, in that order.

        Raises
        ------
        ConfigError
            If `indices` is not a list of row numbers.
        """
        if not isinstance(indices, Iterable):
            raise ConfigError(
                f"indices = {shown(indices)} is not a list: give numbers of rows",
                argument="indices",
            )
        indices = [self._position("indices", index) for index in indices]
        return self._rebuilt(
            {name: _taken(column, indices) for name, column in self._columns.items()}
        )

    def _rebuilt(self, columns: Mapping[str, Column]) -> Table:
        return Table(columns, limit=self._limit)

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
        heads = []
        for name, column in self._columns.items():
            # A bare count ("param", "sample") adds nothing to the name of its column.
            bare = not column.unit or (
                not has_dimension(column.unit) and si_factor(column.unit) == 1
            )
            heads.append(column.head or name if bare else f"{column.head or name} ({column.unit})")
        return heads

    def _texts(self, index: int, wrap: Callable[[str, Column, int], str]) -> list[str]:
        return [
            wrap(_text(column, index, years=name.endswith("year")), column, index)
            for name, column in self._columns.items()
        ]

    def _shown(self, limit: int | None) -> int:
        return self._length if limit is None else min(self._length, limit)

    def _more(self, shown: int) -> str:
        hidden = self._length - shown
        return f"... and {hidden:,} more row{'s' * (hidden > 1)}" if hidden > 0 else ""

    def __str__(self) -> str:
        shown = self._shown(self._limit)
        rows = [self._texts(index, lambda text, *_: printable(text)) for index in range(shown)]
        grid = [self._heads(), *rows]
        widths = [max(map(len, cells)) for cells in zip(*grid, strict=True)]
        lines = ["  ".join(map(str.rjust, cells, widths)) for cells in grid]
        lines.insert(1, "  ".join("-" * width for width in widths))
        return "\n".join([*lines, *filter(None, [self._more(shown)])])

    def _repr_markdown_(self) -> str:
        shown = self._shown(self._limit)
        rows = [self._texts(index, _markdown_cell) for index in range(shown)]
        heads = [escaped(head) for head in self._heads()]
        grid = [heads, ["---"] * len(self._columns), *rows]
        lines = ["| " + " | ".join(cells) + " |" for cells in grid]
        return "\n".join([*lines, *filter(None, ["", self._more(shown)])])

    def _repr_html_(self) -> str:
        return self.to_html(limit=self._limit)

    @expects(limit=int, caption=str)
    def to_html(self, limit: int | None = None, caption: str = "") -> str:
        """Return an HTML table; cells link to their sources."""
        shown = self._shown(limit)
        heads = "".join(
            f'<th scope="col"{_alignment(column)}>{_breakable(head)}</th>'
            for head, column in zip(self._heads(), self._columns.values(), strict=True)
        )
        body = "\n".join(f"<tr>{''.join(self._texts(i, _html_cell))}</tr>" for i in range(shown))
        title = f"<caption>{html.escape(caption)}</caption>" if caption else ""
        more = f"<p>{self._more(shown)}</p>" if shown < self._length else ""
        # Quarto would parse and rewrite the table, and drop the attributes used to sort columns.
        return (
            '<table class="table mls-table" data-quarto-disable-processing="true">'
            f"{title}<thead><tr>{heads}</tr></thead><tbody>\n{body}\n</tbody></table>{more}"
        )


def _taken(column: Column, indices: Sequence[int]) -> Column:
    def pick(values: Any) -> Any:
        return None if values is None else [values[index] for index in indices]

    chosen = column.values[indices] if hasattr(column.values, "dtype") else pick(column.values)
    sources, estimated = pick(column.sources), pick(column.estimated)
    return Column(chosen, column.unit, column.head, sources, estimated, column.code)


def _plain(column: Column, index: int) -> Any:
    value = column.values[index]
    value = value.item() if hasattr(value, "item") else value
    return None if isinstance(value, float) and math.isnan(value) else value


def _text(column: Column, index: int, years: bool) -> str:
    """Write a value; years have no separators."""
    value = _plain(column, index)
    if value is None:
        return "–"
    sign = "≈ " if column.estimated and column.estimated[index] else ""
    return sign + (str(value) if years else format_number(value))


def _markdown_cell(text: str, column: Column, index: int) -> str:
    source = column.sources[index] if column.sources else None
    known = source is not None and _plain(column, index) is not None
    return linked(escaped(text), source) if source is not None and known else escaped(text)


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _alignment(column: Column) -> str:
    values = (_plain(column, index) for index in range(len(column)))
    first = next((value for value in values if value is not None), None)
    return ' class="mls-number"' if _is_number(first) else ""


def _breakable(head: str) -> str:
    """Let a column heading break after underscores, because field names make tables wide."""
    return html.escape(head).replace("_", "_<wbr>")


def _html_cell(text: str, column: Column, index: int) -> str:
    value = _plain(column, index)
    source = column.sources[index] if column.sources else None
    shown = html.escape(text)
    if source is not None and value is not None:
        label = html.escape(f"{source}. {source.note}".rstrip(". ") + ".", quote=True)
        address = html.escape(source.url, quote=True)
        # An assumption has no address, so it shows only its text.
        shown = (
            f'<a href="{address}" title="{label}">{shown}</a>'
            if address
            else f'<span title="{label}">{shown}</span>'
        )
    sort = f' data-sort="{value!r}"' if _is_number(value) else ""
    code = f' data-code="{html.escape(f"{column.code}{value}")}"' if column.code else ""
    return f"<td{_alignment(column)}{sort}{code}>{shown}</td>"
