"""What README.md and CONTRIBUTING.md say holds."""

from __future__ import annotations

import doctest
import re
from pathlib import Path

import pytest

FILES = ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")


def test_the_readme_snippet_runs(root: Path) -> None:
    done = doctest.testfile(str(root / "README.md"), module_relative=False)
    assert done.attempted > 0
    assert done.failed == 0


@pytest.mark.parametrize("name", FILES)
def test_links_lead_somewhere(name: str, root: Path) -> None:
    text = (root / name).read_text(encoding="utf-8")
    for target in re.findall(r"\]\((?!https?:)([^)#]+)", text):
        assert (root / target).exists(), f"{name} links to {target}"


@pytest.mark.parametrize("name", FILES)
def test_paths_that_are_named_exist(name: str, root: Path) -> None:
    text = (root / name).read_text(encoding="utf-8")
    for path in re.findall(r"`((?:mlsysim|docs|tests|tools)/[\w/.-]+)`", text):
        # NAME stands for a name that the reader chooses.
        assert "NAME" in path or (root / path).exists(), f"{name} names {path}"
