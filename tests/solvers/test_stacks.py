"""Layers that are not all alike: limits that must agree, and small cases by hand."""

import dataclasses
import math

import pytest

from mlsysim import DistributedSolver, Hardware, Models, ServingSolver, SingleNodeSolver, Systems
from mlsysim.core.types import (
    Attention,
    Chunks,
    Experts,
    FeedForward,
    Formats,
    LatentAttention,
    Layers,
    LinearAttention,
    SlidingWindow,
    TopKeys,
    TransformerModel,
)
from mlsysim.registry.calibration.training import calibration_for
from mlsysim.solvers.work import kv_cache, token_flops
from tests.networks import CONFIG, NETWORKS, deepseek, network

HEADS = {"heads": 32, "kv_heads": 8, "head_dim": 128}
MLP = FeedForward(width=14_336, gated=True)
FLEET = Systems.Clusters.Research_256
TRAINING = [
    {"batch_size": 256, "tp_size": 4, "pp_size": 2, "microbatch_count": 4},
    {"batch_size": 256, "cp_size": 2, "recompute": "full", "zero_stage": 3},
    {"batch_size": 256, "tp_size": 2, "attention": "unfused", "recompute": "norms+swiglu"},
    {"batch_size": 256, "cp_size": 4, "ulysses_size": 2, "cp_kind": "all_gather", "lora_rank": 8},
    {"batch_size": 256, "pp_size": 4, "microbatch_count": 8, "efficiency": 0.4},
]
SERVING = [
    {"hardware": Hardware.H200, "batch_size": 8, "output_len": 256},
    {"hardware": Systems.Nodes.DGX_H100, "tp_size": 8, "batch_size": 64, "output_len": 256},
    {"hardware": Systems.Nodes.DGX_H100, "tp_size": 2, "efficiency": 0.5, "output_len": 256},
]


def model(*stack, **more):
    return network("a", 4_096, 32_000, *stack, seq_len=4_096, **more)


def numbers(result):
    found = {}
    for field in dataclasses.fields(result):
        value = getattr(result, field.name)
        found[field.name] = getattr(value, "magnitude", value)
    return {n: v for n, v in found.items() if isinstance(v, int | float | str | type(None))}


def answers(a, seq_len=4_096, precision="bf16"):
    given = {"model": a, "seq_len": seq_len, "precision": precision}
    return [
        *(numbers(DistributedSolver.solve(**given, fleet=FLEET, **plan)) for plan in TRAINING),
        *(numbers(ServingSolver.solve(**given, **plan)) for plan in SERVING),
        *(
            numbers(SingleNodeSolver.solve(**given, hardware=Hardware.H100, efficiency=share))
            for share in (None, 0.5)
        ),
    ]


def same(one, other, apart=()):
    for mine, its in zip(answers(one), answers(other), strict=True):
        for name, value in mine.items():
            if name in apart or (None in (value, its[name]) and name.endswith(("_low", "_high"))):
                continue  # no served run with a limited reach is known, so there is no band
            if isinstance(value, float):
                assert value == pytest.approx(its[name], rel=1e-12), name
            else:
                assert value == its[name], name


SHORT = TransformerModel(
    name="a",
    source=CONFIG,
    hidden_dim=4_096,
    vocab_size=32_000,
    seq_len=4_096,
    layers=8,
    ffn_dim=14_336,
    gated_mlp=True,
    **HEADS,
)
WHOLE = model(Layers(count=8, attention=Attention(**HEADS), feed_forward=MLP))


def test_a_stack_of_one_group_is_the_short_form():
    same(SHORT, WHOLE)


def test_a_mixture_in_a_stack_is_the_short_form():
    short = dataclasses.replace(Models.DeepSeek_V3, layers=8, moe_layers=5, parameters=None)
    same(
        short,
        dataclasses.replace(
            deepseek(short.name, None),
            stack=tuple(
                dataclasses.replace(part, count=count)
                for part, count in zip(deepseek("x", None).stack, (3, 5), strict=True)
            ),
            layers=None,
            parameters=None,
        ),
    )


