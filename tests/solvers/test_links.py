"""Links of a training step: who pays the network's latency, and how wide a way is. By hand."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mlsysim import Q_, DistributedSolver, Fleet, Models, Systems
from mlsysim.core import formulas as f

NODE = Systems.Nodes.DGX_H100
NVLINK, NDR = NODE.scale_up.si("bandwidth"), Systems.InfiniBand_NDR.si("bandwidth")
NEAR, FAR = NODE.scale_up.si("latency"), Systems.InfiniBand_NDR.si("latency")


def fleet(devices, node=NODE, **fabric):
    network = replace(Systems.InfiniBand_NDR, **fabric)
    return Fleet(name="test", node=node, count=devices // 8, fabric=network)


def solve(devices, **plan):
    plan = {"model": Models.Llama3_8B, "precision": "bf16", "efficiency": 0.5} | plan
    return DistributedSolver.solve(fleet=fleet(devices), **plan)


def seconds(quantity):
    return quantity.to("s").magnitude


def test_a_ring_pays_the_network_only_between_nodes():
    # Eight nodes of eight: 56 hops within nodes and 7 between them, of 63.
    assert f.group_hop_latency(64, 8, 0.6, 2.7) * 63 == pytest.approx(56 * 0.6 + 7 * 2.7)
    assert f.group_hop_latency(8, 8, 0.6, 2.7) == pytest.approx(0.6)
    assert f.group_hop_latency(8, 1, 0.6, 2.7) == pytest.approx(2.7)
    assert f.group_hop_latency(1, 1, 0.6, 2.7) == 0


def test_a_tree_climbs_nodes_and_walks_devices():
    # 1,024 nodes of eight: down a chain of 7 and up 10 levels, there and back; twice the data.
    assert f.node_tree_all_reduce_time(100.0, 8192, 8, 50.0, 0.6, 2.7) == pytest.approx(
        2 * 100 / 50 + 2 * (7 * 0.6 + 10 * 2.7)
    )


def test_small_sums_over_many_nodes_take_the_tree_and_large_ones_the_ring():
    """Data-parallel sums of a model over 8,192 GPUs: gradients of 16.06 GB, and almost none."""
    plan = {"batch_size": 8192, "zero_stage": 0}
    least = solve(8192, gradient_compression=1e12, **plan)
    tree = 2 * (7 * NEAR + 10 * FAR)
    assert seconds(least.dp_communication_latency) == pytest.approx(tree, rel=0.01)
    # The ring's latency of 14.1 ms costs more than the 8 % of bandwidth that the tree lacks.
    whole = solve(8192, **plan)
    size = Models.Llama3_8B.si("parameters") * 2
    ring = 2 * 8191 / 8192 * size / (8 * NDR) + 2 * (7168 * NEAR + 1023 * FAR)
    tree = 2 * size / (0.92 * min(NVLINK, 8 * NDR)) + tree
    assert tree < ring  # 87.4 and 94.4 ms
    assert seconds(whole.dp_communication_latency) == pytest.approx(tree)
    few = solve(64, batch_size=64, zero_stage=0)
    ring = 2 * 63 / 64 * size / (8 * NDR) + 2 * (56 * NEAR + 7 * FAR)
    assert seconds(few.dp_communication_latency) == pytest.approx(ring)


@pytest.mark.parametrize("efficiency", [None, 0.5])
def test_a_tensor_group_across_nodes_has_the_narrower_link(efficiency):
    """Sixteen ranks on two nodes whose ports are 25 GB/s: 8 x 25 = 200 GB/s, and NVLink's 450."""
    plan = {"model": Models.Llama3_70B, "batch_size": 16, "precision": "bf16", "tp_size": 16}
    plan |= {"recompute": "none", "sequence_parallel": True, "efficiency": efficiency}
    slow = fleet(16, bandwidth=Q_("25 GB/s"))
    r = DistributedSolver.solve(fleet=slow, **plan)
    model = Models.Llama3_70B
    size = 16 * model.seq_len * model.hidden_dim * 2
    shares = (1, 1) if efficiency else (0.77, 0.9)  # of a calibration's links
    bandwidth = min(shares[0] * NVLINK, 8 * shares[1] * 25e9)
    each = 2 * 15 / 16 * size / bandwidth + 2 * (14 * NEAR + FAR)
    assert seconds(r.tp_communication_latency) == pytest.approx(4 * model.layers * each)
