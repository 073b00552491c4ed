"""Reads the HTML of a page's body: its anchors, its links, its words for the search."""

from __future__ import annotations

from html.parser import HTMLParser
from typing import Any

SOURCES = {"a": "href", "img": "src", "script": "src", "link": "href", "iframe": "src"}
HEADINGS = {"h1", "h2", "h3", "h4"}
LONGEST = 2000


class Scan(HTMLParser):
    """What one page offers and wants: ids, links as [tag, target], words by section."""

    def __init__(self, body: str) -> None:
        super().__init__()
        self.ids: list[str] = []
        self.links: list[list[str]] = []
        self.unnamed: list[str] = []  # images without alt text
        self.sections = [["", "", ""]]  # id, heading, words
        self.inside: list[int] = [0]
        self.heading = self.silent = 0
        self.feed(body)
        self.sections = [[part[0], *map(_tidy, part[1:])] for part in self.sections]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note what the element names."""
        values = {key: value or "" for key, value in attrs}
        if "id" in values:
            self.ids.append(values["id"])
        if SOURCES.get(tag) in values:
            self.links.append([tag, values[SOURCES[tag]]])
        if tag == "img" and not values.get("alt"):
            self.unnamed.append(values.get("src", ""))
        if tag == "section":
            self.inside.append(len(self.sections))
            self.sections.append([values.get("id", ""), "", ""])
        self.heading += tag in HEADINGS
        self.silent += tag in {"script", "style", "annotation"}

    def handle_endtag(self, tag: str) -> None:
        """Leave the element."""
        if tag == "section":
            self.inside.pop()
        self.heading -= tag in HEADINGS
        self.silent -= tag in {"script", "style", "annotation"}

    def handle_data(self, data: str) -> None:
        """Keep the words of the section."""
        if not self.silent:
            self.sections[self.inside[-1]][1 if self.heading else 2] += data

    def result(self) -> dict[str, Any]:
        """Return what can be stored."""
        names = ("ids", "links", "unnamed", "sections")
        return {name: getattr(self, name) for name in names}


def _tidy(text: str) -> str:
    return " ".join(text.split())[:LONGEST]
