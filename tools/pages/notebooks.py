"""``python -m tools.pages.notebooks``: each tutorial as a notebook to download.

A downloaded notebook knows the address of its site only where ``MLSYSIM_SITE_URL`` or ``site-url``
says it. It then links to the site and installs the package from there. Without it, links within
the site are plain text, and the package comes from its wheel, which lies next to the notebook.
"""

from __future__ import annotations

import argparse
import base64
import html
import os
import posixpath
import re
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from nbformat import v4, validate, write

from tools.pages.cache import run
from tools.pages.faults import Fault
from tools.pages.links import html_path
from tools.pages.lint import insert
from tools.pages.pages import INLINE, Cell, Page
from tools.pages.project import Project, load

FOLDER = Path("docs/tutorials")
WORKERS = 2
KINDS = {"fig": "Figure", "tbl": "Table", "eq": "Equation"}
LABEL = re.compile(r"(?:label: |\{#)((fig|tbl|eq)-[\w-]+)")
CALLOUT = re.compile(
    r'^:{3,} *\{\.callout-(\w+)(?:title="(?P<title>[^"]*)"|"[^"]*"|[^}"])*\}\s*'
    r"(?:^#+ (?P<heading>.*)\n)?",
    re.MULTILINE,
)
LINK = re.compile(r"(?<!!)\[((?:[^\[\]]|\[[^\[\]]*\])*)\]\(([^)\s:#]*)(#[^)\s]*)?\)")
DOWNLOAD = re.compile(r"^Download this page .*?\.(?:\n|$)", re.DOTALL | re.MULTILINE)
DIAGRAM = re.compile(
    r"^::: \{#(?P<label>fig-[\w-]+)\}\n+```\{=html\}\n(?P<svg><svg .*?</svg>)\n```\n+"
    r"(?P<caption>.*?)\n:::$",
    re.MULTILINE | re.DOTALL,
)
INSTALL = """\
%pip install --quiet {site}dist/{wheel}
import matplotlib.pyplot as plt

plt.style.use("mlsysim.viz.figures")"""
INSTALL_FILE = """\
from pathlib import Path

wheel = Path("{wheel}")
if wheel.exists():
    %pip install --quiet {{wheel}}
try:
    import mlsysim
except ModuleNotFoundError:
    raise ModuleNotFoundError(
        f"Download {{wheel}} from the page that this notebook is from, "
        f"put it into {{Path.cwd()}} and run this cell again."
    ) from None
import matplotlib.pyplot as plt

plt.style.use("mlsysim.viz.figures")
print("mlsysim", mlsysim.__version__)"""
UNLINKED = (
    "*This copy does not know the address of its site: links to its other pages are left out.*"
)


def notebook(page: Page, project: Project) -> Any:
    """Return the page as a notebook; its sentences keep the numbers of the page's own run."""
    address = os.environ.get("MLSYSIM_SITE_URL") or project.website.get("site-url")
    site = f"{address.rstrip('/')}/" if address else ""
    numbers = _numbers(page)
    results = run(page, project.root)
    install = (INSTALL if site else INSTALL_FILE).format(site=site, **project.variables)
    about = [f"# {page.meta.get('title', '')}", page.meta.get("subtitle", "")]
    about += [] if site else [UNLINKED]
    sources = [("code", install), ("markdown", "\n\n".join(filter(None, about)))]
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
            sources.append(("markdown", _markdown(text, numbers, page.path, site)))
    return _notebook([(kind, text.strip("\n")) for kind, text in sources if text.strip()])


def _numbers(page: Page) -> dict[str, str]:
    """Count figures, tables and equations as the page does."""
    counts, numbers = dict.fromkeys(KINDS, 0), {}
    for label, kind in LABEL.findall(page.source):
        counts[kind] += 1
        numbers[label] = f"{KINDS[kind]} {counts[kind]}"
    return numbers


def _markdown(text: str, numbers: dict[str, str], page: Path, site: str) -> str:
    """Write Quarto's Markdown as a notebook shows it."""

    def title(found: re.Match[str]) -> str:
        return f"**{found[1].capitalize()}: {found['title'] or found['heading'] or ''}**\n\n"

    def link(found: re.Match[str]) -> str:
        words, target, anchor = found.groups("")
        if not site:
            return words
        path = posixpath.normpath(posixpath.join("/", page.parent, target or page.name))[1:]
        return f"[{words}]({site}{html_path(path)}{anchor})"

    def diagram(found: re.Match[str]) -> str:
        # Notebooks show no SVG among their words, but a picture with its own background.
        words = re.search(r'aria-label="([^"]*)"', found["svg"])
        root = '<svg xmlns="http://www.w3.org/2000/svg" style="background: #fdfdfc" width="440" '
        picture = base64.b64encode(found["svg"].replace("<svg ", root, 1).encode()).decode()
        caption = f"*{numbers[found['label']]}: {found['caption']}*"
        alt = html.unescape(words[1]) if words else ""
        return f"![{alt}](data:image/svg+xml;base64,{picture})\n\n{caption}"

    text = DIAGRAM.sub(diagram, text)
    text = DOWNLOAD.sub("", text)
    text = CALLOUT.sub(title, text).replace(": **", "**")
    text = re.sub(r"^:{3,}.*\n?", "", text, flags=re.MULTILINE)
    text = re.sub(
        r"\s*\$\$ *\{#(eq-[\w-]+)\}", lambda n: rf" \\tag{{{numbers[n[1]][9:]}}} $$", text
    )
    text = re.sub(r"@((?:fig|tbl|eq)-[\w-]+)", lambda n: numbers.get(n[1], n[1]), text)
    text = re.sub(r"[ \t]*\{[#.][^}\n]*\}", "", text)
    text = re.sub(r"\[@([\w-]+)[^]]*\]", r"(\1)", text)
    return LINK.sub(link, text)


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


def faults(project: Project) -> list[Fault]:
    """Write the notebooks next to their pages; return what is wrong with those that have none."""

    def one(page: Page) -> Fault | None:
        try:
            found = notebook(page, project)
        except Fault as fault:
            return fault
        write(found, (project.root / page.path).with_suffix(".ipynb"))  # type: ignore[no-untyped-call]
        return None

    pages = [page for page in project.pages.values() if page.path.parent == FOLDER]
    with ThreadPoolExecutor(WORKERS) as pool:
        found = pool.map(one, [page for page in pages if page.path.stem != "index"])
    return [fault for fault in found if fault]


def main() -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(prog="python -m tools.pages.notebooks", description=__doc__)
    parser.add_argument("--root", type=Path, default=Path(), help="the project (default: here)")
    root = parser.parse_args().root.resolve()
    try:
        found = faults(load(root, []))
    except Fault as fault:
        found = [fault]
    for mistake in found:
        print(mistake, file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
