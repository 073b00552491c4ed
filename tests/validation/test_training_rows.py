"""How rows of measured runs are read: what is refused, and which framework ran a step."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from mlsysim import Hardware, Systems
from mlsysim.validation import training
from mlsysim.validation.rows import Row, Skip, read_rows

DATA = Path(__file__).resolve().parents[2] / "measurements/training.csv"
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


def test_every_row_has_its_source_and_its_split(rows):
    assert len({row.name for row in rows}) == len(rows)
    for row in rows:
        assert row.text("source"), row.name
        assert row.text("url").startswith("https://"), row.name
        assert row.text("split") in ("calibrate", "check"), row.name


def test_a_third_of_the_second_collection_is_kept_from_fits(rows):
    split = Counter(row.text("split") for row in rows if row.group.startswith("mlperf"))
    assert split["check"] / split.total() == pytest.approx(1 / 3, abs=0.03)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"model": "Llama-2-70B LoRA r16"}, "adapters"),
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
        ({"group": "megatron21_table1"}, "Megatron-LM 2021"),
        ({"group": "megatron21_table2_zero3"}, "DeepSpeed 2021"),
        ({"group": "vtrain_single"}, "Megatron-LM 2021"),
        ({"group": "mosaic_h100_fp8"}, "llm-foundry FSDP"),
        ({"group": "mlperf50_405b"}, "Megatron-Core with Transformer Engine"),
        ({"group": "mlperf41_gpt3", "hardware": "TPU-v6e"}, "MaxText"),
        ({"group": "nemotron4_paper"}, "Megatron-Core with Transformer Engine"),
        ({"group": "megatron_bridge_moe"}, "Megatron-Bridge"),
        (
            {"group": "torchtitan_h100", "recipe": "torchtitan torch.compile async TP"},
            "PyTorch FSDP2 with torch.compile",
        ),
        ({"group": "torchtitan_h100", "recipe": "torchtitan eager"}, "PyTorch FSDP2, eager"),
        ({"group": "fms_fsdp", "recipe": "fms-fsdp eager"}, "PyTorch FSDP2, eager"),
        ({"group": "automodel", "recipe": "NeMo AutoModel"}, "NeMo AutoModel"),
        ({"group": "tpu_trillium", "recipe": "PyTorch/XLA"}, "PyTorch/XLA"),
        ({"group": "gcp_gpu", "recipe": "MaxText"}, "MaxText"),
        ({"group": "gcp_gpu", "recipe": "NeMo 24.07"}, "Megatron-Core with Transformer Engine"),
        ({"group": "llama3_paper"}, "not stated"),
        ({"group": "my cluster"}, "not stated"),
    ],
)
def test_the_framework_of_a_run(run, software):
    assert training.software_of(Row(RUN | run)) == software


def test_every_run_has_one_of_the_frameworks(rows):
    found = Counter(training.software_of(row) for row in rows)
    assert set(found) == set(training.SOFTWARE)
    assert found["not stated"] < 0.02 * found.total()


def test_a_slice_of_a_pod_is_one_domain_of_links_and_several_pods_are_not():
    job = RUN | {"hardware": "TPU-v6e", "n_gpus": "128"}
    one = training.arguments(Row(job))["fleet"]
    assert (one.count, one.node.accelerators_per_node) == (1, 128)
    four = training.arguments(Row(job | {"n_gpus": "1024"}))["fleet"]
    assert (four.count, four.node.accelerators_per_node, four.node.nics_per_node) == (4, 256, 256)
    assert four.fabric is Systems.Ethernet_100G
    assert four.node.accelerator is Hardware.TPUv6e
