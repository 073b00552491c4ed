"""Formats of output: each parses, and all of them hold the same answer."""

from __future__ import annotations

import csv
import io
import json

import pytest

from mlsysim import DistributedSolver, Models, Systems, sweep
from mlsysim.cli.formats import flat
from mlsysim.core.result import plain
from mlsysim.core.table import Column, Table
from tests.cli.calls import call

RESNET = ["--model", "ResNet50", "--hardware", "A100"]
LLAMA = ["--model", "Llama3_70B", "--fleet", "Research_256", "--batch-size", "256"]
SMALL = ["--tp-size", "4", "--pp-size", "4", "--cp-size", "1", "--recompute", "selective"]
SMALL += ["--schedule", "1f1b", "--zero-stage", "1"]
COMMANDS = {
    "zoo": ["zoo"],
    "one catalog": ["zoo", "hardware"],
    "a catalog of parts": ["zoo", "systems"],
    "one row": ["zoo", "hardware", "H100"],
    "support": ["support", "--model", "ResNet50", "--device", "A100", "--status", "unbanded"],
    "solve": ["solve", "inference", *RESNET],
    "explain": ["explain", "inference", *RESNET],
    "sweep": ["sweep", "inference", *RESNET, "--batch-size", "1,2,4"],
    "evaluate": ["evaluate", "Smart_Doorbell"],
    "validate": ["validate", "tests/cli/runs.csv"],
    "forecast": ["forecast"],
    "advise": ["advise", *LLAMA, *SMALL],
    "diagnose": ["diagnose", *LLAMA, "--tp-size", "8", "--pp-size", "8"],
    "contrast": ["contrast", *LLAMA, "--tp-size", "8", "--against", "tp_size=4"],
}


def shown(words: list[str], form: str = "table") -> str:
    """Return what a command prints, also if a plan is not feasible."""
    done = call(*words, "--format", form)
    assert done.exit_code in (0, 3), done.output
    return done.stdout


def rows(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text), strict=True))


@pytest.mark.parametrize("words", COMMANDS.values(), ids=COMMANDS)
def test_every_answer_has_four_formats(words):
    assert shown(words) == call(*words).stdout
    data = json.loads(shown(words, "json"))
    assert data
    assert json.loads(call(*words, "--json").stdout) == data
    heads, *cells = csv.reader(io.StringIO(shown(words, "csv")), strict=True)
    assert len(set(heads)) == len(heads)
    assert cells
    assert {len(row) for row in cells} == {len(heads)}
    table = [line for line in shown(words, "md").splitlines() if line.startswith("|")]
    rule = next(line for line in table if set(line) <= set("|-: "))
    assert table.index(rule) == 1
    assert table[0].count("|") == rule.count("|")


def test_two_formats_at_once_are_refused():
    done = call(*COMMANDS["solve"], "--json", "--format", "csv")
    assert done.exit_code == 2
    assert "--format csv" in done.stderr


def test_an_answer_is_the_same_in_every_format():
    result = json.loads(shown(COMMANDS["solve"], "json"))["result"]
    found = {row["field"]: row for row in rows(shown(COMMANDS["solve"], "csv"))}
    assert float(found["latency"]["value"]) == result["latency"]["value"]
    assert found["latency"]["unit"] == result["latency"]["unit"] == "ms"
    assert found["mfu"] == {"field": "mfu", "value": repr(result["mfu"]), "unit": ""}
    # What is not known is an empty cell.
    unknown = [name for name, value in result.items() if value is None]
    assert unknown
    assert {found[name]["value"] for name in unknown} == {""}


def test_a_sweep_is_the_same_in_every_format():
    words = [*COMMANDS["sweep"], "--field", "batch_size", "--field", "latency"]
    whole = json.loads(shown(words, "json"))
    table = rows(shown(words, "csv"))
    assert [int(row["batch_size"]) for row in table] == [1, 2, 4]
    assert [float(row["latency (ms)"]) for row in table] == [
        row["latency"]["value"] for row in whole
    ]


def test_programs_get_all_rows_and_people_the_first():
    words = ["sweep", "inference", *RESNET, "--batch-size", ",".join(map(str, range(1, 31)))]
    assert len(json.loads(shown(words, "json"))) == len(rows(shown(words, "csv"))) == 30
    for form, head in (("table", 2), ("md", 2)):
        lines = [line for line in shown(words, form).splitlines() if line]
        assert len(lines) == head + 20 + 1
        assert "10 more rows" in lines[-1]
    for form in ("json", "csv"):
        text = shown([*words, "--limit", "7"], form)
        assert len(json.loads(text) if form == "json" else rows(text)) == 7
    # More than a table prints by itself.
    assert len(shown([*words, "--limit", "25"]).splitlines()) == 2 + 25 + 1


def test_rows_as_plain_data_are_those_of_the_table():
    table = sweep(
        DistributedSolver,
        model=Models.Llama3_70B,
        fleet=[Systems.Clusters.Research_256],
        batch_size=[255, 256],
        tp_size=[3, 8],
        invalid="mark",
    )
    assert plain(table) == [plain(row) for row in table]


def test_plain_data_as_fields():
    table = flat({"a": {"value": 2, "unit": "s"}, "b": {"c": [1, 2], "d": None}})
    assert list(table["field"]) == ["a", "b.c", "b.d"]
    assert list(table["value"]) == [2, "1; 2", None]
    assert list(table["unit"]) == ["s", "", ""]
    assert len(flat({})) == 0


def test_no_cell_runs_in_a_spreadsheet(monkeypatch):
    table = Table({"=name": Column(["=1+1", "a\nb", True])})
    monkeypatch.setattr("mlsysim.cli.zoo.overview", lambda: table)
    assert shown(["zoo"], "csv") == "'=name\n'=1+1\na\\nb\ntrue\n"


def test_a_guess_is_marked():
    found = {row["field"]: row for row in rows(shown(COMMANDS["one row"], "csv"))}
    assert found["unit_price"]["estimated"] == "true"
    assert found["memory.capacity"]["estimated"] == "false"
    assert "| ≈ " in shown(COMMANDS["one row"], "md")


def test_parts_of_a_catalog_share_a_table():
    found = rows(shown(COMMANDS["a catalog of parts"], "csv"))
    parts = json.loads(shown(COMMANDS["a catalog of parts"], "json"))
    assert len(found) == sum(map(len, parts.values()))
    fabric = next(row for row in found if row["entry"] == "InfiniBand_NDR")
    assert (fabric["part"], float(fabric["bandwidth (GB/s)"])) == ("Fabrics", 50)
    assert fabric["accelerator"] == ""
