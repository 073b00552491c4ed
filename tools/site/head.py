"""Tags in the head of a page for messengers and search engines."""

from __future__ import annotations

from html import escape
from pathlib import Path

from tools.pages.project import Project
from tools.site import cards, copies
from tools.site.entries import Entry

MARK = '<meta property="og:title"'


def write(entry: Entry, project: Project, folder: Path, base: str) -> None:
    """Add the tags to a built page that does not have them yet."""
    page = folder / entry.path
    if not page.is_file():  # only some pages were rendered
        return
    text = page.read_text(encoding="utf-8")
    before, end, after = text.partition("</head>")
    if MARK in before or not end:
        return
    if '<meta name="description"' not in before:
        before += _tag("name", "description", entry.description)
    page.write_text(before + tags(entry, project, base) + end + after, encoding="utf-8")


def tags(entry: Entry, project: Project, base: str) -> str:
    """Return the tags of one page.

    Most services follow only full addresses. If the address is unknown, the tags contain the path
    of the card, which some services resolve.
    """
    root = base or "../" * entry.depth
    name, section = str(project.website["title"]), cards.section_of(entry.section)
    found = [
        _tag("property", "og:type", "website"),
        _tag("property", "og:site_name", name),
        _tag("property", "og:title", entry.title),
        _tag("property", "og:description", entry.description),
        _tag("property", "og:image", f"{root}{cards.path(section)}"),
        _tag("property", "og:image:type", "image/png"),
        _tag("property", "og:image:width", str(cards.SIZE[0])),
        _tag("property", "og:image:height", str(cards.SIZE[1])),
        _tag("property", "og:image:alt", cards.words(section)),
        _tag("name", "twitter:card", "summary_large_image"),
    ]
    copy = copies.path(entry).rpartition("/")[2]
    found.append(f'<link rel="alternate" type="text/markdown" href="{escape(copy, quote=True)}">\n')
    if base:
        address = escape(address_of(entry, base), quote=True)
        found.append(f'<link rel="canonical" href="{address}">\n')
        found.append(_tag("property", "og:url", address_of(entry, base)))
    return "".join(found)


def address_of(entry: Entry, base: str) -> str:
    """Return the canonical address of a page; that of the first page ends with a slash."""
    return base + ("" if entry.path == "index.html" else entry.path)


def _tag(kind: str, name: str, content: str) -> str:
    return f'<meta {kind}="{name}" content="{escape(content, quote=True)}">\n'
