"""Levers between replicas: compression, overlap, accumulation."""

from dataclasses import replace

import pytest

from mlsysim import (
    Q_,
    Calibrations,
    ConfigError,
    DistributedSolver,
    Models,
    advise,
    sweep,
)
from mlsysim.registry.calibration.training import Frameworks
from tests.samples import JOB


def without_latency(fleet):
    """Return a fleet whose messages of no size take no time: only volume counts, and rings win."""
    none = Q_("0 s")
    node = replace(fleet.node, scale_up=replace(fleet.node.scale_up, latency=none))
    return replace(fleet, node=node, fabric=replace(fleet.fabric, latency=none))


def exchange(**more):
    return DistributedSolver.solve(**JOB | more).dp_communication_latency.to("s").magnitude


@pytest.mark.parametrize("efficiency", [None, 0.5])
def test_plain_gradients_shrink_by_the_ratio_without_latency(efficiency):
    bare = {"efficiency": efficiency, "fleet": without_latency(JOB["fleet"])}
    if efficiency is None:
        bare["gradient_overlap"] = 0.0
    whole, fourth = (exchange(gradient_compression=ratio, **bare) for ratio in (1, 4))
    assert fourth == pytest.approx(whole / 4)


# Of 16 microbatches the second stage scatters the gradients of each, and gathers weights once.
@pytest.mark.parametrize(("stage", "kept"), [(1, 1 / 2), (2, 1 / 17), (3, 2 / 3)])
def test_weights_that_are_handed_out_stay_whole(stage, kept):
    plan = {"efficiency": 0.5, "zero_stage": stage, "fleet": without_latency(JOB["fleet"])}
    least = exchange(gradient_compression=1e12, **plan)
    assert least == pytest.approx(kept * exchange(**plan))


def test_memory_holds_gradients_whole():
    plain, less = (
        DistributedSolver.solve(**JOB, gradient_compression=ratio).memory for ratio in (1, 100)
    )
    assert plain == less


@pytest.mark.parametrize("stage", [0, 1, 2, 3])
def test_overlap_hides_more_the_more_it_is_turned_up(stage):
    # One microbatch covers what it has time for, and no more.
    job = {"zero_stage": stage, "microbatch_count": 2}
    times = [exchange(gradient_overlap=share, **job) for share in (0, 0.5, 1)]
    assert times[0] > times[1] >= times[2] >= 0
    usual = Frameworks.Megatron_Core
    names = {0: "plain_overlap", 1: "gradient_overlap"}
    share = getattr(usual, names.get(stage, "gather_overlap"))
    assert exchange(**job) == pytest.approx(exchange(gradient_overlap=share, **job))


def test_accumulation_exchanges_once_for_all_microbatches():
    few, many = (exchange(microbatch_count=count, efficiency=0.5) for count in (1, 32))
    assert few == many


MIXED = {"model": Models.Mixtral_8x7B, "batch_size": 256, "seq_len": 2048, "fleet": JOB["fleet"]}
# What an argument needs in order to act: the job without it, and the job with it.
NEEDS = [
    ({"recompute_layers": 4}, {}, {"recompute": "full"}),
    ({"recompute_layers": 4}, {"recompute": "none"}, {"recompute": "norms"}),
    ({"recompute_layers": 4}, {"recompute": "selective"}, {"attention": "unfused"}),
    # 80 layers in four stages, or 23 of them in the first and 19 in each of the others
    ({"recompute_layers": 21}, {"recompute": "full"}, {"recompute": "full", "pp_size": 2}),
    (
        {"recompute_layers": 23},
        {"recompute": "full"},
        {"recompute": "full", "first_stage_layers": 23},
    ),
    ({"capacity_factor": 1.25}, {}, MIXED),
    ({"expert_nodes": 1}, {}, MIXED),
    ({"dispatch_precision": "fp8"}, {}, MIXED),
    ({"exchange_overlap": 0.5}, {}, MIXED),
    ({"reshard_after_forward": False}, {}, {"zero_stage": 3}),
    ({"reshard_after_forward": False}, {"zero_stage": 2}, {"zero_stage": 3}),
    ({"shard_size": 2}, {}, {"zero_stage": 1}),
    ({"calibration": Calibrations.A100_Megatron}, {"efficiency": 0.5}, {}),
    ({"first_stage_layers": 15}, {"virtual_stages": 2}, {}),
    ({"last_stage_layers": 15}, {"virtual_stages": 2}, {"virtual_stages": 3}),
]
DEFAULTS = {"recompute": "selective", "zero_stage": 0}


