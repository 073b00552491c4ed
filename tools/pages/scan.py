"""Reads the HTML of a page's body: its anchors, its links, its words for the search."""

from __future__ import annotations

import html
import re
from typing import Any

LINK = re.compile(r'<(a|img|script|link|iframe)\b[^>]*?\s(?:href|src)="([^"]*)"')
IMAGE = re.compile(r"<img\b[^>]*>")
SILENT = re.compile(r"<(script|style|math|svg)\b.*?</\1>", re.DOTALL)
SECTION = re.compile(r'<section id="([^"]*)"[^>]*>\s*(?:<h\d[^>]*>(.*?)</h\d>)?', re.DOTALL)
LONGEST = 2000


def scan(body: str) -> dict[str, Any]:
    """Return what the page offers and wants, and its words as [anchor, heading, words]."""
    images = [image for image in IMAGE.findall(body) if not re.search(r'\salt="[^"]', image)]
    start, *parts = SECTION.split(SILENT.sub("", body))
    # Each section is followed by the sections inside it, so its own words end where they begin.
    sections = [["", "", start], *(parts[i : i + 3] for i in range(0, len(parts), 3))]
    return {
        "ids": re.findall(r'<[^>]*?\sid="([^"]+)"', body),
        "links": [[tag, html.unescape(target)] for tag, target in LINK.findall(body)],
        "unnamed": [found for image in images for _, found in LINK.findall(image)],
        "sections": [[anchor, _words(title), _words(text)] for anchor, title, text in sections],
    }


def _words(text: str | None) -> str:
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", text or "")).split())[:LONGEST]
