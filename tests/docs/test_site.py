"""The site builds; every public name has its place in the API reference, and every place exists."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import pytest

import mlsysim
from mlsysim.core import formulas  # noqa: F401 - fills the registry of formulas
from mlsysim.core.formula import FORMULAS

SOURCE = re.compile(
    r"<summary>Code: <code>([\w/.]+)</code>, lines? (\d+)(?:\u2013(\d+))?</summary>"
    r'\s*(?:<div class="code-copy-outer-scaffold">)?<div class="sourceCode" id="(\w+)-source"'
)


def shown(root: Path) -> dict[str, str]:
    """Each documented name and the address of its page."""
    text = (root / "docs" / "api" / "objects.json").read_text(encoding="utf-8")
    return dict(json.loads(text))


def test_the_site_builds(site_build: subprocess.CompletedProcess[str]) -> None:
    """The renderer names each mistake of a page with its file and line."""
    if site_build.returncode != 0:
        lines = (site_build.stdout + site_build.stderr).splitlines()
        words = [line for line in lines if not line.startswith("[")]  # without the progress
        pytest.fail("\n".join(words[-60:]), pytrace=False)


def test_every_public_name_has_a_page(built_site: Path, root: Path) -> None:
    missing = set(mlsysim.__all__) - shown(root).keys()
    assert not missing, f"add to docs/api/_quartodoc.yml: {sorted(missing)}"


@pytest.mark.usefixtures("built_site")
def test_every_formula_has_its_place_in_one_topic(root: Path) -> None:
    text = (root / "docs" / "api" / "topics.json").read_text(encoding="utf-8")
    parts = [part for topic in json.loads(text) for part in topic["parts"]]
    shown_formulas = sorted(name for part in parts for name in part["formulas"])
    assert shown_formulas == sorted(FORMULAS), "docs/api/_quartodoc.yml says what each topic has"


def test_every_name_has_its_code_in_a_fold(built_site: Path, root: Path) -> None:
    """The summary says where it is, and the lines that it names hold its definition."""
    pages = {address.partition("#")[0] for address in shown(root).values()}
    found = {}
    for page in pages:
        html = (built_site / "docs/api" / page.replace(".qmd", ".html")).read_text(encoding="utf-8")
        for path, first, last, name in SOURCE.findall(html):
            lines = (root / path).read_text(encoding="utf-8").splitlines()
            text = "\n".join(lines[int(first) - 1 : int(last or first)])
            assert re.search(rf"^ *(?:def |class )?{name}\b", text, re.MULTILINE), f"{page}#{name}"
            found[name] = path
    assert found.keys() >= shown(root).keys()


def test_the_site_stays_small(built_site: Path) -> None:
    """Each page costs Quarto about a second: the reference groups what belongs together."""
    assert len(list(built_site.rglob("*.html"))) <= 120


def test_every_address_exists(built_site: Path, root: Path) -> None:
    for name, address in shown(root).items():
        page, _, anchor = address.partition("#")
        built = built_site / "docs" / "api" / page.replace(".qmd", ".html")
        assert built.is_file(), f"{name}: {built}"
        if anchor:
            html = built.read_text(encoding="utf-8")
            assert re.search(rf'id="{re.escape(anchor)}"', html), f"{name}: #{anchor} in {built}"
