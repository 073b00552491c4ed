"""Catalogs: classes whose attributes are the rows of a registry.

A row is a class attribute, so editors complete it and type checkers know it. A catalog that
inherits from its tiers offers every row under its short name as well:

    class Cloud(Catalog):
        H100 = Accelerator(...)

    class Hardware(Cloud, Edge):
        Cloud = Cloud
        Edge = Edge

`Hardware.H100` and `Hardware.Cloud.H100` are then the same object, `Hardware["H100"]` looks a
name up at run time, and `for row in Hardware` walks all of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from mlsysim.core.errors import UnknownEntryError
from mlsysim.core.fields import Record

__all__ = ["Catalog"]


class _CatalogType(type):
    """Makes the class itself a read-only mapping of its rows."""

    def _rows(cls) -> dict[str, Record]:
        rows: dict[str, Record] = {}
        for owner in cls.__mro__:
            for key, value in vars(owner).items():
                if isinstance(value, Record):
                    rows.setdefault(key, value)
        return rows

    def tiers(cls) -> dict[str, type[Catalog]]:
        """Return the tiers of this catalog by name; a tier itself has none."""
        found = {key: value for key, value in vars(cls).items() if isinstance(value, _CatalogType)}
        return found  # type: ignore[return-value]

    def names(cls) -> tuple[str, ...]:
        """Return the names of all rows, tier by tier."""
        return tuple(cls._rows())

    def items(cls) -> Iterator[tuple[str, Record]]:
        """Yield (name, row) for every row."""
        return iter(cls._rows().items())

    def __iter__(cls) -> Iterator[Record]:
        return iter(cls._rows().values())

    def __len__(cls) -> int:
        return len(cls._rows())

    def __contains__(cls, item: object) -> bool:
        rows = cls._rows()
        return item in rows if isinstance(item, str) else item in rows.values()

    def __getitem__(cls, name: str) -> Any:
        rows = cls._rows()
        if name not in rows:
            raise UnknownEntryError.build(name, f"{cls.__name__} entry", rows)
        return rows[name]

    def __getattr__(cls, name: str) -> Any:
        # Reached only when no row has the name. Dunder look-ups by Python itself must fail plainly.
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

    def __repr__(cls) -> str:
        return f"<{cls.__name__}: {', '.join(cls.names())}>"


class Catalog(metaclass=_CatalogType):
    """Base class of registries and of their tiers."""
