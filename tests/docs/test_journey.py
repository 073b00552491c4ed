"""Every tutorial and every lab is in each list of them, and none comes before what it needs."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tools.dev import publish
from tools.dev.lock import alone
from tools.pages.project import Project, load

TUTORIALS = Path("docs/tutorials")
ALL = {path.stem for path in (ROOT / TUTORIALS).glob("*.qmd")} - {"index"}
LABS = {path.stem for path in (ROOT / "docs/labs").glob("*.qmd")} - {"index"}


@pytest.fixture(scope="module")
def project() -> Project:
    with alone(publish.LOCK, "writing the API reference"):
        publish.api()
    return load(ROOT, [])


def groups(project: Project) -> dict[str, list[str]]:
    """The tutorials of each stage of the journey, in the order of the sidebar."""
    bars = [bar for bar in project.sidebars if bar.trail("docs/tutorials/index.qmd")]
    return {
        stage.text: [Path(page.href or "").stem for page in stage.pages()]
        for stage in bars[0].contents[0].contents
    }


def read(name: str) -> str:
    return (ROOT / "docs" / name).read_text(encoding="utf-8")


def section(text: str, anchor: str) -> str:
    """What a page says between a heading and the next of its level."""
    return re.split(r"^## ", text.partition(f" {{#{anchor}}}\n")[2], flags=re.MULTILINE)[0]


def test_the_sidebar_has_every_tutorial_once(project: Project) -> None:
    listed = [name for names in groups(project).values() for name in names]
    assert sorted(listed) == sorted(ALL)


def test_the_first_page_of_the_tutorials_has_the_order_of_the_sidebar(project: Project) -> None:
    stages = {}
    for part in re.split(r"^## ", read("tutorials/index.qmd"), flags=re.MULTILINE):
        found = re.findall(r"^- \[[^]]+\]\(([\w-]+)\.qmd\)\.", part, flags=re.MULTILINE)
        stages |= {part.partition("\n")[0]: found} if found else {}
    assert stages == groups(project)


def test_no_tutorial_needs_one_that_comes_later(project: Project) -> None:
    done: set[str] = set()
    for name in (name for names in groups(project).values() for name in names):
        # Addresses have dots too, but no space after them.
        sentence = re.search(r"You need\s.*?\.(?=\s)", read(f"tutorials/{name}.qmd"), re.DOTALL)
        assert sentence, name
        needed = set(re.findall(r"\]\(([\w-]+)\.qmd", sentence[0]))
        assert needed <= done, f"{name} needs {sorted(needed - done)}"
        done.add(name)


@pytest.mark.parametrize(
    ("page", "anchor"), [("for-teachers.qmd", "path"), ("for-teachers.qmd", "fourteen-weeks")]
)
def test_teachers_are_told_of_each_tutorial_and_each_lab(page: str, anchor: str) -> None:
    text = section(read(page), anchor)
    assert set(re.findall(r"\(tutorials/([\w-]+)\.qmd", text)) - {"index"} == ALL
    assert set(re.findall(r"\(labs/([\w-]+)\.qmd", text)) - {"index"} == LABS


def test_the_guide_to_solvers_says_where_each_is_taught() -> None:
    assert set(re.findall(r"\(tutorials/([\w-]+)\.qmd", read("solver-guide.qmd"))) == ALL


def test_teachers_find_both_notebooks_of_each_tutorial(project: Project) -> None:
    found = re.findall(
        r"\(tutorials/([\w.-]+\.ipynb)\)", section(read("for-teachers.qmd"), "notebooks")
    )
    names = [name for names in groups(project).values() for name in names]
    assert found == [f"{name}{end}" for name in names for end in (".student.ipynb", ".ipynb")]