def test_a_group_in_two_parts_is_one_group():
    parts = [Layers(count=n, attention=Attention(**HEADS), feed_forward=MLP) for n in (3, 5)]
    same(WHOLE, model(*parts))
    spread = Layers(at=range(1, 8, 2), attention=Attention(**HEADS), feed_forward=MLP)
    same(WHOLE, model(spread, dataclasses.replace(parts[0], count=4)))


@pytest.mark.parametrize("kind", [SlidingWindow, Chunks])
@pytest.mark.parametrize("tokens", [4_096 + 256, 10**6])
def test_a_reach_as_long_as_the_sequence_is_no_limit(kind, tokens):
    near = Attention(**HEADS, reach=kind(tokens=tokens))
    # The context may grow past the reach, where less memory is needed.
    same(
        model(Layers(count=8, attention=near, feed_forward=MLP)),
        WHOLE,
        apart=("max_seq_len", "calibration"),
    )


def test_a_shorter_window_never_costs_more():
    before = None
    for tokens in (8, 128, 1_024, 4_000, 10_000):
        near = Attention(**HEADS, reach=SlidingWindow(tokens=tokens))
        found = answers(model(Layers(count=8, attention=near, feed_forward=MLP)))
        times = [row.get("step_latency_total", row.get("itl", row.get("latency"))) for row in found]
        if before is not None:
            assert all(less <= more * (1 + 1e-12) for less, more in zip(before, times, strict=True))
        before = times
    assert before is not None


MIXER = LinearAttention(heads=32, key_heads=8, key_dim=64, value_dim=128)


def both(attention, parallel, **more):
    layers = Layers(
        count=8, attention=attention, parallel_attention=parallel, feed_forward=MLP, **more
    )
    return model(layers)


def test_parallel_attention_has_no_order():
    same(both(Attention(**HEADS), MIXER), both(MIXER, Attention(**HEADS)))


def test_two_kinds_in_parallel_are_the_sum_of_both():
    """Parameters, operations, caches and states; the other block of a layer is there once."""
    one, other = (both(a, None) for a in (Attention(**HEADS), MIXER))
    pair = both(Attention(**HEADS), MIXER)
    rest = model(Layers(count=8, feed_forward=MLP), Layers(at=(8,), attention=MIXER))
    rest = rest.si("parameters") - MIXER.parameters(4_096)
    assert pair.si("parameters") + rest == one.si("parameters") + other.si("parameters")
    flops = [token_flops(a, 4_096, 2) for a in (pair, one, other)]
    assert flops[0].score == flops[1].score + flops[2].score
    assert flops[0].matrix + 8 * 2 * MLP.parameters(4_096) == flops[1].matrix + flops[2].matrix
    assert pair.kv_cache_bytes("bf16", 9_999) == one.kv_cache_bytes("bf16", 9_999)
    assert pair.state_bytes_per_sequence("bf16") == other.state_bytes_per_sequence("bf16")
    assert not pair.plain_attention
    for mine, first, second in zip(*map(answers, (pair, one, other)), strict=True):
        for name in ("step_latency_total", "itl", "ttft", "latency"):
            if name in mine:
                assert max(first[name], second[name]) < mine[name] < first[name] + second[name]
        if "kv_cache_size" in mine:
            both_kept = first["kv_cache_size"] + second["kv_cache_size"]
            assert mine["kv_cache_size"] == pytest.approx(both_kept, rel=1e-12)


