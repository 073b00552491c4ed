"""Builds the whole preview: every page and its frame, the files next to them, the search index."""

from __future__ import annotations

import base64
import json
import os
import re
import shutil
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import jinja2

from tools.pages import frozen, links
from tools.pages.faults import Fault
from tools.pages.links import html_path
from tools.pages.lint import insert, lint
from tools.pages.pages import Page
from tools.pages.project import Project, title_of
from tools.preview import npm
from tools.preview.render import HERE, render


def build(project: Project, out: Path, only: list[str], *, quiet: bool) -> list[Fault]:
    """Write the site to ``out`` and return every fault found on the way."""
    done, faults = _each(project, _chosen(project, only), render, quiet=quiet)
    faults.extend(links.check(project, done))
    _write(project, done, out)
    return faults


def freeze(project: Project, only: list[str], *, quiet: bool) -> list[Fault]:
    """Give Quarto the results of all cells, and return every fault found on the way."""
    with_cells = [href for href in _chosen(project, only) if project.pages[href].cells]
    return _each(project, with_cells, frozen.write, quiet=quiet)[1]


def _chosen(project: Project, only: list[str]) -> list[str]:
    return [href for href in project.pages if not only or href in only]


def _each(
    project: Project, pages: list[str], make: Callable[[Page, Project], Any], *, quiet: bool
) -> tuple[dict[str, Any], list[Fault]]:
    """Return what is made of each page, and every fault found on the way."""
    faults: list[Fault] = []
    done: dict[str, Any] = {}

    def one(href: str) -> None:
        start, page = time.perf_counter(), project.pages[href]
        faults.extend(lint(page, project.variables))
        try:
            done[href] = make(page, project)
        except Fault as fault:
            faults.append(fault)
        except ExceptionGroup as group:
            faults.extend(one for one in group.exceptions if isinstance(one, Fault))
        if not quiet:
            seconds = time.perf_counter() - start
            print(f"[{len(done):3}/{len(pages)}] {href}  {seconds:.1f} s", flush=True)

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        # The pages that take longest are those of the catalog, the last ones.
        list(pool.map(one, reversed(pages)))
    return done, faults


def _write(project: Project, done: dict[str, dict[str, Any]], out: Path) -> None:
    loader = jinja2.FileSystemLoader(HERE / "templates")
    environment = jinja2.Environment(loader=loader, autoescape=True, trim_blocks=True)
    if len(done) == len(project.pages) and (out / "site_libs/search-index.js").is_file():
        shutil.rmtree(out)  # a page that is gone must not stay behind
    template, index = environment.get_template("page.html"), []
    for asset in (*_libraries(project.root / "build/npm"), *(HERE / "static").iterdir()):
        _copy(asset, out / "site_libs" / asset.name)
    for name in (Path(member).name for _, members in npm.PACKAGES.values() for member in members):
        (out / "site_libs" / name).touch()  # without npm it is empty, and pages look plain
    own = [project.html["css"], project.website["favicon"], "docs/assets/site.js"]
    for name in [*own, *project.resources]:
        _copy(project.root / name, out / name)
    for href, value in done.items():
        page, target = project.pages[href], out / html_path(href)
        _copy(project.root / href, out / f"{href}.txt")
        text = template.render(value | _frame(project, page, href), project=project)
        target.write_text(text, encoding="utf-8")
        for name, data in value["images"].items():
            (target.parent / name).parent.mkdir(parents=True, exist_ok=True)
            (target.parent / name).write_bytes(base64.b64decode(data))
        index += [[html_path(href), title_of(page), *part] for part in value["sections"]]
    script = f"window.searchIndex = {json.dumps(index, ensure_ascii=False)};\n"
    (out / "site_libs/search-index.js").write_text(script, encoding="utf-8")


def _libraries(cache: Path) -> list[Path]:
    """What pages use from npm; nothing where its registry is out of reach."""
    try:
        return list(npm.files(cache))
    except OSError as error:
        print(f"The pages look plain: {error}", flush=True)
        return []


def _copy(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(source, target)


def _frame(project: Project, page: Page, href: str) -> dict[str, Any]:
    """Return what stands around the body of one page."""
    root = "../" * href.count("/")
    sidebar = next((bar for bar in project.sidebars if bar.trail(href)), None)
    order = [None, *(sidebar.pages() if sidebar else ()), None]
    at = next((i for i, item in enumerate(order) if item and item.href == href), 0)
    footer = project.website.get("page-footer", {})

    def words(side: str) -> str:
        text = insert(project.variables, footer.get(side, ""))
        link = r"\[([^]]+)\]\(/([^)]+?)(?:\.qmd)?\)"
        return re.sub(link, rf'<a href="{root}\2.html">\1</a>', text)

    return {
        "root": root,
        "href": href,
        "meta": page.meta,
        "title": title_of(page),
        "address": lambda target: root + html_path(target),
        "sidebar": sidebar,
        "crumbs": sidebar.trail(href)[1:] if sidebar else [],
        "before": order[at - 1] if at else None,
        "after": order[at + 1] if at else None,
        "footer": {side: words(side) for side in ("left", "center", "right")},
    }
