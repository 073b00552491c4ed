"""Which pages a change concerns: one page by itself, or all of them."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tools.dev import publish
from tools.dev.console import DevError
from tools.dev.fingerprint import changed_pages, digests, fingerprint
from tools.pages import RESTS_ON
from tools.pages.pages import read_page

PAGE = "---\ntitle: One\ndescription: A page.\n---\n\n# Heading\n\ntext\n"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    for name in ("docs/a.qmd", "docs/b.qmd"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(PAGE, encoding="utf-8")
    for name in ("docs/a.ipynb", "docs/site.css", "module.py", "_quarto.yml"):
        (tmp_path / name).write_text("one", encoding="utf-8")
    return tmp_path


def changed(project: Path, change: Callable[[], object]) -> list[str] | None:
    before = digests([project], project)
    change()
    return changed_pages(before, digests([project], project))


def write(path: Path, text: str) -> Callable[[], object]:
    return lambda: path.write_text(text, encoding="utf-8")


@pytest.mark.parametrize("new", ["words", "text\n\n```{python}\n# title: x\n```", "# Another"])
def test_the_text_of_a_page_concerns_that_page_only(project: Path, new: str) -> None:
    page = project / "docs/a.qmd"
    assert changed(project, write(page, PAGE.replace("text", new))) == ["docs/a.qmd"]


def test_a_notebook_that_follows_its_page_concerns_no_other(project: Path) -> None:
    def change() -> None:
        write(project / "docs/a.qmd", PAGE + "more")()
        write(project / "docs/b.qmd", PAGE + "more")()
        write(project / "docs/a.ipynb", "two")()

    assert changed(project, change) == ["docs/a.qmd", "docs/b.qmd"]


@pytest.mark.parametrize("name", ["docs/site.css", "module.py", "_quarto.yml", "docs/a.ipynb"])
def test_what_pages_rest_on_concerns_all(project: Path, name: str) -> None:
    assert changed(project, write(project / name, "two")) is None


@pytest.mark.parametrize("line", ["title: One", "description: A page."])
def test_what_other_pages_show_of_a_page_concerns_all(project: Path, line: str) -> None:
    page = project / "docs/a.qmd"
    assert changed(project, write(page, PAGE.replace(line, f"{line} More."))) is None


def test_a_heading_that_is_the_title_concerns_all(project: Path) -> None:
    page = project / "docs/a.qmd"
    page.write_text("# Heading\n\ntitle: text\n", encoding="utf-8")
    assert changed(project, write(page, "# Other\n\ntitle: text\n")) is None


def test_pages_that_come_and_go_concern_all(project: Path) -> None:
    assert changed(project, write(project / "docs/c.qmd", PAGE)) is None
    assert changed(project, (project / "docs/c.qmd").unlink) is None


def test_whatever_cells_read_is_known_to_change_their_pages() -> None:
    """The files of this project that a cell names: data, examples, the references."""
    watched = {path.relative_to(ROOT).as_posix() for path in publish.sources()}
    written = [path for path in ROOT.glob("docs/**/*.qmd") if "api" not in path.parts]
    for path in [ROOT / "index.qmd", *written]:
        page = read_page(path.relative_to(ROOT), ROOT)
        for cell in page.cells:
            for word in cell.code.replace("'", '"').split('"')[1::2]:
                if word == page.path.as_posix():
                    continue  # its own page is always known
                if "/" in word and (ROOT / word).is_file():
                    assert word.startswith(RESTS_ON), f"{page.path}: {word}"
                    assert word.startswith(tuple(watched)), f"{page.path}: {word}"
    there = [name for name in RESTS_ON if (ROOT / name).exists()]
    assert len({fingerprint([ROOT / name]) for name in there}) == len(there) >= 4


@pytest.fixture
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project in which a build does nothing but render."""
    paths = {"ROOT": "", "NEXT": "build/next", "LOCK": "build/lock"}
    for name, path in paths.items():
        monkeypatch.setattr(publish, name, tmp_path / path)
    monkeypatch.setattr("tools.dev.fingerprint.STAMPS", tmp_path / "build" / "stamps")
    monkeypatch.setattr(publish, "browser_files", lambda _: [])
    for name in ("generate", "finish"):
        monkeypatch.setattr(publish, name, lambda *_: None)
    return tmp_path


def test_the_last_good_site_stays_until_the_next_is_whole(
    elsewhere: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = elsewhere / "docs" / "a.qmd"
    page.parent.mkdir()

    def render(folder: Path) -> None:
        """Stand for a renderer that stops in the middle of a page with "broken" in it."""
        folder.mkdir(parents=True)
        text = page.read_text(encoding="utf-8")
        (folder / "index.html").write_text(text, encoding="utf-8")
        if "broken" in text:
            raise DevError("docs/a.qmd:1: broken")
        (folder / f"{text}.html").touch()

    monkeypatch.setattr(publish, "preview", render)
    built = elsewhere / "_preview"
    for text, shown in (("one", "one"), ("broken", "one"), ("broken", "one"), ("two", "two")):
        page.write_text(text, encoding="utf-8")
        if text == "broken":
            with pytest.raises(DevError, match=r"docs/a\.qmd:1"):
                publish.build(None)
        else:
            assert publish.build(None) == built
        assert {path.name for path in built.iterdir()} == {"index.html", f"{shown}.html"}
        assert (built / "index.html").read_text(encoding="utf-8") == shown
    monkeypatch.setattr(publish, "preview", lambda _: pytest.fail("nothing has changed"))
    publish.build(None)


def test_one_page_is_rendered_into_a_copy_of_the_last_site(
    elsewhere: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[str, ...]] = []
    executed: list[tuple[str, ...]] = []

    def execute(command: Sequence[str], *_: object) -> None:
        executed.append(tuple(command[5::2]))

    def render(_: Path, folder: Path, pages: tuple[str, ...]) -> None:
        asked.append(tuple(pages))
        assert (folder / "index.html").is_file() == bool(pages)
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "index.html").touch()

    monkeypatch.setattr(publish, "must", execute)
    monkeypatch.setattr(publish.quarto, "render", render)
    for name in ("docs/a.qmd", "docs/b.qmd"):
        (elsewhere / name).parent.mkdir(exist_ok=True)
        (elsewhere / name).write_text(PAGE, encoding="utf-8")
    program, another = elsewhere / "build" / "quarto", elsewhere / "build" / "another"
    for path in (program, another):
        path.parent.mkdir(exist_ok=True)
        path.touch()
    assert publish.build(program) == elsewhere / "_site"
    write(elsewhere / "docs/b.qmd", PAGE + "more")()
    publish.build(program)
    publish.build(program)
    write(elsewhere / "docs/b.qmd", PAGE.replace("One", "Two"))()
    publish.build(program)
    publish.build(program, force=True)
    publish.build(another)
    os.utime(another, ns=(0, 0))  # one that was put in its place
    publish.build(another)
    assert asked == executed == [(), ("docs/b.qmd",), (), (), (), ()]
