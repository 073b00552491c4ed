"""The papers of the project: citation, rules, and the forms for issues agree with the code."""

from __future__ import annotations

import csv
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

import mlsysim
from mlsysim.core.types import Accelerator
from mlsysim.validation import validate
from mlsysim.validation.columns import KINDS
from tests.conftest import ROOT

FORMS = ROOT / ".github" / "ISSUE_TEMPLATE"


def form(name: str) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((FORMS / name).read_text(encoding="utf-8"))
    return found


def test_the_citation_names_this_version() -> None:
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert citation["cff-version"] == "1.2.0"
    assert citation["version"] == mlsysim.__version__
    assert citation["title"]
    assert citation["message"]
    assert all(
        set(author) in ({"name"}, {"given-names", "family-names"}) for author in citation["authors"]
    )
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert re.findall(r"version = \{(.+?)\}", readme) == [mlsysim.__version__]
    assert re.findall(r"title   = \{(.+?)\}", readme) == [citation["title"]]


@pytest.mark.parametrize("path", sorted(FORMS.glob("*.yml")), ids=lambda path: path.name)
def test_forms_are_what_github_takes(path: Path) -> None:
    found = form(path.name)
    if path.name == "config.yml":
        assert found == {"blank_issues_enabled": True}
        return
    assert found["name"]
    assert found["description"]
    fields = [part for part in found["body"] if part["type"] != "markdown"]
    assert {part["type"] for part in fields} <= {"input", "textarea", "dropdown", "checkboxes"}
    names = [part["id"] for part in fields]
    assert len(names) == len(set(names))
    assert all(re.fullmatch(r"[\w-]+", name) for name in names)
    for part in found["body"]:
        assert part["attributes"].get("label") or part["attributes"].get("value")


def test_the_form_for_a_measurement_offers_the_kinds() -> None:
    (kinds,) = (part for part in form("measurement.yml")["body"] if part["type"] == "dropdown")
    assert kinds["attributes"]["options"] == list(KINDS)
    (rows,) = (part for part in form("measurement.yml")["body"] if part.get("id") == "rows")
    example = rows["attributes"]["placeholder"].strip().split("\n")
    report = validate(list(csv.DictReader(example)))
    assert len(report.comparisons) == len(example) - 1 > 0


def test_the_form_for_a_device_asks_for_what_a_row_needs() -> None:
    named = {part["id"] for part in form("device.yml")["body"] if "id" in part}
    assert {"name", "source", "checked"} <= named
    fields = {name.split("-")[0] for name in named - {"source", "checked"}}
    assert fields <= set(Accelerator.__dataclass_fields__)
    required = {
        part["id"]
        for part in form("device.yml")["body"]
        if part.get("validations", {}).get("required")
    }
    assert {"name", "source", "compute", "memory"} <= required


@pytest.mark.parametrize("name", ["AGENTS.md", "SECURITY.md", "CODE_OF_CONDUCT.md"])
def test_what_the_papers_name_exists(name: str) -> None:
    text = (ROOT / name).read_text(encoding="utf-8")
    for target in re.findall(r"\]\((?!https?:)([^)#]+)", text):
        assert (ROOT / target).exists(), target
    for path in re.findall(r"`((?:mlsysim|docs|research|tests|tools|core)/[\w/.-]*)`", text):
        assert (ROOT / path).exists(), path
    for command in re.findall(r"python3 dev\.py (\w+)", text):
        assert f"def {command}(" in (ROOT / "dev.py").read_text(encoding="utf-8")
