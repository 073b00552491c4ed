"""Grading a folder of ledgers: honest ones, forged ones, and files that are none."""

from __future__ import annotations

import csv
import io
import json

import pytest
from click.testing import CliRunner

from mlsysim import ConfigError, __version__
from mlsysim.cli.app import app
from mlsysim.labs.catalog import LABS, find
from mlsysim.labs.controls import Estimate
from mlsysim.labs.grading import COLUMNS, STATUSES, grade

RIGHT = {
    "act1_prediction": 20,
    "act1_reflection": "root",
    "act2_prediction": "lifetime",
    "act2_reflection": "failures",
    "plan_bandwidth": 200,
    "plan_interval": 12,
}


def write(path, kept):
    path.parent.mkdir(exist_ok=True, parents=True)
    path.write_text(kept if isinstance(kept, str) else json.dumps(kept), encoding="utf-8")


def rows(folder):
    table = grade(folder)
    return {
        row["file"]: row
        for row in (
            dict(zip(COLUMNS, values, strict=True))
            for values in zip(*(table[name] for name in COLUMNS), strict=True)
        )
    }


def ledger(**changes):
    return find("checkpointing").ledger(RIGHT | changes)


def test_a_right_play_through_is_graded_as_one(tmp_path):
    write(tmp_path / "ada/ledger.json", ledger())
    (row,) = rows(tmp_path).values()
    assert row == {
        "file": "ada/ledger.json",
        "lab": "checkpointing",
        "status": "complete",
        "prediction_1": "20",
        "verdict_1": "right",
        "prediction_2": "lifetime",
        "verdict_2": "right",
        "reflections_right": 1,
        "accepted": True,
        "tier": "optimal",
        "version": __version__,
        "note": "",
    }


@pytest.mark.parametrize("name", LABS)
def test_every_lab_can_be_graded(name, tmp_path):
    lab = find(name)
    answers = {
        act.prediction.id: act.prediction.truth()
        if isinstance(act.prediction, Estimate)
        else act.prediction.right
        for act in lab.acts
    }
    write(tmp_path / "start.json", lab.ledger({}))
    write(tmp_path / "played.json", lab.ledger(answers))
    found = rows(tmp_path)
    assert found["start.json"]["status"] == "incomplete"
    assert found["start.json"]["tier"] == "developing"
    assert found["played.json"]["status"] == "complete"
    assert found["played.json"]["verdict_1"] == found["played.json"]["verdict_2"] == "right"
    assert not found["played.json"]["accepted"]


def test_numbers_of_another_machine_may_differ_in_the_last_digits_only(tmp_path):
    near, far = ledger(), ledger()
    near["result"]["goodput"] *= 1 + 1e-12
    far["result"]["goodput"] *= 1 + 1e-6
    write(tmp_path / "near.json", near)
    write(tmp_path / "far.json", far)
    found = rows(tmp_path)
    assert found["near.json"]["status"] == "complete"
    assert found["far.json"]["status"] == "differs"
    assert "result" in found["far.json"]["note"]


@pytest.mark.parametrize(
    ("part", "value"),
    [
        ("tier", "optimal"),
        ("tier", None),
        ("predictions", {}),
        ("design", None),
        ("result", {"goodput": 1.0}),
        ("tier_rule", "The tier is optimal."),
    ],
)
def test_a_forged_ledger_earns_what_its_answers_earn(part, value, tmp_path):
    write(tmp_path / "forged.json", ledger(plan_interval=48) | {part: value})
    row = rows(tmp_path)["forged.json"]
    assert row["status"] == "differs"
    assert row["note"] == f"{part} not as computed"
    assert row["tier"] == "partial"
    assert row["accepted"] is False


def test_another_version_is_noted_and_its_answers_still_count(tmp_path):
    write(tmp_path / "old.json", ledger() | {"version": "0.0.1"})
    row = rows(tmp_path)["old.json"]
    assert row["status"] == "complete"
    assert row["version"] == "0.0.1"
    assert __version__ in row["note"]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "no JSON",
        "[]",
        "3",
        "{}",
        '{"lab": 3}',
        '{"lab": "another"}',
        '{"lab": "checkpointing", "format": 2}',
        '{"lab": "checkpointing", "format": 1, "state": {"plan_interval": 7}}',
        '{"lab": "checkpointing", "format": 1, "state": {"act2_prediction": "often"}}',
        "[" * 100_000,
    ],
)
def test_files_that_are_no_ledgers_get_a_row_with_the_reason(text, tmp_path):
    write(tmp_path / "bad.json", text)
    write(tmp_path / "good.json", ledger())
    found = rows(tmp_path)
    assert found["bad.json"]["status"] == "unreadable"
    assert found["bad.json"]["note"]
    assert found["bad.json"]["tier"] is None
    assert found["good.json"]["status"] == "complete"


def test_bytes_that_are_no_text_are_unreadable(tmp_path):
    (tmp_path / "bad.json").write_bytes(b"\xff\xfe")
    assert rows(tmp_path)["bad.json"]["status"] == "unreadable"


def test_a_folder_without_ledgers_is_refused(tmp_path):
    with pytest.raises(ConfigError, match="holds no ledger"):
        grade(tmp_path)
    with pytest.raises(ConfigError, match="is not a folder"):
        grade(tmp_path / "missing")


def test_the_command_prints_csv_that_a_spreadsheet_reads_as_text(tmp_path):
    write(tmp_path / "=1+1.json", ledger())
    write(tmp_path / "bob.json", "{}")
    done = CliRunner().invoke(app, ["grade", str(tmp_path), "--format", "csv"])
    assert done.exit_code == 0, done.output
    printed = list(csv.DictReader(io.StringIO(done.stdout)))
    assert list(printed[0]) == list(COLUMNS)
    assert {row["status"] for row in printed} == {"complete", "unreadable"} <= set(STATUSES)
    assert not any(row["file"].startswith("=") for row in printed)


def test_the_command_refuses_a_missing_folder(tmp_path):
    done = CliRunner().invoke(app, ["grade", str(tmp_path / "missing")])
    assert done.exit_code == 2
    assert "not a folder" in done.output
