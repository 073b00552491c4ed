"""Where Quarto is present: it and the preview agree on pages, headings and what cells print."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

from tests.conftest import ROOT, pages_of
from tools.dev import publish, quarto

pytestmark = pytest.mark.quarto

HEADINGS = {"h1", "h2", "h3", "h4"}
OUTPUT = "cell-output-stdout"
ERROR = re.compile(r'<div class="cell-output cell-output-error">(.*?)</div>', re.DOTALL)


class Contents(HTMLParser):
    """The headings and the printed outputs in the main part of a page."""

    def __init__(self, path: Path) -> None:
        super().__init__(convert_charrefs=True)
        self.headings: list[str] = []
        self.outputs: list[str] = []
        self._main = self._heading = False
        self._output = 0
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        classes = (dict(attrs).get("class") or "").split()
        if tag == "main":
            self._main = True
        elif tag in HEADINGS and self._main:
            self._heading = True
            self.headings.append("")
        elif tag == "div" and (self._output or OUTPUT in classes):
            if not self._output:
                self.outputs.append("")
            self._output += 1

    def handle_endtag(self, tag: str) -> None:
        if tag == "main":
            self._main = False
        elif tag in HEADINGS:
            self._heading = False
        elif tag == "div" and self._output:
            self._output -= 1

    def handle_data(self, data: str) -> None:
        if self._heading:
            self.headings[-1] = " ".join(f"{self.headings[-1]}{data}".split())
        if self._output:
            self.outputs[-1] += data


@pytest.fixture(scope="module")
def rendered(root: Path) -> Path:
    program = quarto.present()
    if program is None:
        pytest.skip(f"no Quarto here, so nothing was checked on _site; get it from {quarto.WHERE}")
    return publish.build(program)


@pytest.fixture(scope="module")
def preview() -> Path:
    return publish.build(None)


def pages(folder: Path) -> dict[str, Path]:
    return {path.relative_to(folder).as_posix(): path for path in pages_of(folder)}


def test_same_pages(rendered: Path, preview: Path) -> None:
    assert pages(rendered).keys() == pages(preview).keys()


def test_errors_that_pages_show_are_one_line(rendered: Path) -> None:
    shown = 0
    for path in pages(rendered).values():
        errors = ERROR.findall(path.read_text(encoding="utf-8"))
        assert not [error for error in errors if "Traceback" in error or str(ROOT) in error], path
        shown += len(errors)
    assert shown


def test_same_headings_and_outputs(rendered: Path, preview: Path) -> None:
    previews = pages(preview)
    for name, path in pages(rendered).items():
        published, other = Contents(path), Contents(previews[name])
        assert published.headings == other.headings, name
        assert published.outputs == other.outputs, name
