"""The bibliography: every publication that formulas, registry rows and pages cite, by its key.

`references.bib` is BibTeX with one field per line. The entry of a number has a `locator`, the day
on which the number was `checked`, and a `remark`; if it is one of several places in a publication,
`work` is the key of that publication.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from importlib.resources import files

from mlsysim.core.errors import UnknownEntryError
from mlsysim.core.types import Source

__all__ = ["PATH", "cite", "entries"]

PATH = files("mlsysim.core") / "references.bib"
_ENTRY = re.compile(r"^@\w+\{(\w+),\n(.*?)^\}", re.MULTILINE | re.DOTALL)
_FIELD = re.compile(r"^ +(\w+) *= \{(.*)\},?$", re.MULTILINE)
_MARKS = re.compile(r"\\([&%#_$])|[{}]")


@functools.cache
def entries() -> Mapping[str, Mapping[str, str]]:
    """Return the fields of every entry by its key."""
    text = PATH.read_text(encoding="utf-8")
    return {key: dict(_FIELD.findall(body)) for key, body in _ENTRY.findall(text)}


@functools.cache
def cite(key: str) -> Source:
    """Return the source of a number.

    Raises
    ------
    UnknownEntryError
        If the bibliography has no entry with this key.
    """
    known = entries()
    if key not in known:
        raise UnknownEntryError.build(key, "entry of the bibliography", known)
    entry = known[key]
    work = known[entry["work"]] if "work" in entry else entry
    return Source(
        title=_MARKS.sub(r"\1", entry.get("title") or work["title"]),
        url=work.get("url", ""),
        locator=entry.get("locator", ""),
        checked=entry.get("checked", ""),
        note=entry.get("remark", ""),
    )
