"""Which constants a prediction takes, and when it has a band: only where comparable runs exist."""

import pickle
from dataclasses import replace

import pytest

import mlsysim
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
from mlsysim.core.errors import ConfigError, UnknownEntryError
from mlsysim.core.types import Fleet, Node
from mlsysim.core.types.fitted import traffic_in
from mlsysim.registry.calibration.power import power_calibration_for
from mlsysim.registry.calibration.serving import pass_calibration_for, serving_calibration_for
from mlsysim.registry.calibration.training import (
    Frameworks,
    Machines,
    calibration_for,
    calibration_of,
)

KNOWN = ("A100", "A30", "H20", "H100", "H200", "H800", "B200", "B300", "Gaudi2", "RTX_", "GTX_")
KNOWN += ("DGX_Spark", "RX_", "Ryzen_", "Strix_Halo")
APPLE = ("MacBook_M3_Max", "M1_Max", "M2_Max", "M2_Ultra", "M3_Pro", "M3_Ultra", "M4_Max", "M4_Pro")
APPLE += ("M1", "M5", "M5_Max", "M5_Pro")
UNMEASURED = ("RTX_PRO_6000", "RTX_A4000", "RTX_A5000", "RTX_A6000", "RTX_4000_Ada")
UNMEASURED += ("RTX_5000_Ada", "RTX_6000_Ada", "RTX_PRO_6000_Workstation", "RTX_PRO_6000_Max_Q")


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
KEPT = {  # devices with constants of their own, and those that share a generation's
    "A100": Machines.A100,
    "A100_40GB": Machines.A100,
    "H100": Machines.H100,
    "H100_HBM2e": Machines.H100_HBM2e,
    "H800": Machines.H100,
    "H200": Machines.H200,
    "B200": Machines.B200,
    "GB200": Machines.B200,
    "B200_Limited": Machines.B200_Limited,
    "B300": Machines.B300,
    "GB300": Machines.B300,
    "MI300X": Machines.MI300X,
    "TPUv5p": Machines.TPUv5p,
    "TPUv6e": Machines.TPUv6e,
    "TPUv7x": Machines.TPUv7x,
    "MI325X": Machines.MI325X,
    "MI350X": Machines.MI355X,
    "MI355X": Machines.MI355X,
    "Gaudi2": Machines.Gaudi2,
    "Gaudi3": Machines.Gaudi3,
}


def test_training_takes_the_constants_of_the_device_and_the_band_of_unseen_systems():
    for name in TRAINABLE:
        device = Hardware[name]
        chosen = calibration_for(device)
        if name in KEPT:
            assert chosen.machine is KEPT[name], name
        elif device.generation in ("ampere", "hopper", "blackwell"):
            assert chosen.machine in (Machines.A100, Machines.H100, Machines.B200), name
        else:
            assert chosen.machine is Machines.Uncalibrated, name
        google = name.startswith("TPU")
        software = Frameworks.MaxText if google else Frameworks.Megatron_Core
        assert chosen.software is software, name
        result = train(device)
        assert result.calibration.startswith(chosen.name), name
        assert result.band == ("unseen" if result.step_latency_low is not None else ""), name


def test_a_named_calibration_brings_the_band_of_its_families():
    named = train(Hardware.H100, calibration=Calibrations.H100_Megatron)
    usual = train(Hardware.H100)
    assert (named.band, usual.band) == ("family", "unseen")
    assert named.step_latency_total == usual.step_latency_total
    assert named.step_latency_low == named.step_latency_family_low
    assert usual.step_latency_low == usual.step_latency_unseen_low
    assert usual.step_latency_low < named.step_latency_low
    assert usual.step_latency_high > named.step_latency_high


def test_another_constant_makes_a_system_that_nobody_measured():
    mixed = Calibrations.H100_Megatron.but(tensor_overlap=0.1, nic_efficiency=0.5)
    assert mixed.software.tensor_overlap == 0.1
    assert mixed.machine.nic_efficiency == 0.5
    assert mixed.machine.gemm_efficiency == Machines.H100.gemm_efficiency
    result = train(Hardware.H100, calibration=mixed)
    assert result.band == "unseen"
    assert result.step_latency_family_low is None
    with pytest.raises(UnknownEntryError, match="tensor_overlap"):
        Calibrations.H100_Megatron.but(tensor_overlapp=0.1)


