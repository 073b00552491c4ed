"""The matrix of what is supported: each entry is what a solver says, on the fewest devices."""

from __future__ import annotations

import random

import pytest

from mlsysim import (
    ConfigError,
    DistributedSolver,
    Fleet,
    Hardware,
    Models,
    ServingSolver,
    SingleNodeSolver,
    Systems,
    TransformerModel,
    UnknownEntryError,
    standalone_fleet,
    support,
)
from mlsysim.core.types import PRECISIONS
from mlsysim.coverage import BANDED, OUTPUT, PROMPT, QUESTIONS, REFUSED, TOO_LARGE, UNBANDED

SOME = {
    "models": [Models.Llama3_8B, Models.Llama3_405B, Models.Mixtral_8x7B, Models.BERT_Base,
               Models.ResNet50],
    "devices": [Hardware.H100, Hardware.H200, Hardware.A100_40GB, Hardware.MI300X, Hardware.V100,
                Hardware.Coral, Hardware.MacBook_M3_Max],
}  # fmt: skip


@pytest.fixture(scope="module")
def found() -> dict[tuple[str, str, str, str], dict]:
    keys = ("question", "model", "device", "precision")
    return {tuple(row[key] for key in keys): row for row in support(**SOME)}


def test_there_is_one_row_per_combination(found):
    assert len(found) == len(QUESTIONS) * len(PRECISIONS) * 5 * 7
    assert {row["status"] for row in found.values()} == {BANDED, UNBANDED, TOO_LARGE, REFUSED}
    assert all(row["reason"] for row in found.values())
    assert all((row["devices"] is None) == (row["status"] == REFUSED) for row in found.values())
    assert all((row["memory"] is None) == (row["status"] == REFUSED) for row in found.values())


@pytest.mark.parametrize("question", ["serving", "inference"])
def test_answers_that_are_shared_are_those_of_the_device(found, question):
    """Devices with the same constants share answers, so each is asked here for itself."""
    for model in SOME["models"]:
        for device in SOME["devices"]:
            for precision in PRECISIONS:
                row = found[question, model.name, device.name, precision]
                job = {"model": model, "hardware": device, "precision": precision}
                if row["status"] == REFUSED:
                    with pytest.raises(ConfigError) as refusal:
                        _asked(question, job, 1)
                    assert refusal.value.message == row["reason"]
                    continue
                answer, low = _asked(question, job, row["devices"])
                assert answer.feasible == (row["status"] != TOO_LARGE)
                if answer.feasible:
                    assert (low is not None) == (row["status"] == BANDED)
                    assert answer.calibration == row["reason"]
                    if row["devices"] > 1:
                        assert not _asked(question, job, row["devices"] // 2)[0].feasible


def _asked(question, job, devices):
    if question == "inference":
        answer = SingleNodeSolver.solve(**job)
        return answer, answer.latency_low
    servers = [node for node in Systems.Nodes if node.accelerator is job["hardware"]]
    hardware = servers[0] if servers else job["hardware"]
    request = {"seq_len": PROMPT, "output_len": OUTPUT, "tp_size": devices}
    answer = ServingSolver.solve(**job | {"hardware": hardware}, **request)
    return answer, answer.itl_low


def test_training_fits_on_the_devices_that_are_stated_and_not_on_half(found):
    def step(fleet, model, precision, tp):
        return DistributedSolver.solve(
            model=model,
            fleet=fleet,
            precision=precision,
            batch_size=fleet.total_accelerators // tp,
            tp_size=tp,
            sequence_parallel=tp > 1,
            zero_stage=3,
            recompute="full",
        )

    several = 0
    for model in SOME["models"]:
        if not isinstance(model, TransformerModel):
            continue
        for device, server in ((Hardware.H100, "DGX_H100"), (Hardware.A100_40GB, "DGX_A100_40GB")):
            row = found["training", model.name, device.name, "bf16"]
            node = Systems.Nodes[server]
            count, rest = divmod(row["devices"], node.accelerators_per_node)
            if rest or count < 2:
                continue
            several += 1
            fleets = [
                Fleet(name="x", node=node, count=size, fabric=Systems.Fabrics.InfiniBand_NDR)
                for size in (count, count // 2)
            ]
            wide = [tp for tp in (1, 8) if model.split_heads % tp == 0]
            fits = [[step(one, model, "bf16", tp) for tp in wide] for one in fleets]
            assert any(one.feasible for one in fits[0])
            assert not any(one.feasible for one in fits[1])
            assert {one.step_latency_low is not None for one in fits[0]} == {
                row["status"] == BANDED
            }
    assert several >= 2


def test_a_random_device_alone_trains_what_the_solver_says():
    draw = random.Random(4)
    devices = draw.sample(list(Hardware), 12)
    models = [Models.GPT2, Models.Llama3_8B, Models.Qwen3_30B_A3B]
    for row in support(models=models, devices=devices, questions=["training"]):
        if row["devices"] != 1:
            continue
        model = next(one for one in models if one.name == row["model"])
        device = next(one for one in devices if one.name == row["device"])
        step = DistributedSolver.solve(
            model=model, fleet=standalone_fleet(device), batch_size=1, zero_stage=3,
            precision=row["precision"], recompute="full",
        )  # fmt: skip
        assert step.feasible == (row["status"] in (BANDED, UNBANDED))
        if step.feasible:
            assert (step.step_latency_low is not None) == (row["status"] == BANDED)
            assert step.calibration == row["reason"]


def test_a_device_that_trains_alone_is_not_listed_with_a_second_one():
    """One device gathers no copy of the weights, so the need of two does not predict its own."""
    formats = ("fp16", "fp32")  # the first one finds the capacity of each device
    rows = support(models=[Models.Mistral_7B], precisions=formats, questions=["training"])
    devices = {device.name: device for device in Hardware}
    pairs = [
        devices[row["device"]] for row in rows if row["devices"] == 2 and row["precision"] == "fp32"
    ]
    assert pairs
    for device in pairs:
        alone = DistributedSolver.solve(
            model=Models.Mistral_7B, fleet=standalone_fleet(device), batch_size=1, zero_stage=3,
            precision="fp32", recompute="full",
        )  # fmt: skip
        assert not alone.feasible, device.name


@pytest.mark.parametrize(
    ("wrong", "error"),
    [
        ({"models": Models.GPT2}, ConfigError),
        ({"models": [Hardware.H100]}, ConfigError),
        ({"devices": "H100"}, ConfigError),
        ({"devices": ["H100"]}, ConfigError),
        ({"precisions": ["fp17"]}, UnknownEntryError),
        ({"precisions": [16]}, ConfigError),
        ({"questions": ["train"]}, UnknownEntryError),
        ({"statuses": ["fine"]}, UnknownEntryError),
        ({"statuses": BANDED}, ConfigError),
    ],
)
def test_wrong_arguments_are_named(wrong, error):
    with pytest.raises(error) as fault:
        support(**wrong)
    if error is ConfigError:
        assert fault.value.argument == next(iter(wrong))


def test_rows_are_kept_by_their_status():
    asked = {"models": [Models.GPT2], "devices": [Hardware.H100, Hardware.T4]}
    found = list(support(**asked))
    for statuses in ([BANDED], [REFUSED, TOO_LARGE], []):
        kept = [row for row in found if row["status"] in statuses]
        assert list(support(**asked, statuses=statuses)) == kept
