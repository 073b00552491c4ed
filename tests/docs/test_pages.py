"""Every page's cells run, in order, in a kernel of their own: one test per page."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from tests.conftest import ROOT
from tools.dev import publish
from tools.dev.lock import alone
from tools.pages.cache import run
from tools.pages.faults import Fault
from tools.pages.pages import Cell, read_page

PAGES = sorted(
    path.relative_to(ROOT)
    for path in [*ROOT.glob("*.qmd"), *(ROOT / "docs").rglob("*.qmd")]
    if "api" not in path.relative_to(ROOT).parts
)


def test_there_are_pages() -> None:
    assert any(path.name == "index.qmd" for path in PAGES)


def test_percent_signs_stand_close() -> None:
    """One style everywhere, which is also that of Python's ``.0%``."""
    apart = re.compile(r"^.*[0-9`}] %(?=[\s.,;:)|\"'<]).*$", re.MULTILINE)
    found = [
        f"{page}: {line}"
        for page in PAGES
        for line in apart.findall((ROOT / page).read_text(encoding="utf-8"))
        if " % (" not in line
    ]
    assert not found, "\n".join(found)


def test_the_navigation_calls_pages_by_their_titles() -> None:
    """A label of its own would be a second name for the page."""
    text = (ROOT / "_quarto.yml").read_text(encoding="utf-8")
    entries = [*yaml.safe_load(text)["website"]["sidebar"]]
    labeled = []
    while entries:
        entry = entries.pop()
        if isinstance(entry, dict):
            entries += entry.get("contents", [])
            labeled += [entry] if {"href", "text"} <= set(entry) else []
    assert not labeled


@pytest.fixture(scope="module")
def reference() -> None:
    """The generated pages' index of formulas, which a page reads."""
    with alone(publish.LOCK, "building the site"):
        publish.api()


@pytest.mark.usefixtures("reference")
@pytest.mark.parametrize("path", PAGES, ids=str)
def test_cells_run(path: Path) -> None:
    """Without an error or a warning. The site shows the outputs of the same run."""
    page = read_page(path, ROOT)
    try:
        results = run(page, ROOT)
    except Fault as fault:
        pytest.fail(str(fault), pytrace=False)
    for i, part in enumerate(page.parts):
        if isinstance(part, Cell) and "warning" not in part.options:
            written = [o["text"] for o in results.get(str(i), []) if o.get("name") == "stderr"]
            assert not written, f"{path}:{part.line}: the cell writes to stderr"
        if isinstance(part, Cell):
            shown = [str(o.get("text", "")) for o in results.get(str(i), [])]
            assert "✗" not in "".join(shown), f"{path}:{part.line}: printed is not what is computed"
