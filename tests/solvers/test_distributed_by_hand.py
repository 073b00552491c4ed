"""A training step from its operators on paper, next to the solver's."""

from dataclasses import replace

import pytest

from mlsysim import Band, DistributedSolver
from tests.solvers.paper import (
    ATTENTION_BACKWARD,
    CONSTANTS,
    HBM,
    LINK,
    LINK_LATENCY,
    MATRICES,
    PARAMETERS,
    PEAK,
    PEAK_FP8,
    PLAN,
    PORT,
    PORT_LATENCY,
    PRODUCT,
    STREAM,
    attention,
    exposed,
    head,
    layer,
    product,
    seconds,
    together,
)

SCORES = 80 * 4 * 8192 * 2048 / 2
"""Operations per token in its attention, forward."""
LOGITS = 2 * 128_256 * 8192


def collective(size, hops=7):
    """A gather or a scatter over eight servers, of which each has one device and port."""
    return hops / 8 * size / PORT + hops * PORT_LATENCY


def busy_layer(tokens, again):
    """A layer on 8 devices: its work, its collectives, those in sight, and it with launches."""
    own, streamed = layer(tokens, again=again)
    # A scatter and a gather after each half of it, forward and backward, and again if recomputed
    ring = 2 * (7 / 8 * 2 * tokens * 8192 / LINK + 7 * LINK_LATENCY)
    sums = (4 + 2 * again) * (ring + 50e-6)
    shown = exposed(sums, 0.25, own)
    launch = (1 + 1.5 + again) * 0.92e-3
    return own, streamed, sums, shown, together(own + shown, launch, 0.8)


@pytest.mark.parametrize("microbatches", [4, 16])
@pytest.mark.parametrize("zero_stage", [0, 1, 2, 3])
@pytest.mark.parametrize(("recompute", "again"), [("none", 0), ("full", 1)])
def test_a_step_by_hand(recompute, again, zero_stage, microbatches):
    plan = PLAN | {"microbatch_count": microbatches}
    r = DistributedSolver.solve(**plan, recompute=recompute, zero_stage=zero_stage)
    tokens, layers, share = 256 * 2048 / 8 / microbatches, 80 / 4, PARAMETERS / 32
    own, streamed, sums, shown, busy = busy_layer(tokens, again)

    # Layer by layer: gradients of 16 bits are scattered in 1.9 times as many, for each microbatch;
    # at stage 3, weights are gathered forward and backward.
    shards = {
        2: collective(2 * 1.9 * share / layers),
        3: collective(2 * 1.9 * share / layers) + 2 * collective(2 * share / layers),
    }.get(zero_stage, 0)
    each = together(busy, shards, 0.35)

    # The last stage has the output projection too; the other three wait for nothing but layers.
    logits, logits_streamed = head(tokens)
    pace = layers * each + logits
    bubble = 3 * layers * each
    transfer = 2 * microbatches * (2 * tokens * 8192 / 8 / PORT + PORT_LATENCY)

    # Once per step: gradients after the last microbatch's backward pass, which is two of three
    # parts of it or three of four, and weights during the first's forward pass.
    forward, backward = 1 / (3 + again), (2 + again) / (3 + again)
    spare = layers * max(0, busy - shards)
    once, whole = {
        0: (exposed(2 * collective(2 * share), 0.3, backward * pace), 2 * collective(2 * share)),
        1: (
            exposed(collective(2 * share), 0.85, backward * pace)
            + exposed(collective(2 * share), 0.85, forward * pace),
            2 * collective(2 * share),
        ),
        2: (exposed(collective(2 * share), 0.35, forward * spare), collective(2 * share)),
        3: (0, 0),
    }[zero_stage]
    update = 28 * share / (8 if zero_stage else 1)
    step = microbatches * pace + bubble + transfer + once + update / STREAM + 6e-3

    repeats = microbatches * layers
    parts = {
        "compute_latency": repeats * own + microbatches * logits,
        "tp_communication_latency": repeats * shown,
        "dp_communication_latency": repeats * (each - busy) + once,
        "pp_communication_latency": transfer,
        "cp_communication_latency": 0,
        "ep_communication_latency": 0,
        "pipeline_bubble_latency": bubble,
        "optimizer_latency": update / STREAM,
        "launch_latency": repeats * (busy - own - shown) + 6e-3,
    }
    assert sum(parts.values()) == pytest.approx(step)
    hidden = repeats * (sums - shown + shards - (each - busy)) + whole - once
    for field, expected in parts.items():
        assert seconds(r, field) == pytest.approx(expected), field
    assert seconds(r, "step_latency_total") == pytest.approx(step)
    assert seconds(r, "hidden_communication_latency") == pytest.approx(hidden)

    moved = microbatches * STREAM * (layers * streamed + logits_streamed / 4) + update
    assert r.mbu == pytest.approx(moved / (HBM * step))
    flops = 256 * 2048 * 3 * (2 * MATRICES + SCORES + LOGITS)
    repeated = 256 * 2048 * again * (2 * MATRICES + SCORES)
    assert r.mfu == pytest.approx(flops / (256 * PEAK * step))
    assert r.hfu == pytest.approx((flops + repeated) / (256 * PEAK * step))
    # One device that held it all would compute every operator once, on all rows.
    alone = 80 * layer(256 * 2048, tp=1)[0] + head(256 * 2048, tp=1)[0]
    assert r.scaling_efficiency == pytest.approx(alone / (256 * step))


