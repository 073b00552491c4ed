"""Catalogs: classes whose attributes are the rows of a registry.

A row is a class attribute, so editors can complete it and type checkers can check it. A catalog
that inherits from its tiers also offers every row under its short name:

    class Cloud(Catalog):
        H100 = Accelerator(...)

    class Hardware(Cloud, Edge):
        Cloud = Cloud
        Edge = Edge

`Hardware.H100` and `Hardware.Cloud.H100` are then the same object, `Hardware["H100"]` looks
up a name at run time, and `for row in Hardware` visits all rows.

A row that takes time to create is `Deferred`: it is created when it is first read. The rows of a
data file are all deferred, and the file itself is read when a row or a name is first needed:

    class Links(Catalog, rows=read_links): ...
"""

from __future__ import annotations

import ast
import dataclasses
import functools
import itertools
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Generic, TypeVar

from mlsysim.core.calls import expects
from mlsysim.core.docstring import read_source
from mlsysim.core.errors import ConfigError, UnknownEntryError, shown
from mlsysim.core.fields import Record
from mlsysim.core.provenance import describe, field_words
from mlsysim.core.table import Column, Table
from mlsysim.core.types import Entry, Source

Row = TypeVar("Row", bound=Record)


class Deferred(Generic[Row]):
    """A row of a catalog that is created when it is first read.

    Parameters
    ----------
    make
        Returns the row.
    note
        What a docstring below the row would say.
    """

    def __init__(self, make: Callable[[], Row], note: str = "") -> None:
        self._make = make
        self.note = note
        self._made: dict[str, Row] = {}

    def __get__(self, instance: object, owner: type | None = None) -> Row:
        if "row" not in self._made:
            # Threads that create it at the same time all return the first one.
            self._made.setdefault("row", self._make())
        return self._made["row"]


class _CatalogType(type):
    """Makes the class itself a read-only mapping of its rows."""

    def __new__(
        mcs, name: str, bases: tuple[type, ...], content: dict[str, Any], **_: Any
    ) -> _CatalogType:
        return super().__new__(mcs, name, bases, content)

    def __init__(
        cls,
        name: str,
        bases: tuple[type, ...],
        content: dict[str, Any],
        rows: Callable[[], Mapping[str, Deferred[Any]]] | None = None,
    ) -> None:
        """Create a catalog; `rows` reads further rows from a file when one is first needed."""
        super().__init__(name, bases, content)
        cls._read_rows = rows
        for key, tier in cls.tiers().items():
            if "_code" not in vars(tier):  # a tier may be in other catalogs too, such as a user's
                tier._code = name if issubclass(cls, tier) else f"{name}.{key}"

    def _declared(cls) -> dict[str, Record | Deferred[Any]]:
        """Return the rows by name, without creating deferred ones."""
        rows: dict[str, Record | Deferred[Any]] = {}
        for owner in cls.__mro__:
            if isinstance(owner, _CatalogType):
                owner._complete()
            for key, value in vars(owner).items():
                if isinstance(value, Record | Deferred):
                    rows.setdefault(key, value)
        return rows

    def _complete(cls) -> None:
        """Add the rows of the catalog's file. Threads that read it together get the same rows."""
        read = vars(cls)["_read_rows"]
        if read is not None:
            for key, row in read().items():
                super().__setattr__(key, row)
            cls._read_rows = None

    def _rows(cls) -> dict[str, Record]:
        return {name: _made(row) for name, row in cls._declared().items()}

    def tiers(cls) -> dict[str, type[Catalog]]:
        """Return the tiers of this catalog by name; a tier itself has none."""
        tiers = {key: value for key, value in vars(cls).items() if isinstance(value, _CatalogType)}
        return tiers  # type: ignore[return-value]

    def names(cls) -> tuple[str, ...]:
        """Return the names of all rows, tier by tier."""
        return tuple(cls._declared())

    def items(cls) -> Iterator[tuple[str, Record]]:
        """Yield (name, row) for every row."""
        return iter(cls._rows().items())

    def notes(cls) -> dict[str, str]:
        """Return the docstring below each row in the source code."""
        written: dict[str, str] = {}
        for owner in cls.__mro__:
            if isinstance(owner, _CatalogType) and len(owner):
                written = _docstrings(owner) | written
        rows = cls._declared()
        return {
            name: written.get(name, "") or getattr(row, "note", "") for name, row in rows.items()
        }

    def describe(cls) -> str:
        """Write the rows as a Markdown list: name, note, and the reason for each estimate."""
        return describe(cls._rows(), cls.notes())

    @expects(units=Mapping)
    def table(cls, *fields: str, units: Mapping[str, str] | None = None) -> Table:
        """Return the rows as a table with the source of each cell.

        Parameters
        ----------
        *fields
            Fields to show, dotted if nested (``"memory.bandwidth"``); all of them if none is named.
        units
            Units for fields, if different from those of their declarations.

        Raises
        ------
        UnknownEntryError
            If no row has a field of that name.
        ConfigError
            If a field cannot be converted to its unit.
        """
        rows = cls._rows()
        known = list(dict.fromkeys(path for row in rows.values() for path in paths(row)))
        for name in (units or {}).values():
            if not isinstance(name, str):
                raise ConfigError(
                    f"units: {shown(name)} is not the name of a unit: give text such as 'GB/s'",
                    argument="units",
                )
        for field in (*fields, *(units or ())):
            if field not in known:
                raise UnknownEntryError.build(field, f"{cls.__name__} field", known)
        code = f"{vars(cls).get('_code', cls.__name__)}."
        sources = [_source(row, "name") for row in cls]
        columns = {"entry": Column(list(rows), sources=sources, code=code)}
        for field in fields or known:
            columns[field] = _column(list(cls), field, (units or {}).get(field, ""))
        return Table(columns, limit=None)

    def __iter__(cls) -> Iterator[Record]:
        return iter(cls._rows().values())

    def __len__(cls) -> int:
        return len(cls._declared())

    def __contains__(cls, item: object) -> bool:
        return item in cls._declared() if isinstance(item, str) else item in cls._rows().values()

    def __getitem__(cls, name: str) -> Any:
        rows = cls._declared()
        if not isinstance(name, str) or name not in rows:
            raise UnknownEntryError.build(name, f"{cls.__name__} entry", rows)
        return _made(rows[name])

    def __dir__(cls) -> list[str]:
        cls._declared()  # editors complete the rows of files too
        return list(super().__dir__())

    def __getattr__(cls, name: str) -> Any:
        # Reached only if no row has the name. Dunder lookups by Python itself must fail normally.
        if name.startswith("_"):
            raise AttributeError(name)
        try:
            return cls[name]
        except UnknownEntryError as fault:
            raise AttributeError(fault.message) from fault

    def __setattr__(cls, name: str, value: Any) -> None:
        if not name.startswith("_"):
            raise AttributeError(
                f"{cls.__name__} is read-only; make a variant with dataclasses.replace()"
            )
        super().__setattr__(name, value)

    def __delattr__(cls, name: str) -> None:
        raise AttributeError(f"{cls.__name__} is read-only: its rows cannot be deleted")

    def __repr__(cls) -> str:
        return f"<{cls.__name__}: {', '.join(cls.names())}>"


