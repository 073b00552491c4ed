"""Links of a training step: who pays the network's latency, and how wide a way is. By hand."""

from dataclasses import replace

import numpy as np
import pytest

from mlsysim import (
    Q_,
    Calibrations,
    ConfigError,
    DistributedSolver,
    Fleet,
    Hardware,
    Models,
    ParallelismError,
    ServingSolver,
    Systems,
    sweep,
)
from mlsysim.core import formulas as f
from tests.samples import seconds

NODE = Systems.Nodes.DGX_H100
NVLINK, NDR = NODE.scale_up.si("bandwidth"), Systems.InfiniBand_NDR.si("bandwidth")
NEAR, FAR = NODE.scale_up.si("latency"), Systems.InfiniBand_NDR.si("latency")


def fleet(devices, node=NODE, **fabric):
    network = replace(Systems.InfiniBand_NDR, **fabric)
    return Fleet(name="test", node=node, count=devices // 8, fabric=network)


def solve(devices, **plan):
    plan = {"model": Models.Llama3_8B, "precision": "bf16", "efficiency": 0.5} | plan
    return DistributedSolver.solve(fleet=fleet(devices), **plan)


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
    machine = Calibrations.H100_Megatron.machine
    shares = (1, 1) if efficiency else (machine.link_efficiency, machine.nic_efficiency)
    bandwidth = min(shares[0] * NVLINK, 8 * shares[1] * 25e9)
    each = 2 * 15 / 16 * size / bandwidth + 2 * (14 * NEAR + FAR)
    each += 0 if efficiency else Calibrations.H100_Megatron.software.si("collective_overhead")
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
    c, software = Calibrations.H100_Megatron.machine, Calibrations.H100_Megatron.software
    round_time = 15 * (KV / (c.nic_efficiency * NDR) + FAR)  # 0.740 ms
    # Half of 4 s^2 h operations, a sixteenth of them here. Under the last block nothing travels.
    share = c.attention_efficiency * 512 / (512 + c.attention_half)  # of 8,192 / 16 tokens
    rate = share * software.attention_speed * NODE.accelerator.compute.si("fp16")
    attention = 2 * 8192**2 * 4096 / 16 / rate * 15 / 16
    backward = 2.5 / c.attention_backward * attention
    wait = max(0, round_time - attention) + max(0, 2 * round_time - backward)
    found = context(efficiency=None, recompute="none", calibration=Calibrations.H100_Megatron)
    assert found == pytest.approx(wait * PASSES)


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
    # FSDP's reshard_after_forward=False keeps them, all 16 GB instead of the output table, which is
    # larger than two layers.
    assert replicas(3, reshard_after_forward=False, **plan) == pytest.approx(
        4 * (gradients + weights + 2 * LAYERS * LATENCY)
    )
    kept, dropped = (
        solve(64, batch_size=64, zero_stage=3, reshard_after_forward=keep).working_memory
        for keep in (False, True)
    )
    table = Models.Llama3_8B.vocab_size * Models.Llama3_8B.hidden_dim
    assert (kept - dropped).to("byte").magnitude == pytest.approx(2 * (SIZE - table), rel=1e-4)


def test_formats_that_are_not_stated_are_those_of_the_software():
    """Sharded gradients go in 32 bits by default, others in the format of the products."""
    plan = {
        "efficiency": None,
        "calibration": Calibrations.H100_FSDP,
        "gradient_overlap": 0.0,
    }
    c = Calibrations.H100_FSDP.machine
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


# DeepSeek-V3 on 2,048 H800, as its report describes: 16 stages, experts over eight nodes, of which
# a token visits four, and 8 bits on the way out. NVLink of 200 GB/s, a port of 50 GB/s.
H800 = replace(
    NODE,
    name="H800",
    accelerator=Hardware.H800,
    scale_up=replace(NODE.scale_up, bandwidth=Q_("200 GB/s")),
    power=None,
)
DEEPSEEK = {
    "model": replace(Models.DeepSeek_V3, mtp_layers=0),  # counted by hand without that layer
    "fleet": fleet(2048, H800),
    "batch_size": 15_360,
    "microbatch_count": 120,
    "precision": "fp8",
    "pp_size": 16,
    "ep_size": 64,
    "zero_stage": 1,
    "efficiency": 0.5,
}
ITS_PLAN = {"expert_nodes": 4, "dispatch_precision": "fp8"}
TOKENS = 4096 * 7168  # elements of a microbatch
EXCHANGES = 4 * 58 / 61 * 120  # mean layers with experts of the longest stage, microbatches


def exchanged(**plan):
    return DistributedSolver.solve(**DEEPSEEK | plan).ep_communication_latency


def test_tokens_of_deepseek_v3_pass_the_network_once_per_node():
    """Of four nodes 4 (1 - (3/4)^8) = 3.60 are visited, seven eighths of them others: 3.15 copies.

    1.85 ms out and 3.70 ms back on the port, 0.023 ms of latency each, for one device in each of
    seven other nodes and seven in its own: 5.59 ms, and as much backward. NVLink needs less: 7 of 8
    copies change the device, 29.4 MB each: 1.03 ms.
    """
    copies = 7 / 8 * 4 * (1 - 0.75**8)
    assert copies == pytest.approx(3.15, rel=1e-3)
    latency = 7 * NEAR + 7 * FAR
    out, back = (copies * size * TOKENS / NDR + latency for size in (1, 2))
    assert out > 7 * TOKENS / 200e9
    layer = 2 * (out + back)
    assert layer == pytest.approx(11.19e-3, rel=1e-3)
    assert seconds(exchanged(**ITS_PLAN)) == pytest.approx(layer * EXCHANGES)
    # A copy per expert in 16 bits: seven eighths of eight, to all 56 devices of other nodes.
    plain = 7 * 2 * TOKENS / NDR + 7 * NEAR + 56 * FAR
    assert seconds(exchanged()) == pytest.approx(4 * plain * EXCHANGES)
    # A limit of all eight nodes is none, but copies go once per node.
    wide = 7 * (1 - (7 / 8) ** 8) * 2 * TOKENS / NDR + latency
    assert seconds(exchanged(expert_nodes=8)) == pytest.approx(4 * wide * EXCHANGES)


def test_the_busiest_device_sets_the_pace_of_experts():
    latency = 4 * EXCHANGES * (7 * NEAR + 56 * FAR)
    even, uneven = (seconds(exchanged(capacity_factor=load)) for load in (1, 1.5))
    assert uneven - latency == pytest.approx(1.5 * (even - latency))
    even, uneven = (
        DistributedSolver.solve(**DEEPSEEK, recompute="none", capacity_factor=load)
        for load in (1, 1.5)
    )
    # Half as many operations again in 58 x 8 experts of 3 x 7,168 x 2,048 weights; 64 layers' time
    tokens = 15_360 * 4096
    more = 0.5 * 3 * 2 * tokens * 58 * 8 * 3 * 7168 * 2048 * 64 / 61 / 2048
    found = (uneven.device_flops - even.device_flops).to("flop").magnitude
    assert found == pytest.approx(more)
    assert uneven.model_flops == even.model_flops
    by_operator = [
        DistributedSolver.solve(**DEEPSEEK | {"efficiency": None}, capacity_factor=load)
        for load in (1, 1.5)
    ]
    assert by_operator[1].compute_latency > 1.1 * by_operator[0].compute_latency
    assert by_operator[1].activation_memory > by_operator[0].activation_memory


def test_a_token_finds_its_experts_on_the_nodes_that_it_may_visit():
    with pytest.raises(ParallelismError) as fault:  # 32 experts per node, 40 wanted
        DistributedSolver.solve(
            **DEEPSEEK | {"model": replace(Models.DeepSeek_V3, experts_per_token=40)},
            expert_nodes=1,
        )
    assert fault.value.argument == "expert_nodes"


@pytest.mark.parametrize("ranks", [8, 16])
def test_collectives_of_tensor_groups_hide_as_far_as_stated(ranks):
    plan = {"batch_size": 64, "tp_size": ranks, "efficiency": None, "model": Models.Llama3_70B}
    none, half = (
        seconds(solve(64, tensor_overlap=share, **plan).tp_communication_latency)
        for share in (0.0, 0.5)
    )
    assert half == pytest.approx(none / 2)


def test_transfers_between_stages_hide_as_far_as_stated_and_as_there_is_computation():
    plan = {"batch_size": 64, "pp_size": 8, "microbatch_count": 8, "efficiency": None}
    none, half, whole = (solve(64, pipeline_overlap=s, **plan) for s in (None, 0.5, 1.0))
    sent = seconds(none.pp_communication_latency)
    assert sent > 0
    assert seconds(half.pp_communication_latency) == pytest.approx(sent / 2)
    assert seconds(whole.pp_communication_latency) == pytest.approx(0, abs=1e-12)
    assert seconds(whole.step_latency_total) == pytest.approx(
        seconds(none.step_latency_total) - sent
    )
    hidden = whole.hidden_communication_latency - none.hidden_communication_latency
    assert seconds(hidden) == pytest.approx(sent)


@pytest.mark.parametrize(
    "name", ["tensor_overlap", "exchange_overlap", "gradient_overlap", "pipeline_overlap"]
)
def test_nothing_overlaps_in_a_textbook(name):
    with pytest.raises(ConfigError) as fault:
        solve(64, batch_size=64, **{name: 0.5})
    assert fault.value.argument == name


CLUSTER = Systems.Clusters.Research_256


def test_ranks_of_a_tensor_group_hold_different_experts():
    """Liu et al. (2025): 32 experts' devices are 32 of a stage, whatever splits the rest."""
    plan = {"model": Models.DeepSeek_V3, "fleet": CLUSTER, "batch_size": 256, "precision": "bf16"}
    plan |= {"pp_size": 8, "microbatch_count": 8, "ep_size": 32}
    one, four = (DistributedSolver.solve(**plan, tp_size=n, zero_stage=0) for n in (1, 4))
    # Of its 8 layers, 3 are dense. Attention 8 x 187.1e6, dense blocks 3 x 396.4e6,
    # shared experts 5 x 44.0e6, routers 5 x 1.8e6 and the table 926.7e6 make 3.842e9 parameters,
    # which are split; 5 x 8 experts of 44.0e6, 1.762e9, are not: 2.722e9 over 5.604e9.
    ratio = (four.weights_memory / one.weights_memory).to("").magnitude
    assert ratio == pytest.approx(0.4858, rel=1e-3)
    split = DistributedSolver.solve(**plan | {"ep_size": 1}, tp_size=4)
    assert four.weights_memory < split.weights_memory / 4


def test_experts_without_replicas_gather_nothing():
    """All 64 devices of a stage share the experts, so only the rest has parts elsewhere."""
    plan = {"model": Models.DeepSeek_V3, "fleet": CLUSTER, "batch_size": 256, "precision": "bf16"}
    shared, whole = (
        DistributedSolver.solve(**plan, zero_stage=3, ep_size=n, pp_size=4) for n in (64, 1)
    )
    assert shared.dp_communication_latency < whole.dp_communication_latency / 10


@pytest.mark.parametrize(("ranks", "less"), [(8, True), (16, False)])
def test_collectives_that_leave_the_server_are_not_hidden(ranks, less):
    plan = {"model": Models.Llama3_70B, "fleet": CLUSTER, "batch_size": 64, "precision": "bf16"}
    hidden, shown = (
        DistributedSolver.solve(
            **plan,
            tp_size=ranks,
            calibration=Calibrations.H100_Megatron.but(tensor_overlap=overlap),
        )
        for overlap in (0.65, 0.0)
    )
    assert (hidden.tp_communication_latency < shown.tp_communication_latency) == less


# Links to single devices: a group gets the links to its own members and no others

MESH = Systems.MI300X_Platform
SWITCHED = replace(MESH, scale_up=replace(MESH.scale_up, peers=None))
STEP = {"model": Models.Llama2_70B, "batch_size": 64, "seq_len": 2048, "efficiency": 0.5}


def tensor_time(node, tp_size, **changes):
    plan = {"tp_size": tp_size, "pp_size": 8 // tp_size, "microbatch_count": 64} | changes
    return DistributedSolver.solve(fleet=fleet(8, node), **STEP | plan).tp_communication_latency


@pytest.mark.parametrize(("ranks", "share"), [(2, 1 / 7), (4, 3 / 7), (8, 1)])
def test_a_group_gets_its_share_of_the_links(ranks, share):
    switched, meshed = (tensor_time(node, ranks).magnitude for node in (SWITCHED, MESH))
    # The latency of the steps stays, and is small.
    assert switched / meshed == pytest.approx(share, rel=0.02)


def test_the_shares_are_those_that_were_measured():
    """RCCL reaches 47.7 GB/s of bus bandwidth on two MI300X and 313 on eight (Bekman)."""
    link = MESH.scale_up
    two, eight = (f.mesh_bandwidth(link.bandwidth, ranks, link.peers) for ranks in (2, 8))
    assert (eight / two).to("").magnitude == pytest.approx(313 / 47.7, rel=0.1)
    assert eight == link.bandwidth


def test_serving_on_two_waits_for_one_link():
    asked = {"model": Models.Llama3_8B, "seq_len": 1024, "batch_size": 8, "tp_size": 2}
    for extra in ({}, {"efficiency": 0.5}):
        meshed, switched = (
            ServingSolver.solve(hardware=node, **asked, **extra).ttft for node in (MESH, SWITCHED)
        )
        assert meshed > switched


def test_a_sweep_over_groups_equals_single_answers():
    table = sweep(
        DistributedSolver,
        fleet=[fleet(16, MESH), fleet(16, SWITCHED)],
        tp_size=np.array([1, 2, 8]),
        microbatch_count=8,
        **STEP,
    )
    for index, row in enumerate(table):
        alone = table.result(index).step_latency_total.magnitude
        assert row["step_latency_total"].magnitude == pytest.approx(alone, rel=1e-12)
