"""The command `compare`: it predicts the load of the file, and answers as the function does."""

import csv
import io
import json

import pytest

from mlsysim import (
    Hardware,
    Models,
    OpenLoopSolver,
    ServingSolver,
    compare,
)
from tests.cli.calls import call, data

MACHINE = ("--model", "Llama3_8B", "--hardware", "H100")
RUN = {
    "completed": 160,
    "request_rate": "inf",
    "burstiness": 1.0,
    "max_concurrency": 16,
    "total_input_tokens": 163_840,
    "total_output_tokens": 20_480,
    "mean_ttft_ms": 60.0,
    "mean_tpot_ms": 20.0,
    "mean_e2el_ms": 2600.0,
}


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "run.json"
    path.write_text(json.dumps(RUN), encoding="utf-8")
    return path


def clients(batch_size, **more):
    return ServingSolver.solve(
        model=Models.Llama3_8B,
        hardware=Hardware.H100,
        batch_size=batch_size,
        seq_len=1024,
        output_len=128,
        **more,
    )


def test_a_closed_loop_takes_its_load_from_the_file(file):
    found = data("compare", file, *MACHINE)
    gap = compare(clients(16, waves=10), file)
    assert found["next_lever"] == gap.next_lever
    assert [row["predicted"] for row in found["table"]] == list(gap.table["predicted"])
    assert [row["factor"] for row in found["components"]] == list(gap.components["factor"])
    assert [row["lever"] for row in found["levers"]] == list(gap.levers["lever"])
    assert [row["within"] for row in found["table"]] == list(gap.table["within"])
    assert "batch_size = 16, waves = 10, seq_len = 1,024" in found["notes"][0]


def test_an_open_loop_may_be_given_by_arguments(tmp_path):
    path = tmp_path / "run.json"
    times = {key: value for key, value in RUN.items() if key.startswith("mean")}
    path.write_text(json.dumps(times), encoding="utf-8")
    load = ("--arrival-rate", 10, "--seq-len", 1024, "--output-len", 128)
    found = data("compare", path, *MACHINE, *load)
    said = OpenLoopSolver.solve(
        model=Models.Llama3_8B,
        hardware=Hardware.H100,
        arrival_rate=10,
        seq_len=1024,
        output_len=128,
    )
    assert found["table"][0]["predicted"] == pytest.approx(said.ttft_mean.to("ms").magnitude)
    assert [found["calibration"] in note for note in found["notes"]] == [True]
    missing = call("compare", path, *MACHINE)
    assert missing.exit_code == 2
    assert "arrival_rate" in missing.output


@pytest.mark.parametrize(("table", "column"), [("components", "verdict"), ("levers", "change")])
def test_tables_for_programs(file, table, column):
    rows = list(
        csv.DictReader(
            io.StringIO(call("compare", file, *MACHINE, "--table", table, "--format", "csv").output)
        )
    )
    expected = getattr(compare(clients(16, waves=10), file), table)
    assert len(rows) == len(expected)
    assert [row[column] for row in rows] == [str(value) for value in expected[column]]


def test_arguments_in_a_file(file, tmp_path):
    settings = tmp_path / "server.yaml"
    settings.write_text("model: Llama3_8B\nhardware: H100\nkv_precision: fp8\n", encoding="utf-8")
    found = data("compare", file, "--file", settings)
    expected = compare(clients(16, waves=10, kv_precision="fp8"), file)
    assert [row["predicted"] for row in found["table"]] == list(expected.table["predicted"])
