"""Stages of a pipeline that differ: who sets the pace, and who holds what."""

import inspect
from unittest.mock import patch

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from mlsysim import DistributedSolver, Models, ParallelismError, simulate_pipeline
from mlsysim.solvers.training import memory, stages
from mlsysim.solvers.training.stages import stage_layout
from mlsysim.solvers.training.work import training_work
from tests.networks import fleet_of
from tests.samples import seconds

LLAMA = {
    "model": Models.Llama3_405B,
    "fleet": fleet_of(2048),
    "batch_size": 2048,
    "seq_len": 8192,
    "precision": "bf16",
    "tp_size": 8,
    "pp_size": 16,
    "microbatch_count": 16,
    "sequence_parallel": True,
    "zero_stage": 1,
}
DEEPSEEK = {
    "model": Models.DeepSeek_V3,
    "fleet": fleet_of(256),
    "batch_size": 15_360,
    "precision": "fp8",
    "pp_size": 16,
    "ep_size": 64,
    "microbatch_count": 120,
    "zero_stage": 1,
}


def layout(**plan):
    known = inspect.signature(DistributedSolver.solve).parameters
    defaults = {name: item.default for name, item in known.items()}
    found = stage_layout(DistributedSolver.admit(defaults | LLAMA | plan).plain())
    return found.first, found.longest, found.last


@pytest.mark.parametrize(
    ("model", "pp", "v", "stages"),
    [
        # Grattafiori et al. (2024), 3.3.2: 128 chunks; the first has only the embedding, the last
        # only the output.
        (Models.Llama3_405B, 16, 8, (7, 8, 7)),
        # Megatron-Bridge, DeepSeek-V3: 15 stages of four and one layer with the output; in eight
        # stages of two chunks, the last chunk is that one layer.
        (Models.DeepSeek_V3, 16, 1, (4, 4, 1)),
        (Models.DeepSeek_V3, 8, 2, (8, 8, 5)),
        (Models.Llama3_70B, 4, 1, (20, 20, 20)),
        (Models.Llama3_70B, 1, 1, (80, 80, 80)),
        # 61 layers in two stages, or in six: 5 x 11 and 6
        (Models.DeepSeek_V3, 2, 1, (31, 31, 30)),
        (Models.DeepSeek_V3, 6, 1, (11, 11, 6)),
    ],
)
def test_layouts_of_frameworks(model, pp, v, stages):
    assert layout(model=model, pp_size=pp, virtual_stages=v) == stages


def test_stated_stages_leave_the_rest_to_the_others():
    # 126 = 7 + 14 x 8 + 7; and with ten layers in front, 116 in fifteen stages are at most eight,
    # which leaves 4 places spare on the last.
    assert layout(first_stage_layers=7, last_stage_layers=7) == (7, 8, 7)
    assert layout(first_stage_layers=10) == (10, 10, 4)
    assert layout(pp_size=2, first_stage_layers=66, last_stage_layers=60) == (66, 66, 60)


@pytest.mark.parametrize(
    "stages",
    [
        {"first_stage_layers": 120},
        {"pp_size": 2, "first_stage_layers": 66, "last_stage_layers": 61},
        {"pp_size": 1, "last_stage_layers": 126},
    ],
)
def test_layers_that_lie_nowhere_are_refused(stages):
    with pytest.raises(ParallelismError) as fault:
        DistributedSolver.solve(**LLAMA | stages)
    assert fault.value.argument == "first_stage_layers"


def test_the_pace_is_the_longest_stage_or_the_last_with_the_head():
    def compute(last):
        r = DistributedSolver.solve(**LLAMA, last_stage_layers=last)
        return seconds(r.compute_latency)

    # 126 layers on 16 stages: the others share 120 to 116, eight each at most.
    six, seven, eight, nine, ten = (compute(last) for last in (6, 7, 8, 9, 10))
    layer = ten - nine
    head = ten - 10 * layer
    # By hand: the output has 128,256 x 16,384 weights, a layer 3.19e9, two thirds; what attention
    # takes comes on top of the layer, and the loss on top of the head.
    assert head / layer == pytest.approx(128_256 * 16_384 / 3.19e9, rel=0.15)
    assert nine == pytest.approx(9 * layer + head)
    assert eight == pytest.approx(8 * layer + head)
    assert seven == six == pytest.approx(8 * layer)


