"""``python -m tools.pages.notebooks``: each tutorial as two notebooks to download.

``NAME.ipynb`` has everything that the page has, ``NAME.student.ipynb`` no answers.

If ``site-url`` gives the address of the site, a downloaded notebook links to the site and installs
the package from there. Otherwise, links within the site are plain text, and the package and the
course come from the wheels next to the notebook.
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
from tools.pages.pages import Cell, Page, split_page
from tools.pages.project import Project, load
from tools.pages.students import for_students

FOLDER = Path("docs/tutorials")
SUFFIX, STUDENT_SUFFIX = ".ipynb", ".student.ipynb"
KINDS = {"fig": "Figure", "tbl": "Table", "eq": "Equation"}
LABEL = re.compile(r"(?:label: |\{#)((fig|tbl|eq)-[\w-]+)")
EQUATION = re.compile(r"\s*\$\$ *\{#(eq-[\w-]+)\}")
REFERENCE = re.compile(r"@((?:fig|tbl|eq)-[\w-]+)")
CITED = re.compile(r"\[@([\w-]+)[^]]*\]")
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
%pip install --quiet {site}dist/{wheel} {site}dist/{course}
import matplotlib.pyplot as plt
import mlsysim

plt.style.use("mlsysim.viz.figures")
print("mlsysim", mlsysim.__version__)"""
INSTALL_FILE = """\
from pathlib import Path

package, course = Path("{wheel}"), Path("{course}")
if package.exists() and course.exists():
    %pip install --quiet {{package}} {{course}}
try:
    import mlsysim
    import mlsysim_course
except ModuleNotFoundError:
    raise ModuleNotFoundError(
        f"Download {{package}} and {{course}} from the page that this notebook is from, "
        f"put them into {{Path.cwd()}} and run this cell again."
    ) from None
import matplotlib.pyplot as plt

plt.style.use("mlsysim.viz.figures")
print("mlsysim", mlsysim.__version__)"""
COMPUTED = "*The numbers in the text were computed by mlsysim {version}.*"
UNLINKED = (
    "*This copy does not know the address of its site: links to its other pages are left out.*"
)


def with_numbers(page: Page, root: Path) -> Page:
    """Return the page with computed numbers in its sentences."""
    results = run(page, root)
    front = page.source.split("\n")[: page.parts[0].line - 1]
    texts = (
        part.source if isinstance(part, Cell) else part.with_values(results.get(str(i), []))
        for i, part in enumerate(page.parts)
    )
    return split_page(page.path, "\n".join([*front, *texts]))


def notebook(page: Page, project: Project) -> Any:
    """Return a page with computed numbers as a notebook."""
    address = project.website.get("site-url", "")
    site = f"{address}/" if address else ""
    numbers = numbers_of(page)
    install = (INSTALL if site else INSTALL_FILE).format(site=site, **project.variables)
    about = [f"# {page.meta.get('title', '')}", page.meta.get("subtitle", "")]
    about += [COMPUTED.format(**project.variables)]
    about += [] if site else [UNLINKED]
    sources = [("code", install), ("markdown", "\n\n".join(filter(None, about)))]
    for part in page.parts:
        if isinstance(part, Cell):
            sources.append(("code", part.code))
            if caption := part.options.get("fig-cap"):
                number = numbers.get(part.options.get("label", ""), "")
                sources.append(("markdown", f"*{number}: {caption}*"))
        else:
            text = insert(project.variables, part.text)
            sources.append(("markdown", _markdown(text, numbers, page.path, site)))
    return _notebook([(kind, text.strip("\n")) for kind, text in sources if text.strip()])


def numbers_of(page: Page) -> dict[str, str]:
    """Count figures, tables and equations as the page does."""
    counts, numbers = dict.fromkeys(KINDS, 0), {}
    for label, kind in LABEL.findall(page.source):
        counts[kind] += 1
        numbers[label] = f"{KINDS[kind]} {counts[kind]}"
    return numbers


def _markdown(text: str, numbers: dict[str, str], page: Path, site: str) -> str:
    """Convert Quarto's Markdown to the form for notebooks."""

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
    text = EQUATION.sub(lambda n: rf" \tag{{{numbers[n[1]][9:]}}} $$", text)
    text = REFERENCE.sub(lambda n: numbers.get(n[1], n[1]), text)
    text = re.sub(r"[ \t]*\{[#.][^}\n]*\}", "", text)
    text = CITED.sub(r"(\1)", text)
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
    """Write the notebooks next to their pages; return the mistakes of pages that have none."""

    def one(page: Page) -> Fault | None:
        try:
            whole = with_numbers(page, project.root)
        except Fault as fault:
            return fault
        for end, form in ((SUFFIX, whole), (STUDENT_SUFFIX, for_students(whole))):
            path = (project.root / page.path).with_suffix(end)
            write(notebook(form, project), path)  # type: ignore[no-untyped-call]
        return None

    pages = [page for page in project.pages.values() if page.path.parent == FOLDER]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
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
