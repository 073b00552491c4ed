"""Commands of the planner: they answer as the functions do."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import pytest

from mlsysim import DistributedSolver, Models, Systems, advise, contrast, diagnose
from mlsysim.core.result import plain
from tests.cli.calls import call, data

JOB = {"model": Models.Llama3_70B, "fleet": Systems.Clusters.Research_256, "batch_size": 256}
LLAMA = ["--model", "Llama3_70B", "--fleet", "Research_256", "--batch-size", "256"]
SMALL = {"tp_size": [4, 8], "pp_size": 4, "cp_size": 1, "recompute": "selective"}
SMALL |= {"schedule": "1f1b", "zero_stage": 1}
LIMITS = ["--tp-size", "4,8", "--pp-size", "4", "--cp-size", "1", "--recompute", "selective"]
LIMITS += ["--schedule", "1f1b", "--zero-stage", "1"]
# Fits, and its tensor groups straddle nodes.
WIDE = {"seq_len": 2048, "tp_size": 16, "pp_size": 4, "microbatch_count": 32}


def options(arguments: dict[str, object]) -> list[str]:
    return [
        word
        for name, value in arguments.items()
        for word in (f"--{name.replace('_', '-')}", str(value))
    ]


def test_advise():
    advice = advise(**JOB, **SMALL)
    found = data("advise", *LLAMA, *LIMITS, "--limit", "3")
    assert found["best"] == plain(advice.best)
    assert found["configuration"] == plain(advice.configuration)
    assert found["searched"] == advice.searched
    assert found["can_run"] == len(advice.plans)
    assert found["published"]["id"] == advice.published.id
    assert found["plans"] == [plain(advice.plans.row(index)) for index in range(3)]
    assert len(found["front"]) == len(advice.front)
    assert {item["lever"] for item in found["alternatives"]} == {
        item.lever for item in advice.alternatives
    }
    assert call("advise", *LLAMA, *LIMITS).stdout.startswith(str(advice))


def test_advise_refuses_what_the_function_refuses():
    done = call("advise", *LLAMA, "--precision", "fp16,bf16")
    assert done.exit_code == 2
    done = call("advise", *LLAMA, "--goal", "time")
    assert done.exit_code == 2
    assert "training_tokens" in done.stderr
    done = call("advise", *LLAMA, "--tp-size", "1", "--pp-size", "1", "--zero-stage", "0")
    assert (done.exit_code, done.stdout) == (3, "")


BUILT = replace(Systems.Clusters.Research_256, name="2 x DGX H100", count=2)
EIGHT = ["--model", "Llama3_8B", "--batch-size", "64"]
LAYOUT = {"tp_size": 1, "pp_size": 1, "cp_size": 1, "zero_stage": 3, "schedule": "1f1b"}
LAYOUT |= {"recompute": "full", "microbatch_count": 4}


@pytest.mark.parametrize(
    "words",
    [
        ["--node", "DGX_H100", "--count", "2", "--fabric", "InfiniBand_HDR"],
        ["--fleet", "2xDGX_H100@InfiniBand_HDR"],
    ],
)
def test_a_fleet_of_ones_own(words, tmp_path):
    fleet = replace(BUILT, fabric=Systems.Fabrics.InfiniBand_HDR)
    best = advise(model=Models.Llama3_8B, fleet=fleet, batch_size=64, **LAYOUT).best
    found = data("advise", *EIGHT, *options(LAYOUT), *words)
    assert found["best"] == plain(best)
    built = {"node": "DGX_H100", "count": 2, "fabric": "InfiniBand_HDR"}
    path = tmp_path / "job.json"
    path.write_text(json.dumps({"fleet": built, **LAYOUT}))
    assert data("advise", *EIGHT, "--file", str(path))["best"] == plain(best)
    path.write_text(json.dumps({"fleet": "Research_256", **LAYOUT}))
    assert data("advise", *EIGHT, "--file", str(path), *words)["best"] == plain(best)


def test_a_server_or_a_device_is_a_fleet_of_one():
    for name, devices in (("DGX_H100", 8), ("GB200", 1)):
        words = ["--model", "Llama3_8B", "--batch-size", "8", "--seq-len", "1024"]
        words += ["--zero-stage", "1", "--recompute", "selective", "--schedule", "1f1b"]
        found = data("advise", *words, "--cp-size", "1", "--fleet", name)
        assert (
            found["best"]["parallelism"]["dp"]
            * math.prod(found["configuration"][size] for size in ("tp_size", "pp_size", "cp_size"))
            == devices
        )


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--count", "2"], "--node"),
        (["--node", "DGX_H100", "--count", "2"], "no network"),
        (["--node", "DGX_H100", "--fleet", "Research_256"], "given twice"),
        (["--node", "DGX_H100", "--count", "0"], "--count"),
        (["--node", "DGX_H100", "--count", "2", "--fabric", "NDR"], "NDR"),
    ],
)
def test_a_fleet_that_cannot_be_is_refused(words, said):
    done = call("advise", *EIGHT, *words)
    assert done.exit_code == 2
    assert said in done.stderr


def test_diagnose():
    (first, *_) = diagnose(DistributedSolver.solve(**JOB, **WIDE))
    found = data("diagnose", *LLAMA, *options(WIDE))
    assert found[0]["name"] == first.name
    assert found[0]["gain"] == first.gain
    assert found[0]["configuration"] == plain(first.configuration)
    assert str(first) in call("diagnose", *LLAMA, *options(WIDE)).stdout


def test_contrast():
    plan = JOB | WIDE | {"tp_size": 8}
    found = contrast(
        DistributedSolver.solve(**plan | {"recompute": "full"}),
        DistributedSolver.solve(**plan | {"microbatch_count": 16, "zero_stage": 1}),
    )
    words = [*LLAMA, *options(WIDE | {"tp_size": 8, "recompute": "full"})]
    words += ["--against", "microbatch_count=16", "--against", "zero-stage=1"]
    words += ["--against", "recompute=selective"]
    said = data("contrast", *words)
    assert said["loss"] == found.loss
    assert said["parts"] == plain(found.parts)
    assert said["extra_memory"] == plain(found.extra_memory)
    text = call("contrast", *words).stdout
    assert text.startswith(found.words)
    assert "e-1" not in text  # rounding


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        ([], 2, "--against"),
        (["--against", "tp_size"], 2, "--against 'tp_size' is not KEY=VALUE"),
        (["--against", "tpsize=8"], 2, "did you mean tp_size"),
        (["--against", "tp_size=8", "--against", "tp_size=4"], 2, "given twice"),
        (["--against", "tp_size=1"], 3, "The other plan is not feasible: memory"),
    ],
)
def test_contrast_against_what_cannot_be(words, code, said):
    done = call("contrast", *LLAMA, *options(WIDE), *words)
    assert done.exit_code == code
    assert said in done.stderr
    assert "The plan is not feasible" not in done.stderr


def test_a_plan_that_cannot_run_is_diagnosed_and_exits_with_3():
    done = call("diagnose", *LLAMA)
    assert done.exit_code == 3
    assert "The plan is not feasible: memory" in done.stderr
    assert done.stdout