def test_a_short_convolution_by_hand():
    """LFM2: three projections as wide as the token, one back, and 3 taps of each channel."""
    conv = LinearAttention(heads=4_096, key_heads=1, key_dim=0, value_dim=1, conv_width=3)
    a = model(Layers(count=8, attention=conv, feed_forward=MLP))
    assert conv.parameters(4_096) == 4 * 4_096**2 + 3 * 4_096
    assert token_flops(a, 4_096, 2).score == 0
    assert a.state_bytes_per_sequence("bf16").magnitude == 8 * 2 * 4_096 * 2
    assert a.kv_cache_bytes("bf16", 10**6).magnitude == 0


def test_an_output_gate_of_full_rank():
    """Made of a vector as wide as the token, it has one matrix more."""
    direct = LinearAttention(heads=32, key_heads=32, key_dim=128, value_dim=128)
    ranked = dataclasses.replace(direct, output_gate_rank=4_096)
    assert ranked.parameters(4_096) - direct.parameters(4_096) == 4_096**2
    one, other = (model(Layers(count=8, attention=a, feed_forward=MLP)) for a in (direct, ranked))
    more = token_flops(other, 64, 2).matrix - token_flops(one, 64, 2).matrix
    assert more == 8 * 2 * 4_096**2
    for mine, its in zip(answers(one), answers(other), strict=True):
        for name in ("step_latency_total", "itl", "ttft", "latency"):
            assert name not in mine or mine[name] < its[name]


def test_layers_without_an_indexer_of_their_own():
    """They attend to as many keys, keep no key of an indexer, and take less time."""
    shared = TopKeys(tokens=2_048, heads=0, head_dim=0)
    own = TopKeys(tokens=2_048, heads=32, head_dim=128)
    whole = model(Layers(count=8, attention=latent(query_rank=1_024), feed_forward=MLP))
    one, other = (
        model(Layers(count=8, attention=latent(query_rank=1_024, reach=reach), feed_forward=MLP))
        for reach in (shared, own)
    )
    assert one.si("parameters") == whole.si("parameters") < other.si("parameters")
    assert one.kv_bytes_per_token("bf16") == whole.kv_bytes_per_token("bf16")
    for mine, its, full in zip(*map(answers, (one, other, whole)), strict=True):
        for name in ("step_latency_total", "itl", "ttft", "latency"):
            assert name not in mine or mine[name] < its[name]
            assert name not in mine or mine[name] <= full[name] * (1 + 1e-12)


@pytest.mark.parametrize("shared", [0, 4_096])
def test_one_expert_is_a_dense_block(shared):
    """Nothing is routed: in training, in serving and in one pass."""
    one = Experts(count=1, per_token=1, width=14_336 - shared, shared_width=shared, gated=True)
    expert = model(Layers(count=8, attention=Attention(**HEADS), feed_forward=one))
    assert expert.si("parameters") == WHOLE.si("parameters")
    assert expert.active_parameters == WHOLE.active_parameters
    same(expert, WHOLE)


def test_experts_as_wide_as_the_token():
    """A latent space as wide as the token costs its two projections alone."""
    block = {"count": 8, "per_token": 2, "width": 1_024, "gated": True}
    plain = model(Layers(count=8, attention=Attention(**HEADS), feed_forward=Experts(**block)))
    latent = model(
        Layers(
            count=8, attention=Attention(**HEADS), feed_forward=Experts(**block, latent_dim=4_096)
        )
    )
    more = latent.si("parameters") - plain.si("parameters")
    assert more == 8 * 2 * 4_096**2
    one, other = (token_flops(a, 4_096, 2) for a in (plain, latent))
    assert other.matrix - one.matrix == 2 * more
    narrow = model(
        Layers(
            count=8, attention=Attention(**HEADS), feed_forward=Experts(**block, latent_dim=1_024)
        )
    )
    plan = {"fleet": FLEET, "batch_size": 256, "ep_size": 8}
    sent = [
        DistributedSolver.solve(model=a, **plan).ep_communication_latency
        for a in (plain, latent, narrow)
    ]
    assert sent[0] == sent[1]
    assert sent[2] < sent[0]