@pytest.mark.parametrize("first", [None, 2])
@pytest.mark.parametrize("last", [1, 4, 8, 10])
def test_the_bubble_is_that_of_the_schedule(first, last):
    """1F1B of unequal stages, played through pass by pass."""
    plan = {
        "model": Models.Llama3_8B,
        "fleet": fleet_of(1),
        "batch_size": 16,
        "pp_size": 4,
        "microbatch_count": 8,
        "first_stage_layers": first,
        "last_stage_layers": last,
    }
    one, two = (
        DistributedSolver.solve(**plan | {"first_stage_layers": 8, "last_stage_layers": n})
        for n in (15, 16)
    )
    both = [seconds(r.compute_latency) / 8 for r in (one, two)]
    layer = both[1] - both[0]
    head = both[0] - 15 * layer
    r = DistributedSolver.solve(**plan)
    ends, _, end = layout(**plan)
    middle = 32 - ends - end
    times = [n * layer for n in (ends, -(-middle // 2), middle // 2, end)]
    times[-1] += head
    played = simulate_pipeline(
        pp_size=4,
        microbatch_count=8,
        forward_time=[t / 3 for t in times],
        backward_time=[2 * t / 3 for t in times],
    )
    # The bubble also holds its share of waits for the host. Where a stage between is the busiest,
    # it works ahead while those behind it begin, so the formula is an upper bound.
    predicted = seconds(r.compute_latency + r.pipeline_bubble_latency)
    least = 0.98 if end * layer + head >= max(times) else 0.94
    assert least * predicted < float(played.makespan) < predicted


def test_deepseeks_fullest_stage_is_all_experts():
    # The first of 16 stages has three dense layers, the last a single layer. The second has four
    # with experts: 187.1e6 of attention, the router of 1.8e6, the shared expert and 4 of 256 of
    # 44.0e6 each: 4 x (187.1e6 + 1.8e6 + 5 x 44.04e6) = 1.637e9 parameters, 2 bytes each.
    r = DistributedSolver.solve(**DEEPSEEK)
    assert r.fullest_stage == 1
    assert r.weights_memory.to("GB").magnitude == pytest.approx(3.273, rel=3e-3)


def test_a_stage_between_may_need_the_most():
    # DeepSeek-V3 on 32 stages: one dense layer, two dense layers, then two with experts, and thirty
    # microbatches of 4096 tokens in flight. A layer keeps 1.86 GB of each: norms and residual
    # stream 4 x 7168, heads 2 x 128 x (192 + 128), latent vectors 2 x 1536 + 576 + 512, experts
    # 8 x (7168 + 3 x 2048) and the shared one 3 x 2048, two bytes each; statistics of 128 heads.
    r = DistributedSolver.solve(
        **DEEPSEEK
        | {"pp_size": 32, "ep_size": 4, "microbatch_count": 240, "seq_len": 4096}
        | {"precision": "bf16"}
    )
    inner = 2 * 128 * 320 + 4160 + 8 * (7168 + 3 * 2048) + 3 * 2048
    layer = 4096 * (2 * (4 * 7168 + inner) + 4 * 128)
    assert r.fullest_stage == 2
    assert r.activation_memory.to("byte").magnitude == pytest.approx(2 * 30 * layer, rel=3e-3)
    # 126 layers on 64 stages: one layer at both ends, and two on the others
    deep = DistributedSolver.solve(**LLAMA | {"pp_size": 64, "microbatch_count": 256})
    assert deep.fullest_stage == 1
    # 10 layers on the first of four stages leave 24 to each of the others, if they divide them.
    plan = {"model": Models.Llama3_70B, "pp_size": 4, "microbatch_count": 128}
    short = DistributedSolver.solve(**LLAMA | plan | {"first_stage_layers": 10})
    even = DistributedSolver.solve(**LLAMA | plan)
    assert (short.fullest_stage, even.fullest_stage) == (1, 0)
    ratio = (short.activation_memory / even.activation_memory).to("").magnitude
    assert ratio == pytest.approx(24 * 3 / (20 * 4))


PLANS = st.fixed_dictionaries(
    {
        "model": st.sampled_from(
            [
                Models.Llama3_8B,
                Models.Llama3_405B,
                Models.DeepSeek_V3,
                Models.Mixtral_8x7B,
                Models.Nemotron.Nemotron_3_Super,
                Models.Nemotron.Nemotron_H_56B,
            ]
        ),
        "pp_size": st.sampled_from([2, 3, 4, 6, 8, 16, 24, 32]),
        "virtual_stages": st.sampled_from([1, 2, 3]),
        "schedule": st.sampled_from(["1f1b", "gpipe", "zb-h1", "dualpipe"]),
        "rounds": st.integers(1, 4),
        "first_stage_layers": st.sampled_from([None, None, 1, 2, 5]),
        "zero_stage": st.integers(0, 3),
        "recompute": st.sampled_from(["selective", "norms+swiglu", "full"]),
        "recompute_layers": st.sampled_from([None, 1]),
    }
)


def planned(plan):
    """The arguments of a random plan, or none if they contradict each other."""
    pp = plan["pp_size"]
    made = {name: value for name, value in plan.items() if name != "rounds"}
    made |= {"fleet": fleet_of(2 * pp), "seq_len": 4096, "precision": "bf16"}
    made |= {"microbatch_count": 2 * pp * plan["rounds"], "batch_size": 32 * pp * plan["rounds"]}
    if made["schedule"] != "1f1b":
        made["virtual_stages"] = 1
    if made["recompute"] == "selective":
        made["recompute_layers"] = None
    try:
        DistributedSolver.solve(**made)
    except ParallelismError:
        return None
    return made


def every_stage(plan):
    """The contents of all devices in the order of the stages, without leaving out any stage.

    If microbatches enter at both ends, a device has a stage and its mirror image, and the second
    half of the devices equals the first.
    """
    known = inspect.signature(DistributedSolver.solve).parameters
    defaults = {name: item.default for name, item in known.items()}
    i = DistributedSolver.admit(defaults | plan).plain()
    name = "_together" if i.schedule.bidirectional else "_held"
    devices, contents = [], getattr(memory, name)

    def noted(*given):
        devices.append(contents(*given))
        return devices[-1]

    stages._stage_layers.cache_clear()
    try:
        with (
            patch.object(stages, "longer_between", lambda layers: list(range(1, len(layers) - 1))),
            patch.object(stages, "_both_ends", lambda layers: list(range(1, len(layers) // 2))),
            patch.object(memory, name, noted),
        ):
            memory.training_memory(i, training_work(i))
    finally:
        stages._stage_layers.cache_clear()
    return sorted(devices, key=lambda device: device.stage)


@settings(max_examples=60)
@given(PLANS)
def test_no_device_needs_more_than_the_fullest(plan):
    plan = planned(plan)
    assume(plan is not None)
    r = DistributedSolver.solve(**plan)
    devices = every_stage(plan)
    most = max(device.total for device in devices)
    assert r.memory.to("byte").magnitude == pytest.approx(most, rel=1e-12)
    fullest = devices[r.fullest_stage]
    assert fullest.total == pytest.approx(most, rel=1e-12)
    # All stages together have all weights; tied tables and layers for multi-token prediction more.
    if plan["zero_stage"] < 3:
        held = sum(device.weights for device in devices)
        model = plan["model"]
        stated = 2 * model.parameters.to("param").magnitude
        assert stated * (1 - 1e-3) <= held <= 1.05 * stated


@settings(max_examples=40)
@given(PLANS)
def test_twice_the_stages_never_halve_the_activations_of_1f1b(plan):
    plain = {"schedule": "1f1b", "virtual_stages": 1}
    # A stated number of layers would not be doubled or halved with the stages.
    plain |= {"first_stage_layers": None, "recompute_layers": None}
    plan = planned(plan | plain)
    assume(plan is not None)
    deep = {"pp_size": 2 * plan["pp_size"], "fleet": fleet_of(4 * plan["pp_size"])}
    deep = plan | deep | {"microbatch_count": 2 * plan["microbatch_count"]}
    deep["batch_size"] = 2 * plan["batch_size"]
    try:
        DistributedSolver.solve(**deep)
    except ParallelismError:
        assume(False)
    shallow_most, deep_most = (
        max(device.activations for device in every_stage(p)) for p in (plan, deep)
    )
    assert deep_most > shallow_most / 2
