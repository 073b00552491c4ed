"""Rows of data files, which are read when a row is first needed.

The fields of the record class are the schema of a file: a row states them with their units, the
keys of its source and of the sources of single fields, the fields that are estimates, and a note.
Rows with equal fields are lines of CSV files, and other rows are sections of TOML files. Constants
that programs fit are TOML files too, which these programs write.
"""

from __future__ import annotations

import functools
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, fields
from importlib.resources import files
from typing import Any, TypeAlias, TypeVar

from mlsysim.core.catalog import Catalog, Deferred
from mlsysim.core.errors import ConfigError, UnknownEntryError, shown
from mlsysim.core.fields import Record, priors, units_of
from mlsysim.core.types import Band, Source, cite
from mlsysim.core.units import Q_, read_amount

Row = TypeVar("Row", bound=Record)
Content: TypeAlias = Mapping[str, Any]
"""What a file states about a row, by field."""
Reader: TypeAlias = Callable[[], Mapping[str, Deferred[Any]]]

DATA = files("mlsysim.registry") / "data"
_SOURCE_OF = "source of "
_SWITCHES = {"true": True, "false": False}
_ABOUT = frozenset({"note", "source", "parent", "inherited", "runs", "run_count"})
"""Keys of a row of constants that are not fields of its record."""


@functools.cache
def read_toml(file: str) -> Content:
    """Return the contents of a TOML file in the registry."""
    import tomllib  # takes 4 ms, and most questions need no file

    try:
        return tomllib.loads((DATA / file).read_text(encoding="utf-8"))
    except tomllib.TOMLDecodeError as fault:
        raise ConfigError(f"{file}: {fault}", argument=file) from fault


def record_of(where: str, content: Content, *kinds: type, **catalogs: type[Catalog]) -> Any:
    """Create the record that a file describes.

    Parameters
    ----------
    where
        The file and the row, for errors.
    content
        Values by field. Amounts are text with a unit, such as ``"3.35 TB/s"``; a record is a
        mapping, and a row of another catalog is its name.
    kinds
        The class of the record. If there are several, the content names one of them as its `kind`.
    catalogs
        For each field that holds a row of another catalog, this catalog.

    Raises
    ------
    ConfigError
        If a field is missing, unknown or out of range. The message names file, row and field.
    """
    kind: type = kinds[0]
    if len(kinds) > 1:
        named = {one.__name__: one for one in kinds}
        content = dict(content)
        name = content.pop("kind", "")
        if name not in named:
            raise UnknownEntryError.build(name, f"{where}: kind", named)
        kind = named[name]
    known = {item.name: item for item in fields(kind) if item.init}
    values: dict[str, Any] = {}
    for name, entry in content.items():
        place = f"{where}: {name}"
        if name == "sources" and "field_sources" in known:
            values["field_sources"] = {field: _source(place, key) for field, key in entry.items()}
        elif name not in known:
            raise UnknownEntryError.build(name, f"{where}: field", known)
        elif name == "source":
            values[name] = _source(place, entry)
        elif name in catalogs:
            if entry not in catalogs[name]:
                raise UnknownEntryError.build(entry, place, catalogs[name].names())
            values[name] = catalogs[name][entry]
        elif isinstance(entry, str) and "unit" in known[name].metadata:
            amount = read_amount(entry, known[name].metadata["unit"], place)
            plain = known[name].metadata["plain"] and amount.unitless
            values[name] = amount.magnitude if plain else amount
        else:
            values[name] = _value(_hints(kind)[name], place, entry)
    for name, item in known.items():
        if name not in values and item.default is MISSING and item.default_factory is MISSING:
            raise ConfigError(f"{where}: {name} is missing: state it", argument=name)
    try:
        return kind(**values)
    except ConfigError as fault:
        raise type(fault)(f"{where}: {fault.message}", argument=fault.argument) from fault  # type: ignore[attr-defined]


@functools.cache
def _hints(kind: Any) -> Mapping[str, Any]:
    """Return the types of a record's fields."""
    return typing.get_type_hints(kind)


def _source(where: str, origin: Source | str) -> Source:
    """Return a source, which a file states by its key in the bibliography."""
    if isinstance(origin, Source):
        return origin
    try:
        return cite(origin)
    except UnknownEntryError as fault:
        raise UnknownEntryError(f"{where}: {fault.message}", argument=origin) from fault


def _value(hint: Any, where: str, entry: Any) -> Any:
    """Return the value of a field of this type."""
    options = typing.get_args(hint) if isinstance(hint, types.UnionType) else (hint,)
    if isinstance(entry, Mapping):
        kinds = [option for option in options if option is not types.NoneType]
        return record_of(where, entry, *kinds)
    if Band in options:
        edges = entry.split() if isinstance(entry, str) else entry
        if len(edges) != 2:
            raise ConfigError(
                f"{where}: {shown(entry)} is not a band: state its lower and its upper edge",
                argument=where,
            )
        return record_of(where, dict(zip(("low", "high"), edges, strict=True)), Band)
    if isinstance(entry, str) and bool in options:
        if entry not in _SWITCHES:
            raise UnknownEntryError.build(entry, where, _SWITCHES)
        return _SWITCHES[entry]
    for option in options:
        if typing.get_origin(option) in (tuple, frozenset):
            parts = entry.split() if isinstance(entry, str) else entry
            item = typing.get_args(option)[0]
            return typing.get_origin(option)(_value(item, where, part) for part in parts)
    if isinstance(entry, str) and {int, float}.intersection(options):
        return read_amount(entry, "", where).magnitude
    return entry


