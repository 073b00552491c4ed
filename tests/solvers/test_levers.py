"""Levers between replicas: compression, overlap, accumulation."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mlsysim import Q_, ConfigError, DistributedSolver, Models, Systems
from mlsysim.registry.calibration.frameworks import Frameworks

JOB = {
    "model": Models.Llama3_70B,
    "fleet": Systems.Clusters.Research_256,
    "batch_size": 256,
    "seq_len": 2048,
    "tp_size": 8,
    "pp_size": 4,
    "microbatch_count": 16,
}


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


def test_a_long_exchange_sticks_out_of_a_short_microbatch():
    hidden = DistributedSolver.solve(**JOB, gradient_overlap=1.0, zero_stage=1)
    bare = DistributedSolver.solve(**JOB, gradient_overlap=0.0, zero_stage=1)
    saved = (bare.dp_communication_latency - hidden.dp_communication_latency).to("s").magnitude
    busy = bare.compute_latency + bare.tp_communication_latency
    assert 0 < saved < 2 * busy.to("s").magnitude / 16


def test_accumulation_exchanges_once_for_all_microbatches():
    few, many = (exchange(microbatch_count=count, efficiency=0.5) for count in (1, 32))
    assert few == many


def test_nothing_overlaps_in_a_textbook():
    with pytest.raises(ConfigError, match="where nothing overlaps") as fault:
        DistributedSolver.solve(**JOB, efficiency=0.5, gradient_overlap=0.5)
    assert fault.value.argument == "gradient_overlap"
