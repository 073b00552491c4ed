"""Where a number comes from, and the rows that must say so."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping
from typing import Any

from mlsysim.core.errors import UnknownEntryError
from mlsysim.core.fields import Record, record, require

__all__ = ["Entry", "Source"]

# What Markdown, in a cell of a table too, would take for a mark; "--" would become a dash.
_MARK = re.compile(r"[\\`*_\[\]<>|$~^]|(?<=-)-")


@record
class Source(Record):
    """A publication that states a number, and where in it the number stands.

    Attributes
    ----------
    title : str
        Title of the publication.
    url : str
        Address; empty where a number is an assumption.
    locator : str
        Table, section, figure or page.
    checked : str
        Day on which the number was last compared with the publication (ISO 8601).
    note : str
        What a reader must know to find the same number ("dense; printed with sparsity").
    """

    title: str
    url: str = ""
    locator: str = ""
    checked: str = ""
    note: str = ""

    def __repr__(self) -> str:
        return f"<Source {self}>"

    def __str__(self) -> str:
        return ", ".join(part for part in (self.title, self.locator) if part)

    def to_markdown(self) -> str:
        """Write title and place as Markdown; the title links to the address, if there is one."""
        title, locator = (_MARK.sub(r"\\\g<0>", text) for text in (self.title, self.locator))
        linked = f"[{title}]({self.url})" if self.url else title
        return ", ".join(part for part in (linked, locator) if part)


@record
class Entry(Record):
    """A noun that carries its provenance: the base of every registry row.

    Attributes
    ----------
    name : str
        The name as engineers print it.
    source : Source
        Where the row's values stand, unless `field_sources` says otherwise.
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
        require(self, name=str, source=Source)
        object.__setattr__(self, "estimated", frozenset(self.estimated))
        for path in (*self.field_sources, *self.estimated):
            self._follow(path)

    def _follow(self, path: str) -> Any:
        value: Any = self
        known: list[str] = []
        for part in path.split("."):
            inside = dataclasses.is_dataclass(value)
            known = [item.name for item in dataclasses.fields(value)] if inside else known
            if not inside or not hasattr(value, part):
                raise UnknownEntryError.build(path, f"{self.name}: field", known)
            value = getattr(value, part)
        return value

    def source_of(self, path: str) -> Source:
        """Return the source of a field, such as ``"memory.bandwidth"``."""
        self._follow(path)
        for key in (path, path.split(".")[0]):
            if key in self.field_sources:
                return self.field_sources[key]
        return self.source

    def is_estimated(self, path: str) -> bool:
        """Tell whether a field is a guess that no publication confirms."""
        return path in self.estimated or path.split(".")[0] in self.estimated