def table(
    file: str, kind: type[Row], *, note: str = "note", **catalogs: type[Catalog]
) -> Callable[[], Mapping[str, Deferred[Row]]]:
    """Return a reader of a CSV file.

    Its columns are ``row``, which is the name of the row, fields (``bandwidth [GB/s]``), the source
    and the sources of single fields (``source of latency``), the fields that are estimates, and a
    note. An empty cell leaves its field at the default.

    Parameters
    ----------
    file
        Its name.
    kind
        The class of its rows.
    note
        The column with the notes.
    catalogs
        For each field that holds a row of another catalog, this catalog.
    """

    @functools.cache
    def read() -> Mapping[str, Deferred[Row]]:
        import csv  # pages that need no table do not load it

        head, *lines = csv.reader((DATA / file).read_text(encoding="utf-8").splitlines())
        stated_empty = {
            item.name for item in fields(kind) if item.type == "str" and item.default is MISSING
        }
        rows: dict[str, Deferred[Row]] = {}
        for line in lines:
            where = f"{file}, {line[0]}"
            if len(line) != len(head):
                raise ConfigError(
                    f"{where}: {len(line)} cells for {len(head)} columns: quote text that has "
                    "commas, and leave unknown cells empty",
                    argument=file,
                )
            content: dict[str, Any] = {}
            for title, cell in zip(head, line, strict=True):
                name, _, unit = title.removesuffix("]").partition(" [")
                if name.startswith(_SOURCE_OF):
                    if cell:
                        content.setdefault("sources", {})[name.removeprefix(_SOURCE_OF)] = cell
                elif cell or name in stated_empty:
                    content[name] = f"{cell} {unit}".strip()
            about = content.pop(note, "")
            make = functools.partial(record_of, where, content, kind, **catalogs)
            _add(rows, where, content.pop("row"), Deferred(make, about))
        return rows

    return read


def _add(rows: dict[str, Deferred[Row]], where: str, name: str, row: Deferred[Row]) -> None:
    if name in rows:
        raise ConfigError(f"{where}: the name is taken: give the row another one", argument=name)
    rows[name] = row


class Sections:
    """Rows of TOML files, in sections that are named after a catalog and a row.

    A row, or a record in it, may be ``like`` that of another row of its catalog, and then states
    only what is different.

    Parameters
    ----------
    names
        Names of the files.
    make
        Creates a row from its file and name, for errors, and its content.
    """

    def __init__(self, names: Sequence[str], make: Callable[[str, Content], Record]) -> None:
        self._names, self._make = names, make
        self._catalogs: set[str] = set()

    def __call__(self, catalog: str, *first: str) -> Reader:
        """Return a reader of the rows of a catalog, with the `first` ones before all others."""
        self._catalogs.add(catalog)
        return functools.cache(functools.partial(self._read, catalog, first))

    def _read(self, catalog: str, first: Sequence[str]) -> Mapping[str, Deferred[Any]]:
        rows: dict[str, Deferred[Any]] = {}
        for file in self._names:
            for section in read_toml(file):
                if section not in self._catalogs:
                    raise UnknownEntryError.build(section, f"{file}: catalog", self._catalogs)
            sections = read_toml(file).get(catalog, {})
            for name, content in sections.items():
                where = f"{file}, {name}"
                make = functools.partial(self._row, where, sections, content)
                _add(rows, where, name, Deferred(make, content.get("note", "")))
        return {name: rows[name] for name in first} | rows

    def _row(self, where: str, sections: Mapping[str, Content], content: Content) -> Record:
        whole = _without_likes(where, sections, content)
        whole.pop("note", None)
        return self._make(where, whole)


def _without_likes(
    where: str, rows: Mapping[str, Content], content: Content, *path: str
) -> dict[str, Any]:
    """Return what a row states, and what it takes from the rows that its `like` names."""
    whole: dict[str, Any] = {
        name: _without_likes(where, rows, item, *path, name) if isinstance(item, Mapping) else item
        for name, item in content.items()
    }
    if "like" not in whole:
        return whole
    other: str = whole.pop("like")
    if other not in rows:
        raise UnknownEntryError.build(other, f"{where}: like", rows)
    origin = rows[other]
    for name in path:
        origin = origin[name]
    return _without_likes(where, rows, origin, *path) | whole


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

    def row(self, key: str) -> Any:
        """Create a row."""
        entry = self.rows[key]
        values, origins = self.constants(key)
        main = entry.get("source", self.usual["source"])
        content = {
            name: value
            for name, value in entry.items()
            if name not in _ABOUT and name not in self.sources
        }
        content |= {
            name: Q_(value, self.units[name]) if name in self.units else value
            for name, value in values.items()
        }
        content["source"] = self.source(main, key)
        content["sources"] = {
            name: self.source(origin, owner)
            for name, (origin, owner) in origins.items()
            if origin != main
        }
        content["estimated"] = [
            name
            for name, (origin, _) in origins.items()
            if self.sources[origin].get("estimated", False)
        ]
        return record_of(f"{self.file}, {key}", content, self.kind)

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
            for name, value in entry.get(origin, {}).items():
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
