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

PATH = files("mlsysim.core") / "references.bib"
_ENTRY = re.compile(r"^@\w+\{(\w+),\n(.*?)^\}", re.MULTILINE | re.DOTALL)
_FIELD = re.compile(r"^ +(\w+) *= \{(.*)\},?$", re.MULTILINE)
_MARKS = re.compile(r"\\([&%#_$])|[{}]")


@functools.cache
def entries() -> Mapping[str, Mapping[str, str]]:
    """Return the fields of every entry by its key."""
    text = PATH.read_text(encoding="utf-8")
    return {key: dict(_FIELD.findall(body)) for key, body in _ENTRY.findall(text)}


def entry(key: str) -> Mapping[str, str]:
    """Return the fields of an entry."""
    known = entries()
    if key not in known:
        raise UnknownEntryError.build(key, "entry of the bibliography", known)
    return known[key]


def plain(text: str) -> str:
    """Return a field without the marks of LaTeX."""
    return _MARKS.sub(r"\1", text)


def name(key: str) -> str:
    """Return how a sentence names a publication: its title, after its authors and year."""
    work = entry(key)
    title = plain(work["title"])
    if "author" not in work:
        return title
    people = [person.split(",")[0] for person in plain(work["author"]).split(" and ")]
    if len(people) > 3 or people[-1] == "others":
        authors = f"{people[0]} et al."
    else:
        authors = " and ".join(filter(None, [", ".join(people[:-1]), people[-1]]))
    return f"{authors} ({work['year']}), {title}"


def address(key: str) -> str:
    """Return the address of a publication."""
    return entry(key)["url"]
