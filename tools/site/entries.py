"""The pages of the site in the order of its navigation, each with a title and a description."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tools.pages.links import html_path
from tools.pages.project import Project, title_of

REFERENCE = "API reference"
START = "Start"


@dataclass(frozen=True)
class Entry:
    """One page as a search engine or a messenger shows it."""

    path: str
    title: str
    description: str
    section: str

    @property
    def depth(self) -> int:
        """Number of folders above the page."""
        return self.path.count("/")


def entries(project: Project) -> list[Entry]:
    """Return every page except the one for missing pages; pages without navigation come last."""
    sections = dict(_sections(project))
    order = {href: i for i, href in enumerate(sections)}
    hrefs = sorted(project.pages, key=lambda href: (order.get(href, len(order)), href))
    return [
        Entry(
            html_path(href),
            title_of(project.pages[href]),
            str(project.pages[href].meta["description"]),
            sections.get(href, REFERENCE),
        )
        for href in hrefs
        if href != "404.qmd"
    ]


def _sections(project: Project) -> Iterator[tuple[str, str]]:
    """Yield each page of the navigation with the name of its section."""
    yield "index.qmd", START
    for item in project.navbar:
        if item.href and item.href.count("/") < 2:
            yield item.href, START
    for bar in project.sidebars:
        for item in bar.contents:
            for page in item.pages():
                if page.href and page.href.startswith("docs/api/"):
                    yield page.href, REFERENCE
                elif page.href:
                    yield page.href, item.text if item.contents else START