def test_small_gradients_climb_a_tree():
    """Of eight servers: three levels up and down, where a ring makes 14 hops."""
    r = DistributedSolver.solve(**PLAN, zero_stage=0, gradient_overlap=0, gradient_compression=4000)
    size = 2 * PARAMETERS / 32 / 4000
    tree, ring = 2 * size / (0.92 * PORT) + 2 * 3 * PORT_LATENCY, 2 * collective(size)
    assert tree < ring
    assert seconds(r, "dp_communication_latency") == pytest.approx(tree)


def test_narrow_products_by_hand():
    """In 8 bits products run at twice the rate and tensors are cast; attention and logits stay."""
    r = DistributedSolver.solve(**PLAN | {"precision": "fp8"}, recompute="full")
    tokens = 2 * 2048
    own, _ = layer(tokens, again=1, rate=0.95 * 0.7 * PEAK_FP8, cast=3.5)
    assert seconds(r, "compute_latency") == pytest.approx(16 * (20 * own + head(tokens)[0]))
    narrow = 2 * MATRICES / PEAK_FP8
    time = 256 * seconds(r, "step_latency_total") / (256 * 2048)
    assert r.mfu == pytest.approx(3 * (narrow + (SCORES + LOGITS) / PEAK) / time)
    assert r.hfu == pytest.approx((4 * (narrow + SCORES / PEAK) + 3 * LOGITS / PEAK) / time)


@pytest.mark.parametrize(("recompute", "again"), [("none", 0), ("selective", 1), ("full", 1)])
def test_attention_that_is_not_fused_by_hand(recompute, again):
    """All scores are computed, at the rate of products, and written; two gradients, not 2.5."""
    r = DistributedSolver.solve(**PLAN, recompute=recompute, attention="unfused")
    tokens, whole = 2 * 2048, 1 if recompute == "full" else 0
    fused = attention(tokens, 2048, 1024)
    plain = 2 * 2 * tokens * 2048 * 1024 / PRODUCT
    written = 2 * 64 / 8 * 2048**2 * 14 / STREAM
    own = layer(tokens, again=whole)[0] - (1 + ATTENTION_BACKWARD + whole) * fused
    own += (3 + again) * plain + (2.5 + again) * written
    assert seconds(r, "compute_latency") == pytest.approx(16 * (20 * own + head(tokens)[0]))


@pytest.mark.parametrize(("recompute", "again"), [("none", 0), ("full", 1)])
def test_a_shared_sequence_by_hand(recompute, again):
    """Eight ranks of a sequence, one to a server: keys and values go round under attention."""
    plan = PLAN | {"batch_size": 32, "pp_size": 1, "cp_size": 8, "microbatch_count": 2}
    r = DistributedSolver.solve(**plan, zero_stage=0, recompute=recompute)
    # A microbatch is four whole sequences, although each device has only half of one.
    assert r.microbatch_size == 32 / 4 / 2
    assert r.whole_microbatches
    tokens = 4 * 2048 / 8
    # Kernels attend to parts of 256 tokens.
    own, _ = layer(tokens, again=again, length=256)
    assert seconds(r, "compute_latency") == pytest.approx(2 * (80 * own + head(tokens)[0]))

    # A device has one of eight heads of 128, of a part of four sequences. It sends it, and what it
    # gets, through its port seven times; with gradients on the way back, which is twice as much.
    trip = 7 * (2 * 128 * tokens * 2 / PORT + PORT_LATENCY)
    covering = 7 / 8 * attention(tokens, 2048, 1024, length=256)
    waits = (1 + again) * (trip - covering) + 2 * trip - ATTENTION_BACKWARD * covering
    assert covering < trip < 2 * trip - ATTENTION_BACKWARD * covering
    assert seconds(r, "cp_communication_latency") == pytest.approx(160 * waits)

    # What hides keys and values hides no other communication.
    free = own - ((3 + again) * trip - waits)
    ring = 2 * (7 / 8 * 2 * tokens * 8192 / LINK + 7 * LINK_LATENCY)
    sums = (4 + 2 * again) * (ring + 50e-6)
    shown = exposed(sums, 0.25, free)
    assert seconds(r, "tp_communication_latency") == pytest.approx(160 * shown)

    # All 32 devices of the four replicas and eight parts share the gradients of each part.
    reduction = 2 * (31 / 32 * 2 * PARAMETERS / 8 / PORT + 31 * PORT_LATENCY)
    launch = (2.5 + again) * 0.92e-3
    busy = together(own + shown + waits, launch, 0.8)
    pace = 80 * busy + head(tokens)[0]
    after = exposed(reduction, 0.3, (2 + again) / (3 + again) * pace)
    assert seconds(r, "dp_communication_latency") == pytest.approx(after)
    hidden = 160 * ((3 + again) * trip - waits + sums - shown) + reduction - after
    assert seconds(r, "hidden_communication_latency") == pytest.approx(hidden)

    # One device would attend to whole sequences, at the rate of these.
    alone = 80 * layer(32 * 2048, tp=1)[0] + head(32 * 2048, tp=1)[0]
    step = seconds(r, "step_latency_total")
    assert step == pytest.approx(2 * pace + after + 28 * PARAMETERS / 8 / STREAM + 6e-3)
    assert r.scaling_efficiency == pytest.approx(alone / (256 * step))