@pytest.mark.parametrize(("lever", "without", "having"), NEEDS)
def test_a_lever_with_nothing_to_act_on_is_refused(lever, without, having):
    (name,) = lever
    with pytest.raises(ConfigError) as fault:
        DistributedSolver.solve(**JOB | without | lever)
    assert fault.value.argument == name
    assert fault.value.message.startswith(name)
    DistributedSolver.solve(**JOB | {"microbatch_count": 4} | having | lever)
    # A sweep over what it needs marks what solve refuses, and has the rest.
    if len(having) == 1 and without == {}:
        (needed, value), *_ = having.items()
        table = sweep(
            DistributedSolver,
            invalid="mark",
            **JOB | lever | {needed: [DEFAULTS[needed], value]},
        )
        assert list(table["valid"]) == [False, True]


def test_a_sweep_over_models_marks_those_without_experts():
    levers = {"capacity_factor": [1, 1.5], "dispatch_precision": [None, "fp8"]}
    table = sweep(
        DistributedSolver,
        invalid="mark",
        **MIXED | levers | {"model": [Models.Llama3_8B, Models.Mixtral_8x7B]},
    )
    assert list(table["valid"]) == [True, False, False, False, *[True] * 4]


def test_capacity_pads_experts_on_a_single_device():
    """GShard and Switch: the capacity is that of an expert, not of the devices that share them."""

    def flops(factor):
        r = DistributedSolver.solve(**MIXED, capacity_factor=factor, efficiency=0.5)
        return r.device_flops.to("flop").magnitude

    # 32 layers, two experts of three matrices of 4,096 x 14,336 each, forward and twice backward
    rows = 256 * 2048 / 256 * 2 * 3 * 2 * 32 * 3 * 4096 * 14_336
    assert flops(1.5) - flops(1) == pytest.approx(0.5 * rows)


def test_joined_modules_may_come_in_any_order():
    one, other = (
        DistributedSolver.solve(**JOB, recompute=kind) for kind in ("norms+swiglu", "swiglu+norms")
    )
    assert dict(one) == dict(other)
    for kind in ("norms+norms", "norms+", "full+norms"):
        with pytest.raises(ConfigError) as fault:
            DistributedSolver.solve(**JOB, recompute=kind)
        assert fault.value.argument == "recompute"


@pytest.mark.parametrize(
    ("lever", "meant"),
    [
        ({"optimizer": "AdamW"}, "adamw"),
        ({"schedule": "GPipe"}, "gpipe"),
        ({"precision": "BF16"}, "bf16"),
        ({"recompute": "Full"}, "full"),
    ],
)
def test_a_name_in_other_letters_is_pointed_out(lever, meant):
    with pytest.raises(ConfigError, match=f'did you mean "{meant}"'):
        DistributedSolver.solve(**JOB | lever)


def test_advice_proposes_no_lever_with_nothing_to_act_on():
    job = {"model": Models.Llama3_8B, "fleet": JOB["fleet"], "batch_size": 256}
    held = {"tp_size": [1, 2], "cp_size": 1, "microbatch_count": [1, 2], "virtual_stages": 1}
    some = advise(**job, **held, recompute_layers=8, recompute=["swiglu+norms", "selective"])
    assert set(some.plans["recompute"]) == {"norms+swiglu"}
    assert max(some.plans["pp_size"]) == 32 // 8
    sharded = advise(**job, **held, reshard_after_forward=False)
    assert set(sharded.plans["zero_stage"]) == {3}
    with pytest.raises(ConfigError) as fault:
        advise(**job, **held, capacity_factor=1.5)
    assert fault.value.argument == "capacity_factor"
