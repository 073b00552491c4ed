"""Which constants a prediction takes, and when it has a band: only where comparable runs exist."""

from dataclasses import replace

import pytest

from mlsysim import (
    Calibrations,
    DistributedSolver,
    Hardware,
    Models,
    PowerCalibrations,
    ServingCalibrations,
    ServingSolver,
    Systems,
)
from mlsysim.core.types import Fleet, Node
from mlsysim.registry.calibration.power import power_calibration_for
from mlsysim.registry.calibration.serving import pass_calibration_for, serving_calibration_for
from mlsysim.registry.calibration.training import calibration_for

KNOWN = ("A100", "H20", "H100", "H200", "H800", "B200", "B300")


def fleet_of(accelerator):
    usual = Systems.Nodes.DGX_H100
    node = Node(
        name="server",
        source=usual.source,
        accelerator=accelerator,
        accelerators_per_node=8,
        scale_up=usual.scale_up,
        nics_per_node=8,
    )
    return Fleet(name="fleet", node=node, count=2, fabric=Systems.InfiniBand_NDR)


def train(accelerator, **changes):
    plan = {"precision": accelerator.compute.default_precision, "tp_size": 8} | changes
    return DistributedSolver.solve(
        model=Models.Llama3_8B,
        fleet=fleet_of(accelerator),
        batch_size=16,
        microbatch_count=8,
        **plan,
    )


def serve(accelerator, **changes):
    plan = {"precision": accelerator.compute.default_precision} | changes
    return ServingSolver.solve(
        model=changes.pop("model", Models.Llama3_8B), hardware=accelerator, seq_len=1024, **plan
    )


TRAINABLE = [n for n in Hardware.names() if Hardware[n].compute.default_precision != "int8"]


@pytest.mark.parametrize("name", TRAINABLE)
def test_training_takes_the_constants_of_the_device_or_says_that_there_are_none(name):
    result = train(Hardware[name])
    if any(mark in name for mark in KNOWN):
        family = next(mark for mark in ("A100", "H", "B") if mark in name)
        taken = result.calibration
        assert taken.startswith("Blackwell" if family == "B" else family)
    else:
        assert result.calibration == "Uncalibrated (no run to compare with)"
        assert result.step_latency_low is None


@pytest.mark.parametrize("name", Hardware.names())
def test_serving_takes_the_constants_of_the_device_or_says_that_there_are_none(name):
    result = serve(Hardware[name])
    taken = serving_calibration_for(Hardware[name])
    assert (taken is ServingCalibrations.Uncalibrated) == (not any(m in name for m in KNOWN))
    assert result.calibration.startswith(taken.name)
    assert (result.itl_low is None) == ("no run to compare with" in result.calibration)


@pytest.mark.parametrize("name", ["A100", "H200", "B200"])
def test_a_renamed_device_takes_the_constants_of_its_generation(name):
    row, mine = Hardware[name], replace(Hardware[name], name="mine")
    for choose in (serving_calibration_for, pass_calibration_for):
        assert choose(mine) is choose(row) is not ServingCalibrations.Uncalibrated
    how = {"fused": True, "sharded": False, "narrow": False}
    assert calibration_for(mine, **how) is calibration_for(row, **how)
    assert power_calibration_for(mine).compute_share == power_calibration_for(row).compute_share
    # Its power was not measured, so there is no band.
    assert power_calibration_for(mine).energy_band_low is None


def test_a_name_alone_chooses_no_constants():
    mine = replace(Hardware.MI300X, name="NVIDIA H100 SXM5 80GB", generation=None)
    assert serving_calibration_for(mine) is ServingCalibrations.Uncalibrated
    assert pass_calibration_for(mine) is ServingCalibrations.Uncalibrated
    assert power_calibration_for(mine) is PowerCalibrations.Uncalibrated
    how = {"fused": True, "sharded": True, "narrow": True}
    assert calibration_for(mine, **how) is Calibrations.Uncalibrated


@pytest.mark.parametrize("name", Hardware.names())
def test_energy_has_a_band_only_on_the_devices_that_were_measured(name):
    found = power_calibration_for(Hardware[name])
    measured = {"H100": PowerCalibrations.Hopper, "B200": PowerCalibrations.Blackwell}
    assert (found.energy_band_low is not None) == (name in measured)
    if name in measured:
        assert found is measured[name]


def test_a_plan_on_a100_without_shards_takes_the_constants_of_such_plans():
    chosen = {
        (fused, sharded): calibration_for(
            Hardware.A100, fused=fused, sharded=sharded, narrow=False
        ).name
        for fused in (True, False)
        for sharded in (True, False)
    }
    fsdp, megatron = Calibrations.A100_FSDP.name, Calibrations.A100_Megatron.name
    assert chosen == {
        (True, True): fsdp,
        (True, False): megatron,
        (False, True): megatron,
        (False, False): megatron,
    }
    assert train(Hardware.A100).calibration == megatron
    assert train(Hardware.A100, tp_size=1, zero_stage=3).calibration == fsdp
    assert train(Hardware.A100, calibration=Calibrations.A100_FSDP).calibration == fsdp


@pytest.mark.parametrize("precision", ["fp64", "fp32", "tf32"])
def test_formats_that_no_run_used_have_no_band(precision):
    for result in (
        train(Hardware.A100, precision=precision),
        serve(Hardware.H100, precision=precision),
    ):
        assert "no run to compare with" in result.calibration
    assert train(Hardware.A100, precision=precision).step_latency_high is None
    assert serve(Hardware.H100, precision=precision).ttft_high is None
    assert train(Hardware.A100, precision="fp16").step_latency_high is not None
    assert serve(Hardware.H100, precision="fp8").ttft_high is not None


def test_integers_and_served_experts_have_no_band():
    assert serve(Hardware.H100, precision="int8").itl_low is None
    experts = ServingSolver.solve(
        model=Models.Mixtral_8x7B, hardware=Systems.Nodes.DGX_H100, tp_size=8, seq_len=1024
    )
    assert experts.itl_low is None
    assert "no run to compare with" in experts.calibration


def test_wider_activations_double_the_element_wise_traffic():
    constants = Calibrations.A100_Megatron
    for name in ("hidden", "ffn", "score"):
        half = constants.si(f"{name}_bytes")
        assert constants.traffic(half, "fp16") == constants.traffic(half, "fp8") == half
        assert constants.traffic(half, "tf32") == 2 * half


def test_a_derivation_names_the_runs_behind_a_constant_of_one_format():
    constants = Calibrations.A100_Megatron
    assert constants.gemm("bf16") == constants.gemm_efficiency
    assert constants.gemm("fp8") == constants.gemm_efficiency_fp8
    assert "megatron21" in constants.source_of("gemm_efficiency").locator
    assert not constants.is_estimated("gemm_efficiency")
    assert constants.is_estimated("gemm_efficiency_fp8")
    text = str(train(Hardware.A100).explain("step_latency_total"))
    lines = [line for line in text.splitlines() if "<- calibration.gemm_" in line]
    assert lines
    assert all("megatron21" in line or "gemm_overhead" in line for line in lines)
