"""The pictures of the built site: they can be read on a phone, and read aloud."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.conftest import ROOT
from tools.pages.notebooks import notebook
from tools.pages.project import load

# CSS pixels: what a screen 390 px wide leaves for a figure, its smallest letters there, and the
# width of a column of text on a desktop.
PHONE, LETTERS, COLUMN = 345, 11, 608
POINT = 96 / 72
DIAGRAM = re.compile(r'<svg class="mls-diagram".*?</svg>', re.DOTALL)


def figures(site: Path) -> list[Path]:
    found = list(site.rglob("*_files/**/*.svg"))
    assert len(found) > 30
    return found


def diagrams(site: Path) -> list[tuple[str, ElementTree.Element]]:
    """Each drawing that is a part of its page."""
    found = [
        # Quarto writes the attribute as HTML has it, and browsers read both.
        (
            path.relative_to(site).as_posix(),
            ElementTree.fromstring(text.replace("viewbox", "viewBox")),
        )
        for path in sorted(site.rglob("*.html"))
        for text in DIAGRAM.findall(path.read_text(encoding="utf-8"))
    ]
    assert found
    return found


def text_sizes(figure: ElementTree.Element) -> Iterator[float]:
    """In points. Matplotlib draws letters of size 100, and scales each piece of text."""
    for element in figure.iter():
        if not (scale := re.search(r"scale\(([\d.]+) -\1\)", element.get("transform", ""))):
            continue
        # Exponents and indices are scaled once more.
        inner = [
            float(found[1])
            for child in element
            if (found := re.search(r"scale\(([\d.]+)\)", child.get("transform", "")))
        ]
        yield 100 * float(scale[1]) * min([1.0, *inner])


def test_letters_of_figures_are_large_enough_for_a_phone(built_site: Path) -> None:
    small = []
    for path in figures(built_site):
        figure = ElementTree.parse(path).getroot()
        width = float(figure.attrib["width"].removesuffix("pt"))
        sizes = list(text_sizes(figure))
        assert sizes, f"{path} has no text"
        if min(sizes) * PHONE / width < LETTERS:
            small.append(f"{path.relative_to(built_site)}: {min(sizes) * PHONE / width:.1f} px")
        assert width * POINT <= COLUMN, path
    assert not small


def test_letters_of_diagrams_are_large_enough_for_a_phone(built_site: Path) -> None:
    for page, diagram in diagrams(built_site):
        width = float(diagram.attrib["viewBox"].split()[2])
        assert float(diagram.attrib["font-size"]) * PHONE / width >= LETTERS, page


def test_diagrams_are_described(built_site: Path) -> None:
    for page, diagram in diagrams(built_site):
        assert diagram.get("role") == "img", page
        assert len(diagram.get("aria-label", "")) > 40, page


@pytest.mark.parametrize("name", ["distributed", "tensor-parallel", "serving_one_gpu"])
def test_notebooks_have_the_diagrams(built_site: Path, name: str) -> None:
    page = load(ROOT, []).pages[f"docs/tutorials/{name}.qmd"]
    words = "\n\n".join(c.source for c in notebook(page, load(ROOT, [])).cells)
    pictures = re.findall(
        r"^!\[.{40,}\]\(data:image/svg\+xml;base64,(.*)\)\n\n\*Figure \d+: [^*]+\*$",
        words,
        re.MULTILINE,
    )
    assert len(pictures) == page.source.count("mls-diagram") > 0
    for picture in pictures:
        root = ElementTree.fromstring(base64.b64decode(picture))
        assert root.tag == "{http://www.w3.org/2000/svg}svg"
    assert "=html" not in words
