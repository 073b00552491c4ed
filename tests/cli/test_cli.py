"""The command line: what it prints, in words and in JSON, and with which exit code it ends."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from pathlib import Path

import click
import pytest

import mlsysim
from mlsysim import (
    Hardware,
    Models,
    Scenarios,
    SimulationConfig,
    SingleNodeSolver,
    UnknownEntryError,
)
from mlsysim.cli import group
from mlsysim.cli.app import app, main
from mlsysim.cli.questions import QUESTIONS
from mlsysim.cli.zoo import CATALOGS
from mlsysim.core.errors import spelled
from mlsysim.registry.names import entries
from mlsysim.scenario.names import find_entry
from mlsysim.solvers.arguments import Noun
from tests.cli.calls import call, data, printed, settings
from tests.importer.test_published import VARIANTS
from tests.scenario.samples import CAMERA, TRAINING

COMMANDS = app.list_commands(click.Context(app))
RESNET = ["--model", "ResNet50", "--hardware", "A100"]
LLAMA = ["--model", "Llama3_70B", "--fleet", "Research_256", "--set", "batch_size=256"]


def test_version_and_help():
    assert mlsysim.__version__ in printed("--version")
    assert "Exit codes" in printed("--help")
    for command in COMMANDS:
        assert "Usage" in printed(command, "-h")


def test_the_help_lists_every_command_once_and_whole():
    listed = [name for names in app.sections.values() for name in names]
    assert sorted(listed) == COMMANDS
    assert "..." not in printed("--help").replace("[ARGS]...", "")


def test_commands_of_the_course_name_what_to_install(monkeypatch):
    with_course = printed("--help")
    assert len(app.neighbors) == 2
    monkeypatch.setattr(group, "entry_points", lambda **_: ())
    for name, distribution in app.neighbors.items():
        refused = call(name, "anything", "--folder", "somewhere")
        assert refused.exit_code == 2
        assert distribution in refused.stderr
        assert distribution in printed(name, "-h")
    assert app.list_commands(click.Context(app)) == COMMANDS
    assert printed("--help") != with_course


@pytest.mark.parametrize("name", ["h200", "H-200", "H 200"])
def test_a_name_may_differ_in_case_and_marks(name):
    assert find_entry(name, (type(Hardware.H200),)) is Hardware.H200
    assert printed("zoo", "hardware", name) == printed("zoo", "hardware", "H200")


def test_a_name_that_may_be_several_is_refused_with_all_of_them():
    assert spelled("a_b", ["a_b", "A-B"], "row") == "a_b"
    for name, hint in (("ab", "A-B or a_b"), ("nothing", "known")):
        with pytest.raises(UnknownEntryError, match=hint) as caught:
            spelled(name, ["a_b", "A-B"], "row")
        assert caught.value.argument == name


def test_rates_of_requests_may_be_per_minute():
    given = ("solve", "open-loop", "--model", "Llama3_8B", "--hardware", "H100", "--arrival-rate")
    assert data(*given, "120 req/min") == data(*given, "2") == data(*given, "2 requests/s")


def test_zoo_shows_every_row_of_every_catalog():
    assert {row["catalog"]: row["rows"] for row in data("zoo")}["hardware"] == len(Hardware)
    for name, catalog in CATALOGS.items():
        assert sum(len(rows) for rows in data("zoo", name).values()) == len(catalog)
        for row in catalog.names():
            assert data("zoo", name, row)["name"] == row


def test_support(tmp_path):
    asked = ("support", "--model", "GPT2,ResNet50", "--device", "T4", "--precision", "fp16,fp8")
    found = data(*asked)
    assert len(found) == 2 * 2 * 3
    assert {row["device"] for row in found} == {"NVIDIA T4"}
    refused = data(*asked, "--status", "refused")
    assert refused == [row for row in found if row["status"] == "refused"]
    assert {row["precision"] for row in refused} >= {"fp8"}
    path = tmp_path / "config.json"
    path.write_text(
        '{"model_type": "gpt2", "n_embd": 768, "n_layer": 12, "_name_or_path": "org/Own"}'
    )
    own = data("support", "--model", str(path), "--device", "T4", "--question", "serving")
    assert {row["model"] for row in own} == {"Own"}


def test_a_row_has_its_sources_and_its_doubts():
    fields = {item["field"]: item for item in data("zoo", "hardware", "H100")["fields"]}
    assert fields["memory.capacity"]["value"] == {"value": 80, "unit": "GB"}
    assert "https://" in fields["memory.capacity"]["source"]
    assert fields["unit_price"]["estimated"]
    assert "≈" in printed("zoo", "hardware", "H100")


def test_solve_answers_as_the_solver_does():
    answer = SingleNodeSolver.solve(model=Models.ResNet50, hardware=Hardware.A100, batch_size=32)
    said = data("solve", "inference", *RESNET, "--set", "batch_size=32")["result"]
    assert said["latency"] == {
        "value": pytest.approx(answer.latency.magnitude),
        "unit": "ms",
    }
    assert str(answer) in printed("solve", "inference", *RESNET, "--set", "batch_size=32")


PLAN = ("tp_size=8", "pp_size=4", "microbatch_count=32", "sequence_parallel=true", "seq_len=2048")
MONTH = ("duration_days=30", "utilization=0.8")
ASKED = [
    ("inference", RESNET),
    ("serving", ["--model", "Llama3_8B", "--hardware", "H100"]),
    ("serving", ["--model", "Llama3_8B", "--node", "DGX_H100", *settings("tp_size=8")]),
    ("training", [*LLAMA, *settings(*PLAN)]),
    ("sustainability", ["--fleet", "Research_256", *settings(*MONTH, "datacenter=Quebec")]),
    ("economics", ["--fleet", "Research_256", *settings(*MONTH, "kwh_price=0.1 USD/kWh")]),
    (
        "reliability",
        ["--fleet", "Frontier_8K", *settings("job_duration_hours=30 day", "checkpoint_time_s=60")],
    ),
]


@pytest.mark.parametrize(("question", "words"), ASKED)
def test_every_question_can_be_asked_and_explained(question, words):
    assert data("solve", question, *words)["question"] == question
    steps = data("explain", question, *words)["steps"]
    assert all(step["references"] for step in steps if step["formula"])
    assert all(step["equation"] for step in steps)
    assert printed("explain", question, *words)


def test_what_does_not_fit_is_told_and_exits_with_3():
    done = call("solve", "serving", "--model", "Llama3_70B", "--hardware", "H100")
    assert done.exit_code == 3
    assert " short;" in done.stdout


def test_explain_one_field():
    assert printed("explain", "inference", *RESNET, "--field", "memory").startswith("[1] memory")


def test_sweep():
    words = [*LLAMA, "--set", "tp_size=1, 2,4,8", "--set", "pp_size=1,2", "--sort", "mfu"]
    rows = data("sweep", "training", *words)
    assert len(rows) == 8
    shares = [row["mfu"] for row in rows]
    assert shares == sorted(shares)
    text = printed(
        "sweep", "training", *words, *("--field", "tp_size", "--field", "mfu", "--limit", "3")
    )
    assert "and 5 more rows" in text
    assert text.splitlines()[0].split() == ["tp_size", "mfu"]


def test_sweep_with_configurations_that_make_no_sense():
    words = ["sweep", "training", *LLAMA, "--set", "tp_size=1,3"]
    assert call(*words).exit_code == 2
    assert len(data(*words, "--invalid", "drop")) == 1


def test_evaluate_a_file(tmp_path):
    file = tmp_path / "camera.yaml"
    file.write_text(CAMERA, encoding="utf-8")
    assert "Camera: pass" in printed("evaluate", str(file))
    assert data("evaluate", str(file))["status"] == "pass"
    file.write_text(CAMERA.replace("10 ms", "1 us"), encoding="utf-8")
    done = call("evaluate", str(file))
    assert (done.exit_code, "Camera: fail" in done.stdout) == (3, True)


def test_evaluate_what_cannot_be_judged(tmp_path):
    file = tmp_path / "run.yaml"
    text = TRAINING.replace("  region: Quebec\n", "").replace("mfu: {at_least: 0.2}", "")
    text = text.replace("pp_size: 4", "pp_size: 4\n  seq_len: 2048")
    file.write_text(text, encoding="utf-8")
    done = call("evaluate", str(file))
    assert done.exit_code == 4, done.output
    assert "region" in done.stdout


@pytest.mark.parametrize("name", Scenarios.names())
def test_evaluate_a_scenario_of_the_catalog(name):
    assert call("evaluate", name).exit_code == {"Smart_Doorbell": 3}.get(name, 0)


def test_schema():
    assert json.loads(printed("schema")) == SimulationConfig.json_schema()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["zo"], "did you mean zoo"),
        (["zoo", "hardwar"], "did you mean hardware"),
        (["zoo", "hardware", "H10"], "H100"),
        (["support"], "--device"),
        (["support", "--model", "GPT2", "--status", "bnded"], "did you mean banded"),
        (["support", "--device", "H10"], "H100"),
        (["solve", "tranning"], "did you mean training"),
        (["solve"], "QUESTION"),
        (["solve", "training", "--model", "Llama3_70B"], "--fleet Research_256 --batch-size 1"),
        (["solve", "inference", "--model", "ResNet", "--hardware", "A100"], "ResNet50"),
        (["solve", "inference", *RESNET, "--fleet", "Research_256"], "No such option '--fleet'"),
        (["solve", "serving", *RESNET, "--node", "DGX_H100"], "given twice"),
        (["solve", "inference", *RESNET, "--set", "batchsize=2"], "did you mean batch_size"),
        (["solve", "inference", *RESNET, "--set", "batch_size"], "KEY=VALUE"),
        (["solve", "inference", *RESNET, "--set", "batch_size=-1"], "whole number"),
        (["solve", "inference", *RESNET, "--set", "batch_size=1e99"], "out of range"),
        (["solve", "inference", *RESNET, "--set", "precision=fp12"], "choose one of"),
        (
            ["solve", "economics", "--fleet", "Research_256", "--set", "duration_days=5 GB"],
            "dimension",
        ),
        (["explain", "inference", *RESNET, "--field", "latncy"], "did you mean latency"),
        (["sweep", "inference", *RESNET, "--sort", "latncy"], "did you mean latency"),
        (["sweep", "inference", *RESNET, "--invalid", "no"], "'raise', 'mark', 'drop'"),
        (["evaluate", "none.yaml"], "cannot be read"),
        (["evaluate", "Smart_Dorbell"], "did you mean Smart_Doorbell"),
        (["evaluate"], "FILE"),
        (["solve", "inference", "--modle", "x"], "--model"),
    ],
)
def test_bad_input_exits_with_2_and_says_what_to_do(words, said):
    done = call(*words)
    assert done.exit_code == 2
    assert said in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""


def test_every_solver_is_a_question():
    from mlsysim.solvers.base import Solver

    ours = {each for each in Solver.__subclasses__() if each.__module__.startswith("mlsysim.")}
    assert set(QUESTIONS.values()) == ours


def test_every_argument_that_is_an_entry_has_names_to_take():
    for question, solver in QUESTIONS.items():
        for name, kind in solver.parameters.items():
            if isinstance(kind, Noun):
                assert find_entry(next(iter(entries(*kind.kinds))), kind.kinds), question
                done = call("solve", question, "--set", f"{name}=no_such_entry")
                assert done.exit_code == 2
                assert "known: \n" not in done.stderr


@pytest.fixture
def broken(monkeypatch):
    """A command line to which something happens while it works."""

    def fail(fault: BaseException) -> None:
        def broken() -> None:
            raise fault

        monkeypatch.setattr("mlsysim.cli.zoo.overview", broken)

    monkeypatch.setattr("sys.argv", ["mlsysim", "zoo"])
    monkeypatch.setattr("sys.stdout", io.StringIO())
    return fail


def test_an_interrupted_command_ends_as_a_shell_expects(broken, capsys):
    broken(KeyboardInterrupt())
    with pytest.raises(SystemExit) as caught:
        main()
    assert caught.value.code == 130
    assert "Abort" not in capsys.readouterr().err


def test_a_reader_that_leaves_is_no_fault_to_report(broken, capsys):
    broken(BrokenPipeError())
    with pytest.raises(SystemExit) as caught:
        main()
    assert caught.value.code == 1
    assert capsys.readouterr().err == ""


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full here")
@pytest.mark.parametrize("words", [["--help"], ["zoo", "hardware", "--json"]])
def test_a_full_disk_is_told_in_a_line(words):
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "mlsysim", *words],
            stdout=full,
            stderr=subprocess.PIPE,
            encoding="utf-8",
            check=False,
        )
    assert done.returncode == 1
    assert done.stderr.startswith("Error: ")
    assert done.stderr.count("\n") == 1


def test_no_message_drives_the_terminal(tmp_path):
    file = tmp_path / "x.yaml"
    file.write_text("name: !%1b%5b31m x\n", encoding="utf-8")
    done = call("evaluate", str(file))
    assert done.exit_code == 2
    assert "\x1b" not in done.stderr
    done = call("evaluate", str(tmp_path / "\x1b[31m.yaml"))
    assert "\x1b" not in done.stderr


@pytest.mark.parametrize("spelling", ["{}", "{}/", "./{}", "{}/config.json"])
def test_a_model_is_a_directory_with_or_without_a_slash(tmp_path, monkeypatch, spelling):
    monkeypatch.chdir(tmp_path)
    Path("small").mkdir()
    config, _ = VARIANTS[0]
    Path("small/config.json").write_text(json.dumps(config))
    lengths = ("--seq-len", "64", "--output-len", "8")
    words = ("solve", "serving", "--model", spelling.format("small"), "--hardware", "H100")
    assert data(*words, *lengths)["result"]["feasible"] is True


@pytest.mark.parametrize(
    ("words", "quantity"),
    [
        (["solve", "economics", "--fleet", "Research_256", "--duration-days", "9",
          *settings("service_life=3")], '"1 year"'),
        (["solve", "reliability", "--fleet", "Research_256", "--job-duration-hours", "9",
          "--model", "Llama3_70B"], '"100 GB/s"'),
        (["serve-plan", "--goal", "cost", "--hardware", "Trainium3", "--model", "Llama3_8B",
          "--arrival-rate", "5", "--ttft-p99", "1 s"], '"3 USD/h"'),
    ],
)  # fmt: skip
def test_errors_write_quantities_as_the_shell_takes_them(words, quantity):
    done = call(*words)
    assert done.exit_code == 2
    assert quantity in done.stderr
    assert "Q_" not in done.stderr
