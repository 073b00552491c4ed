"""Turns one page into its HTML, and remembers the result until something it rests on changes."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pypandoc

from tools.pages.cache import remember, run
from tools.pages.compose import Composer
from tools.pages.faults import Fault
from tools.pages.pages import Page
from tools.pages.project import Project, title_of
from tools.pages.scan import scan

HERE = Path(__file__).parent
NOTES = 'role="doc-endnotes">\n'
PANDOC = ["--from=markdown", "--to=html5", "--mathml", "--section-divs", "--wrap=none", "--toc"]


def render(page: Page, project: Project) -> dict[str, Any]:
    """Return the page's body, table of contents, images and what ``scan`` sees in it."""
    composer = Composer(page, run(page, project.root), project.variables)
    depth = page.meta.get("toc-depth", project.html.get("toc-depth", 3))
    meta: dict[str, Any] = {
        "title": title_of(page),
        "offset": "../" * (len(page.path.parts) - 1),
        "link-citations": True,
    }
    works = ""
    if project.bibliography:
        meta["bibliography"] = str(project.root / project.bibliography)
        works = Path(meta["bibliography"]).read_text(encoding="utf-8")

    def make() -> dict[str, Any]:
        command = [pypandoc.get_pandoc_path(), *PANDOC, f"--template={HERE}/templates/body.html"]
        # The filter takes the references to figures before citeproc would look for them.
        command += [f"--toc-depth={depth}", f"--lua-filter={HERE}/filter.lua", "--citeproc"]
        text = f"---\n{json.dumps(meta)}\n---\n\n{composer.markdown}"
        done = subprocess.run(command, input=text, capture_output=True, text=True, check=False)
        if faults := list(_faults(page, done.stderr.strip())):
            raise ExceptionGroup("pandoc", faults)
        toc, _, body = done.stdout.partition("<!-- body -->")
        body = body.replace(NOTES, f"{NOTES}<h2>Footnotes</h2>")
        return {"body": body, "toc": toc.strip(), **scan(body)}

    # The words only name the images, which change without them.
    made = remember(project.root, ["html", json.dumps(meta), composer.markdown, works], make)
    return {**made, "images": composer.images}


def _faults(page: Page, stderr: str) -> Iterator[Fault]:
    """Translate what the filter and pandoc complain about into lines of the page."""
    for warning in re.split(r"\n(?=FAULT\t|\[)", stderr) if stderr else []:
        message, needle = warning, ""
        if warning.startswith("FAULT\t"):
            _, needle, message = warning.split("\t", 2)
        elif named := re.search(r"citation (\S+) not found", warning):
            needle, message = f"@{named[1]}", f"unresolved citation @{named[1]}"
        elif quoted := re.search(r"TeX math (.*?)(?:, rendering.*)?$|'(.*?)'", warning, re.M):
            needle = quoted[1] or quoted[2]
        yield Fault(page.path, page.line_of(needle) or 1, " ".join(message.split()))
