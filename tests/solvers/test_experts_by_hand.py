"""A training step of a mixture of experts on paper, next to the solver's."""

from dataclasses import replace

import pytest

from mlsysim import (
    Calibrations,
    ConfigError,
    DistributedSolver,
    Experts,
    Models,
    Systems,
)
from mlsysim.registry.calibration.published import best_published
from tests.solvers.paper import (
    ATTENTION_BACKWARD,
    COMMON,
    CONSTANTS,
    EXPERTS,
    LINK,
    LINK_LATENCY,
    MIXED,
    MIXED_PLAN,
    PORT,
    PORT_LATENCY,
    PRODUCT,
    STREAM,
    attention,
    exposed,
    product,
    seconds,
    together,
)

TOKENS = 2 * 2048
HIDDEN = 2 * TOKENS * 4096


def block(rows, width, **given):
    """The products of a feed-forward block with a gate."""
    return product(rows, 4096, 2 * width, **given)[0] + product(rows, width, 4096, **given)[0]


def own_work(again, capacity=1.0):
    """A mean layer on the busiest device, without communication."""
    # Each token is four rows for its experts; the two devices of a group deal with half each.
    rows = capacity * 4 * TOKENS / 2
    routed = block(rows, 3584, rate=0.65 * PRODUCT, matrices=2)
    feed_forward = (8 * block(TOKENS, 24_576 / 2) + 24 * (routed + block(TOKENS, 4096 / 2))) / 32
    projections = product(TOKENS, 4096, 48 * 128 / 2)[0] + product(TOKENS, 2048, 4096)[0]
    widths = (8 * 24_576 + 24 * (4 * 3584 + 4096)) / 32
    moved = TOKENS * (20 * 4096 / 2 + 5 * 2 * widths / 2) + 24 / 32 * rows * 4096 * (8 + 33)
    return (
        (3 + again) * (projections + feed_forward)
        + (1 + ATTENTION_BACKWARD + again) * attention(TOKENS, 2048, 32 * 128 / 2)
        + (2.5 + again) * moved / STREAM
    )


def exchanges(again, per_node=False, capacity=1.0, outward=1.0, link=LINK, port=PORT):
    """Exchanges of a mean layer: out and back, forward and backward, and again if recomputed.

    `outward` is the share of its bytes in which a token goes out.
    """
    # By expert: of four copies two leave the server, and 7/16 of four go to other devices of it.
    # By node: the other server gets one unless all four experts are here, with a chance of 1/16.
    # There and here, 7/8 of four are passed on to other devices.
    leaving, staying = (15 / 16, 3.5) if per_node else (2, 1.75)
    # Seven devices are in the own server; in the other, eight have experts, and one has a port for
    # what is passed on there.
    start = 7 * LINK_LATENCY + (1 if per_node else 8) * PORT_LATENCY
    sent = capacity * HIDDEN / 2  # the other device of the group sends the other half
    out, back = (
        max(leaving * size / port, staying * size / link) + start for size in (outward * sent, sent)
    )
    return 24 / 32 * (2 + again) * (out + back)


def ring(size, per_node, nodes):
    """A gather or a scatter through all ports of the servers that devices of a group share."""
    ranks = per_node * nodes
    hops = (ranks - nodes) * LINK_LATENCY + (nodes - 1) * PORT_LATENCY
    return (ranks - 1) / ranks * size / min(LINK, per_node * PORT) + hops


