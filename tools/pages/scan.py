"""Read the HTML of a page: its body, with anchors, links and words for the search."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

LINK = re.compile(r'<(a|img|script|link|iframe)\b[^>]*?\s(?:href|src)="([^"]*)"')
IMAGE = re.compile(r"<img\b[^>]*>")
# Nothing to search for: scripts, equations, diagrams, and source code in its fold.
SILENT = re.compile(
    r'<(script|style|math|svg)\b.*?</\1>|<details class="code-fold source">.*?</details>', re.DOTALL
)
SECTION = re.compile(r'<section id="([^"]*)"[^>]*>\s*(?:<h\d[^>]*>(.*?)</h\d>)?', re.DOTALL)
TERM = re.compile(r"<dt>((?:(?!</dt>).)*?\sid=.*?)</dt>\s*<dd>(.*?)</dd>", re.DOTALL)
UNIT = re.compile(r'<span class="unit">.*?</span>')
NAME = re.compile(r'<span id="([^"]*)">(.*?)</span>')
LONGEST = 2000
MAIN = re.compile(r"<main\b[^>]*>(.*)</main>", re.DOTALL)
# The title and what stands around it come from the page's front matter; the rest is navigation.
FRAME = re.compile(r'<(header) id="title-block-header".*?</\1>|<(nav)\b.*?</\2>', re.DOTALL)
REMOTE = re.compile(
    r'<(?:script|img|iframe)\b[^>]*\ssrc="((?:https?:)?//[^"]*)'
    r'|<link\b(?=[^>]*\srel="stylesheet")[^>]*\shref="((?:https?:)?//[^"]*)'
)


def requests(page: Path) -> list[str]:
    """Return the addresses on other hosts from which a built page loads something."""
    return [a or b for a, b in REMOTE.findall(page.read_text(encoding="utf-8"))]


def body_of(page: Path) -> str:
    """Return the HTML of a built page's text, without its title and navigation."""
    found = MAIN.search(page.read_text(encoding="utf-8"))
    return FRAME.sub("", found[1]) if found else ""


def scan(body: str) -> dict[str, Any]:
    """Return the page's anchors, its links, and its words for the search."""
    images = [image for image in IMAGE.findall(body) if not re.search(r'\salt="[^"]', image)]
    return {
        "ids": re.findall(r'<[^>]*?\sid="([^"]+)"', body),
        "links": [[tag, html.unescape(target)] for tag, target in LINK.findall(body)],
        "unnamed": [found for image in images for _, found in LINK.findall(image)],
        "sections": list(_sections(SILENT.sub("", body))),
    }


def _sections(body: str) -> Iterator[list[Any]]:
    """Yield [anchor, heading, words, names]; only a term has names, its heading lists them."""
    start, *parts = SECTION.split(body)
    # Each section is followed by the sections inside it, so its own words end where they begin.
    for anchor, title, text in [("", "", start), *zip(*[iter(parts)] * 3, strict=True)]:
        yield [anchor, _words(title), _words(TERM.sub("", text)), []]
        for head, meaning in TERM.findall(text):
            names = _names(head)
            # The names of formulas, which end an entry, are found where the formulas are.
            words = _words(meaning).partition(" Formula:")[0]
            yield [NAME.findall(head)[0][0], ", ".join(names), words, names]


def _names(head: str) -> list[str]:
    """Return the names that the head of a definition gives, each once: "MFU, `mfu`" is one."""
    found: dict[str, str] = {}
    for i, piece in enumerate(NAME.sub("\0\\2\0", UNIT.sub("", head)).split("\0")):
        # What has an anchor is one name, with its commas.
        for name in map(_words, [piece] if i % 2 else piece.split(",")):
            if name:
                found.setdefault(name.lower(), name)
    return list(found.values())


def _words(text: str | None) -> str:
    words = " ".join(html.unescape(re.sub(r"<[^>]+>", " ", text or "")).split())
    return re.sub(r" (?=[.,;:)])", "", words)[:LONGEST]