def test_what_hides_keys_and_values_hides_no_other_communication():
    """Collectives on slow links could hide altogether, and take longer than what is left."""
    plan = PLAN | {"batch_size": 32, "pp_size": 1, "cp_size": 8, "microbatch_count": 2}
    slow = CONSTANTS.but(link_efficiency=0.3)
    r = DistributedSolver.solve(
        **plan | {"calibration": slow}, zero_stage=0, recompute="none", tensor_overlap=1
    )
    tokens = 4 * 2048 / 8
    own, _ = layer(tokens, length=256)
    sums = 4 * (2 * (7 / 8 * 2 * tokens * 8192 / (0.3 * 450e9) + 7 * LINK_LATENCY) + 50e-6)
    trip = 7 * (2 * 128 * tokens * 2 / PORT + PORT_LATENCY)
    hidden = 3 * trip - seconds(r, "cp_communication_latency") / 160
    assert 0 < own - hidden < sums
    assert seconds(r, "tp_communication_latency") == pytest.approx(160 * (sums - (own - hidden)))


@pytest.mark.parametrize(("kind", "length"), [("ring", 256), ("ulysses", 2048)])
def test_a_swap_of_heads_leaves_sequences_whole(kind, length):
    """Of eight devices, each attends with an eighth of the heads, or to an eighth of the tokens."""
    plan = PLAN | {"batch_size": 32, "tp_size": 1, "pp_size": 4, "cp_size": 8}
    r = DistributedSolver.solve(**plan, cp_kind=kind)
    tokens = 32 / 8 / 16 * 2048 / 8
    own, _ = layer(tokens, tp=1, length=length)
    assert seconds(r, "compute_latency") == pytest.approx(16 * (20 * own + head(tokens, tp=1)[0]))


def test_gradients_of_weights_fill_the_bubble():
    """ZB-H1: the last stage waits for three others, which have no head.

    They put off gradients of weights, so it waits for the rest of each pass only, and meanwhile
    does three of its own that it has put off.
    """
    r = DistributedSolver.solve(**PLAN, zero_stage=0, schedule="zb-h1")
    tokens = 2 * 2048
    *_, busy = busy_layer(tokens, 0)
    weights = sum(
        product(tokens, inner, columns)[0]
        for inner, columns in ((8192, 1280), (1024, 8192), (8192, 7168), (3584, 8192))
    )
    # Their kernels are what the backward pass launches beyond the forward pass, a fifth in sight.
    weights += 0.2 * 0.5 * 0.92e-3
    assert seconds(r, "pipeline_bubble_latency") == pytest.approx(3 * 20 * (busy - 2 * weights))


@pytest.mark.parametrize(("basis", "edges"), [("family", (0.9, 1.2)), ("unseen", (0.7, 1.4))])
def test_the_band_is_that_of_its_basis(basis, edges):
    bands = {"band": Band(low=0.9, high=1.2), "unseen_band": Band(low=0.7, high=1.4)}
    calibration = replace(CONSTANTS, basis=basis, **bands)
    r = DistributedSolver.solve(**PLAN | {"calibration": calibration})
    assert (r.band, [r.step_latency_low / r.step_latency_total]) == (basis, [edges[0]])
    assert r.step_latency_high / r.step_latency_total == pytest.approx(edges[1])
    assert r.step_latency_family_low / r.step_latency_total == pytest.approx(0.9)
    assert r.step_latency_unseen_high / r.step_latency_total == pytest.approx(1.4)
