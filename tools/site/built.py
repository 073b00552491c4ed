"""Reads a page that either renderer has built."""

from __future__ import annotations

import re
from pathlib import Path

MAIN = re.compile(r"<main\b[^>]*>(.*)</main>", re.DOTALL)
# The title and what stands around it come from the page's front matter; the rest is navigation.
FRAME = re.compile(r'<(header) id="title-block-header".*?</\1>|<(nav)\b.*?</\2>', re.DOTALL)

REMOTE = re.compile(
    r'<(?:script|img|iframe)\b[^>]*\ssrc="((?:https?:)?//[^"]*)'
    r'|<link\b(?=[^>]*\srel="stylesheet")[^>]*\shref="((?:https?:)?//[^"]*)'
)


def requests(page: Path) -> list[str]:
    """Return the addresses on other hosts from which a page loads something."""
    return [a or b for a, b in REMOTE.findall(page.read_text(encoding="utf-8"))]


def body(page: Path) -> str:
    """Return the HTML of a page's text, without its title and navigation."""
    found = MAIN.search(page.read_text(encoding="utf-8"))
    return FRAME.sub("", found[1]) if found else ""
