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
from mlsysim.core.result import plain
from mlsysim.core.table import Column, Table

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
    answer: Any,
    *,
    text: Callable[[], str] | None = None,
    data: Callable[[], Any] | None = None,
    table: Callable[[], Table] | None = None,
    markdown: Callable[[], str] | None = None,
) -> None:
    """Print an answer in one of the formats.

    A table, or an answer with a `to_dict` and a `table`, needs no more. For other answers, the
    functions compose readable text, plain data for JSON, the table for CSV, and Markdown. Without
    `markdown`, Markdown has the table.
    """
    if isinstance(answer, Table):
        data, table = data or (lambda: plain(answer)), table or (lambda: answer)
    match form:
        case "json":
            print_json((data or answer.to_dict)())
        case "csv":
            click.echo(_csv((table or answer.table)()), nl=False)
        case "md":
            print_text(markdown() if markdown else (table or answer.table)()._repr_markdown_())
        case _:
            print_text(text() if text else str(answer))


def attributes(answer: Any, *names: str, **others: Any) -> dict[str, Any]:
    """Return attributes of an answer as plain data, with other values for some of them."""
    return {
        name: plain(others[name] if name in others else getattr(answer, name)) for name in names
    }


def print_text(text: str) -> None:
    """Print text that may come from a file, without control characters."""
    click.echo(printable(text, lines=True))


def print_json(data: Any) -> None:
    """Print plain data as JSON."""
    text = json.dumps(data, indent=2, ensure_ascii=False, allow_nan=False)
    # They can only be inside strings, where JSON has its own escapes.
    click.echo(UNPRINTABLE.sub(lambda found: json.dumps(found[0])[1:-1], text))


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
