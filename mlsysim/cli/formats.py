"""Formats of output: text to read, JSON, CSV and Markdown."""

from __future__ import annotations

import csv
import functools
import io
import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import click

from mlsysim.core.errors import ConfigError
from mlsysim.core.files import UNPRINTABLE, inert, printable
from mlsysim.core.table import Column, Table
from mlsysim.scenario.scorecard import plain

__all__ = ["MACHINE", "flat", "formatted", "print_json", "print_text", "records", "show"]

_FORMATS = ("table", "json", "csv", "md")
MACHINE = ("json", "csv")
"""Formats for programs, which include all rows unless a limit is given."""


def formatted(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add the option `--format` to a command, and pass the choice to it as `form`."""

    @functools.wraps(function)
    def command(*args: Any, form: str | None, as_json: bool, **kwargs: Any) -> Any:
        if as_json and form not in (None, "json"):
            raise ConfigError(f"--json and --format {form}: give one of the two", argument="format")
        return function(*args, form="json" if as_json else form or "table", **kwargs)

    choice = click.option(
        "--format",
        "form",
        type=click.Choice(_FORMATS),
        help="Output format: readable text, JSON or CSV for programs, or Markdown.  [default: "
        "table]",
    )
    alias = click.option("--json", "as_json", is_flag=True, help="The same as --format json.")
    return choice(alias(command))


def show(
    form: str,
    *,
    text: Callable[[], str],
    data: Callable[[], Any],
    table: Callable[[], Table],
    markdown: Callable[[], str] | None = None,
) -> None:
    """Print a result in one of the formats.

    Parameters
    ----------
    form
        The format.
    text
        Composes readable text.
    data
        Composes plain data, for JSON.
    table
        Composes the table, for CSV.
    markdown
        Composes Markdown; `None` prints the table.
    """
    match form:
        case "json":
            print_json(data())
        case "csv":
            click.echo(_csv(table()), nl=False)
        case "md":
            print_text(markdown() if markdown else table()._repr_markdown_())
        case _:
            print_text(text())


def print_text(text: str) -> None:
    """Print text that may come from a file, without control characters."""
    click.echo(printable(text, lines=True))


def print_json(data: Any) -> None:
    """Print plain data as JSON."""
    text = json.dumps(data, indent=2, ensure_ascii=False, allow_nan=False)
    # They can only be inside strings, where JSON has its own escapes.
    click.echo(UNPRINTABLE.sub(lambda found: json.dumps(found[0])[1:-1], text))


def records(table: Table) -> Iterator[dict[str, Any]]:
    """Yield the rows of a table as plain data; an amount is a value and a unit."""
    units: dict[str, str] = {}  # formatting a unit takes longer than everything else
    for row in table:
        cells = {}
        for name, value in row.items():
            if not hasattr(value, "magnitude"):
                cells[name] = plain(value)
                continue
            if name not in units:
                units[name] = plain(value)["unit"]
            cells[name] = {"value": plain(value.magnitude), "unit": units[name]}
        yield cells


def flat(data: Any) -> Table:
    """Return plain data as a table of fields, values and units."""
    rows = list(_leaves(data))
    heads = ("field", "value", "unit")
    columns = zip(*rows, strict=True) if rows else ((), (), ())
    return Table(
        {head: Column(list(values)) for head, values in zip(heads, columns, strict=True)},
        limit=None,
    )


def _leaves(data: Any, path: str = "") -> Iterator[tuple[str, Any, str]]:
    if isinstance(data, Mapping) and set(data) == {"value", "unit"}:
        yield path, _joined(data["value"]), data["unit"]
    elif isinstance(data, Mapping):
        for name, value in data.items():
            yield from _leaves(value, f"{path}.{name}" if path else name)
    else:
        yield path, _joined(data), ""


def _joined(value: Any) -> Any:
    return "; ".join(map(str, value)) if isinstance(value, list) else value


def _csv(table: Table) -> str:
    """Write a table as CSV with a header row. Unknown values are empty cells."""
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    units = table.units
    writer.writerow(
        inert(f"{name} ({units[name]})" if name in units else name) for name in table.columns
    )
    for row in table:
        writer.writerow(_cell(value) for value in row.values())
    return text.getvalue()


def _cell(value: Any) -> Any:
    value = _joined(plain(getattr(value, "magnitude", value)))
    return str(value).lower() if isinstance(value, bool) else inert(value)
