"""Check that the target of every link, anchor and image exists, and that every page is linked."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

from tools.pages.faults import Fault
from tools.pages.pages import Page
from tools.pages.project import Project


def html_path(href: str) -> str:
    """Return the path of a page's output."""
    return href.removesuffix(".qmd") + ".html" if href.endswith(".qmd") else href


def check(project: Project, done: dict[str, dict[str, Any]]) -> Iterator[Fault]:
    """Yield the faults of the rendered pages ``done``."""
    anchors = {html_path(href): set(value["ids"]) for href, value in done.items()}
    tops = (*project.navbar, *project.sidebars)
    reached = {html_path(item.href or "") for top in tops for item in top.pages()}
    for href, value in done.items():
        page, here = project.pages[href], posixpath.dirname(href)
        twice = {name for name in value["ids"] if value["ids"].count(name) > 1}
        yield from (_fault(page, name, f"the id {name} stands twice") for name in twice)
        for name in value["unnamed"]:
            yield _fault(page, name, f"image without alt text: {name}")
        images = {posixpath.join(here, name) for name in value["images"]}
        known = {*map(html_path, project.pages), *project.resources, *images}
        for tag, target in map(list, dict.fromkeys(map(tuple, value["links"]))):
            address, _, anchor = target.partition("#")
            path = posixpath.normpath(posixpath.join(here, address)) if address else html_path(href)
            reached.add(path)
            if ":" in address:
                if tag != "a" and not address.startswith("data:"):
                    yield _fault(page, target, f"a request to another host: {address}")
            elif path not in known and not any(fnmatch(path, name) for name in project.later):
                yield _fault(page, target, f"broken link: {target}")
            elif anchor and path in anchors and anchor not in anchors[path]:
                yield _fault(page, target, f"dead anchor: {target}")
    for href in project.pages if len(done) == len(project.pages) else ():
        if html_path(href) not in reached | {"index.html", "404.html"}:
            yield Fault(Path(href), 1, "no navigation and no link leads to this page")


def _fault(page: Page, target: str, message: str) -> Fault:
    spellings = (target, target.replace(".html", ".qmd"))
    lines = (page.line_of(text.lstrip("./")) for text in spellings if text)
    line = next((line for line in lines if line), None)
    return Fault(page.path, line or 1, message if line else f"{message} (a cell writes it)")
