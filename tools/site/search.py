"""The index of Quarto's search, written again so that the search finds each term of the glossary.

Quarto indexes second-level sections with all of their code, so it does not find a term within its
section. The preview's index comes from the same ``scan``.
"""

from __future__ import annotations

import html
import json
from collections.abc import Iterator
from pathlib import Path

from tools.pages.scan import scan
from tools.site.built import body
from tools.site.entries import Entry

NAME = "search.json"


def write(entries: list[Entry], folder: Path) -> None:
    """Replace the index that Quarto has written; the preview has no file of this name."""
    if (folder / NAME).is_file():
        found = [item for entry in entries for item in items(entry, folder)]
        text = json.dumps(found, ensure_ascii=False, indent=1)
        (folder / NAME).write_text(text, encoding="utf-8")


def items(entry: Entry, folder: Path) -> Iterator[dict[str, str]]:
    """Yield the entries of a page."""
    page = folder / entry.path
    sections = scan(body(page))["sections"] if page.is_file() else []
    terms = any(names for *_, names in sections)
    for anchor, heading, words, names in sections:
        if not anchor and terms:
            continue  # Quarto shows the hit for a page before those for its terms
        # A name that is both title and section beats every hit that is so in one of them only.
        heads = [(name, name) for name in names] or [(entry.title, heading)]
        for i, (title, section) in enumerate(heads):
            href = f"{entry.path}#{anchor}" if anchor else entry.path
            yield {
                "objectID": f"{href}-{i}" if i else href,
                "href": href,
                "title": title,
                "section": section,
                "text": html.escape(words, quote=False),
            }