def test_a_calibration_is_put_together_of_a_machine_and_software():
    machine, software = mlsysim.Machines.H200, mlsysim.Frameworks.FSDP2_Compiled
    made = mlsysim.Calibration(machine=machine, software=software)
    assert isinstance(machine, mlsysim.Machine)
    assert isinstance(software, mlsysim.Software)
    assert made.name == f"{machine.name}, {software.name}"
    assert isinstance(made.source, mlsysim.Source)
    assert machine.name in made.source.locator
    assert software.name in made.source.locator
    result = train(Hardware.H200, calibration=made)
    usual = calibration_of(machine, software)
    assert result.band == "unseen"
    assert result.calibration == made.name
    assert result.step_latency_family_low is None
    assert made.unseen_band == usual.unseen_band
    same = train(Hardware.H200, calibration=usual)
    assert (result.step_latency_total, result.step_latency_low, result.step_latency_high) == (
        same.step_latency_total,
        same.step_latency_low,
        same.step_latency_high,
    )
    named = mlsysim.Calibration(machine=machine, software=software, name="mine")
    assert named.name == "mine"
    assert pickle.loads(pickle.dumps(made)) == made


def test_constants_without_bands_stay_without():
    bare = Calibrations.H100_Megatron.without_bands()
    result = train(Hardware.H100, calibration=bare)
    assert (result.band, result.step_latency_low) == ("", None)


@pytest.mark.parametrize("missing", ["machine", "software"])
def test_a_calibration_needs_both(missing):
    parts = {"machine": Machines.H100, "software": Frameworks.Megatron_Core}
    with pytest.raises(ConfigError) as caught:
        mlsysim.Calibration(**parts | {missing: "H100"})
    assert caught.value.argument == missing


@pytest.mark.parametrize(
    ("changes", "argument"),
    [
        ({"gemm_speed": 5}, "gemm_speed"),
        ({"gemm_speed": 1.46}, "gemm_speed"),
        ({"attention_speed": 3}, "attention_speed"),
        ({"attention_efficiency": 0.9, "attention_backward": 1.3}, "attention_speed"),
        ({"gemm_efficiency": 1.1}, "gemm_efficiency"),
        ({"tensor_overlap": 1.1}, "tensor_overlap"),
    ],
)
def test_constants_beyond_the_physical_limit_are_refused(changes, argument):
    with pytest.raises(ConfigError) as caught:
        Calibrations.H100_Megatron.but(**changes)
    assert caught.value.argument == argument
    assert "at most" in str(caught.value)


def test_software_may_reach_the_peak_and_no_more():
    machine = Machines.H100
    highest = max(machine.gemm_efficiency, machine.gemm_efficiency_fp8, machine.gemm_efficiency_fp4)
    base = Calibrations.H100_Megatron
    assert base.but(gemm_speed=1 / highest).software.gemm_speed == 1 / highest
    with pytest.raises(ConfigError):
        base.but(gemm_speed=1.001 / highest)


def test_serving_takes_the_constants_of_the_device_or_says_that_there_are_none():
    for name in Hardware.names():
        result, taken = serve(Hardware[name]), serving_calibration_for(Hardware[name])
        known = name in APPLE or (any(m in name for m in KNOWN) and name not in UNMEASURED)
        assert (taken is not ServingCalibrations.Uncalibrated) == known, name
        assert result.calibration.startswith(taken.name), name
        assert (result.itl_low is None) == ("no run to compare with" in result.calibration), name


@pytest.mark.parametrize("name", ["A100", "H200", "B200"])
def test_a_renamed_device_takes_the_constants_of_its_generation(name):
    row, mine = Hardware[name], replace(Hardware[name], name="mine")
    for choose in (serving_calibration_for, pass_calibration_for):
        assert choose(mine) is choose(row) is not ServingCalibrations.Uncalibrated
    assert calibration_for(mine).machine in (Machines.A100, Machines.H100, Machines.B200)
    assert power_calibration_for(mine).compute_share == power_calibration_for(row).compute_share
    # Its power was not measured, so there is no band.
    assert not power_calibration_for(mine).energy_band.known


