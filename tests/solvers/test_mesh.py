"""Links to single devices: a group gets the links to its own members and no others."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from mlsysim import DistributedSolver, Fleet, Models, ServingSolver, Systems, sweep
from mlsysim.core import formulas as f

NODE = Systems.MI300X_Platform
SWITCHED = dataclasses.replace(NODE, scale_up=dataclasses.replace(NODE.scale_up, peers=None))
STEP = {"model": Models.Llama2_70B, "batch_size": 64, "seq_len": 2048, "efficiency": 0.5}


def fleet(node, count=1):
    return Fleet(name="mesh", node=node, count=count, fabric=Systems.InfiniBand_NDR)


def tensor_time(node, tp_size, **changes):
    plan = {"tp_size": tp_size, "pp_size": 8 // tp_size, "microbatch_count": 64} | changes
    return DistributedSolver.solve(fleet=fleet(node), **STEP | plan).tp_communication_latency


@pytest.mark.parametrize(("ranks", "share"), [(2, 1 / 7), (4, 3 / 7), (8, 1)])
def test_a_group_gets_its_share_of_the_links(ranks, share):
    switched, meshed = (tensor_time(node, ranks).magnitude for node in (SWITCHED, NODE))
    # The latency of the steps stays, and is small.
    assert switched / meshed == pytest.approx(share, rel=0.02)


def test_the_shares_are_those_that_were_measured():
    """RCCL reaches 47.7 GB/s of bus bandwidth on two MI300X and 313 on eight (Bekman)."""
    link = NODE.scale_up
    two, eight = (f.mesh_bandwidth(link.bandwidth, ranks, link.peers) for ranks in (2, 8))
    assert (eight / two).to("").magnitude == pytest.approx(313 / 47.7, rel=0.1)
    assert eight == link.bandwidth


def test_serving_on_two_waits_for_one_link():
    asked = {"model": Models.Llama3_8B, "seq_len": 1024, "batch_size": 8, "tp_size": 2}
    for extra in ({}, {"efficiency": 0.5}):
        meshed, switched = (
            ServingSolver.solve(hardware=node, **asked, **extra).ttft for node in (NODE, SWITCHED)
        )
        assert meshed > switched


def test_a_sweep_over_groups_equals_single_answers():
    table = sweep(
        DistributedSolver, fleet=[fleet(NODE, 2), fleet(SWITCHED, 2)], tp_size=np.array([1, 2, 8]),
        microbatch_count=8, **STEP,
    )  # fmt: skip
    for index, row in enumerate(table):
        alone = table.result(index).step_latency_total.magnitude
        assert row["step_latency_total"].magnitude == pytest.approx(alone, rel=1e-12)