class Catalog(metaclass=_CatalogType):
    """Base class of registries and of their tiers."""


def _made(row: Record | Deferred[Any]) -> Any:
    return row.__get__(None) if isinstance(row, Deferred) else row


def paths(row: Record, prefix: str = "") -> Iterator[str]:
    """Yield the dotted names of a row's values; provenance itself is not one of them."""
    for item in dataclasses.fields(row):
        if item.name in ("source", "field_sources", "estimated", "note"):
            continue
        value = getattr(row, item.name)
        if isinstance(value, Record) and not isinstance(value, Entry):
            yield from paths(value, f"{prefix}{item.name}.")
        else:
            yield prefix + item.name


@functools.cache
def _docstrings(catalog: type) -> dict[str, str]:
    """Read the strings below the rows; Python itself does not keep them."""
    body = ast.parse(read_source(catalog)).body[0]
    notes: dict[str, str] = {}
    statements = body.body if isinstance(body, ast.ClassDef) else []
    for row, below in itertools.pairwise(statements):
        match row, below:
            case (
                ast.Assign(targets=[ast.Name(id=name)]),
                ast.Expr(value=ast.Constant(value=str(text))),
            ):
                notes[name] = " ".join(text.split())
    return notes


def _column(rows: list[Record], path: str, unit: str) -> Column:
    *parents, name = path.split(".")
    values: list[Any] = []
    for row in rows:
        owner: Any = row
        for parent in parents:
            owner = getattr(owner, parent, None)
        value = getattr(owner, name, None)
        declared = getattr(type(owner), "__dataclass_fields__", {}).get(name)
        if declared is not None and not declared.metadata.get("plain", True):
            unit = unit or declared.metadata["unit"]
        if value is not None and unit:
            value = _in_unit(value, unit, path)
        values.append(getattr(value, "name", value))
    return Column(
        values,
        unit,
        head=field_words(path),
        sources=[_source(row, path) for row in rows],
        estimated=[isinstance(row, Entry) and row.is_estimated(path) for row in rows],
    )


def _in_unit(value: Any, unit: str, path: str) -> Any:
    try:
        return value.to(unit).magnitude
    except Exception as fault:  # Pint raises many kinds, and a plain number has no units at all
        raise ConfigError(
            f"units: {path} = {shown(value)} cannot be shown in {shown(unit)}: give a unit of the "
            "same dimension, or leave it out",
            argument="units",
        ) from fault


def _source(row: Record, path: str) -> Source | None:
    if not isinstance(row, Entry):
        return getattr(row, "source", None)
    try:
        return row.source_of(path)
    except UnknownEntryError:  # a row of another kind, without this field
        return None
