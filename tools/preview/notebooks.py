"""``python -m tools.preview.notebooks``: each tutorial as a notebook to download."""

from __future__ import annotations

import argparse
import posixpath
import re
import sys
from pathlib import Path
from typing import Any

from nbformat import validate
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, writes

from tools.preview.compose import insert
from tools.preview.faults import Fault
from tools.preview.pages import INLINE, Page, Text
from tools.preview.project import Project, load
from tools.preview.render import run

PAGES = Path("docs/tutorials")
SKIPPED = {"index"}
TITLED = re.compile(r'^:::+\s*\{\.callout-(\w+)(?:[^}]*?title="([^"]*)")?[^}]*\}\s*$', re.M)


def notebook(page: Page, project: Project) -> Any:
    """Return the page as a notebook; its sentences keep the numbers of the page's own run."""
    results = run(page, project.root)
    up = "../" * (len(page.path.parts) - 1)
    site = project.website.get("site-url", "").rstrip("/") + "/" or up
    site = site if site != "/" else up
    install = f"%pip install {site}dist/{project.variables['wheel']}"
    cells: list[Any] = [new_code_cell(install)]  # type: ignore[no-untyped-call]
    title = f"# {page.meta.get('title', page.path.stem)}\n\n{page.meta.get('description', '')}"
    cells.append(new_markdown_cell(title))  # type: ignore[no-untyped-call]
    for i, part in enumerate(page.parts):
        if isinstance(part, Text):
            text = _markdown(part, results.get(str(i), []), project, page)
            made = new_markdown_cell(text) if text else None  # type: ignore[no-untyped-call]
        elif part.language == "mermaid":
            made = new_markdown_cell(f"```mermaid\n{part.code}\n```")  # type: ignore[no-untyped-call]
        else:
            made = new_code_cell(part.code.strip("\n"))  # type: ignore[no-untyped-call]
        if made:
            made["id"] = f"part-{i}"
            cells.append(made)
    cells[0]["id"], cells[1]["id"] = "install", "title"
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    metadata = {"kernelspec": kernel, "language_info": {"name": "python"}}
    return new_notebook(cells=cells, metadata=metadata)  # type: ignore[no-untyped-call]


def _markdown(part: Text, values: list[str], project: Project, page: Page) -> str:
    """Write Quarto's Markdown as a notebook shows it."""
    *pieces, last = INLINE.split(part.text)
    text = "".join(a + b for a, b in zip(pieces[::2], values, strict=True)) + last
    text = TITLED.sub(lambda found: f"**{found[2] or found[1].capitalize()}**\n", text)
    text = re.sub(r"^:::.*\n?", "", insert(project.variables, text), flags=re.M)
    text = re.sub(r"\[?@(fig|tbl|eq)-[\w-]+\]?", lambda found: NAMES[found[1]], text)
    text = re.sub(r"[ \t]*\{[#.][^}\n]*\}|\[Download this page[^\n]*\n", "", text)
    text = re.sub(r"\[@([\w-]+)[^]]*\]", r"(\1)", text)
    here = page.path.parent.as_posix()

    def address(found: re.Match[str]) -> str:
        path = posixpath.normpath(posixpath.join(here, found[1].lstrip("/")))
        return f"]({posixpath.relpath(path, here)}.html{found[2] or ''})"

    return re.sub(r"\]\(([^)\s:]+)\.qmd(#[^)]*)?\)", address, text).strip()


NAMES = {"fig": "the figure", "tbl": "the table", "eq": "the equation"}


def main() -> int:
    """Write the notebooks beside their pages."""
    parser = argparse.ArgumentParser(prog="python -m tools.preview.notebooks", description=__doc__)
    parser.add_argument("--root", type=Path, default=Path(), help="the project (default: here)")
    root = parser.parse_args().root.resolve()
    try:
        project = load(root, [])
        for page in project.pages.values():
            if page.path.parent == PAGES and page.path.stem not in SKIPPED:
                made = notebook(page, project)
                validate(made)
                (root / page.path).with_suffix(".ipynb").write_text(writes(made), "utf-8")
    except Fault as fault:
        print(fault, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
