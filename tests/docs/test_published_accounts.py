"""What pages quote from published accounts is what the records of them say."""

from __future__ import annotations

import ast
import csv
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import ROOT
from tools.pages.pages import read_page

RECORDS = ROOT / "tests" / "validation"
TUTORIAL = Path("docs/tutorials/sustainability.qmd")
CONCEPT = Path("docs/concepts/reliability.qmd")


def quoted(page: Path, name: str) -> Any:
    """The literal that a cell of the page gives a name."""
    for cell in read_page(page, ROOT).cells:
        for node in ast.parse(cell.code).body:
            if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == name:
                return ast.literal_eval(node.value)
    pytest.fail(f"{page} defines no {name}")


def records(file: str, key: str) -> dict[str, dict[str, str]]:
    with (RECORDS / file).open(encoding="utf-8") as lines:
        return {row[key]: row for row in csv.DictReader(lines)}


def test_the_table_of_llama() -> None:
    rows = records("carbon_accounting.csv", "id")
    table = quoted(TUTORIAL, "table_15")
    assert len(table) == sum(row["group"] == "llama1_table15" for row in rows.values()) / 2
    for model, hours, energy, carbon in table:
        found = [rows[f"llama1_t15_{model}_{what}"] for what in ("energy", "emissions")]
        assert [float(row["value"]) for row in found] == [energy, carbon]
        assert {float(row["gpu_hours"]) for row in found} == {hours}


@pytest.mark.parametrize(
    ("name", "prefix"), [("llama_2", "llama2"), ("llama_31", "llama31")], ids=str
)
def test_the_cards_of_later_models(name: str, prefix: str) -> None:
    rows = records("carbon_accounting.csv", "id")
    for model, (hours, carbon) in quoted(TUTORIAL, name).items():
        row = rows[f"{prefix}_{model}"]
        assert (float(row["gpu_hours"]), float(row["value"])) == (hours, carbon)


def test_the_causes_of_interruptions() -> None:
    rows = records("llama3_interruptions.csv", "quantity")
    causes = quoted(CONCEPT, "causes")
    names = "faulty_gpu hbm3_failures network_switch_cable gpu_sram gpu_system_processor"
    counts = [int(rows[name]["value"]) for name in [*names.split(), "cpu_failures"]]
    assert list(causes.values()) == counts
