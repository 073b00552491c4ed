"""`mlsysim calibrate`, and its file wherever a calibration has a name."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import mlsysim
from mlsysim import SimulationConfig
from mlsysim.cli.group import BAD_INPUT, FAILED
from tests.cli.calls import call, data

TABLE = """\
id,model,fleet,batch_size,microbatch_count,seq_len,precision,zero_stage,step_latency_total (s)
short,Llama3_8B,DGX_H100,16,2,8192,bf16,3,1.9
long,Llama3_8B,DGX_H100,8,1,16384,bf16,3,2.1
typo,Llama3_8B,DGX_H100,16,2,8192,bf16,3,0.019
"""
PLAN = ["--model", "Llama3_8B", "--fleet", "Research_256"]
PLAN += ["--batch-size", "256", "--zero-stage", "3"]


@pytest.fixture
def folder(tmp_path, monkeypatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("runs.csv").write_text(TABLE, encoding="utf-8")
    return tmp_path


def test_it_writes_what_python_makes(folder):
    printed = data("calibrate", "runs.csv", "--output", "ours.yaml")
    ours = mlsysim.load_calibration("ours.yaml")
    assert ours == mlsysim.calibrate("runs.csv", name="ours")
    assert printed == ours.to_dict()
    assert [row["id"] for row in printed["refused"]] == ["typo"]


def test_a_base_can_be_named(folder):
    printed = data("calibrate", "runs.csv", "--base", "H100_FSDP")
    assert printed["base"]["software"] == mlsysim.Calibrations.H100_FSDP.software.name
    assert call("calibrate", "runs.csv", "--base", "H100_Nothing").exit_code == BAD_INPUT


@pytest.mark.parametrize("form", ["table", "csv", "md"])
def test_other_formats(folder, form):
    done = call("calibrate", "runs.csv", "--format", form)
    assert done.exit_code == 0
    assert "gemm_efficiency" in done.stdout


def test_its_file_is_a_calibration(folder):
    call("calibrate", "runs.csv", "--output", "ours.yaml")
    ours = mlsysim.load_calibration("ours.yaml")
    solved = data("solve", "training", *PLAN, "--calibration", "ours.yaml")["result"]
    assert solved["calibration"] == "ours"
    again = mlsysim.DistributedSolver.solve(
        model=mlsysim.Models.Llama3_8B,
        fleet=mlsysim.Systems.Clusters.Research_256,
        batch_size=256,
        zero_stage=3,
        calibration=ours,
    )
    assert solved["step_latency_total"]["value"] == pytest.approx(
        again.step_latency_total.to(solved["step_latency_total"]["unit"]).magnitude
    )
    swept = data("sweep", "training", *PLAN, "--set", "calibration=ours.yaml,H100_FSDP")
    assert len(swept) == 2
    explained = call(
        "explain", "training", *PLAN, "--calibration", "ours.yaml", "--field", "step_latency_total"
    )
    assert explained.exit_code == 0


def test_validate_takes_its_file(folder):
    call("calibrate", "runs.csv", "--output", "ours.yaml")
    Path("good.csv").write_text(TABLE.rpartition("typo")[0], encoding="utf-8")
    own = data("validate", "good.csv", "--calibration", "ours.yaml")["pooled"]["mape"]
    assert own < data("validate", "good.csv")["pooled"]["mape"]


def test_a_configuration_takes_its_file(folder):
    call("calibrate", "runs.csv", "--output", "ours.yaml")
    config = SimulationConfig.from_dict(
        {
            "name": "Ours",
            "task": "training",
            "model": "Llama3_8B",
            "system": {"cluster": "Research_256"},
            "arguments": {"batch_size": 256, "calibration": "ours.yaml"},
        }
    )
    assert config.scenario().arguments["calibration"] == mlsysim.load_calibration("ours.yaml")
    assert config.to_dict()["arguments"]["calibration"] == "ours.yaml"
    names = json.dumps(SimulationConfig.json_schema())
    assert "[yY]" in names


def test_what_cannot_be_read_or_written(folder):
    assert call("calibrate", "missing.csv").exit_code == BAD_INPUT
    assert call("calibrate", "runs.csv", "--output", "runs.csv").exit_code == BAD_INPUT
    assert call("calibrate", "runs.csv", "--output", "no/where.yaml").exit_code == FAILED
    assert Path("runs.csv").read_text(encoding="utf-8") == TABLE
    done = call("solve", "training", *PLAN, "--calibration", "missing.yaml")
    assert done.exit_code == BAD_INPUT
    Path("typo.csv").write_text(TABLE[: TABLE.index("short")] + TABLE[TABLE.index("typo") :])
    done = call("calibrate", "typo.csv")
    assert done.exit_code == BAD_INPUT
    assert "peak rate" in done.output
