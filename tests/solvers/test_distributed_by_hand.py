"""A training step from its operators, written out: an account on paper beside the solver's."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mlsysim import DistributedSolver, Fleet, Models, Systems
from mlsysim.core.units import Q_
from mlsysim.registry.calibration.training import Calibrations

# No two the same, so that none can take the place of another.
CONSTANTS = replace(
    Calibrations.H100_Megatron,
    gemm_efficiency=0.8,
    attention_efficiency=0.45,
    memory_efficiency=0.75,
    link_efficiency=0.7,
    nic_efficiency=0.9,
    gemm_overhead=Q_(3, "us"),
    collective_overhead=Q_(50, "us"),
    layer_launch=Q_(0.9, "ms"),
    step_overhead=Q_(5, "ms"),
    launch_exposed=0.2,
    hidden_bytes=Q_(20, "byte"),
    ffn_bytes=Q_(5, "byte"),
    loss_bytes=Q_(31, "byte"),
    optimizer_bytes=Q_(28, "byte"),
    elementwise_backward=1.5,
    plain_overlap=0.3,
    gradient_overlap=0.85,
    gather_overlap=0.35,
    gradient_scatters=2.0,
    tensor_overlap=0.25,
)
FLEET = Fleet(
    name="256 H100",
    node=Systems.Nodes.DGX_H100,
    count=32,
    fabric=Systems.Fabrics.InfiniBand_NDR,
)
PLAN = {
    "model": Models.Llama3_70B,
    "fleet": FLEET,
    "batch_size": 256,
    "seq_len": 2048,
    "tp_size": 8,
    "pp_size": 4,
    "microbatch_count": 16,
    "precision": "bf16",
    "sequence_parallel": True,
    "calibration": CONSTANTS,
}
PEAK, STREAM = 989.4e12, 0.75 * 3.35e12
PARAMETERS = Models.Llama3_70B.parameters.to("param").magnitude


def product(rows, inner, columns, rate=0.8 * PEAK):
    """A matrix product: its time, its arithmetic, its traffic."""
    work = 2 * rows * inner * columns / rate
    traffic = 2 * (inner * columns + rows * (inner + columns)) / STREAM
    return 3e-6 + max(work, traffic), work, traffic


def layer(tokens, tp, again, rate=0.8 * PEAK, cast=0):
    """A layer of Llama 3 70B, forward and backward, and forward again: time, streaming, products.

    A product has two gradients of its own size; fused attention runs back in 2.5 times its
    forward pass, five products for two (Dao, 2023, section 3.1).
    """
    width, inner = 64 * 128 / tp, 28_672 / tp
    shapes = (
        (8192, (64 + 2 * 8) * 128 / tp),
        (width, 8192),
        (8192, 2 * inner),
        (inner, 8192),
    )
    products = [product(tokens, *shape, rate) for shape in shapes]
    time, _, traffic = (sum(part) for part in zip(*products, strict=True))
    # Half of the scores: a token attends to what came before.
    attention = 4 * tokens * 2048 * width / 2 / (0.45 * PEAK)
    elementwise = tokens * ((20 + 2 * cast) * 8192 / tp + (5 + 2 * cast) * 2 * inner) / STREAM
    streamed = (1 + 1.5 + again) * elementwise
    whole = (3 + again) * time + (1 + 2.5 + again) * attention + streamed
    return whole, streamed + (3 + again) * traffic


def head(tokens, tp):
    """Logits forward and backward, and the loss: time and streaming."""
    time, _, traffic = product(tokens, 8192, 128_256 / tp)
    loss = tokens * 128_256 * 31 / tp / STREAM
    return 3 * time + loss, 3 * traffic + loss


@pytest.mark.parametrize("zero_stage", [0, 1, 2, 3])
@pytest.mark.parametrize(("recompute", "again"), [("none", 0), ("full", 1)])
def test_a_step_by_hand(recompute, again, zero_stage):
    """256 devices: 8 replicas of 4 stages of 8 devices; 16 microbatches of 2 sequences."""
    r = DistributedSolver.solve(**PLAN, recompute=recompute, zero_stage=zero_stage)
    tokens, layers = 2 * 2048, 80 / 4
    own, streamed = layer(tokens, 8, again)

    # Four all-reduces forward and backward, two more where the layer is computed again.
    hidden = 2 * tokens * 8192
    tensor = (4 + 2 * again) * (2 * 7 / 8 * hidden / (0.7 * 450e9) + 2 * 7 * 0.6e-6 + 50e-6)
    exposed = max(0.75 * tensor, tensor - own)
    launch = (1 + 1.5 + again) * 0.9e-3
    each = max(own + exposed, launch) + 0.2 * min(own + exposed, launch)

    # Replicas are one to a server: each speaks through its own port.
    port, share = 0.9 * 50e9, PARAMETERS / 32
    gather = 7 / 8 * 2 * share / layers / port + 7 * 2.7e-6
    gathers = {2: 1 + 2, 3: 2 + 2}.get(zero_stage, 0) * gather
    waiting = max(0, gathers - each) + 0.65 * min(gathers, each)

    logits, logits_streamed = head(tokens, 8)
    passes = 16 * (layers * (each + waiting) + logits)
    bubble = 3 * (layers * (each + waiting) + logits / 4)
    transfer = 2 * 16 * (hidden / 8 / port + 2.7e-6)
    reduction = 2 * 7 / 8 * 2 * share / port + 14 * 2.7e-6
    kept = 0.15 if zero_stage == 1 else 0.7
    after = max(kept * reduction, reduction - passes / 16) if zero_stage < 2 else 0
    update = 28 * share / (8 if zero_stage else 1)
    step = passes + bubble + transfer + after + update / STREAM + 5e-3

    def seconds(field):
        return pytest.approx(r[field].to("s").magnitude, rel=1e-3)

    # To a thousandth: parameters of norms are counted, and not multiplied.
    assert seconds("compute_latency") == 16 * (layers * own + logits)
    assert seconds("tp_communication_latency") == 16 * layers * exposed
    assert seconds("pp_communication_latency") == transfer
    sent = 16 * layers * waiting if zero_stage > 1 else after
    assert seconds("dp_communication_latency") == sent
    whole = 16 * layers * gathers if zero_stage > 1 else reduction
    assert seconds("hidden_communication_latency") == (
        16 * layers * (tensor - exposed) + whole - sent
    )
    assert seconds("pipeline_bubble_latency") == bubble
    assert seconds("step_latency_total") == step
    moved = 16 * STREAM * (layers * streamed + logits_streamed / 4) + update
    assert r.mbu == pytest.approx(moved / (3.35e12 * step), rel=1e-3)

    weights = 80 * (2 * 8192 * 128 * 72 + 3 * 8192 * 28_672)
    scores = 4 * 80 * 8192 * 2048 / 2
    flops = 256 * 2048 * 3 * (2 * (weights + 128_256 * 8192) + scores)
    repeated = 256 * 2048 * again * (2 * weights + scores)
    assert r.mfu == pytest.approx(flops / (256 * PEAK * step), rel=1e-3)
    assert r.hfu == pytest.approx((flops + repeated) / (256 * PEAK * step), rel=1e-3)

    # One device that held it all would compute every operator once, on all rows.
    alone = 80 * layer(256 * 2048, 1, 0)[0] + head(256 * 2048, 1)[0]
    assert r.scaling_efficiency == pytest.approx(alone / (256 * step), rel=1e-3)


def test_narrow_products_by_hand():
    """In 8 bits products run at twice the rate and tensors are cast; attention and logits stay."""
    constants = replace(CONSTANTS, gemm_efficiency_fp8=0.7, cast_bytes=Q_(3, "byte"))
    r = DistributedSolver.solve(
        **PLAN | {"precision": "fp8", "calibration": constants}, recompute="full"
    )
    tokens = 2 * 2048
    own, _ = layer(tokens, 8, 1, 0.7 * 1978.9e12, 3)
    expected = 16 * (20 * own + head(tokens, 8)[0])
    assert r.compute_latency.to("s").magnitude == pytest.approx(expected, rel=1e-4)
    matrices = 2 * 80 * (2 * 8192 * 128 * 72 + 3 * 8192 * 28_672) / 1978.9e12
    scores, logits = 4 * 80 * 8192 * 2048 / 2 / PEAK, 2 * 128_256 * 8192 / PEAK
    time = 256 * r.step_latency_total.to("s").magnitude / (256 * 2048)
    assert r.mfu == pytest.approx(3 * (matrices + scores + logits) / time, rel=1e-4)
    assert r.hfu == pytest.approx((4 * (matrices + scores) + 3 * logits) / time, rel=1e-4)


@pytest.mark.parametrize(("recompute", "matrix", "again"), [("none", 0, 0), ("selective", 0, 1)])
def test_attention_that_is_not_fused_by_hand(recompute, matrix, again):
    """All scores are computed, at the rate of products, and written; two gradients, not 2.5."""
    constants = replace(CONSTANTS, score_bytes=Q_(14, "byte"))
    r = DistributedSolver.solve(
        **PLAN | {"calibration": constants}, recompute=recompute, attention="unfused"
    )
    tokens = 2 * 2048
    fused = 4 * tokens * 2048 * 1024 / 2 / (0.45 * PEAK)
    plain = 4 * tokens * 2048 * 1024 / (0.8 * PEAK)
    written = 2 * 64 * 2048**2 * 14 / 8 / STREAM
    own = layer(tokens, 8, matrix)[0] - 3.5 * fused + (3 + again) * plain + (2.5 + again) * written
    expected = 16 * (20 * own + head(tokens, 8)[0])
    assert r.compute_latency.to("s").magnitude == pytest.approx(expected, rel=1e-9)


def test_a_shared_sequence_by_hand():
    """Eight ranks of a sequence, one to a server: keys and values go round under attention."""
    plan = PLAN | {"batch_size": 32, "pp_size": 1, "cp_size": 8, "microbatch_count": 2}
    r = DistributedSolver.solve(**plan, recompute="none")
    # A microbatch is four whole sequences, although each device has only half of one.
    assert r.microbatch_size == 32 / 4 / 2
    assert r.whole_microbatches
    tokens, port = 4 * 2048 / 8, 0.9 * 50e9
    own, hidden = layer(tokens, 8, 0)[0], 2 * tokens * 8192
    # A device has one of eight heads of 128, of a part of four sequences.
    trip = 7 * (2 * 128 * tokens * 2 / port + 2.7e-6)
    attention = 4 * tokens * 2048 * 1024 / 2 / (0.45 * PEAK)
    context = 3 * max(0, trip - 7 / 8 * attention)
    assert context > 0
    tensor = 4 * (2 * 7 / 8 * hidden / (0.7 * 450e9) + 14 * 0.6e-6 + 50e-6)
    shown = max(0.75 * tensor, tensor - (own - (3 * trip - context)))
    assert r.cp_communication_latency.to("s").magnitude == pytest.approx(160 * context)
    assert r.tp_communication_latency.to("s").magnitude == pytest.approx(160 * shown)
    # All 32 devices of the four replicas and eight parts share the gradients of each part.
    reduction = 2 * 31 / 32 * 2 * PARAMETERS / 8 / port + 62 * 2.7e-6
    sent = r.dp_communication_latency + r.hidden_communication_latency
    sent -= (3 * trip - context) * 160 * Q_(1, "s") + 160 * (tensor - shown) * Q_(1, "s")
    assert sent.to("s").magnitude == pytest.approx(reduction)


@pytest.mark.parametrize(("nodes", "edge"), [(1, "node"), (32, "fleet")])
def test_the_band_is_that_of_the_fleet(nodes, edge):
    constants = replace(
        CONSTANTS,
        node_band_low=0.9,
        node_band_high=1.1,
        fleet_band_low=0.8,
        fleet_band_high=1.2,
        expert_band_low=0.7,
        expert_band_high=1.3,
    )
    plan = PLAN | {"fleet": replace(FLEET, count=nodes), "pp_size": 1, "calibration": constants}
    low, high = {"node": (0.9, 1.1), "fleet": (0.8, 1.2)}[edge]
    for model, edges in ((PLAN["model"], (low, high)), (Models.Mixtral_8x7B, (0.7, 1.3))):
        r = DistributedSolver.solve(**plan | {"model": model})
        found = [r[f"step_latency_{end}"] / r.step_latency_total for end in ("low", "high")]
        assert found == pytest.approx(edges)


# Experts: eight dense layers and 24 with experts, on 64 devices. Each holds two of 32 experts, so
# that the experts of a layer fill two servers, and half of the rest of its stage.
MIXED = replace(
    Models.Mixtral_8x7B,
    name="mixed",
    ffn_dim=24_576,
    moe_layers=24,
    experts=32,
    experts_per_token=4,
    expert_ffn_dim=3584,
    shared_ffn_dim=4096,
    expert_biases=True,
    parameters=None,
)
EXPERT_CONSTANTS = replace(
    CONSTANTS,
    expert_efficiency=0.65,
    expert_launch=Q_(2.1, "ms"),
    routing_bytes=Q_(8, "byte"),
    bias_bytes=Q_(33, "byte"),
    exchange_overlap=0.15,
    copies_per_node=0.0,
)
EXPERT_PLAN = PLAN | {
    "model": MIXED,
    "fleet": replace(FLEET, count=8),
    "batch_size": 128,
    "tp_size": 2,
    "pp_size": 2,
    "ep_size": 16,
    "microbatch_count": 4,
    "recompute": "none",
    "calibration": EXPERT_CONSTANTS,
}
ATTENTION, DENSE = 2 * 4096 * 128 * (32 + 8), 3 * 4096 * 24_576
EXPERT, SHARED, TABLE = 3 * 4096 * 3584, 3 * 4096 * 4096, 32_000 * 4096
EXPERTS = 24 * 32 * EXPERT
COMMON = 32 * ATTENTION + 8 * DENSE + 24 * SHARED + 2 * TABLE


@pytest.mark.parametrize("zero_stage", [0, 1])
@pytest.mark.parametrize("compression", [1, 4])
@pytest.mark.parametrize("per_node", [0.0, 1.0])
def test_a_step_with_experts_by_hand(per_node, compression, zero_stage):
    r = DistributedSolver.solve(
        **EXPERT_PLAN | {"calibration": replace(EXPERT_CONSTANTS, copies_per_node=per_node)},
        gradient_compression=compression,
        zero_stage=zero_stage,
    )
    # 16 replicas, four microbatches of two sequences: each token is four rows for its experts,
    # and two devices of a tensor-parallel group deal with half of them each.
    tokens, rows = 2 * 2048, 4 * 2 * 2048 / 2

    def time(rows, inner, columns, matrices=1, share=1.0):
        work = 2 * rows * inner * columns / (share * 0.8 * PEAK)
        traffic = 2 * (matrices * inner * columns + rows * (inner + columns)) / STREAM
        return 3e-6 + max(work, traffic)

    def ffn(width):
        return time(tokens, 4096, 2 * width / 2) + time(tokens, width / 2, 4096)

    routed = time(rows, 4096, 2 * 3584, 2, 0.65) + time(rows, 3584, 4096, 2, 0.65)
    both = time(tokens, 4096, 48 * 128 / 2) + time(tokens, 2048, 4096)
    products = both + (8 * ffn(24_576) + 24 * (routed + ffn(4096))) / 32
    norms, widths = 20 * 4096 / 2, (8 * 24_576 + 24 * (4 * 3584 + 4096)) / 32
    moved = tokens * (norms + 5 * 2 * widths / 2) + 24 / 32 * rows * 4096 * (8 + 33)
    attention = 4 * tokens * 2048 * 2048 / 2 / (0.45 * PEAK)
    own = 3 * products + 3.5 * attention + 2.5 * moved / STREAM

    hidden = 2 * tokens * 4096
    tensor = 4 * (2 / 2 * hidden / (0.7 * 450e9) + 2 * 0.6e-6 + 50e-6)
    shown = max(0.75 * tensor, tensor - own)
    # Of four copies two leave the server, or 15/16 where a server gets one for all of its experts;
    # 7/16 of four go to other devices of the own server. Out and back, forward and backward.
    port = 0.9 * 50e9
    leaving = 15 / 16 if per_node else 2
    trip = max(leaving * hidden / 2 / port, 1.75 * hidden / 2 / (0.7 * 450e9)) + 15 * 2.7e-6
    exchange = 24 / 32 * 4 * trip
    waiting = max(0.85 * exchange, exchange - (own - (tensor - shown)))
    launch = 2.5 * (0.9e-3 + 24 / 32 * 2.1e-3)
    busy = own + shown + waiting
    each = max(busy, launch) + 0.2 * min(busy, launch)

    logits = 3 * time(tokens, 4096, 32_000 / 2) + tokens * 32_000 * 31 / 2 / STREAM
    passes, bubble = 4 * (16 * each + logits), 16 * each + logits / 2
    transfer = 2 * 4 * (hidden / 2 / port + 2.7e-6)
    # Replicas of what all tokens pass: four to a server, which has four ports. Of the experts: two.
    common, experts = COMMON / 4, EXPERTS / 32
    # Gradients are compressed, and not the weights that come back where replicas share the update.
    sent = (1 / compression + 1) / 2 if zero_stage else 1 / compression
    reduction = 2 * 15 / 16 * 2 * sent * common / (4 * port) + 30 * 2.7e-6
    reduction += 2 * 1 / 2 * 2 * sent * experts / port + 2 * 2.7e-6
    after = max((0.15 if zero_stage else 0.7) * reduction, reduction - passes / 4)
    held = common / 16 + experts / 2 if zero_stage else common + experts
    step = passes + bubble + transfer + after + 28 * held / STREAM + 5e-3

    for field, expected in {
        "tp_communication_latency": 64 * shown,
        "ep_communication_latency": 64 * waiting,
        "dp_communication_latency": after,
        "pipeline_bubble_latency": bubble,
        "step_latency_total": step,
    }.items():
        assert r[field].to("s").magnitude == pytest.approx(expected), field


@pytest.mark.parametrize("zero_stage", [0, 1, 2, 3])
@pytest.mark.parametrize("recompute", ["none", "full"])
def test_memory_with_experts_by_hand(recompute, zero_stage):
    """The last stage has 16 layers with experts, the first 8 of them; it holds two microbatches."""
    r = DistributedSolver.solve(**EXPERT_PLAN | {"recompute": recompute}, zero_stage=zero_stage)
    tokens, full = 2 * 2048, recompute == "full"

    def kept(width):
        """Two norms' inputs and what residuals add, attention, the block, and statistics."""
        return tokens * (8 * 4096 / 2 + 2 * (2 * 128 * 40 + width) / 2 + 4 * 32 / 2)

    dense, mixed = kept(3 * 24_576), kept(4 * (4096 + 3 * 3584) + 3 * 4096)
    layer_input = 2 * tokens * 4096 / 2

    def stage(plain, others, in_flight, outputs):
        common = ((COMMON - 2 * TABLE) / 2 + TABLE) / 2
        experts = others * 32 * EXPERT / 16

        def share(stage):
            return common / 16 + experts / 2 if zero_stage >= stage else common + experts

        each = [layer_input] * 2 if full else [dense, mixed]
        # One buffer for each shape of gradients, in all layers
        shapes = ATTENTION + (plain > 0) * DENSE + EXPERT + SHARED + outputs * TABLE
        # The layer at work and the next are there whole.
        whole = 2 * (common + experts) / 16 if zero_stage == 3 else 0
        peak = 2 * tokens * (4 * (2 * 3584 + 4096) / 2 + 4096) + mixed - each[1]
        logits = outputs * 2 * tokens * (32_000 / 2 + 2 * 4096 + 2 * 4096 / 2)
        return {
            "weights_memory": 2 * share(3),
            "gradient_memory": 2 * share(2),
            "optimizer_memory": 12 * share(1),
            "activation_memory": in_flight * (plain * each[0] + others * each[1]),
            "working_memory": 2 * shapes / 2 + 2 * whole + max(logits, peak),
        }

    fuller = max(stage(8, 8, 2, 0), stage(0, 16, 1, 1), key=lambda parts: sum(parts.values()))
    for field, expected in fuller.items():
        assert r[field].to("byte").magnitude == pytest.approx(expected), field


@pytest.mark.parametrize(("shared", "sums"), [(0, (8 * 4 + 24 * 2) / 32), (4096, 4)])
def test_whole_experts_leave_attention_to_sum(shared, sums):
    """Where each device has experts of its own, and no shared one is split, half are left."""
    model = replace(MIXED, shared_ffn_dim=shared, parameters=None)
    r = DistributedSolver.solve(
        **EXPERT_PLAN | {"model": model, "calibration": replace(EXPERT_CONSTANTS, tensor_overlap=0)}
    )
    each = 2 * 4096 * 4096 / (0.7 * 450e9) + 2 * 0.6e-6 + 50e-6
    assert r.tp_communication_latency.to("s").magnitude == pytest.approx(64 * sums * each)
