"""Stages of a pipeline that differ: who sets the pace, and who holds what."""

from __future__ import annotations

import inspect

import pytest

from mlsysim import DistributedSolver, Fleet, Models, ParallelismError, Systems, simulate_pipeline
from mlsysim.solvers.training.work import stage_layout


def fleet(nodes):
    return Fleet(
        name="Test",
        node=Systems.Nodes.DGX_H100,
        count=nodes,
        fabric=Systems.Fabrics.InfiniBand_NDR,
    )


LLAMA = {
    "model": Models.Llama3_405B,
    "fleet": fleet(2048),
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
    "fleet": fleet(256),
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


def seconds(quantity):
    return quantity.to("s").magnitude


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
        "fleet": fleet(1),
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


def test_deepseeks_first_stage_holds_its_dense_layers():
    # Three dense layers of 187.1e6 + 3 x 7168 x 18,432, one layer with experts: 187.1e6, the shared
    # expert, the router of 1.8e6 and 4 of 256 experts, 44.0e6 each; and the table, 926.7e6:
    # 1750.4e6 + 187.1e6 + 1.8e6 + 5 x 44.04e6 + 926.7e6 = 3.086e9 parameters, 2 bytes each.
    r = DistributedSolver.solve(**DEEPSEEK)
    assert r.weights_memory.to("GB").magnitude == pytest.approx(6.173, rel=3e-3)
