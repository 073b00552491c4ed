"""The results of a page's cells where Quarto looks for frozen ones, so that it runs no cell.

They are written before each render with ``--use-freezer``, and Quarto checks that its page is the
same. A plain ``quarto render`` reads none, and runs the cells.
"""

from __future__ import annotations

import base64
import hashlib
import json
from pathlib import Path

from tools.dev.cleaning import remove
from tools.pages.cache import run
from tools.pages.compose import Composer
from tools.pages.pages import Page
from tools.pages.project import Project

FREEZER = Path(".quarto/_freeze")


def write(page: Page, project: Project) -> None:
    """Write the page with the outputs of its cells, and its figures."""
    composer = Composer(page, run(page, project.root), project.variables)
    folder = project.root / FREEZER / page.path.with_suffix("")
    figures = f"{page.path.stem}_files"
    remove(folder)  # a figure that is gone must not stay behind
    text = (project.root / page.path).read_text(encoding="utf-8")
    result = {
        "engine": "jupyter",
        "markdown": f"---{page.meta_text}\n---\n\n{composer.markdown}\n",
        "supporting": [figures],
        "filters": [],
        "includes": {},
    }
    frozen = {"hash": hashlib.md5(text.encode(), usedforsecurity=False).hexdigest()}
    _write(folder / "execute-results/html.json", json.dumps(frozen | {"result": result}).encode())
    for name, data in composer.images.items():
        _write(folder / Path(name).relative_to(figures), base64.b64decode(data))


def _write(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
