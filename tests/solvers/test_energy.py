"""Energy from the workload: what the solvers of time say of power, and what follows from it."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mlsysim import (
    DistributedSolver,
    EconomicsSolver,
    Fleet,
    Hardware,
    Infra,
    Models,
    PowerCalibration,
    PowerCalibrations,
    ServingCalibrations,
    ServingSolver,
    SingleNodeSolver,
    Source,
    SustainabilitySolver,
    Systems,
)
from mlsysim.registry.calibration.power import power_calibration_for
from mlsysim.registry.operations import POWER_DRAW
from tests.samples import JOB

SERVED = {
    "model": Models.Llama3_8B,
    "hardware": Hardware.H100,
    "seq_len": 512,
    "output_len": 256,
    "batch_size": 16,
}
either = pytest.mark.parametrize("efficiency", [None, 0.5])


def value(quantity, unit):
    return quantity.to(unit).magnitude


@either
def test_energy_of_a_step_is_power_times_time(efficiency):
    r = DistributedSolver.solve(**JOB, efficiency=efficiency)
    expected = 256 * value(r.device_power, "W") * value(r.step_latency_total, "s")
    assert value(r.energy_per_step, "J") == pytest.approx(expected)
    assert value(r.energy_per_token, "J") == pytest.approx(expected / (256 * 2048))


@either
def test_power_of_a_step_is_that_of_its_utilizations(efficiency):
    r = DistributedSolver.solve(**JOB, efficiency=efficiency)
    c = PowerCalibrations.Hopper
    share = c.constant_share + c.compute_share * r.hfu + c.memory_share * (r.mbu or 0)
    assert value(r.device_power, "W") == pytest.approx(700 * min(1, share))
    assert (r.mbu is None) == (efficiency is not None)


@either
@pytest.mark.parametrize("devices", [1, 4])
def test_energy_of_a_token_is_power_over_throughput(devices, efficiency):
    group = {"hardware": Systems.Nodes.DGX_H100, "tp_size": devices}
    r = ServingSolver.solve(**SERVED | group, efficiency=efficiency)
    expected = devices * value(r.device_power, "W") / value(r.output_throughput, "token/s")
    assert value(r.energy_per_token, "J") == pytest.approx(expected)


@pytest.mark.parametrize("model", [Models.ResNet50, Models.Llama3_8B])
@pytest.mark.parametrize("hardware", [Hardware.H100, Hardware.A100, Hardware.T4, Hardware.ESP32_S3])
@either
def test_energy_of_a_pass_is_power_times_time(model, hardware, efficiency):
    precision = hardware.compute.default_precision
    r = SingleNodeSolver.solve(
        model=model, hardware=hardware, precision=precision, efficiency=efficiency
    )
    c = power_calibration_for(hardware)
    share = c.constant_share + c.compute_share * r.mfu + c.memory_share * r.mbu
    assert r.device_power.to("W").magnitude == pytest.approx(
        value(hardware.tdp, "W") * min(1, share)
    )
    expected = value(r.device_power, "W") * value(r.latency, "s")
    assert value(r.energy, "J") == pytest.approx(expected)
    assert value(r.energy, "J") <= value(hardware.tdp, "W") * value(r.latency, "s") * (1 + 1e-12)
    assert r.power_calibration == c.name


def test_a_pass_that_leaves_the_device_waiting_draws_less_than_its_design_power():
    r = SingleNodeSolver.solve(model=Models.BERT_Base, hardware=Hardware.A100, seq_len=8)
    assert r.bottleneck == "overhead"
    assert value(r.energy, "J") < 0.5 * 400 * value(r.latency, "s")


@pytest.mark.parametrize("efficiency", [None, 0.7])
def test_the_board_holds_the_power_of_a_long_prompt_at_the_limit(efficiency):
    r = SingleNodeSolver.solve(
        model=Models.Llama3_8B, hardware=Hardware.H100, batch_size=8, efficiency=efficiency
    )
    assert value(r.device_power, "W") == pytest.approx(700)
    assert r.power_utilization == pytest.approx(1)
    assert value(r.energy, "J") == pytest.approx(700 * value(r.latency, "s"))


def test_a_pass_of_next_to_no_work_draws_the_constant_power():
    """What is left is the fixed time of the layers, in which nothing is computed or moved."""
    tiny = replace(
        Models.BERT_Base,
        hidden_dim=8,
        heads=1,
        kv_heads=1,
        ffn_dim=8,
        vocab_size=8,
        parameters=None,
    )
    r = SingleNodeSolver.solve(model=tiny, hardware=Hardware.H100, seq_len=1)
    assert r.mfu < 1e-6
    assert r.mbu < 1e-3
    least = PowerCalibrations.Hopper.constant_share
    assert value(r.device_power, "W") == pytest.approx(least * 700, rel=0.01)
    expected = (least - POWER_DRAW.idle_share) / (1 - POWER_DRAW.idle_share)
    assert r.power_utilization == pytest.approx(expected, rel=0.01)


def test_a_single_sequence_streams_the_weights():
    r = ServingSolver.solve(**SERVED | {"batch_size": 1, "seq_len": 16}, efficiency=0.5)
    assert r.mbu == pytest.approx(1, rel=0.02)
    assert r.hfu < 0.02


@either
def test_a_prefill_alone_is_bound_by_arithmetic(efficiency):
    r = ServingSolver.solve(**SERVED | {"output_len": 0, "seq_len": 4096}, efficiency=efficiency)
    assert r.hfu > 0.4 > 0.2 > r.mbu
    assert value(r.energy_per_token, "J") > 0


def test_the_energy_is_derived_from_the_work():
    derivation = DistributedSolver.solve(**JOB).explain("energy_per_step")
    summaries = " ".join(step.summary for step in derivation.steps)
    assert "the energy roofline" in summaries
    assert "Bytes that a device moves through its memory in a training step" in summaries
    sources = {item.origin: str(item.source) for item in derivation.inputs}
    fitted = sources["power_calibration.compute_share"]
    assert fitted.startswith("Fitted by research/fits/power.py")


def test_predicted_utilization_gives_back_the_predicted_power():
    step = DistributedSolver.solve(**JOB)
    for solver in (SustainabilitySolver, EconomicsSolver):
        month = solver.solve(
            fleet=JOB["fleet"],
            duration_days=30,
            datacenter=Infra.Quebec,
            utilization=step.power_utilization,
        )
        assert value(month.device_power, "W") == pytest.approx(value(step.device_power, "W"))


def test_an_uncalibrated_device_says_so():
    run = SERVED | {"hardware": Hardware.MI300X}
    assert ServingSolver.solve(**run).power_calibration == "Uncalibrated"
    assert ServingSolver.solve(**SERVED).power_calibration == "Hopper"
    one = {"model": Models.ResNet50, "hardware": Hardware.MI300X}
    assert SingleNodeSolver.solve(**one).power_calibration == "Uncalibrated"
    ours = PowerCalibration(
        name="ours",
        source=Source(title="A meter"),
        measured_on="MI300X",
        constant_share=0.2,
        compute_share=1,
        memory_share=0.5,
    )
    assert ServingSolver.solve(**run, power_calibration=ours).power_calibration == "ours"
    assert SingleNodeSolver.solve(**one, power_calibration=ours).power_calibration == "ours"


def test_without_a_design_power_nothing_is_said():
    dark = replace(Hardware.H100, tdp=None)
    r = ServingSolver.solve(**SERVED | {"hardware": dark})
    assert (r.device_power, r.energy_per_token, r.power_utilization) == (None, None, None)
    fleet = Fleet(
        name="dark",
        node=replace(Systems.Nodes.DGX_H100, accelerator=dark),
        count=4,
        fabric=Systems.Fabrics.InfiniBand_NDR,
    )
    r = DistributedSolver.solve(**JOB | {"fleet": fleet, "tp_size": 8})
    assert (r.energy_per_step, r.energy_per_token, r.power_utilization) == (None, None, None)


# The design power of a microcontroller is the mean power of its runs, whatever it computes.
@pytest.mark.parametrize("name", sorted(set(PowerCalibrations.names()) - {"Microcontroller"}))
def test_a_working_device_draws_no_less_than_an_idle_one(name):
    row = PowerCalibrations[name]
    assert POWER_DRAW.idle_share <= row.constant_share < 0.5
    # At the peak rate the board would pass its limit: that is why products do not reach it.
    assert row.constant_share + row.compute_share > 1


def test_generations_share_their_constants():
    assert (
        power_calibration_for(Hardware.H200).compute_share == PowerCalibrations.Hopper.compute_share
    )
    found = ServingSolver.solve(**SERVED | {"hardware": Hardware.H200}).power_calibration
    assert found == "Hopper (no measurement to compare with)"


def test_a_band_stands_where_runs_were_measured():
    r = ServingSolver.solve(**SERVED)
    assert r.energy_per_token_low < r.energy_per_token < r.energy_per_token_high
    for changed in (
        {"hardware": Hardware.H200},
        {"hardware": Hardware.MI300X},
        {"efficiency": 0.5},
    ):
        r = ServingSolver.solve(**SERVED | changed)
        assert (r.energy_per_token_low, r.energy_per_token_high) == (None, None)


@settings(max_examples=15, deadline=None)
@given(layers=st.integers(4, 40), batch=st.integers(1, 64))
def test_more_work_takes_more_energy(layers, batch):
    def energy(layers, batch):
        r = DistributedSolver.solve(
            model=replace(Models.Llama3_8B, layers=layers, parameters=None),
            fleet=Systems.Clusters.Research_256,
            batch_size=256 * batch,
            seq_len=2048,
        )
        assert 0 <= r.power_utilization <= 1
        return value(r.energy_per_step, "J")

    least = energy(layers, batch)
    assert energy(layers + 4, batch) > least
    assert energy(layers, batch + 1) > least


MIXTURE = {
    "model": Models.Qwen3_235B_A22B,
    "hardware": Systems.Nodes.DGX_H100,
    "seq_len": 150,
    "output_len": 800,
    "batch_size": 8,
    "precision": "fp8",
    "tp_size": 8,
    "ep_size": 8,
}


def mixture(changed=None, **constants):
    row = replace(ServingCalibrations.Hopper_vLLM_0_11, **constants)
    return ServingSolver.solve(**MIXTURE | (changed or {}), calibration=row)


def bytes_of_a_token(r):
    return r.mbu / r.output_throughput.to("token/s").magnitude


def test_rows_of_zeros_take_time_and_energy():
    least, most = mixture(), mixture(expert_padding=127)
    assert most.itl > least.itl
    assert most.energy_per_token > 1.2 * least.energy_per_token
    # 64 copies of 8 tokens, of which a device's own are an eighth, and 16 experts of 127 rows.
    rows, each = 64 * 7 / 8 + 16 * 127, 2 * 3 * 4096 * 1536 * 94
    padding = rows * each / 1978.9e12
    cycle = 800 * 8 / most.output_throughput.to("token/s").magnitude
    assert most.hfu == pytest.approx(799 * padding / cycle, rel=0.1)
    dense = {"model": Models.Llama3_70B, "ep_size": 1}
    assert mixture(dense).itl == mixture(dense, expert_padding=127).itl


def test_others_wait_for_the_busiest_device_and_move_no_more_bytes():
    mean, busiest = mixture(expert_waiting=0.0, mixing=0), mixture(mixing=0)
    assert busiest.itl > 1.05 * mean.itl
    assert bytes_of_a_token(busiest) == pytest.approx(bytes_of_a_token(mean))
    whole = {"ep_size": 1}
    assert mixture(whole).itl == mixture(whole, expert_waiting=0.0).itl


def test_a_lower_bandwidth_of_experts_moves_no_more_bytes():
    slow, fast = (mixture(expert_memory=share, mixing=0) for share in (0.5, 1.0))
    assert slow.itl > fast.itl
    assert bytes_of_a_token(slow) == pytest.approx(bytes_of_a_token(fast))


def test_ranks_that_pad_their_passes_prefill_more_slowly():
    ranks = {"tp_size": 1, "attention_dp": 8}
    padded, own = mixture(ranks), mixture(ranks, padded_ranks=0.0)
    assert value(padded.prefill_latency, "s") > value(own.prefill_latency, "s")
    assert padded.decode_latency == own.decode_latency
    assert mixture().ttft == mixture(padded_ranks=0.0).ttft
