"""The inverse question: what is found, solved again, reaches the target."""

from dataclasses import replace

import pytest

from mlsysim import (
    Q_,
    ConfigError,
    DistributedSolver,
    EconomicsSolver,
    Hardware,
    Models,
    ReliabilitySolver,
    ServingSolver,
    SingleNodeSolver,
    Systems,
    UnknownEntryError,
    required,
)

CLUSTER = Systems.Clusters.Research_256
JOB = {
    "model": Models.Llama3_70B,
    "fleet": CLUSTER,
    "batch_size": 256,
    "seq_len": 2048,
    "tp_size": 8,
    "pp_size": 4,
    "microbatch_count": 16,
}


@pytest.fixture(scope="module")
def step():
    return DistributedSolver.solve(**JOB)


def seconds(result):
    return result.step_latency_total.to("s").magnitude


def test_the_bandwidth_found_gives_the_target(step):
    target = 0.9 * seconds(step)
    found = required(step, "step_latency_total", Q_(target, "s"), by="fleet.fabric.bandwidth")
    fabric = replace(CLUSTER.fabric, bandwidth=found.value)
    again = DistributedSolver.solve(**JOB | {"fleet": replace(CLUSTER, fabric=fabric)})
    assert seconds(again) == pytest.approx(target, rel=1e-9)
    assert seconds(again) == pytest.approx(found.reached.to("s").magnitude, rel=1e-12)
    assert found.value > CLUSTER.fabric.bandwidth
    assert found.monotone
    assert found.limited_by == ""


def test_a_target_out_of_reach_is_said_to_be(step):
    """An infinite network leaves the arithmetic."""
    found = required(step, "step_latency_total", Q_(1, "s"), by="fleet.fabric.bandwidth")
    fabric = replace(CLUSTER.fabric, bandwidth=Q_(1e9, "GB/s"))
    limit = DistributedSolver.solve(**JOB | {"fleet": replace(CLUSTER, fabric=fabric)})
    assert found.value is None
    assert found.reached.to("s").magnitude == pytest.approx(seconds(limit), rel=2e-3)
    assert found.limited_by == "fleet.node.accelerator.compute.fp16"
    assert found.limited_by in str(found)


def test_whole_numbers_stay_whole_and_fit(step):
    target = Q_(0.75 * seconds(step), "s")
    found = required(step, "step_latency_total", target, by="fleet.count")
    assert isinstance(found.value, int)
    again = DistributedSolver.solve(**JOB | {"fleet": replace(CLUSTER, count=found.value)})
    assert again.feasible
    assert seconds(again) == pytest.approx(found.reached.to("s").magnitude)
    assert again.step_latency_total <= target
    for count in range(CLUSTER.count + 1, found.value):
        try:
            less = DistributedSolver.solve(**JOB | {"fleet": replace(CLUSTER, count=count)})
        except ConfigError:
            continue
        assert not less.feasible or less.step_latency_total > target


def test_a_model_of_another_depth_counts_its_parameters(step):
    found = required(step, "memory", step.memory * 1.05, by="model.layers")
    assert found.value > Models.Llama3_70B.layers
    deeper = replace(Models.Llama3_70B, layers=found.value, parameters=None)
    again = DistributedSolver.solve(**JOB | {"model": deeper})
    assert again.memory.to("GB").magnitude == pytest.approx(
        found.reached.to("GB").magnitude, rel=0.01
    )


def test_what_has_no_effect_is_said_to_have_none(step):
    found = required(step, "memory", step.memory * 2, by="fleet.fabric.bandwidth")
    assert found.value is None
    assert found.reached == step.memory


def test_constants_and_choices_left_open_can_be_asked_for(step):
    target = Q_(0.95 * seconds(step), "s")
    found = required(step, "step_latency_total", target, by="calibration.machine.gemm_efficiency")
    assert 0.75 < found.value < 1
    r = ReliabilitySolver.solve(fleet=CLUSTER, job_duration_hours=720, checkpoint_time_s=60)
    rarer = required(r, "goodput", 0.99, by="device_mtbf")
    assert rarer.value > r.device_mtbf
    again = ReliabilitySolver.solve(
        fleet=CLUSTER, job_duration_hours=720, checkpoint_time_s=60, device_mtbf=rarer.value
    )
    assert again.goodput == pytest.approx(0.99, rel=1e-9)
    sooner = required(r, "goodput", 0.99, by="recovery.restart_time")
    assert sooner.value is None  # checkpoints alone take more than a hundredth


def test_an_answer_that_rises_and_falls_is_said_to():
    """Goodput is best at one interval, and falls on both sides of it."""
    r = ReliabilitySolver.solve(
        fleet=CLUSTER,
        job_duration_hours=720,
        checkpoint_time_s=60,
        checkpoint_interval=Q_(1, "minute"),
    )
    found = required(r, "goodput", r.goodput + 0.1, by="checkpoint_interval")
    assert not found.monotone
    assert found.reached == pytest.approx(r.goodput + 0.1)
    assert Q_(1, "minute") < found.value < r.optimal_checkpoint_interval


@pytest.mark.parametrize(
    ("result", "field", "factor", "by"),
    [
        (
            SingleNodeSolver.solve(model=Models.Llama3_8B, hardware=Hardware.H100),
            "latency",
            0.9,
            "hardware.compute.fp16",
        ),
        (
            ServingSolver.solve(model=Models.Llama3_8B, hardware=Systems.Nodes.DGX_H100),
            "itl",
            0.9,
            "hardware.accelerator.memory.bandwidth",
        ),
        (
            EconomicsSolver.solve(fleet=CLUSTER, duration_days=30, kwh_price=0.1),
            "opex_energy",
            2,
            "kwh_price",
        ),
    ],
)
def test_other_solvers_answer_too(result, field, factor, by):
    target = factor * getattr(result, field)
    found = required(result, field, target, by=by)
    assert found.reached.to(target.units).magnitude == pytest.approx(target.magnitude, rel=1e-9)


def test_errors_name_the_argument(step):
    for given, argument in (
        ({"by": "fleet.fabric.bandwdth"}, "bandwdth"),
        ({"by": "model.mlp_matrices"}, "by"),
        ({"by": "fleet"}, "by"),
        ({"by": "nothing"}, "nothing"),
        ({"by": 3}, "3"),
        ({"target": Q_(1, "GB")}, "target"),
        ({"target": float("nan")}, "target"),
        ({"target": "soon"}, "target"),
        ({"target": -0.5}, "target"),
        ({"target": Q_(-1, "ms")}, "target"),
    ):
        asked = {"field": "step_latency_total", "target": Q_(2, "s"), "by": "batch_size"} | given
        with pytest.raises(ConfigError) as caught:
            required(step, **asked)
        assert caught.value.argument == argument
    with pytest.raises(UnknownEntryError):
        required(step, "reasons", 1, by="batch_size")
    with pytest.raises(ConfigError) as caught:
        required(None, "memory", 1, by="batch_size")
    assert caught.value.argument == "result"


def test_the_depth_of_a_served_model_is_not_listed_layer_by_layer():
    served = ServingSolver.solve(
        model=Models.Llama3_8B, hardware=Systems.Nodes.DGX_H100, pp_size=2, batch_size=8
    )
    found = required(served, "itl", 2 * served.itl, by="model.layers")
    assert found.value > Models.Llama3_8B.layers
