"""What README.md and CONTRIBUTING.md say holds."""

from __future__ import annotations

import doctest
import re
from pathlib import Path
from typing import Any

import pytest

from mlsysim import Hardware, Models, ServingSolver

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
    for path in re.findall(r"`((?:mlsysim|course|research|docs|tests|tools)/[\w/.-]+)`", text):
        # NAME stands for a name that the reader chooses.
        assert "NAME" in path or (root / path).exists(), f"{name} names {path}"


@pytest.mark.parametrize("name", FILES)
def test_names_are_in_the_files_that_are_named(name: str, root: Path) -> None:
    text = (root / name).read_text(encoding="utf-8")
    for word, path in re.findall(r"`(\w+)`,? in\s`(\w+/[\w/.-]+)`", text):
        source = (root / path).read_text(encoding="utf-8")
        assert re.search(rf"\b{word}\b", source), f"{name} names {word} in {path}"


def test_the_values_to_follow_end_where_the_text_says(root: Path) -> None:
    text = (root / "CONTRIBUTING.md").read_text(encoding="utf-8")
    (code,) = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    names: dict[str, Any] = {}
    exec(code.replace("print(", "derivation = ("), names)
    origins = {item.origin for item in names["derivation"].unpruned().inputs}
    assert "fleet.node.scale_up.bandwidth" in origins
    served = ServingSolver.solve(model=Models.Llama3_8B, hardware=Hardware.H100)
    for result, edge, constant in (
        (names["result"], "step_latency_low", "calibration.unseen_band.low"),
        (served, "itl_low", "calibration.itl_band.low"),
    ):
        assert constant in {item.origin for item in result.explain(edge).unpruned().inputs}
