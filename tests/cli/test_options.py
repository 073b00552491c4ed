"""Arguments as options and in files: made from what a function declares, in help as well."""

from __future__ import annotations

import inspect
import json
from pathlib import Path

import pytest
from click.shell_completion import ShellComplete

from mlsysim import DistributedSolver, Models, Systems
from mlsysim.cli.app import app
from mlsysim.cli.options import choices, signature_of
from mlsysim.cli.questions import QUESTIONS
from mlsysim.core.types import SCHEDULES
from mlsysim.planner import advise
from mlsysim.solvers.arguments import Amount, Noun
from tests.cli.calls import call, data, printed, settings

ASKING = {
    **{("solve", question): solver for question, solver in QUESTIONS.items()},
    ("diagnose",): DistributedSolver,
    ("contrast",): DistributedSolver,
}
TRAINING = ["solve", "training", "--model", "Llama3_70B", "--fleet", "Research_256"]


def option(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def help_of(*words: str) -> str:
    return " ".join(printed(*words, "--help").split())


@pytest.mark.parametrize("command", ASKING, ids=" ".join)
def test_help_has_every_argument_of_every_solver(command):
    text, solver = help_of(*command), ASKING[command]
    defaults = inspect.signature(solver.solve).parameters
    assert list(signature_of(solver).parameters) == list(defaults)
    assert set(defaults) == set(solver.parameters)
    starts = []
    for name, kind in solver.parameters.items():
        start = text.index(f" {option(name)}")
        about = text[start:].partition("]")[0]
        default = defaults[name].default
        if default is inspect.Parameter.empty:
            assert about.endswith("required")
        else:
            shown = default if isinstance(default, str) else json.dumps(default)
            assert about.endswith(f"default: {shown}")
        if isinstance(kind, Amount):
            assert kind.unit in about
        if not isinstance(kind, Noun):  # entries are completed rather than listed
            assert all(choice in about for choice in choices(kind))
        starts.append(start)
    assert min(starts) < text.index("Options: --set") > max(starts)


def test_help_of_advise_has_every_argument_but_how_to_run():
    text = help_of("advise")
    names = set(inspect.signature(advise).parameters) - {"executor", "progress"}
    assert {name for name in names if f" {option(name)} " not in text} == set()
    assert "throughput|time|cost|carbon" in text
    # Its docstring describes these together: the solver's own words tell them apart.
    assert "Pipeline stages." in text


def test_an_option_and_set_are_the_same():
    by_option = data(*TRAINING, "--batch-size", "256", "--tp-size", "8", code=3)
    assert by_option == data(*TRAINING, *settings("batch_size=256", "tp-size=8"), code=3)
    answer = DistributedSolver.solve(
        model=Models.Llama3_70B,
        fleet=Systems.Clusters.Research_256,
        batch_size=256,
        tp_size=8,
    )
    assert by_option["result"]["mfu"] == answer.mfu


def test_an_option_reads_amounts_switches_and_nothing():
    words = ["--fleet", "Research_256", "--datacenter", "Quebec"]
    week = data("solve", "sustainability", *words, "--duration-days", "1 week")
    assert week == data("solve", "sustainability", *words, "--duration-days", "7")
    words = [*TRAINING, "--batch-size", "256", "--seq-len", "null"]
    words += ["--tp-size", "8", "--sequence-parallel"]
    split = [data(*words, on, code=3) for on in ("true", "false")]
    memory = [answer["result"]["memory"]["value"] for answer in split]
    assert memory[0] < memory[1]


def test_a_server_takes_the_place_of_a_device():
    words = ["solve", "serving", "--model", "Llama3_8B", "--tp-size", "8"]
    assert data(*words, "--node", "DGX_H100") == data(*words, "--hardware", "DGX_H100")
    assert "--node" not in help_of("solve", "inference")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--batch-size", "1", "--batch-size", "2"], "given twice"),
        (["--batch-size", "1", "--set", "batch_size=2"], "given twice"),
        (["--batch-size", "-1"], "whole number"),
        (["--batch-size", ""], "batch_size is None"),
        (["--batchsize", "1"], "--batch-size"),
        ([], "--batch-size 1"),
    ],
)
def test_bad_options(words, said):
    done = call(*TRAINING, *words)
    assert (done.exit_code, done.stdout) == (2, "")
    assert said in done.stderr


def completed(*words: str, word: str = "") -> set[str]:
    shell = ShellComplete(app, {}, "mlsysim", "_MLSYSIM_COMPLETE")
    return {item.value for item in shell.get_completions(list(words), word)}


def test_names_are_completed():
    assert completed(word="adv") == {"advise"}
    assert completed("solve") == set(QUESTIONS)
    assert "--batch-size" in completed("solve", "training", word="--ba")
    asked = ("solve", "training")
    assert completed(*asked, "--model", word="Llama3_7") == {"Llama3_70B"}
    assert completed(*asked, "--schedule") == set(SCHEDULES)
    assert completed(*asked, "--sequence-parallel") == {"true", "false"}
    assert completed(*asked, "--precision", word="bf") == {"bf16"}
    assert completed(*asked, "--batch-size") == set()
    assert completed("sweep", "inference", "--hardware", word="A100,H100_P") == {"A100,H100_PCIe"}
    assert completed("advise", "--goal", word="c") == {"cost", "carbon"}


def test_catalogs_rows_and_scenarios_are_completed():
    assert completed("zoo", word="hard") == {"hardware"}
    assert completed("zoo", "hardware", word="H100_P") == {"H100_PCIe"}
    assert completed("zoo", "no_such_catalog") == set()
    assert completed("evaluate", word="Smart") == {"Smart_Doorbell"}
    assert "advise" in completed("no_such_command")  # and no error
    shell = ShellComplete(app, {}, "mlsysim", "_MLSYSIM_COMPLETE")
    assert [item.type for item in shell.get_completions(["evaluate"], "./x")] == ["file"]


# Arguments and options of a command from a YAML or JSON file

ARGUMENTS = {"model": "Llama3_8B", "hardware": "H100", "batch_size": 8}


@pytest.fixture
def file(tmp_path: Path):
    def write(data, name="run.json"):
        place = tmp_path / name
        place.write_text(data if isinstance(data, str) else json.dumps(data), encoding="utf-8")
        return str(place)

    return write


def test_a_file_is_the_command_line_that_it_spells(file):
    words = ["--model", "Llama3_8B", "--hardware", "H100", "--batch-size", "8"]
    read = printed("solve", "serving", "--file", file(ARGUMENTS | {"format": "json"}))
    assert json.loads(read) == data("solve", "serving", *words)


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
    alternatives = json.loads(printed("serve-plan", "--file", file(service)))["alternatives"]
    levers = {item["lever"] for item in alternatives}
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
    assert data("serve-plan", "--file", "examples/plan_service.yaml")["goal"] == "cost"
