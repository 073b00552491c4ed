"""Reads `_quarto.yml` and the pages it lists: the site as it is meant to be."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from tools.preview import schema
from tools.preview.faults import Fault, line_of
from tools.preview.pages import Page, read_page

CONFIG = Path("_quarto.yml")
VARIABLES = Path("_variables.yml")


@dataclass(frozen=True)
class Item:
    """One entry of the navigation; a section has ``contents``, a page has ``href``."""

    text: str
    href: str | None
    contents: tuple[Item, ...] = ()

    def pages(self) -> Iterator[Item]:
        """Yield the pages in reading order."""
        if self.href:
            yield self
        for item in self.contents:
            yield from item.pages()

    def holds(self, href: str) -> bool:
        """Tell whether the page is this entry or below it."""
        return any(item.href == href for item in self.pages())


@dataclass(frozen=True)
class Project:
    """The configuration, every page, and the navigation that ties them together."""

    root: Path
    website: dict[str, Any]
    html: dict[str, Any]
    bibliography: str | None
    resources: tuple[Path, ...]
    variables: dict[str, str]
    pages: dict[str, Page]
    navbar: tuple[Item, ...]
    sidebars: tuple[Item, ...]


def is_generated(page: Page) -> bool:
    """Tell the API pages, which are written from docstrings, from those written by people."""
    return page.path.parts[:2] == ("docs", "api")


def title_of(page: Page) -> str:
    """Return the title, or else the first heading, or else the file's name."""
    heading = (line[2:].split("{")[0] for line in page.source.split("\n") if line[:2] == "# ")
    return str(page.meta.get("title") or next(heading, page.path.stem)).strip(" `")


def load(root: Path, report: list[Fault]) -> Project:
    """Read the project; what is wrong with it goes to ``report``."""
    text, config = _yaml(root, CONFIG, "project", report)
    website, sidebars = config["website"], []
    sources = [(CONFIG, text, website.get("sidebar", []))]
    for name in map(Path, config.get("metadata-files", [])):
        more, extra = _yaml(root, name, "metadata-file", report)
        sources.append((name, more, extra.get("website", {}).get("sidebar", [])))
    pages = dict[str, Page]()
    for path in _matches(root, config["project"]["render"], report):
        try:
            pages[path.as_posix()] = read_page(path, root)
        except Fault as fault:
            report.append(fault)
    for name, text_of_it, found in sources:
        sidebars += [_item(one, pages, name, text_of_it, report) for one in found]
    navbar = website.get("navbar", {})
    entries = [*navbar.get("left", []), *navbar.get("right", [])]
    variables = yaml.safe_load((root / VARIABLES).read_text()) if (root / VARIABLES).exists() else {}
    resources = config["project"].get("resources", [])
    return Project(
        root=root,
        website=website,
        html=config["format"]["html"],
        bibliography=config.get("bibliography"),
        resources=tuple(path for glob in resources for path in _glob(root, glob)),
        variables={key: str(value) for key, value in variables.items()},
        pages=pages,
        navbar=tuple(_item(entry, pages, CONFIG, text, report) for entry in entries),
        sidebars=tuple(sidebars),
    )


def _yaml(root: Path, name: Path, kind: str, report: list[Fault]) -> tuple[str, dict[str, Any]]:
    if not (root / name).is_file():
        raise Fault(name, 1, "this file is missing; `python3 dev.py site` generates what it can")
    text = (root / name).read_text(encoding="utf-8")
    value = yaml.safe_load(text) or {}
    report.extend(schema.check(kind, text, value, name))
    return text, value


def _glob(root: Path, pattern: str) -> list[Path]:
    return sorted(path.relative_to(root) for path in root.glob(pattern) if path.is_file())


def _matches(root: Path, patterns: list[str], report: list[Fault]) -> Iterator[Path]:
    for pattern in patterns:
        found = _glob(root, pattern)
        if not found and "*" not in pattern:
            report.append(Fault(CONFIG, 1, f"render: there is no page {pattern}"))
        yield from (path for path in found if not path.name.startswith("_"))


def _item(
    entry: Any, pages: dict[str, Page], source: Path, text: str, report: list[Fault]
) -> Item:
    """Turn one entry of a navbar or sidebar, in any of Quarto's spellings, into an Item."""
    if isinstance(entry, str):
        entry = {"href": entry}
    href = entry.get("href") or entry.get("file")
    section = entry.get("section")
    if section in pages:
        href, section = section, None
    page = pages.get(href or "")
    if href and page is None and "://" not in href:
        line = line_of(href, text) or 1
        report.append(Fault(source, line, f"the navigation lists {href}, which is no page"))
    words = section or entry.get("text") or entry.get("title") or (title_of(page) if page else "")
    contents = tuple(_item(one, pages, source, text, report) for one in entry.get("contents", []))
    return Item(str(words or entry.get("id", "")), href, contents)