def latent(**ranks):
    shape = {"nope_dim": 96, "rope_dim": 32, "heads": 32, "value_dim": 128}
    return LatentAttention(**{"query_rank": None, "kv_rank": 512} | shape | ranks)


def test_latent_attention_of_full_rank_does_the_work_of_its_heads():
    """Scores and values are those of as many heads with keys and values of their own."""
    heads = Attention(heads=32, kv_heads=32, head_dim=128)
    own, plain = (
        model(Layers(count=8, attention=a, feed_forward=MLP))
        for a in (latent(kv_rank=32 * 128), heads)
    )
    assert token_flops(own, 4_096, 2).score == token_flops(plain, 4_096, 2).score
    # Queries come straight from the token; keys and values by way of a vector of full rank, with
    # a part of each key that the heads share.
    more = own.si("parameters") - plain.si("parameters")
    made = 4_096 * (4_096 + 32) + 4_096 * 32 * (96 + 128)
    assert more == 8 * (made - 2 * 4_096 * 32 * 128)


def test_queries_without_a_vector_of_their_own():
    """A rank that costs as much as it saves: r (h + q) = h q."""
    h, q = 4_096, 32 * 128
    direct, by_rank = (
        model(Layers(count=8, attention=a, feed_forward=MLP))
        for a in (latent(), latent(query_rank=h * q // (h + q)))
    )
    assert direct.si("parameters") == by_rank.si("parameters")
    assert token_flops(direct, 64, 2) == token_flops(by_rank, 64, 2)


@pytest.mark.parametrize("kind", ["heads", "latent", "latent without a vector of queries"])
def test_top_keys_past_the_context_add_the_indexer_alone(kind):
    reach = TopKeys(tokens=10**6, heads=16, head_dim=64)
    whole = {
        "heads": Attention(**HEADS),
        "latent": latent(query_rank=1_024),
        "latent without a vector of queries": latent(query_rank=None),
    }[kind]
    indexed = dataclasses.replace(whole, reach=reach)
    one, other = (model(Layers(count=8, attention=a, feed_forward=MLP)) for a in (whole, indexed))
    given_to = 1_024 if kind == "latent" else 4_096
    extra = 8 * (given_to * 16 * 64 + 4_096 * (64 + 16))
    assert other.si("parameters") - one.si("parameters") == extra
    first, second = (token_flops(a, 4_096, 2) for a in (one, other))
    assert second.matrix - first.matrix == 2 * extra
    assert second.score - first.score == 8 * 2 * 16 * 64 * 4_096 / 2
    keys = kv_cache(other, 3, 1_000, 2, 2) - kv_cache(one, 3, 1_000, 2, 2)
    assert keys == 8 * 3 * 1_000 * 64 * 2


def test_top_keys_bound_what_decode_reads():
    reach = TopKeys(tokens=2_048, heads=64, head_dim=128)
    whole, sparse = deepseek("whole", None), deepseek("sparse", reach)
    given = {"hardware": Systems.Nodes.DGX_B200, "tp_size": 8, "precision": "fp8"}
    given |= {"batch_size": 8, "output_len": 2}
    times = {
        (a.name, n): ServingSolver.solve(model=a, seq_len=n, **given).decode_latency
        for a in (whole, sparse)
        for n in (1_024, 65_536)
    }
    assert times["sparse", 1_024] > times["whole", 1_024]  # the indexer
    assert times["sparse", 65_536] < times["whole", 65_536]


def test_operations_in_states_by_hand():
    """Mamba-2: per head and token, an outer product, a product with the query, and the chunk."""
    a = NETWORKS["Mamba-2 2.7B"]
    each = 2 * 128 * 64 + 256 * (128 + 64)
    assert token_flops(a, 4_096, 2).score == 64 * 2 * 80 * each
    # A sequence shorter than a chunk is one chunk.
    assert token_flops(a, 16, 2).score == 64 * 2 * 80 * (2 * 128 * 64 + 16 * (128 + 64))
    delta = LinearAttention(heads=4, key_heads=2, key_dim=8, value_dim=16, delta_rule=True)
    one = model(Layers(count=1, attention=delta))
    state = 3 * 8 * 16 + 64 * (2 * (8 + 16) + 8)
    assert token_flops(one, 4_096, 2).score == 2 * 4 * state


def test_a_state_does_not_grow_with_the_context():
    a = NETWORKS["Mamba-2 2.7B"]
    given = {"model": a, "hardware": Hardware.H100, "batch_size": 8, "output_len": 64}
    for share in (None, 0.5):
        short, long = (
            ServingSolver.solve(**given, seq_len=n, efficiency=share) for n in (64, 64_000)
        )
        assert short.kv_cache_size == long.kv_cache_size
        assert short.decode_latency == long.decode_latency
        assert short.max_seq_len is None
        assert short.max_batch_size == long.max_batch_size
        value = short.explain("max_seq_len").roots["max_seq_len"].value
        assert math.isnan(value.magnitude)
    each = a.state_bytes_per_sequence("fp16").to("byte").magnitude
    assert short.kv_cache_size.to("byte").magnitude == 8 * each


def test_scans_of_states_run_at_a_rate_of_their_own():
    """Forward once, and 2.5 times as many operations backward, as fused attention has."""
    constants = calibration_for(FLEET.node.accelerator)
    job = {"model": NETWORKS["Mamba-2 2.7B"], "fleet": FLEET, "batch_size": 256, "seq_len": 4_096}
    fast, slow = (
        DistributedSolver.solve(
            **job, precision="bf16", calibration=constants.but(state_efficiency=share)
        ).compute_latency
        for share in (0.02, 0.01)
    )
    forward = 4_096 * token_flops(job["model"], 4_096, 2).score / (989.4e12 * 0.02)
    by_hand = forward * (1 + 2.5 / constants.machine.attention_backward)
    assert (slow - fast).to("s").magnitude == pytest.approx(by_hand, rel=1e-3)


def test_states_are_read_and_written():
    """One more sequence moves its state twice per step."""
    a = NETWORKS["Mamba-2 2.7B"]
    given = {"model": a, "hardware": Hardware.H100, "efficiency": 1.0, "output_len": 2}
    one, two = (
        ServingSolver.solve(**given, batch_size=n).decode_latency.to("s").magnitude for n in (1, 2)
    )
    bandwidth = Hardware.H100.memory.bandwidth.to("byte/s").magnitude
    moved = 2 * a.state_bytes_per_sequence("fp16").to("byte").magnitude
    assert two - one == pytest.approx(moved / bandwidth, rel=1e-9)


@pytest.mark.parametrize("name", ["Gemma 3 27B", "gpt-oss-20b", "Qwen3-Next 80B-A3B"])
@pytest.mark.parametrize("share", [None, 0.5])
def test_the_longest_context_fits_and_no_longer(name, share):
    given = {
        "model": NETWORKS[name],
        "hardware": Systems.Nodes.DGX_H100,
        "tp_size": 4,
        "batch_size": 4,
        "output_len": 1,
        "efficiency": share,
    }
    found = ServingSolver.solve(**given, seq_len=1_000)
    longest = found.max_seq_len
    assert longest > 10_000
    fits, does_not = (
        ServingSolver.solve(**given, seq_len=longest - 1 + more).feasible for more in (0, 1)
    )
    assert fits
    assert not does_not


def test_windows_alone_may_hold_any_context():
    near = Attention(**HEADS, reach=SlidingWindow(tokens=1_024))
    far = Attention(**HEADS, reach=SlidingWindow(tokens=4_096))
    both = model(*(Layers(count=4, attention=a, feed_forward=MLP) for a in (near, far)))
    given = {"model": both, "hardware": Hardware.H100, "efficiency": 0.5}
    assert ServingSolver.solve(**given, batch_size=16).max_seq_len is None
    each = 4 * 4 * 8 * 128  # bytes per token in four layers
    room = Hardware.H100.memory.capacity.to("byte").magnitude - 2 * both.si("parameters")
    for batch in (1_400, 10_000):
        found = ServingSolver.solve(**given, batch_size=batch).max_seq_len
        here = room / batch
        wanted = here / (2 * each) if here < 2 * each * 1_024 else (here - each * 1_024) / each
        assert found == math.floor(wanted)


def test_stages_hold_what_is_in_them():
    """Two stages: attention in the first, experts in the second."""
    block = Experts(count=8, per_token=1, width=1_024, gated=False)
    parts = (
        Layers(count=4, attention=Attention(**HEADS)),
        Layers(count=4, feed_forward=block),
    )
    plan = {"fleet": FLEET, "batch_size": 256, "pp_size": 2, "microbatch_count": 2}
    ahead, behind = (
        DistributedSolver.solve(model=model(*order, tied_embeddings=True), **plan)
        for order in (parts, parts[::-1])
    )
    experts = 4 * 8 * 2 * 4_096 * 1_024
    table = 32_000 * 4_096  # what routers take, the count of parameters leaves to the tables
    weights = (experts + table) * 2
    for found in (ahead, behind):
        assert found.weights_memory.to("byte").magnitude == pytest.approx(weights)
    mixed = model(
        dataclasses.replace(parts[0], count=None, at=range(0, 8, 2)),
        parts[1],
        tied_embeddings=True,
    )
    attention = 2 * 4_096 * 128 * (32 + 8)
    half = experts / 2 + 2 * attention + table - 4 * 4_096 * 8 / 2
    found = DistributedSolver.solve(model=mixed, **plan)
    assert found.weights_memory.to("byte").magnitude == pytest.approx(2 * half)


def test_a_layer_of_one_block_reduces_once():
    parts = (Layers(count=8, attention=Attention(**HEADS)), Layers(count=8, feed_forward=MLP))
    plan = {"fleet": FLEET, "batch_size": 256, "tp_size": 4, "efficiency": 0.4}
    one, two = (
        DistributedSolver.solve(model=a, **plan).tp_communication_latency
        for a in (WHOLE, model(*parts))
    )
    assert two.to("s").magnitude == pytest.approx(one.to("s").magnitude, rel=1e-12)


def test_one_block_after_the_other_is_a_layer():
    """Eight layers of two blocks do as much as sixteen of one."""
    parts = (
        Layers(at=range(0, 16, 2), attention=Attention(**HEADS)),
        Layers(count=8, feed_forward=MLP),
    )
    apart = model(*parts)
    assert apart.si("parameters") == WHOLE.si("parameters")
    for mine, its in zip(answers(WHOLE), answers(apart), strict=True):
        for name in (
            "step_latency_total",
            "activation_memory",
            "weights_memory",
            "optimizer_memory",
            "itl",
            "ttft",
            "latency",
            "flops",
            "bytes_moved",
            "kv_cache_size",
        ):
            if name in mine:
                near = 1e-9
                if name == "activation_memory":
                    near = 1.0  # under full recomputation each layer keeps its input
                if name == "step_latency_total":
                    near = 0.15  # weights are gathered in twice as many parts
                assert mine[name] == pytest.approx(its[name], rel=near), name


def test_formats_of_parts():
    """gpt-oss-120b: experts in MXFP4, 4.25 bits a weight, and the rest in 16 bits."""
    formats = Formats(experts="mxfp4", attention="bf16", feed_forward="bf16", embeddings="bf16")
    plain = NETWORKS["gpt-oss-120b"]
    stored = dataclasses.replace(plain, formats=formats)
    experts = 36 * 128 * 3 * 2_880**2
    size = experts * 4.25 / 8 + (plain.si("parameters") - experts) * 2
    given = {"hardware": Hardware.H200, "precision": "bf16"}
    for share in (None, 0.5):
        for weights in (None, "fp8"):
            found = ServingSolver.solve(
                model=stored, **given, weight_precision=weights, efficiency=share
            )
            assert found.model_weights_size.to("byte").magnitude == pytest.approx(size, rel=1e-12)
        wide = ServingSolver.solve(model=plain, **given, efficiency=share)
        assert found.decode_latency < wide.decode_latency
    # The checkpoint has 60.8 GiB (model card, section 2.1).
    assert size / 2**30 == pytest.approx(60.8, rel=0.01)
    assert numbers(ServingSolver.solve(model=stored, **given)) == numbers(
        ServingSolver.solve(model=stored, **given, weight_precision="fp8")
    )


PLANS = [
    {"cp_size": 2, "tp_size": 2, "zero_stage": 3, "efficiency": 0.5},
    {"cp_size": 2, "tp_size": 2, "zero_stage": 3, "lora_rank": 8, "recompute": "norms+swiglu"},
    {"tp_size": 2, "pp_size": 2, "microbatch_count": 4, "seq_len": 4096},
]
PASSES = [(ServingSolver, None), (ServingSolver, 0.5), (SingleNodeSolver, None)]
PASSES += [(SingleNodeSolver, 0.5)]


@pytest.mark.parametrize(("spot", "name"), list(enumerate(sorted(NETWORKS))))
def test_every_answer_has_a_derivation(spot, name):
    """Recorded arithmetic has units, so none of these adds bytes to operations.

    Plans and passes take turns among the networks.
    """
    formats = Formats(experts="mxfp4", attention="fp8", state="fp32")
    network = dataclasses.replace(NETWORKS[name], formats=formats)
    plan, (solver, efficiency) = PLANS[spot % 3], PASSES[spot % 4]
    step = DistributedSolver.solve(model=network, fleet=FLEET, batch_size=256, **plan)
    one = {"model": network, "hardware": Hardware.H200, "seq_len": 2_000}
    for answer in (step, solver.solve(**one, efficiency=efficiency)):
        derived = answer.explain().roots
        for field, value in numbers(answer).items():
            if field in derived and isinstance(value, float):
                unit = getattr(getattr(answer, field), "units", "")
                made = derived[field].value.to(unit).magnitude
                assert made == pytest.approx(value, rel=1e-9), field
    # Answers are explained group by group.
    inputs = [item.origin for item in step.explain("step_latency_total").inputs]
    for group in range(len(network.stack)):
        assert any(origin.startswith(f"model.stack[{group}].") for origin in inputs)


def test_layers_for_more_tokens_are_trained_on_the_last_stage():
    """DeepSeek-V3's one: operations of a layer, a projection of 2 x 7168 to 7168, and the head."""
    more = deepseek("more", None)
    none = dataclasses.replace(more, mtp_layers=0)
    plan = {"fleet": FLEET, "batch_size": 256, "ep_size": 8, "pp_size": 4, "microbatch_count": 4}
    one, other = (DistributedSolver.solve(model=a, **plan) for a in (more, none))
    visited = more.mtp_parameters.to("param").magnitude - (256 - 8) * 3 * 7_168 * 2_048
    scores = 2 * 2 * 128 * (192 + 128) / 2 * 4_096 / 2
    each = 2 * (visited + 129_280 * 7_168) + scores
    extra = one.model_flops - other.model_flops
    assert extra.to("flop").magnitude == pytest.approx(3 * 256 * 4_096 * each, rel=1e-9)
    assert one.step_latency_total > other.step_latency_total
    given = {"hardware": Systems.Nodes.DGX_B200, "tp_size": 8, "precision": "fp8"}
    assert numbers(ServingSolver.solve(model=more, **given)) == numbers(
        ServingSolver.solve(model=none, **given)
    )
