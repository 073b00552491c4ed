"""How rows of measured runs are read: what is refused, and which framework ran a step."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

import mlsysim
from mlsysim import Calibrations, DistributedSolver, Hardware, Models, Systems, calibrate
from mlsysim.registry.calibration.training import Frameworks
from research.readers import training
from research.rows import Row, Skip, read_rows
from research.validate import validate

DATA = Path(__file__).resolve().parents[2] / "research/measurements/training.csv"
RUN = {
    "model": "Llama3_8B",
    "hardware": "H100-SXM",
    "n_gpus": "64",
    "global_batch": "128",
    "seq_len": "8192",
    "flash_attention": "1",
    "zero_stage": "3",
    "precision": "bf16",
    "step_time_s": "2",
}


@pytest.fixture(scope="module")
def rows() -> list[Row]:
    return read_rows(DATA)


def test_stated_operations_include_the_layers_for_more_tokens_that_a_row_states(rows):
    """Its 11.6 billion parameters add 4 percent to the operations of a token of DeepSeek-V3."""
    counted = {"0": 0, "1": 0}
    for row in rows:
        rate = re.search(r"model TFLOP/s/GPU (\d+)", row.text("note"))
        if not row.text("mtp_layers") or rate is None:
            continue
        stated = float(rate[1]) * 1e12 * row.whole("n_gpus") * training.measured(row)
        result = DistributedSolver.solve(**training.arguments(row))
        flops = result.model_flops.to("flop").magnitude
        assert stated == pytest.approx(flops, rel=0.02), row.name
        counted[row.text("mtp_layers")] += 1
    assert counted["0"] >= 2
    assert counted["1"] >= 10


def test_a_third_of_the_second_collection_is_kept_from_fits(rows):
    split = Counter(row.text("split") for row in rows if row.group.startswith("mlperf"))
    assert split["check"] / split.total() == pytest.approx(1 / 3, abs=0.03)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"model": "Flux.1 schnell"}, "image model"),
        ({"precision": "int8"}, "precision = 'int8'"),
        ({"precision": "", "group": "mlperf51_8b"}, "precision is not stated"),
        (dict.fromkeys(("tp", "pp", "cp", "zero_stage", "micro_batch"), ""), "layout"),
    ],
)
def test_a_run_that_no_lever_describes_is_skipped(change, reason):
    with pytest.raises(Skip, match=reason):
        training.arguments(Row(RUN | change))


@pytest.mark.parametrize(
    ("label", "precision"),
    [("mxfp8", "fp8"), ("nvfp4", "fp4"), ("bf16", "bf16"), ("amp_fp8", "fp8"), ("", "bf16")],
)
def test_labels_of_number_formats(label, precision):
    assert training.arguments(Row(RUN | {"precision": label}))["precision"] == precision


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({}, None),  # the column is empty
        ({"shards": "64"}, None),  # all replicas
        ({"shards": "8"}, 8),
        ({"shards": "8", "tp": "8"}, None),  # 8 replicas of 8 devices
        ({"shards": "8", "tp": "4"}, 8),
    ],
)
def test_a_sharding_group_may_be_smaller_than_the_replicas(change, expected):
    assert training.shards_of(Row(RUN | change)) == expected


def test_shards_that_do_not_divide_the_replicas_are_refused():
    with pytest.raises(Skip, match="do not divide the 64 replicas"):
        training.shards_of(Row(RUN | {"shards": "24"}))


@pytest.mark.parametrize(
    ("run", "software"),
    [
        ({"group": "megatron21_table1"}, Frameworks.Megatron_2021),
        ({"group": "megatron21_table2_zero3"}, None),
        ({"group": "vtrain_single"}, Frameworks.Megatron_2021),
        ({"group": "mosaic_h100_fp8"}, Frameworks.FSDP_2023),
        ({"group": "mlperf50_405b"}, Frameworks.Megatron_Core),
        ({"group": "mlperf41_gpt3", "hardware": "TPU-v6e"}, Frameworks.MaxText),
        ({"group": "nemotron4_paper"}, Frameworks.Megatron_Core),
        ({"group": "megatron_bridge_moe"}, Frameworks.Megatron_Core),
        (
            {"group": "torchtitan_h100", "recipe": "torchtitan torch.compile async TP"},
            Frameworks.FSDP2_Compiled,
        ),
        ({"group": "torchtitan_h100", "recipe": "torchtitan eager"}, Frameworks.FSDP2),
        ({"group": "fms_fsdp", "recipe": "fms-fsdp eager"}, Frameworks.FSDP2),
        ({"group": "automodel", "recipe": "NeMo AutoModel"}, Frameworks.AutoModel),
        ({"group": "tpu_trillium", "recipe": "PyTorch/XLA"}, None),
        ({"group": "gcp_gpu", "recipe": "MaxText"}, Frameworks.MaxText),
        ({"group": "gcp_gpu", "recipe": "NeMo 24.07"}, Frameworks.Megatron_Core),
        ({"group": "llama3_paper"}, None),
        ({"group": "my cluster"}, None),
    ],
)
def test_the_framework_of_a_run(run, software):
    assert training.software_of(Row(RUN | run)) is software


@pytest.mark.parametrize(
    ("change", "layer", "expert", "overlaps", "by_node"),
    [
        # Up to release 0.4 of Megatron-Bridge, a recipe's table says whether FSDP was used.
        ({"note": "EP 8; FSDP 0; "}, False, False, True, 0),
        ({"note": "EP 8; FSDP ; "}, False, False, False, 1),
        ({"hardware": "B200-SXM", "note": "EP 8; FSDP 0; "}, False, False, False, 1),
        ({"hardware": "B200-SXM", "note": "EP 8; FSDP ; "}, True, True, True, 1),
        ({"hardware": "B200-SXM", "recipe": "Megatron-Bridge v0.3.0"}, False, False, False, 0),
        ({"hardware": "B200-SXM", "group": "nemo_2407"}, False, False, False, 0),
    ],
)
def test_a_run_without_a_recipe_has_the_usual_one(change, layer, expert, overlaps, by_node):
    run = {"model": "Qwen3_30B_a3B", "group": "megatron_bridge_moe", "n_gpus": "8"}
    software = training.arguments(Row(RUN | run | change))["calibration"].software
    assert (software.layer_launch.magnitude == 0) == layer
    assert (software.expert_launch.magnitude == 0) == expert
    assert (software.exchange_overlap > 0) == overlaps
    assert software.copies_per_node == by_node


@pytest.mark.parametrize(
    ("hardware", "devices"),
    [("H100-SXM", ("DGX-H100",)), ("B200-SXM", ("DGX-B200", "DGX-B300", "DGX-GB200", "DGX-GB300"))],
)
@pytest.mark.parametrize("latest", [False, True])
def test_the_usual_recipe_is_the_most_frequent(rows, hardware, devices, latest):
    named = [
        row
        for row in rows
        if row.group == "megatron_bridge_moe"
        and row.text("recipe").startswith("Megatron-Bridge v0.5") == latest
        and row.text("recipe")
        and row.text("hardware") in devices
    ]
    usual = {
        name: Counter(row.text(name) for row in named).most_common(1)[0][0]
        for name in ("graphs", "dispatch", "exchange_overlap")
    }
    run = RUN | {"model": "Qwen3_30B_a3B", "group": "megatron_bridge_moe", "n_gpus": "8"}
    run |= {"hardware": hardware, "note": "EP 8; FSDP ; " if latest else "EP 8; FSDP 0; "}
    stated = run | usual | {"recipe": "Megatron-Bridge"}
    blank, told = (training.arguments(Row(item))["calibration"] for item in (run, stated))
    assert blank == told


def test_nearly_every_run_has_a_framework(rows):
    found = [training.software_of(row) for row in rows]
    assert {item.name for item in found if item} <= {row.name for row in Frameworks}
    assert found.count(None) < 0.03 * len(found)


def test_adapters_are_trained_where_a_row_says_so():
    given = training.arguments(Row(RUN | {"model": "Llama3_8B LoRA"}))
    assert (given["model"].name, given["lora_rank"]) == (Models.Llama3_8B.name, 16)
    assert training.arguments(Row(RUN))["lora_rank"] is None


def test_experts_are_spread_as_far_as_their_exchange_reaches():
    job = RUN | {"model": "GPT OSS 120B", "note": "kernels TE + DeepEP"}
    assert training.arguments(Row(job))["ep_size"] == 64
    assert training.arguments(Row(job | {"n_gpus": "8"}))["ep_size"] == 8
    assert training.arguments(Row(job | {"note": ""}))["ep_size"] == 1
    assert training.arguments(Row(job | {"note": "EP 4; DeepEP"}))["ep_size"] == 4


def test_a_slice_of_a_pod_is_one_domain_of_links_and_several_pods_are_not():
    job = RUN | {"hardware": "TPU-v6e", "n_gpus": "128"}
    one = training.arguments(Row(job))["fleet"]
    assert (one.count, one.node.accelerators_per_node) == (1, 128)
    four = training.arguments(Row(job | {"n_gpus": "1024"}))["fleet"]
    assert (four.count, four.node.accelerators_per_node, four.node.nics_per_node) == (4, 256, 256)
    assert four.fabric is Systems.Ethernet_100G
    assert four.node.accelerator is Hardware.TPUv6e


def test_a_recipe_stays_switched_off():
    """Columns of Megatron's recipes mean the same with a cluster's constants."""
    cells = {"model": "Llama3_8B", "hardware": "H100", "n_gpus": 8, "global_batch": 16}
    cells |= {"micro_batch": 1, "seq_len": 8192, "zero_stage": 3, "flash_attention": 1}
    cells |= {"group": "megatron_bridge_dense"}
    base = Calibrations.H100_Megatron
    plans = [cells | {"id": "plain"}, cells | {"id": "graphs", "graphs": "step"}]
    rows = []
    for plan in plans:
        step = DistributedSolver.solve(**training.arguments(Row(plan), base))
        rows.append(Row(plan | {"step_time_s": 1.1 * step.step_latency_total.to("s").magnitude}))
    ours = calibrate([training.tidy(row) for row in rows])
    assert ours.software.layer_launch.magnitude > 0
    admitted = [training.arguments(row, ours)["calibration"].software for row in rows]
    assert admitted[0].layer_launch == ours.software.layer_launch
    assert admitted[1].layer_launch.magnitude == 0
    report = validate(rows, kind="training", calibration=ours)
    assert [row.predicted for row in report.comparisons] == pytest.approx(
        [row.after for row in ours.rows], rel=1e-3
    )


def test_tidy_rows_have_the_same_predictions(rows):
    report = validate(rows[::40], kind="training")
    kept = {run.id for run in report.comparisons}
    assert len(kept) > 10
    tidy = [training.tidy(row) for row in rows if row.name in kept]
    found = mlsysim.validate(tidy, kind="training").comparisons
    assert [(run.id, run.predicted, run.low) for run in found] == [
        (run.id, run.predicted, run.low) for run in report.comparisons
    ]
