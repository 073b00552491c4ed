"""Where a number comes from, and the rows that must state it."""

from __future__ import annotations

import dataclasses
import functools
import re
from collections.abc import Collection, Mapping
from typing import Any

from mlsysim.core import bibliography
from mlsysim.core.errors import ConfigError, UnknownEntryError, shown
from mlsysim.core.fields import Record, field_of, record, require

_ADDRESS = re.compile(r"https?://[^\s<>\"\x00-\x1f]+")


@record
class Source(Record):
    """A publication that states a number, and where in it the number is.

    Attributes
    ----------
    title : str
        Title of the publication.
    url : str
        Address; empty if the number is an assumption.
    locator : str
        Table, section, figure or page.
    checked : str
        Day on which the number was last compared with the publication (ISO 8601).
    note : str
        What you need to know to find the same number ("dense; printed with sparsity").
    """

    title: str
    url: str = ""
    locator: str = ""
    checked: str = ""
    note: str = ""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.url and not _ADDRESS.fullmatch(self.url):
            raise ConfigError(
                f"Source.url = {shown(self.url)} is not an address that pages may link to: give "
                "one that begins with https:// or http://, or leave it empty",
                argument="url",
            )

    def __repr__(self) -> str:
        return f"<Source {self}>"

    def __str__(self) -> str:
        return ", ".join(part for part in (self.title, self.locator) if part)


@functools.cache
def cite(key: str) -> Source:
    """Return an entry of the bibliography as the source of a number.

    Raises
    ------
    UnknownEntryError
        If the bibliography has no entry with this key.
    """
    entry = bibliography.entry(key)
    work = bibliography.entry(entry["work"]) if "work" in entry else entry
    return Source(
        title=bibliography.plain(entry.get("title") or work["title"]),
        url=work.get("url", ""),
        locator=entry.get("locator", ""),
        checked=entry.get("checked", ""),
        note=entry.get("remark", ""),
    )


@record
class Entry(Record):
    """An entry with its provenance: the base of every registry row.

    Attributes
    ----------
    name : str
        The name as engineers print it.
    source : Source
        Source of the row's values, unless `field_sources` names another.
    field_sources : Mapping[str, Source]
        Source per field; nested fields are dotted, as in ``"memory.bandwidth"``.
    estimated : frozenset of str
        Fields that no publication confirms. Tables print them with "≈".
    """

    name: str
    source: Source
    field_sources: Mapping[str, Source] = dataclasses.field(default_factory=dict)
    estimated: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        super().__post_init__()
        require(self, source=Source, field_sources=Mapping)
        estimated: Any = self.estimated
        if isinstance(estimated, str) or not isinstance(estimated, Collection):
            raise ConfigError(
                f"{self.name}: estimated = {shown(estimated)} is not a set of names of fields",
                argument="estimated",
            )
        self._keep("estimated", frozenset(estimated))
        for path in (*self.field_sources, *self.estimated):
            self._follow(path)
        for path, source in self.field_sources.items():
            if not isinstance(source, Source):
                raise ConfigError(
                    f"{self.name}: field_sources[{shown(path)}] must be a Source, got "
                    f"{shown(source)}",
                    argument="field_sources",
                )

    def _follow(self, path: str) -> Any:
        value: Any = self
        owner: Any = self  # the innermost record on the path
        for part in path.split(".") if isinstance(path, str) else [""]:
            if dataclasses.is_dataclass(value):
                owner = value
            if owner is not value or not (hasattr(value, part) or field_of(value, part)):
                known = [item.name for item in dataclasses.fields(owner)]
                raise UnknownEntryError.build(path, f"{self.name}: field", known)
            value = field_of(value, part)
        return value

    def source_of(self, path: str) -> Source:
        """Return the source of a field, such as ``"memory.bandwidth"``."""
        self._follow(path)
        for key in (path, path.split(".")[0], path.split("[")[0]):
            if key in self.field_sources:
                return self.field_sources[key]
        return self.source

    def is_estimated(self, path: str) -> bool:
        """Return whether a field is an estimate that no publication confirms."""
        start = str(path).split(".")[0]
        return bool(self.estimated & {path, start, start.split("[")[0]})
