"""Rows of data files, which are read when a row is first needed.

Flat tables are CSV files with a row in each line: its name, its fields (``bandwidth [GB/s]``), the
keys of its source and of the sources of single fields (``source of latency``), the fields that are
estimates, and a note. Constants that programs fit are TOML files, which these programs write. The
fields of the record class are the schema: other names are errors.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import MISSING, dataclass, fields
from importlib.resources import files
from typing import Any, TypeVar

from mlsysim.core.catalog import Catalog, Deferred
from mlsysim.core.errors import ConfigError, UnknownEntryError
from mlsysim.core.fields import priors, units_of
from mlsysim.core.types import Entry, Source, cite
from mlsysim.core.units import Q_

__all__ = ["DATA", "constants", "read_toml", "table"]

Row = TypeVar("Row", bound=Entry)

DATA = files("mlsysim.registry") / "data"
_SOURCE_OF = "source of "
_SWITCHES = {"true": True, "false": False}
_ABOUT = frozenset({"note", "source", "parent", "inherited", "runs", "run_count"})
"""Keys of a row that are not fields of its record."""


@functools.cache
def read_toml(file: str) -> Mapping[str, Any]:
    """Return the contents of a TOML file in the registry."""
    import tomllib  # takes 4 ms, and most questions need no file

    return tomllib.loads((DATA / file).read_text(encoding="utf-8"))


def table(
    file: str, kind: type[Row], **catalogs: type[Catalog]
) -> Callable[[], Mapping[str, Deferred[Row]]]:
    """Return a reader of a CSV file.

    Parameters
    ----------
    file
        Its name.
    kind
        The class of its rows.
    catalogs
        For each field that holds a row of another catalog, this catalog.
    """

    @functools.cache
    def read() -> Mapping[str, Deferred[Row]]:
        import csv  # pages that need no table do not load it

        head, *lines = csv.reader((DATA / file).read_text(encoding="utf-8").splitlines())
        columns = [_column(file, title, kind) for title in head]
        rows: dict[str, Deferred[Row]] = {}
        for line in lines:
            cells = dict(zip(head, line, strict=True))
            make = functools.partial(_record, kind, columns, line, catalogs)
            rows[cells["row"]] = Deferred(make, cells.get("note", ""))
        return rows

    return read


@dataclass(frozen=True)
class _Column:
    """A column of a table.

    Attributes
    ----------
    name : str
        Its title, without a unit.
    unit : str
        Unit of its numbers; empty if they have none.
    kind : {"text", "name", "number", "numbers", "switch", "about"}
        What it holds. A name is text that may be empty; all columns but fields are about the row.
    """

    name: str
    unit: str
    kind: str


def _column(file: str, title: str, kind: type[Any]) -> _Column:
    """Read the title of a column."""
    name, _, unit = title.removesuffix("]").partition(" [")
    if name in ("row", "note", "source", "estimated") or name.startswith(_SOURCE_OF):
        return _Column(name, "", "about")
    known = {item.name: item for item in fields(kind)}
    if name not in known:
        raise UnknownEntryError.build(name, f"{file}: column", known)
    if "unit" in known[name].metadata:
        return _Column(name, unit, "number")
    if str(known[name].type).startswith("bool"):
        return _Column(name, "", "switch")
    if str(known[name].type).startswith(("tuple[float", "tuple[int")):
        return _Column(name, "", "numbers")
    return _Column(name, "", "name" if known[name].default is MISSING else "text")


def _record(
    kind: type[Row], columns: list[_Column], line: list[str], catalogs: Mapping[str, type[Catalog]]
) -> Row:
    """Create the record of a line. An empty cell leaves its field at the default."""
    values: dict[str, Any] = {}
    sources: dict[str, Source] = {}
    for column, cell in zip(columns, line, strict=True):
        if not cell and column.kind != "name":
            continue
        if column.name.startswith(_SOURCE_OF):
            sources[column.name.removeprefix(_SOURCE_OF)] = cite(cell)
        elif column.name == "source":
            values["source"] = cite(cell)
        elif column.name == "estimated":
            values["estimated"] = frozenset(cell.split())
        elif column.name in catalogs:
            values[column.name] = catalogs[column.name][cell]
        elif column.kind == "number":
            values[column.name] = Q_(_number(cell), column.unit) if column.unit else _number(cell)
        elif column.kind == "numbers":
            values[column.name] = tuple(_number(part) for part in cell.split())
        elif column.kind == "switch":
            values[column.name] = _SWITCHES[cell]
        elif column.kind in ("name", "text"):
            values[column.name] = cell
    return kind(**values, field_sources=sources)


def _number(text: str) -> float:
    return int(text) if text.lstrip("-").isdecimal() else float(text)


def constants(file: str, kind: type[Row]) -> Callable[[], Mapping[str, Deferred[Row]]]:
    """Return a reader of the fitted constants in a TOML file.

    A row has a section for each source of its constants, named after an entry of `sources`.
    Constants that it does not state have the value of its `parent`, or otherwise the usual value of
    their field, whose source is in `usual`.
    """

    @functools.cache
    def read() -> Mapping[str, Deferred[Row]]:
        table = _Constants(file, kind)
        return {
            key: Deferred(functools.partial(table.row, key), row.get("note", ""))
            for key, row in table.rows.items()
        }

    return read


class _Constants:
    """A file of fitted constants.

    Parameters
    ----------
    file
        Its name.
    kind
        The class of its rows.
    """

    def __init__(self, file: str, kind: type[Any]) -> None:
        content = read_toml(file)
        self.file, self.kind = file, kind
        self.rows: Mapping[str, Mapping[str, Any]] = content["rows"]
        self.sources: Mapping[str, Mapping[str, Any]] = content["sources"]
        self.usual: Mapping[str, str] = content["usual"]
        self.units = {name: unit for name, unit, plain in units_of(kind) if not plain}
        self.names = frozenset(item.name for item in fields(kind))

    def row(self, key: str) -> Any:
        """Create a row."""
        entry = self.rows[key]
        values, origins = self.constants(key)
        main = entry.get("source", self.usual["source"])
        about = {
            name: tuple(value) if isinstance(value, list) else value
            for name, value in entry.items()
            if name not in _ABOUT and name not in self.sources
        }
        for name in (*about, *values):
            if name not in self.names:
                raise UnknownEntryError.build(name, f"{self.file}, {key}: field", self.names)
        return self.kind(
            **about,
            **{
                name: Q_(value, self.units[name]) if name in self.units else value
                for name, value in values.items()
            },
            source=self.source(main, key),
            field_sources={
                name: self.source(origin, owner)
                for name, (origin, owner) in origins.items()
                if origin != main
            },
            estimated=frozenset(
                name
                for name, (origin, _) in origins.items()
                if self.sources[origin].get("estimated", False)
            ),
        )

    def constants(self, key: str) -> tuple[dict[str, Any], dict[str, tuple[str, str]]]:
        """Return a row's constants, and for each the key of its source and the row it is from."""
        entry = self.rows[key]
        if "parent" in entry:
            values, origins = self.constants(entry["parent"])
            declared = priors(self.kind)
            values = {name: values[name] for name in declared}
            origins = {name: origins[name] for name in declared}
            if "inherited" in entry:
                origins = dict.fromkeys(declared, (entry["inherited"], key))
        else:
            usual = priors(self.kind)
            values = {name: one.usual for name, one in usual.items()}
            main = entry.get("source", self.usual["source"])
            origins = {name: (self.usual.get(name, main), key) for name in usual}
        stated: dict[str, str] = {}
        for origin in self.sources:
            for name, value in _edges(entry.get(origin, {})):
                if name in stated:
                    raise ConfigError(
                        f"{self.file}, {key}: {name} is in {stated[name]} and in {origin}: state "
                        "it once",
                        argument=name,
                    )
                stated[name] = origin
                # Text is the name of the row that has the value.
                same = isinstance(value, str)
                values[name] = self.constants(value)[0][name] if same else value
                origins[name] = (origin, key)
        return values, origins

    def source(self, origin: str, key: str) -> Source:
        """Return a source: an entry of the bibliography, or a fit to the runs of the row."""
        if "cite" in self.sources[origin]:
            return cite(self.sources[origin]["cite"])
        return Source(
            **{
                name: text.format_map(self.rows[key])
                for name, text in self.sources[origin].items()
                if name != "estimated"
            }
        )


def _edges(section: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield the constants of a section; a band is a pair, and two fields of a record."""
    for name, value in section.items():
        if name.endswith("_band"):
            yield from zip((f"{name}_low", f"{name}_high"), value, strict=True)
        else:
            yield name, value
