"""Links of a training step: who pays the network's latency, and how wide a way is. By hand."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mlsysim import Q_, Calibrations, DistributedSolver, Fleet, Models, ParallelismError, Systems
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


# Llama 3 8B, 16 microbatches of one sequence of 8,192 tokens over 16 GPUs: 512 tokens each, whose
# keys and values in one layer are 2 x 8 heads x 128 x 512 tokens x 2 bytes.
LONG = {"batch_size": 16, "microbatch_count": 16, "seq_len": 8192, "cp_size": 16}
KV, PASSES = 2 * 8 * 128 * 512 * 2, 32 * 16


def context(**plan):
    return seconds(solve(16, **LONG | plan).cp_communication_latency)


def test_a_ring_of_keys_and_values_has_one_port_between_nodes():
    """42 us on the port and 2.7 us, 15 times, 3 rounds, 32 layers, 16 microbatches: 1.03 s."""
    hop = KV / NDR + FAR
    assert context() == pytest.approx(15 * hop * 3 * PASSES)
    assert context() == pytest.approx(1.03, rel=0.01)
    assert context(recompute="full") == pytest.approx(15 * hop * 4 * PASSES)
    # Eight devices share a node, and NVLink.
    assert context(cp_size=8, batch_size=32) == pytest.approx(
        7 * (2 * KV / NVLINK + NEAR) * 3 * PASSES
    )


def test_each_pass_hides_keys_and_values_under_its_own_attention():
    c = Calibrations.H100_Megatron
    round_time = 15 * (KV / (c.nic_efficiency * NDR) + FAR)  # 0.740 ms
    # Half of 4 s^2 h operations, a sixteenth of them here. Under the last block nothing travels.
    rate = c.attention_efficiency * NODE.accelerator.compute.si("fp16")
    attention = 2 * 8192**2 * 4096 / 16 / rate * 15 / 16  # 0.201 ms, and 2.5 times that backward
    wait = (round_time - attention) + (2 * round_time - 2.5 * attention)
    found = context(efficiency=None, recompute="none", calibration=c)
    assert found == pytest.approx(wait * PASSES)
    assert found == pytest.approx(0.776, rel=0.01)


def test_gathered_keys_and_values_use_all_ports_of_a_node():
    """Forward and backward they are gathered, and their gradients scattered: 0.138 s."""
    each = 15 / 16 * 16 * KV / (8 * NDR) + 14 * NEAR + FAR
    assert context(cp_kind="all_gather") == pytest.approx(3 * each * PASSES)
    covered = context(cp_kind="all_gather", efficiency=None, recompute="none")
    assert covered > 3 * each * PASSES  # attention has to wait for all of them


def test_heads_are_swapped_before_and_after_attention():
    """Within a node 1,024 tokens a device: Q and output 2 x 4,096 wide, K and V 2 x 8 x 128."""
    size = 1024 * (2 * 4096 + 2 * 8 * 128) * 2
    each = 7 / 8 * size / NVLINK + 2 * 7 * NEAR
    plan = {"cp_size": 8, "batch_size": 32}
    assert context(cp_kind="ulysses", **plan) == pytest.approx(2 * each * PASSES)
    assert context(ulysses_size=8, **plan) == pytest.approx(2 * each * PASSES)
    assert context(cp_kind="ulysses", recompute="full", **plan) == pytest.approx(3 * each * PASSES)
    # Over two nodes, half of all parts pass the port, and each of 8 heads goes to two devices.
    size = 512 * (2 * 4096 + 2 * 16 * 128) * 2
    each = 8 / 16 * size / NDR + 2 * (7 * NEAR + 8 * FAR)
    assert context(cp_kind="ulysses") == pytest.approx(2 * each * PASSES)


def test_swapping_within_nodes_leaves_one_hop_between_them():
    size = 512 * (2 * 4096 + 2 * 8 * 128) * 2
    swap = 7 / 8 * size / NVLINK + 2 * 7 * NEAR
    hop = KV / NDR + FAR  # an eighth of the heads, of eight times the tokens
    assert context(ulysses_size=8) == pytest.approx((2 * swap + 3 * hop) * PASSES)


@pytest.mark.parametrize(
    ("plan", "argument"),
    [
        # 32 heads over 2 x 32 devices; 16 devices in groups of 3; swapping by all and by some
        ({"cp_kind": "ulysses", "cp_size": 32, "tp_size": 2}, "cp_kind"),
        ({"cp_size": 16, "ulysses_size": 3}, "ulysses_size"),
        ({"cp_kind": "ulysses", "cp_size": 16, "ulysses_size": 4}, "ulysses_size"),
    ],
)
def test_heads_are_swapped_whole(plan, argument):
    with pytest.raises(ParallelismError) as fault:
        solve(64, batch_size=64, **plan)
    assert fault.value.argument == argument


def test_only_a_swap_keeps_the_output_twice():
    """4,096 elements per token in 32 layers, 512 tokens of each device: 134 MB."""
    memory = {
        kind: solve(16, **LONG, cp_kind=kind).activation_memory.to("byte").magnitude
        for kind in ("ring", "all_gather", "ulysses")
    }
    assert memory["ring"] == memory["all_gather"]
    assert memory["ulysses"] - memory["ring"] == pytest.approx(4096 * 2 * 512 * 32)


# Llama 3 8B over 64 GPUs on eight nodes: a ring of 400 GB/s, whose latency is 56 hops within
# nodes and 7 between them.
SIZE, LAYERS, SHARE = Models.Llama3_8B.si("parameters"), 32, 63 / 64
WAY, LATENCY = 8 * NDR, 56 * NEAR + 7 * FAR


def replicas(stage, **plan):
    r = solve(64, batch_size=256, microbatch_count=4, zero_stage=stage, **plan)
    return seconds(r.dp_communication_latency)


def test_weights_and_gradients_are_sent_in_their_own_formats():
    """Four microbatches, weights of two bytes, gradients of four."""
    weights, gradients = SHARE * 2 * SIZE / WAY, SHARE * 4 * SIZE / WAY
    plan = {"gradient_precision": "fp32"}
    assert replicas(0, **plan) == pytest.approx(2 * gradients + 2 * LATENCY)
    assert replicas(1, **plan) == pytest.approx(gradients + weights + 2 * LATENCY)
    # Gradients of each microbatch by layers, and weights once: 4 x 0.158 + 0.079 s, not 8 x 0.079
    assert replicas(2, **plan) == pytest.approx(
        4 * (gradients + LAYERS * LATENCY) + weights + LATENCY
    )
    assert replicas(3, **plan) == pytest.approx(
        4 * (gradients + 2 * weights + 3 * LAYERS * LATENCY)
    )
    # FSDP's reshard_after_forward=False keeps them, all 16 GB instead of two layers' of 32.
    assert replicas(3, reshard_after_forward=False, **plan) == pytest.approx(
        4 * (gradients + weights + 2 * LAYERS * LATENCY)
    )
    kept, dropped = (
        solve(64, batch_size=64, zero_stage=3, reshard_after_forward=keep).working_memory
        for keep in (False, True)
    )
    assert (kept - dropped).to("byte").magnitude == pytest.approx(2 * SIZE * 30 / 32)


def test_formats_that_are_not_stated_are_those_of_the_software():
    """Sharded gradients go in 32 bits by default, others in the format of the products."""
    c = Calibrations.H100_FSDP
    plan = {"efficiency": None, "calibration": c, "gradient_overlap": 0.0}
    way = min(c.link_efficiency * NVLINK, 8 * c.nic_efficiency * NDR)
    bare = 4 * (SHARE * (2 + 2 + 4) * SIZE / way + 3 * LAYERS * LATENCY)
    assert replicas(3, **plan) == pytest.approx(bare)
    narrow = 4 * (SHARE * (2 + 2 + 2) * SIZE / way + 3 * LAYERS * LATENCY)
    assert replicas(3, gradient_precision="bf16", **plan) == pytest.approx(narrow)
    # Gradients of 32 bits are not widened further.
    wide = replicas(3, precision="fp32", **plan)
    assert wide == pytest.approx(replicas(3, precision="fp32", gradient_precision="fp32", **plan))


@pytest.mark.parametrize("stage", [1, 2, 3])
def test_small_sharding_groups_sum_between_them_once_per_step(stage):
    """Groups of 8 on NVLink; an eighth of the gradients between eight nodes, each by its port."""
    inside = 7 / 8 * 2 * SIZE / NVLINK
    near = 7 * NEAR
    between = 2 * 7 / 8 * 2 * SIZE / 8 / NDR + 2 * 7 * FAR
    layers = 4 * LAYERS * near
    expected = {
        1: 2 * (inside + near),
        2: 4 * inside + layers + inside + near,
        3: 3 * (4 * inside + layers),
    }
    assert replicas(stage, shard_size=8) == pytest.approx(expected[stage] + between)


def test_small_sharding_groups_hold_larger_shards():
    plan = {"batch_size": 64, "zero_stage": 3}
    small, large = (solve(64, shard_size=n, **plan) for n in (8, None))
    for part in ("weights_memory", "gradient_memory", "optimizer_memory"):
        assert getattr(small, part) / getattr(large, part) == pytest.approx(8)
    assert solve(64, shard_size=64, **plan).memory == large.memory


def test_experts_are_sharded_among_the_same_devices():
    """Of 32 devices in a sharding group, eight share the experts: four replicas of each."""
    plan = {"batch_size": 256, "zero_stage": 1, "ep_size": 8, "model": Models.Mixtral_8x7B}
    half, whole = (solve(64, shard_size=n, **plan).optimizer_memory for n in (32, 64))
    assert half / whole == pytest.approx(2)


@pytest.mark.parametrize(("stage", "size"), [(0, 8), (3, 48), (3, 128)])
def test_sharding_groups_tile_the_replicas(stage, size):
    with pytest.raises(ParallelismError) as fault:
        solve(64, batch_size=64, zero_stage=stage, shard_size=size)
    assert fault.value.argument == "shard_size"


def test_plain_replicas_hide_gradients_under_the_backward_pass():
    """Two thirds of a microbatch's passes can hide what a lever says may overlap."""
    plan = {"batch_size": 64, "efficiency": None, "recompute": "none"}
    plan |= {"calibration": Calibrations.H100_Megatron}
    none, half, all_ = (solve(64, gradient_overlap=share, **plan) for share in (0.0, 0.5, 1.0))
    bare = seconds(none.dp_communication_latency)
    assert seconds(half.dp_communication_latency) == pytest.approx(bare / 2)
    assert seconds(all_.dp_communication_latency) == 0
    slow = replace(fleet(64), fabric=Systems.Fabrics.Ethernet_10G)
    long, bare = (
        DistributedSolver.solve(
            model=Models.Llama3_8B, fleet=slow, precision="bf16", gradient_overlap=share, **plan
        )
        for share in (1.0, 0.0)
    )
    hidden = seconds(bare.dp_communication_latency) - seconds(long.dp_communication_latency)
    assert hidden == pytest.approx(2 / 3 * seconds(long.compute_latency), rel=0.02)