def test_a_name_alone_chooses_no_constants():
    mine = replace(Hardware.MI300X, name="NVIDIA H100 SXM5 80GB", generation=None)
    assert serving_calibration_for(mine) is ServingCalibrations.Uncalibrated
    assert pass_calibration_for(mine) is ServingCalibrations.Uncalibrated
    assert power_calibration_for(mine) is PowerCalibrations.Uncalibrated
    assert calibration_for(mine).machine is Machines.Uncalibrated


def test_energy_has_a_band_only_on_the_devices_that_were_measured():
    measured = {
        "H100": PowerCalibrations.Hopper,
        "B200": PowerCalibrations.Blackwell,
        "B300": PowerCalibrations.Blackwell_Ultra,
        **dict.fromkeys(
            ("STM32L4R5", "STM32U575", "STM32H7A3", "NDP120_30MHz", "NDP120_98MHz"),
            PowerCalibrations.Microcontroller,
        ),
    }
    chosen = {name: power_calibration_for(Hardware[name]) for name in Hardware.names()}
    banded = {name: c for name, c in chosen.items() if c.energy_band.known}
    assert banded == measured


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


def test_integers_have_no_band_and_new_models_a_wider_one():
    assert serve(Hardware.H100, precision="int8").itl_low is None
    known, new = (
        ServingSolver.solve(model=model, hardware=Systems.Nodes.HGX_H200, tp_size=8, seq_len=1024)
        for model in (Models.Qwen3_235B_A22B, Models.Mixtral_8x7B)
    )
    widths = [r.itl_high / r.itl_low for r in (known, new)]
    low = (known.itl_low / known.itl).magnitude
    assert low == pytest.approx(ServingCalibrations.Hopper_TensorRT.itl_band.low)
    assert widths[1] > widths[0]


def test_wider_activations_double_the_element_wise_traffic():
    half = Frameworks.Megatron_Core.si("hidden_bytes")
    assert traffic_in("fp16", half) == traffic_in("fp8", half) == half
    assert traffic_in("tf32", half) == 2 * half


def test_a_derivation_names_the_runs_behind_a_constant_of_one_format():
    machine = Machines.H100
    assert machine.gemm("bf16") == machine.gemm_efficiency
    assert machine.gemm("fp8") == machine.gemm_efficiency_fp8
    assert "measurements" in machine.source_of("gemm_efficiency").locator
    assert not machine.is_estimated("gemm_efficiency")
    assert machine.is_estimated("gemm_efficiency_fp4")  # the H100 does not compute in four bits
    inputs = train(Hardware.H100).explain("step_latency_total").inputs
    constants = [item for item in inputs if item.origin.startswith("calibration.machine.gemm_")]
    assert constants
    assert all("measurements" in str(item.source) for item in constants)


@pytest.mark.parametrize(("name", "best"), [("MI325X", 784.9), ("MI355X", 1565), ("Gaudi3", 1243)])
def test_constants_without_runs_come_from_their_products(name, best):
    """Maximum achievable matmul, S. Bekman: training reaches a part of it on devices with runs."""
    device = Hardware[name]
    machine = calibration_for(device).machine
    measured = best / device.compute.bf16.to("TFLOP/s").magnitude
    assert 0.8 * measured < machine.gemm_efficiency < 0.95 * measured
    assert machine.is_estimated("gemm_efficiency")
    unmeasured = any("no run was measured" in reason for reason in train(device).outside)
    assert unmeasured == (name == "Gaudi3")  # the others have runs in 8 bits


@pytest.mark.parametrize("solver", [mlsysim.ServingSolver, mlsysim.SingleNodeSolver])
def test_the_textbook_takes_no_calibration(solver):
    constants = mlsysim.ServingCalibrations.Hopper_vLLM
    with pytest.raises(mlsysim.ConfigError) as caught:
        solver.solve(
            model=mlsysim.Models.Llama3_8B,
            hardware=Hardware.H100,
            efficiency=0.5,
            calibration=constants,
        )
    assert caught.value.argument == "calibration"
