"""What README.md and CONTRIBUTING.md say holds."""

from __future__ import annotations

import doctest
import re
from pathlib import Path
from typing import Any

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
    for path in re.findall(r"`((?:mlsysim|course|research|docs|tests|tools)/[\w/.-]+)`", text):
        # NAME stands for a name that the reader chooses.
        assert "NAME" in path or (root / path).exists(), f"{name} names {path}"


def test_the_value_to_follow_ends_at_the_bandwidth_of_the_link(root: Path) -> None:
    text = (root / "CONTRIBUTING.md").read_text(encoding="utf-8")
    (code,) = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    names: dict[str, Any] = {}
    exec(code.replace("print(", "derivation = ("), names)
    origins = {item.origin for item in names["derivation"].unpruned().inputs}
    assert "fleet.node.scale_up.bandwidth" in origins
    band = names["result"].explain("step_latency_low")
    assert "calibration.unseen_band_low" in {item.origin for item in band.unpruned().inputs}
