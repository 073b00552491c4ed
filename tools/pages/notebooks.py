"""``python -m tools.pages.notebooks``: each tutorial as a notebook to download."""

from __future__ import annotations

import argparse
import base64
import html
import os
import posixpath
import re
import sys
from pathlib import Path
from typing import Any

from nbformat import v4, validate, write

from tools.pages.cache import run
from tools.pages.faults import Fault
from tools.pages.lint import insert
from tools.pages.pages import INLINE, Cell, Page
from tools.pages.project import Project, load

FOLDER = Path("docs/tutorials")
KINDS = {"fig": "Figure", "tbl": "Table", "eq": "Equation"}
LABEL = re.compile(r"(?:label: |\{#)((fig|tbl|eq)-[\w-]+)")
CALLOUT = re.compile(
    r'^:{3,} *\{\.callout-(\w+)(?:title="(?P<title>[^"]*)"|"[^"]*"|[^}"])*\}\s*'
    r"(?:^#+ (?P<heading>.*)\n)?",
    re.MULTILINE,
)
DIAGRAM = re.compile(
    r"^::: \{#(?P<label>fig-[\w-]+)\}\n+```\{=html\}\n(?P<svg><svg .*?</svg>)\n```\n+"
    r"(?P<caption>.*?)\n:::$",
    re.MULTILINE | re.DOTALL,
)
INSTALL = """\
%pip install --quiet {site}dist/{wheel}
import matplotlib.pyplot as plt

plt.style.use("mlsysim.viz.figures")"""
INSTALLED = """\
# Install the package that this page was written with once, from the site that the page is on:
#     %pip install ADDRESS-OF-THE-SITE/dist/{wheel}
import matplotlib.pyplot as plt

import mlsysim

plt.style.use("mlsysim.viz.figures")
print("mlsysim", mlsysim.__version__)"""


def notebook(page: Page, project: Project) -> Any:
    """Return the page as a notebook; its sentences keep the numbers of the page's own run."""
    address = os.environ.get("MLSYSIM_SITE_URL") or project.website.get("site-url")
    site = (address or "../" * (len(page.path.parts) - 1)).rstrip("/") + "/"
    numbers = _numbers(page)
    results = run(page, project.root)
    about = f"# {page.meta.get('title', '')}\n\n{page.meta.get('subtitle', '')}".strip()
    sources = [
        (
            "code",
            (INSTALL if address else INSTALLED).format(site=site, wheel=project.variables["wheel"]),
        )
    ]
    sources.append(("markdown", about))
    for i, part in enumerate(page.parts):
        if isinstance(part, Cell):
            sources.append(("code", part.code))
            if caption := part.options.get("fig-cap"):
                number = numbers.get(part.options.get("label", ""), "")
                sources.append(("markdown", f"*{number}: {caption}*"))
        else:
            *pieces, last = INLINE.split(part.text)
            values = results.get(str(i), [])
            text = "".join(a + b for a, b in zip(pieces[::2], values, strict=True)) + last
            text = insert(project.variables, text)
            sources.append(("markdown", _markdown(text, numbers, page.path.parent, site)))
    return _notebook([(kind, text.strip("\n")) for kind, text in sources if text.strip()])


def _numbers(page: Page) -> dict[str, str]:
    """Count figures, tables and equations as the page does."""
    counts, numbers = dict.fromkeys(KINDS, 0), {}
    for label, kind in LABEL.findall(page.source):
        counts[kind] += 1
        numbers[label] = f"{KINDS[kind]} {counts[kind]}"
    return numbers


def _markdown(text: str, numbers: dict[str, str], folder: Path, site: str) -> str:
    """Write Quarto's Markdown as a notebook shows it."""

    def title(found: re.Match[str]) -> str:
        return f"**{found[1].capitalize()}: {found['title'] or found['heading'] or ''}**\n\n"

    def address(found: re.Match[str]) -> str:
        path = posixpath.normpath(posixpath.join(folder.as_posix(), found[1].lstrip("/")))
        return f"]({site}{path}.html{found[2] or ''})"

    def diagram(found: re.Match[str]) -> str:
        # Notebooks show no SVG among their words, but a picture with its own background.
        words = re.search(r'aria-label="([^"]*)"', found["svg"])
        root = '<svg xmlns="http://www.w3.org/2000/svg" style="background: #fdfdfc" width="440" '
        picture = base64.b64encode(found["svg"].replace("<svg ", root, 1).encode()).decode()
        caption = f"*{numbers[found['label']]}: {found['caption']}*"
        alt = html.unescape(words[1]) if words else ""
        return f"![{alt}](data:image/svg+xml;base64,{picture})\n\n{caption}"

    text = DIAGRAM.sub(diagram, text)
    text = re.sub(r"^\[Download this page[^\n]*\n", "", text, flags=re.MULTILINE)
    text = CALLOUT.sub(title, text).replace(": **", "**")
    text = re.sub(r"^:{3,}.*\n?", "", text, flags=re.MULTILINE)
    text = re.sub(
        r"\s*\$\$ *\{#(eq-[\w-]+)\}", lambda n: rf" \\tag{{{numbers[n[1]][9:]}}} $$", text
    )
    text = re.sub(r"@((?:fig|tbl|eq)-[\w-]+)", lambda n: numbers.get(n[1], n[1]), text)
    text = re.sub(r"[ \t]*\{[#.][^}\n]*\}", "", text)
    text = re.sub(r"\[@([\w-]+)[^]]*\]", r"(\1)", text)
    return re.sub(r"\]\(([^)\s:]+)\.qmd(#[^)]*)?\)", address, text)


def _notebook(sources: list[tuple[str, str]]) -> Any:
    cells = []
    for i, (kind, text) in enumerate(sources):
        make = v4.new_code_cell if kind == "code" else v4.new_markdown_cell
        # The same page gives the same bytes: no random names.
        cells.append(make(text, id=f"cell-{i}"))  # type: ignore[no-untyped-call]
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    metadata = {"kernelspec": kernel, "language_info": {"name": "python"}}
    made = v4.new_notebook(cells=cells, metadata=metadata)  # type: ignore[no-untyped-call]
    validate(made)
    return made


def main() -> int:
    """Write the notebooks beside their pages."""
    parser = argparse.ArgumentParser(prog="python -m tools.pages.notebooks", description=__doc__)
    parser.add_argument("--root", type=Path, default=Path(), help="the project (default: here)")
    root = parser.parse_args().root.resolve()
    try:
        project = load(root, [])
        for page in project.pages.values():
            if page.path.parent == FOLDER and page.path.stem != "index":
                write(notebook(page, project), (root / page.path).with_suffix(".ipynb"))  # type: ignore[no-untyped-call]
    except Fault as fault:
        print(fault, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
