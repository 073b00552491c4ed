"""Builds the whole preview: every page, its frame, the search index, and the check of all links."""

from __future__ import annotations

import base64
import json
import posixpath
import re
import shutil
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import jinja2

from tools.preview import npm
from tools.preview.faults import Fault, line_of
from tools.preview.lint import SHORTCODE, lint
from tools.preview.pages import Page
from tools.preview.project import Item, Project, is_generated, title_of
from tools.preview.render import HERE, render

WORKERS = 2


def build(project: Project, out: Path, only: list[str], say: Callable[[str], None]) -> list[Fault]:
    """Write the site to ``out`` and return every fault found on the way."""
    faults: list[Fault] = []
    pages = {href: page for href, page in project.pages.items() if not only or href in only}
    done: dict[str, dict[str, Any]] = {}

    def one(href: str) -> None:
        start, page = time.perf_counter(), project.pages[href]
        found = list(lint(page, project.variables, generated=is_generated(page)))
        faults.extend(found)
        try:
            done[href] = render(page, project)
        except Fault as fault:
            faults.append(fault)
        except ExceptionGroup as group:
            faults.extend(group.exceptions)
        say(f"[{len(done):3}/{len(pages)}] {href}  {time.perf_counter() - start:.1f} s")

    with ThreadPoolExecutor(WORKERS) as pool:
        list(pool.map(one, pages))
    faults += links(project, done, complete=not only)
    write(project, done, out)
    return sorted(set(faults), key=lambda fault: (str(fault.path), fault.line))


def html_path(href: str) -> str:
    """Return where a page is written, or any other address as it is."""
    return href.removesuffix(".qmd") + ".html" if href.endswith(".qmd") else href


def links(project: Project, done: dict[str, dict[str, Any]], *, complete: bool) -> Iterator[Fault]:
    """Check every link and image of every page, and that a reader can get to every page."""
    files = {path.as_posix() for path in project.resources}
    anchors = {html_path(href): set(value["ids"]) for href, value in done.items()}
    known = {html_path(href) for href in project.pages}
    nav = [item for top in (*project.navbar, *project.sidebars) for item in top.pages()]
    reached = {html_path(item.href) for item in nav if item.href} | {"index.html", "404.html"}
    for href, value in done.items():
        here, page = html_path(href), project.pages[href]

        def fault(target: str, message: str, page: Page = page) -> Fault:
            spelt = (target, target.replace(".html", ".qmd"), "/" + target.replace(".html", ".qmd"))
            lines = (line_of(text.lstrip("./"), page.source) for text in spelt if text)
            return Fault(page.path, next((line for line in lines if line), 1), message)

        folder = posixpath.dirname(here)
        images = {posixpath.join(folder, name) for name in value["images"]}
        for name in value["unnamed"]:
            yield fault(name, f"image without alt text: {name}")
        for tag, target in value["links"]:
            address, _, anchor = target.partition("#")
            if ":" in address:
                if tag != "a" and not address.startswith("data:"):
                    yield fault(target, f"a request to another host: {address}")
                continue
            path = posixpath.normpath(posixpath.join(folder, address))
            path = here if not address else path
            reached.add(path)
            if path in anchors and anchor and anchor not in anchors[path]:
                yield fault(target, f"dead anchor: {target}")
            elif path not in known | files | images:
                yield fault(target, f"broken link: {target}")
    if complete:
        for href in project.pages:
            if html_path(href) not in reached:
                yield Fault(Path(href), 1, "no navigation and no link leads to this page")


def write(project: Project, done: dict[str, dict[str, Any]], out: Path) -> None:
    """Write pages, images, resources, browser files and the search index."""
    loader = jinja2.FileSystemLoader(HERE / "templates")
    environment = jinja2.Environment(loader=loader, autoescape=True, trim_blocks=True)
    template = environment.get_template("page.html")
    assets = [*npm.files(project.root / "build/npm"), *(HERE / "static").iterdir()]
    for asset in assets:
        _copy(asset, out / "site_libs" / asset.name)
    own = [project.html["css"], project.website["favicon"], "docs/assets/site.js"]
    for name in [*own, *map(str, project.resources)]:
        _copy(project.root / name, out / name)
    index = []
    for href, value in done.items():
        page, target = project.pages[href], out / html_path(href)
        target.parent.mkdir(parents=True, exist_ok=True)
        frame = _frame(project, page, href)
        target.write_text(template.render(value | frame, project=project), encoding="utf-8")
        _copy(project.root / href, out / f"{href}.txt")
        for name, data in value["images"].items():
            (target.parent / name).parent.mkdir(exist_ok=True)
            (target.parent / name).write_bytes(base64.b64decode(data))
        for part in value["sections"]:
            index.append([html_path(href), part["id"], title_of(page), part["title"], part["text"]])
    text = f"window.searchIndex = {json.dumps(index, ensure_ascii=False)};\n"
    (out / "site_libs/search-index.js").write_text(text, encoding="utf-8")


def _copy(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(source, target)


def _frame(project: Project, page: Page, href: str) -> dict[str, Any]:
    """Return what stands around the body of one page."""
    root = "../" * href.count("/")
    sidebar = next((bar for bar in project.sidebars if bar.holds(href)), None)
    order = list(sidebar.pages()) if sidebar else []
    at = next((i for i, item in enumerate(order) if item.href == href), -1)

    def address(target: str) -> str:
        return target if "://" in target else root + html_path(target)

    def words(text: str) -> str:
        text = SHORTCODE.sub(lambda code: project.variables.get(code[1][4:].strip(), ""), text)
        return re.sub(r"\[([^]]+)\]\(([^)]+)\)", _link, text)

    def _link(found: re.Match[str]) -> str:
        return f'<a href="{address(found[2].lstrip("/"))}">{found[1]}</a>'

    footer = project.website.get("page-footer", {})
    return {
        "root": root,
        "href": href,
        "meta": page.meta,
        "title": title_of(page),
        "address": address,
        "sidebar": sidebar,
        "crumbs": list(_trail(sidebar, href))[1:] if sidebar else [],
        "before": order[at - 1] if at > 0 else None,
        "after": order[at + 1] if 0 <= at < len(order) - 1 else None,
        "footer": {side: words(footer.get(side, "")) for side in ("left", "center", "right")},
        "cards": [(one, project.pages[one]) for one in _listed(page)],
        "diagrams": any(cell.language == "mermaid" for cell in page.cells),
    }


def _trail(item: Item, href: str) -> Iterator[Item]:
    """Yield the way from a sidebar's top down to the page."""
    if item.holds(href):
        yield item
        for below in item.contents:
            yield from _trail(below, href)


def _listed(page: Page) -> list[str]:
    names = page.meta.get("listing", {}).get("contents", [])
    return [posixpath.normpath(posixpath.join(page.path.parent.as_posix(), one)) for one in names]
