"""Reads the HTML of a page's body: its anchors, its links, its words for the search."""

from __future__ import annotations

from html.parser import HTMLParser
from typing import Any

SOURCES = {"a": "href", "img": "src", "script": "src", "link": "href", "iframe": "src"}
SILENT = {"script", "style", "annotation", "nav"}


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.ids: list[str] = []
        self.links: list[list[str]] = []
        self.unnamed: list[str] = []
        self.sections = [{"id": "", "title": "", "text": ""}]
        self.section = [0]
        self.silent = 0
        self.heading = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {key: value or "" for key, value in attrs}
        if "id" in values:
            self.ids.append(values["id"])
        if SOURCES.get(tag, "") in values:
            self.links.append([tag, values[SOURCES[tag]]])
        if tag == "img" and not values.get("alt") and values.get("role") != "presentation":
            self.unnamed.append(values.get("src", ""))
        if tag == "section":
            self.section.append(len(self.sections))
            self.sections.append({"id": values.get("id", ""), "title": "", "text": ""})
        self.silent += tag in SILENT
        self.heading = self.heading or tag in {"h1", "h2", "h3", "h4"}

    def handle_endtag(self, tag: str) -> None:
        if tag == "section":
            self.section.pop()
        self.silent -= tag in SILENT
        if tag in {"h1", "h2", "h3", "h4"}:
            self.heading = False

    def handle_data(self, data: str) -> None:
        if not self.silent:
            self.sections[self.section[-1]]["title" if self.heading else "text"] += f"{data} "


def scan(body: str) -> dict[str, Any]:
    """Return ids, links as [tag, target], images without alt text, and the text by section."""
    reader = _Reader()
    reader.feed(body)
    for section in reader.sections:
        section["title"] = " ".join(section["title"].split())
        section["text"] = " ".join(section["text"].split())[:2000]
    return {
        "ids": reader.ids,
        "links": reader.links,
        "unnamed": reader.unnamed,
        "sections": [part for part in reader.sections if part["title"] or part["text"]],
    }
