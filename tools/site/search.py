"""The index of Quarto's search, written again so that the search finds each term of the glossary.

Quarto indexes second-level sections with all of their code, so it does not find a term within its
section. The preview's index comes from the same ``scan``.
"""

from __future__ import annotations

import html
import json
from collections.abc import Iterator
from pathlib import Path

from tools.pages.links import html_path
from tools.pages.project import Project, title_of
from tools.pages.scan import body_of, scan

NAME = "search.json"


def write(project: Project, folder: Path) -> None:
    """Replace the index that Quarto has written; the preview has no file of this name."""
    if not (folder / NAME).is_file():
        return
    entries = [
        entry
        for href, page in project.pages.items()
        if href != "404.qmd" and (folder / html_path(href)).is_file()
        for entry in items(html_path(href), title_of(page), folder)
    ]
    text = json.dumps(entries, ensure_ascii=False, indent=1)
    (folder / NAME).write_text(text, encoding="utf-8")


def items(path: str, page_title: str, folder: Path) -> Iterator[dict[str, str]]:
    """Yield the entries of a page."""
    sections = scan(body_of(folder / path))["sections"]
    terms = any(names for *_, names in sections)
    for anchor, heading, words, names in sections:
        if not anchor and terms:
            continue  # Quarto shows the hit for a page before those for its terms
        # A name that is both title and section beats every hit that is so in one of them only.
        heads = [(name, name) for name in names] or [(page_title, heading)]
        for i, (title, section) in enumerate(heads):
            href = f"{path}#{anchor}" if anchor else path
            yield {
                "objectID": f"{href}-{i}" if i else href,
                "href": href,
                "title": title,
                "section": section,
                "text": html.escape(words, quote=False),
            }