@pytest.mark.parametrize("zero_stage", [0, 1, 2, 3])
@pytest.mark.parametrize(("recompute", "again"), [("none", 0), ("full", 1)])
@pytest.mark.parametrize(("per_node", "compression"), [(0, 1), (1, 4)])
def test_a_step_with_experts_by_hand(per_node, compression, recompute, again, zero_stage):
    r = DistributedSolver.solve(
        **MIXED_PLAN | {"calibration": CONSTANTS.but(copies_per_node=per_node)},
        gradient_compression=compression,
        recompute=recompute,
        zero_stage=zero_stage,
    )
    own = own_work(again)
    # A scatter and a gather after each half of a layer: shared experts are split by tensor.
    sums = (4 + 2 * again) * (2 * (HIDDEN / 2 / LINK + LINK_LATENCY) + 50e-6)
    shown = exposed(sums, 0.25, own)
    sent = exchanges(again, per_node)
    waiting = exposed(sent, 0.15, own - (sums - shown))
    launch = (2.5 + again) * (0.92e-3 + 24 / 32 * 2.1e-3)
    busy = together(own + shown + waiting, launch, 0.8)

    # What all tokens pass has 16 replicas, four to a server. Experts have two, on two servers.
    # Gradients are compressed, weights are not.
    common, experts = COMMON / 4, EXPERTS / 32

    def everywhere(bytes_each, layers=1):
        sizes = (bytes_each * part / layers for part in (common, experts))
        return ring(next(sizes), 4, 4) + ring(next(sizes), 1, 2)

    gathered, scattered = everywhere(2, 16), everywhere(2 * 1.9 / compression, 16)
    shards = {2: scattered, 3: scattered + 2 * gathered}.get(zero_stage, 0)
    each = together(busy, shards, 0.35)

    logits = 3 * product(TOKENS, 4096, 32_000 / 2)[0] + TOKENS * 32_000 * 31 / 2 / STREAM
    pace, bubble = 16 * each + logits, 16 * each
    transfer = 2 * 4 * (HIDDEN / 2 / PORT + PORT_LATENCY)
    forward, backward = 1 / (3 + again), (2 + again) / (3 + again)
    gradients, weights = everywhere(2 / compression), everywhere(2)
    once = {
        0: exposed(2 * gradients, 0.3, backward * pace),
        1: exposed(gradients, 0.85, backward * pace) + exposed(weights, 0.85, forward * pace),
        2: exposed(weights, 0.35, forward * 16 * max(0, busy - shards)),
        3: 0,
    }[zero_stage]
    held = common / 16 + experts / 2 if zero_stage else common + experts
    update = 28 * held / STREAM
    step = 4 * pace + bubble + transfer + once + update + 6e-3

    for field, expected in {
        "compute_latency": 4 * (16 * own + logits),
        "tp_communication_latency": 64 * shown,
        "ep_communication_latency": 64 * waiting,
        "dp_communication_latency": 64 * (each - busy) + once,
        "pipeline_bubble_latency": bubble,
        "optimizer_latency": update,
        "launch_latency": 64 * (busy - own - shown - waiting) + 6e-3,
        "step_latency_total": step,
    }.items():
        assert seconds(r, field) == pytest.approx(expected), field


@pytest.mark.parametrize("nodes", [None, 2])
def test_levers_of_the_exchange_by_hand(nodes):
    """Tokens go out in 8 bits and come back in 16; the busiest device has a quarter more of them.

    A limit on nodes, even one of all nodes, means that a token is sent to each of them once.
    """
    levers = {"capacity_factor": 1.25, "dispatch_precision": "fp8", "exchange_overlap": 0.4}
    r = DistributedSolver.solve(**MIXED_PLAN, recompute="full", expert_nodes=nodes, **levers)
    own = own_work(1, capacity=1.25)
    sums = 6 * (2 * (HIDDEN / 2 / LINK + LINK_LATENCY) + 50e-6)
    sent = exchanges(1, per_node=nodes is not None, capacity=1.25, outward=0.5)
    waiting = exposed(sent, 0.4, own - (sums - exposed(sums, 0.25, own)))
    assert seconds(r, "ep_communication_latency") == pytest.approx(64 * waiting)


@pytest.mark.parametrize("per_node", [False, True])
def test_copies_within_a_node_take_their_time(per_node):
    """On links of a twentieth of their bandwidth they take longer than those that leave."""
    slow = CONSTANTS.but(link_efficiency=0.05, copies_per_node=float(per_node))
    r = DistributedSolver.solve(
        **MIXED_PLAN | {"calibration": slow}, recompute="none", exchange_overlap=0
    )
    sent = exchanges(0, per_node, link=0.05 * 450e9)
    assert sent > exchanges(0, per_node)
    assert seconds(r, "ep_communication_latency") == pytest.approx(64 * sent)


def test_what_hides_collectives_hides_no_exchange():
    """Exchanges over slow ports could hide altogether, and take longer than what is left."""
    slow = CONSTANTS.but(nic_efficiency=0.1)
    r = DistributedSolver.solve(
        **MIXED_PLAN | {"calibration": slow}, recompute="none", exchange_overlap=1, tensor_overlap=1
    )
    # A layer hides all of its collectives first.
    left = own_work(0) - 4 * (2 * (HIDDEN / 2 / LINK + LINK_LATENCY) + 50e-6)
    sent = exchanges(0, port=0.1 * 50e9)
    assert 0 < left < sent
    assert seconds(r, "tp_communication_latency") == 0
    assert seconds(r, "ep_communication_latency") == pytest.approx(64 * (sent - left))


