"""Every page's cells run, in order, in a fresh namespace: one test a page."""

from __future__ import annotations

import ast
import re
import traceback
import types
import warnings
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import ROOT
from tools.dev import publish
from tools.pages.pages import INLINE, Cell, Text, read_page

PAGES = sorted(
    path.relative_to(ROOT)
    for path in [*ROOT.glob("*.qmd"), *(ROOT / "docs").rglob("*.qmd")]
    if "api" not in path.relative_to(ROOT).parts
)


def run(code: str, namespace: dict[str, Any], page: Path, line: int) -> None:
    """Execute code as if it stood at ``line`` of the page, so that tracebacks point there."""
    tree = ast.parse(code, str(page))
    ast.increment_lineno(tree, line - 1)
    exec(compile(tree, str(page), "exec"), namespace)


def explain(page: Path, error: BaseException, first_line: int) -> str:
    """File, line and source line of the last frame that lies in the page."""
    frames = [f for f in traceback.extract_tb(error.__traceback__) if f.filename == str(page)]
    line = frames[-1].lineno if frames else first_line
    if isinstance(error, SyntaxError) and error.lineno:
        line = first_line + error.lineno - 1
    source = (ROOT / page).read_text(encoding="utf-8").splitlines()[(line or 1) - 1]
    return f"{page}:{line}: {type(error).__name__}: {error}\n    {source.strip()}"


def runs(cell: Cell) -> bool:
    """Whether a cell runs when the page is rendered."""
    return cell.language == "python" and cell.options.get("eval", True) is True


def test_there_are_pages() -> None:
    assert any(path.name == "index.qmd" for path in PAGES)


@pytest.mark.parametrize("page", PAGES, ids=str)
def test_percent_signs_stand_close(page: Path) -> None:
    """One style everywhere, which is also that of Python's ``.0%``."""
    text = (ROOT / page).read_text(encoding="utf-8")
    apart = re.findall(r"^.*[0-9`}] %(?=[\s.,;:)|\"'<]).*$", text, flags=re.MULTILINE)
    assert not [line for line in apart if " % (" not in line]


@pytest.fixture(scope="module")
def reference() -> None:
    """The generated pages' index of formulas, which a page reads."""
    publish.api()


@pytest.mark.usefixtures("reference")
@pytest.mark.parametrize("page", PAGES, ids=str)
def test_cells_run(page: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import matplotlib.pyplot as plt

    monkeypatch.chdir(ROOT)
    # A module of its own, so that dataclasses and pickles made in a page find their home.
    home = types.ModuleType("__main__")
    namespace = home.__dict__ | {"display": lambda *_: None}
    for part in read_page(page, ROOT).parts:
        if isinstance(part, Text):
            check_inline(part, namespace, page)
        elif runs(part):
            run_cell(part, namespace, page)
    plt.close("all")


def run_cell(cell: Cell, namespace: dict[str, Any], page: Path) -> None:
    """Run one cell; a cell marked ``error: true`` has to raise."""
    expected = cell.options.get("error") is True
    with warnings.catch_warnings():
        if "warning" in cell.options:
            warnings.simplefilter("ignore")
        try:
            run(cell.code, namespace, page, cell.code_line)
        except Exception as error:
            if not expected:
                pytest.fail(explain(page, error, cell.code_line), pytrace=False)
        else:
            if expected:
                place = f"{page}:{cell.line}"
                pytest.fail(
                    f"{place}: the cell says `error: true` and did not raise", pytrace=False
                )


def check_inline(part: Text, namespace: dict[str, Any], page: Path) -> None:
    """Evaluate the expressions that stand in the prose."""
    for number, line in enumerate(part.text.split("\n"), part.line):
        for match in re.finditer(INLINE, line):
            try:
                eval(match[1], namespace)
            except Exception as error:
                where = f"{page}:{number}"
                text = f"{where}: {type(error).__name__}: {error}\n    {match[1]}"
                pytest.fail(text, pytrace=False)
