"""`--file`: arguments and options of a command from a YAML or JSON file."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.calls import call

ARGUMENTS = {"model": "Llama3_8B", "hardware": "H100", "batch_size": 8}


@pytest.fixture
def file(tmp_path: Path):
    def write(data, name="run.json"):
        place = tmp_path / name
        place.write_text(data if isinstance(data, str) else json.dumps(data), encoding="utf-8")
        return str(place)

    return write


def test_a_file_is_the_command_line_that_it_spells(file):
    words = ["--model", "Llama3_8B", "--hardware", "H100", "--batch-size", "8", "--format", "json"]
    given = call("solve", "serving", *words)
    read = call("solve", "serving", "--file", file(ARGUMENTS | {"format": "json"}))
    assert read.exit_code == given.exit_code == 0
    assert json.loads(read.output) == json.loads(given.output)


@pytest.mark.parametrize("words", [["--batch-size", "16"], ["--set", "batch-size=16"]])
def test_the_command_line_replaces_values_of_the_file(file, words):
    read = call("solve", "serving", "--file", file(ARGUMENTS), *words)
    given = call("solve", "serving", "--file", file(ARGUMENTS | {"batch_size": 16}))
    assert read.output == given.output != call("solve", "serving", "--file", file(ARGUMENTS)).output


def test_lists_are_choices(file):
    service = {
        "model": "Llama3_70B",
        "hardware": ["DGX_H100", "HGX_H200"],
        "tp-size": [4, 8],
        "arrival_rate": 20,
        "ttft_p99": "1 s",
        "confidence": None,
        "format": "json",
    }
    found = call("serve-plan", "--file", file(service))
    assert found.exit_code == 0, found.output
    levers = {item["lever"] for item in json.loads(found.output)["alternatives"]}
    assert {"hardware", "tp_size"} <= levers


def test_every_fault_of_a_file_is_named_with_its_line(file):
    text = "model: Llama3_8B\nhardwear: H100\nbatch_size: {a: 1}\n"
    found = call("solve", "serving", "--file", file(text, "run.yaml"))
    assert found.exit_code == 2
    assert "run.yaml:2: hardwear" in found.output
    assert "run.yaml:3: batch_size" in found.output


@pytest.mark.parametrize(
    ("text", "name"),
    [("- a\n", "run.yaml"), ("", "run.yaml"), ("model: [", "run.yaml"), ("{", "run.json")],
)
def test_a_file_that_has_no_arguments_is_refused(file, text, name):
    found = call("solve", "serving", "--file", file(text, name))
    assert found.exit_code == 2
    assert name in found.output


def test_the_example_file_runs():
    found = call("serve-plan", "--file", "examples/plan_service.yaml", "--format", "json")
    assert found.exit_code == 0, found.output
    assert json.loads(found.output)["goal"] == "cost"