@pytest.mark.parametrize(("shared", "sums"), [(0, (8 * 4 + 24 * 2) / 32), (4096, 4)])
def test_whole_experts_leave_attention_to_sum(shared, sums):
    """Where each device has experts of its own, and no shared one is split, half are left."""
    model = replace(MIXED, shared_ffn_dim=shared, parameters=None)
    r = DistributedSolver.solve(**MIXED_PLAN | {"model": model}, tensor_overlap=0)
    each = 2 * (HIDDEN / 2 / LINK + LINK_LATENCY) + 50e-6
    assert seconds(r, "tp_communication_latency") == pytest.approx(64 * sums * each)


def test_the_groups_of_a_router_limit_the_nodes_of_a_token():
    """DeepSeek-V3: four of eight groups, so four of eight nodes if each has one group."""
    grouped = Experts(count=256, per_token=8, width=2048, gated=True, groups=8, groups_per_token=4)
    nodes = {1: 1, 2: 2, 4: 4, 8: 4, 16: 8, 32: 16}
    assert {count: grouped.most_nodes(count) for count in nodes} == nodes
    free = replace(grouped, groups=1, groups_per_token=1)
    assert all(free.most_nodes(count) == count for count in nodes)

    step = {
        "model": Models.DeepSeek_V3,
        "fleet": Systems.Clusters.DeepSeek_2048,
        "batch_size": 15_360,
        "precision": "fp8",
        "pp_size": 16,
        "ep_size": 64,
        "microbatch_count": 120,
        "calibration": Calibrations.H800_HAI_LLM,
        "exchange_overlap": 0,
    }
    exchange = {
        limit: DistributedSolver.solve(**step, expert_nodes=limit).ep_communication_latency
        for limit in (None, 4, 8)
    }
    assert exchange[None] == exchange[4] < exchange[8]


def test_the_answer_names_the_features_of_exchanges_that_are_off():
    """Without a calibration, Megatron-Core hides nothing and sends a copy for each expert."""
    fleet = Systems.Clusters.DeepSeek_2048
    step = {
        "model": Models.DeepSeek_V3,
        "fleet": fleet,
        "batch_size": 15_360,
        "precision": "fp8",
        "pp_size": 16,
        "ep_size": 64,
        "microbatch_count": 120,
        "zero_stage": 1,
    }
    own, name = Calibrations.H800_HAI_LLM, Calibrations.H100_Megatron.name
    bare, named = (DistributedSolver.solve(**step, **c) for c in ({}, {"calibration": own}))
    run = best_published("DeepSeek-V3", fleet.node.accelerator.name, "fp8", 4096)
    published = 15_360 * 4096 / (fleet.total_accelerators * run.tokens_per_second)
    assert bare.step_latency_low.to("s").magnitude > published
    assert named.step_latency_low.to("s").magnitude < published
    assert published < named.step_latency_high.to("s").magnitude
    assert bare.step_latency_total > 1.8 * named.step_latency_total
    assert named.calibration == own.name
    levers = {"exchange_overlap": 0.9, "expert_nodes": 4}
    answers = {bare.calibration} | {
        DistributedSolver.solve(**step, **{lever: levers[lever]}).calibration for lever in levers
    }
    assert len(answers) == 3
    assert all(answer.startswith(f"{name} (") for answer in answers)
    assert DistributedSolver.solve(**step, **levers).calibration == name
    # Within a node, and without experts, there is nothing to say.
    assert DistributedSolver.solve(**step | {"ep_size": 8}).calibration == name


@pytest.mark.parametrize(("groups", "per_token"), [(3, 1), (8, 9), (32, 1), (256, 4)])
def test_groups_in_which_a_token_finds_too_few_experts_are_refused(groups, per_token):
    given = {"count": 256, "per_token": 9, "width": 2048, "gated": True}
    with pytest.raises(ConfigError) as fault:
        Experts(**given, groups=groups, groups_per_token=per_token)
    assert fault.value.argument == "groups"
