"""Read `_quarto.yml` and the pages that it lists."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from tools.pages import schema
from tools.pages.faults import Fault
from tools.pages.pages import Page, read_page

CONFIG = Path("_quarto.yml")


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

    def trail(self, href: str) -> list[Item]:
        """Return the path from this entry down to the page; empty if there is none."""
        below = next((way for item in self.contents if (way := item.trail(href))), [])
        return [self, *below] if below or self.href == href else []


@dataclass(frozen=True)
class Project:
    """The configuration, every page, and the navigation."""

    root: Path
    website: dict[str, Any]
    html: dict[str, Any]
    bibliography: str | None
    resources: list[str]
    later: list[str]
    """Patterns of resources that are not built yet, such as notebooks."""
    variables: dict[str, str]
    pages: dict[str, Page]
    navbar: list[Item]
    sidebars: list[Item]


def title_of(page: Page) -> str:
    """Return the title, or else the first heading, or else the file's name."""
    headings = (line[2:].split("{")[0] for line in page.source.split("\n") if line[:2] == "# ")
    return str(page.meta.get("title") or next(headings, page.path.stem)).strip(" `")


def load(root: Path, report: list[Fault]) -> Project:
    """Read the project, and add its mistakes to ``report``."""
    config = _read(root, CONFIG, "project", report)
    if report:
        raise report.pop()  # nothing can be built from half a configuration
    pages: dict[str, Page] = {}
    for name in _glob(root, config["project"]["render"], report):
        try:
            pages[name] = read_page(Path(name), root)
        except Fault as fault:
            report.append(fault)
    website: dict[str, Any] = config["website"]
    sidebars = _items(website["sidebar"], pages, root, CONFIG, report)
    for more in map(Path, config.get("metadata-files", [])):
        extra = _read(root, more, "metadata-file", report)
        sidebars += _items(extra["website"].pop("sidebar", []), pages, root, more, report)
        website |= extra["website"]
    resources = config["project"].get("resources", [])
    return Project(
        root=root,
        website=website,
        html=config["format"]["html"],
        bibliography=next(iter(_glob(root, [config["bibliography"]], report)), None),
        resources=_glob(root, resources, report),
        later=[name.lstrip("/") for name in resources if not any(root.glob(name.lstrip("/")))],
        variables=_read(root, Path("_variables.yml"), "variables", report),
        pages=pages,
        navbar=_items(website["navbar"]["left"], pages, root, CONFIG, report),
        sidebars=sidebars,
    )


def _read(root: Path, name: Path, kind: str, report: list[Fault]) -> dict[str, Any]:
    if not (root / name).is_file():
        raise Fault(name, 1, "this file is missing: run `python3 dev.py api`")
    text = (root / name).read_text(encoding="utf-8")
    value = yaml.safe_load(text) or {}
    report.extend(schema.check(kind, text, value, name))
    return dict(value)


def _glob(root: Path, patterns: list[str], report: list[Fault]) -> list[str]:
    names: list[str] = []
    for pattern in patterns:
        # As in a .gitignore, a slash in front means the project's folder and no other.
        found = sorted(path for path in root.glob(pattern.lstrip("/")) if path.is_file())
        names += [path.relative_to(root).as_posix() for path in found if path.name[0] != "_"]
        if not found and "*" not in pattern:
            report.append(Fault(CONFIG, _line(root, CONFIG, pattern), f"there is no {pattern}"))
    return names


def _items(
    entries: list[Any], pages: dict[str, Page], root: Path, source: Path, report: list[Fault]
) -> list[Item]:
    """Convert entries of a navbar or sidebar, in any of Quarto's forms, to Items."""
    items = []
    for given in entries:
        entry: dict[str, Any] = {"href": given} if isinstance(given, str) else given
        href, text = entry.get("href"), entry.get("section") or entry.get("text")
        if href and href not in pages:
            message = f"the navigation lists {href}, which is no page"
            report.append(Fault(source, _line(root, source, href), message))
        text = text or (title_of(pages[href]) if href in pages else "")
        below = _items(entry.get("contents", []), pages, root, source, report)
        items.append(Item(text, href, tuple(below)))
    return items


def _line(root: Path, source: Path, needle: str) -> int:
    lines = (root / source).read_text(encoding="utf-8").split("\n")
    return next((i for i, line in enumerate(lines, 1) if needle in line), 1)
