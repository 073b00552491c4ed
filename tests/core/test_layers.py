"""Stacks of layers: published sizes, where layers are, and what contradicts itself."""

import dataclasses
import pickle

import pytest

from mlsysim import Q_, Models
from mlsysim.cli.zoo import row_details
from mlsysim.core.errors import ConfigError
from mlsysim.core.types import (
    Attention,
    Chunks,
    Experts,
    FeedForward,
    FixedShapeModel,
    Formats,
    LatentAttention,
    Layers,
    LinearAttention,
    MoETransformerModel,
    SlidingWindow,
    TopKeys,
    VisionTower,
)
from mlsysim.solvers.training.stages import arranged
from tests.networks import CONFIG, NETWORKS, deepseek, network

HEADS = {"heads": 8, "kv_heads": 2, "head_dim": 16}
MLP = FeedForward(width=64, gated=True)


def small(*stack, **more):
    return network("small", 32, 1000, *stack, **more)


def test_published_totals():
    """Those of the registry are compared with the library that runs them."""
    for name, total, near in [
        # Table 1 of the technical report: embedding and other parameters, without the tower
        ("Gemma 3 27B", 25.6e9 + 1.416e9, 1e-3),
        ("Gemma 3 12B", 10.759e9 + 1.012e9, 1e-3),
        # Section 9.2 of the paper, and two model cards
        ("Mamba-2 2.7B", 2.7e9, 2e-3),
        ("Falcon-H1 7B", 7.59e9, 2e-3),
        ("Kimi Linear 48B-A3B", 49.1e9, 2e-3),
    ]:
        assert NETWORKS[name].si("parameters") == pytest.approx(total, rel=near), name


def test_the_short_form_counts_as_its_stack():
    plain = Models.Llama3_70B
    alike = Layers(
        count=80,
        attention=Attention(heads=64, kv_heads=8, head_dim=128),
        feed_forward=FeedForward(width=28_672, gated=True),
    )
    stacked = network("stacked", 8_192, 128_256, alike)
    assert stacked.si("parameters") == dataclasses.replace(plain, parameters=None).si("parameters")
    assert stacked.kv_bytes_per_token("fp16") == plain.kv_bytes_per_token("fp16")
    assert plain.kv_bytes_per_token("fp8").to("byte").magnitude == 80 * 2 * 8 * 128
    assert plain.state_bytes_per_sequence("fp16").magnitude == 0
    assert plain.active_parameters == plain.parameters
    full = deepseek("full", None)
    short = dataclasses.replace(Models.DeepSeek_V3, parameters=None)
    assert full.si("parameters") == short.si("parameters")
    assert full.active_parameters == short.active_parameters
    assert (full.experts, full.experts_per_token, full.moe_layers) == (256, 8, 58)
    assert Models.DeepSeek_V3.kv_bytes_per_token("bf16").magnitude == 61 * 576 * 2


def test_an_indexer_has_parameters_and_a_cache():
    """Its queries come from the short vector; each token leaves one key of 128 elements."""
    full = deepseek("full", None)
    sparse = deepseek("sparse", TopKeys(tokens=2_048, heads=64, head_dim=128))
    extra = sparse.si("parameters") - full.si("parameters")
    assert extra == 61 * (1_536 * 64 * 128 + 7_168 * (128 + 64))
    cached = sparse.kv_bytes_per_token("bf16") - full.kv_bytes_per_token("bf16")
    assert cached.magnitude == 61 * 128 * 2


def test_layers_for_more_tokens_are_counted_apart():
    """DeepSeek-V3's report has 671B for the model and 14B more, 2 x 0.93B of it shared tables."""
    more = deepseek("full", None).mtp_parameters.magnitude
    assert more + 2 * 129_280 * 7_168 == pytest.approx(14e9, rel=0.04)
    assert Models.DeepSeek_V3.mtp_parameters.magnitude == more


@pytest.mark.parametrize("kind", [SlidingWindow, Chunks])
def test_a_limited_reach_bounds_the_cache(kind):
    near = small(Layers(count=3, attention=Attention(**HEADS, reach=kind(tokens=100))))
    far = small(Layers(count=3, attention=Attention(**HEADS)))
    each = 3 * 2 * 2 * 16 * 2
    for context, kept in ((1, 1), (99, 99), (100, 100), (5_000, 100)):
        assert near.kv_cache_bytes("fp16", context).magnitude == each * kept
        assert far.kv_cache_bytes("fp16", context).magnitude == each * context


def test_the_state_of_linear_attention():
    """Mamba-2 2.7B, as Hugging Face allocates it but for one token of the convolution."""
    model = NETWORKS["Mamba-2 2.7B"]
    states, conv = 64 * 80 * 64 * 128, 64 * 3 * (80 * 64 + 2 * 128)
    assert model.kv_cache_bytes("fp16", 10**6).magnitude == 0
    assert model.state_bytes_per_sequence("fp16").magnitude == 2 * (states + conv)
    wide = dataclasses.replace(model, formats=Formats(state="fp32"))
    assert wide.state_bytes_per_sequence("fp16").magnitude == 4 * states + 2 * conv


def test_layers_take_the_positions_that_are_left():
    attention = Attention(**HEADS)
    every, first, second = small(
        Layers(at=range(3, 12, 4), attention=attention),
        Layers(count=5, attention=attention, feed_forward=MLP),
        Layers(count=4, feed_forward=MLP),
    ).stack
    assert every.at == (3, 7, 11)
    assert first.at == (0, 1, 2, 4, 5)
    assert second.at == (6, 8, 9, 10)
    assert sorted(every.at + first.at + second.at) == list(range(12))


def stages_of(model, pp, first, last):
    both = arranged(model.groups, pp, 1, first, last, 0)
    return both.first, [middle.layers for middle in both.between], both.last


def test_stages_count_the_layers_they_have():
    model = NETWORKS["Qwen3-Next 80B-A3B"]
    _, whole = model.groups
    assert model.last_group is whole
    # Every fourth of 48 layers has full attention; five layers at the front have one of them.
    assert stages_of(model, 4, 12, 12) == ([9, 3], [], [9, 3])
    assert stages_of(model, 3, 5, 3) == ([4, 1], [[30, 10]], [2, 1])
    # None of three stages of four between needs more than the first.
    assert stages_of(model, 5, 18, 18) == ([14, 4], [], [13, 5])
    behind = small(Layers(count=3, feed_forward=MLP), Layers(count=2, attention=Attention(**HEADS)))
    assert stages_of(behind, 2, 4, 1) == ([3, 1], [], [0, 1])


def test_a_stack_survives_copies():
    for model in NETWORKS.values():
        again = dataclasses.replace(model, seq_len=77)
        assert again.stack == model.stack
        assert pickle.loads(pickle.dumps(model)) == model
        assert hash(again) != hash(model)
    short = dataclasses.replace(NETWORKS["gpt-oss-20b"], parameters=None, layers=None)
    assert short.layers == 24


def test_what_layers_share_out():
    assert NETWORKS["Nemotron 3 Nano 30B-A3B"].split_heads == 32
    assert NETWORKS["gpt-oss-20b"].split_heads == 64
    assert Models.Llama3_8B.split_heads == 32
    two = [
        Layers(count=1, feed_forward=Experts(count=count, per_token=visits, width=8, gated=False))
        for count, visits in ((12, 1), (8, 4))
    ]
    mixed = small(*two, Layers(count=1, attention=Attention(**HEADS)))
    assert (mixed.experts, mixed.experts_per_token, mixed.moe_layers) == (4, 4, 2)


def test_a_tower_is_among_the_parameters():
    tower = FixedShapeModel(
        name="tower",
        source=CONFIG,
        parameters=Q_(10_000, "param"),
        flops_per_sample=Q_(1e6, "flop"),
        activations_per_sample=Q_(1e4, "count"),
    )
    layers = Layers(count=2, attention=Attention(**HEADS), feed_forward=MLP)
    plain = small(layers)
    sees = small(layers, vision=VisionTower(tokens=256, network=tower))
    assert sees.si("parameters") - plain.si("parameters") == 10_000


LAYERS = Layers(count=2, attention=Attention(**HEADS), feed_forward=MLP)
LATENT = {"query_rank": None, "kv_rank": 16, "nope_dim": 8, "rope_dim": 4}


@pytest.mark.parametrize(
    ("argument", "wrong"),
    [
        ("kv_heads", lambda: Attention(heads=8, kv_heads=3, head_dim=16)),
        ("key_heads", lambda: LinearAttention(heads=8, key_heads=3, key_dim=16, value_dim=16)),
        ("reach", lambda: Attention(**HEADS, reach=1_024)),
        ("tokens", lambda: SlidingWindow(tokens=0)),
        ("per_token", lambda: Experts(count=4, per_token=5, width=8, gated=True)),
        ("count", lambda: Layers(feed_forward=MLP)),
        ("count", lambda: Layers(count=3, at=(0, 1), feed_forward=MLP)),
        ("at", lambda: Layers(at=(0, 0), feed_forward=MLP)),
        ("at", lambda: Layers(at=(-1,), feed_forward=MLP)),
        ("at", lambda: Layers(at="every", feed_forward=MLP)),
        ("attention", lambda: Layers(count=3)),
        ("attention", lambda: Layers(count=3, attention=MLP)),
        ("feed_forward", lambda: Layers(count=3, feed_forward=64)),
        ("heads", lambda: Layers(count=1, attention=LatentAttention(**LATENT))),
        ("value_dim", lambda: Layers(count=1, attention=LatentAttention(**LATENT, heads=2))),
        ("stack", lambda: small(LAYERS, Layers(at=(3,), feed_forward=MLP))),
        (
            "stack",
            lambda: small(LAYERS, *2 * [Layers(at=(1,), feed_forward=MLP)]),
        ),
        ("stack", lambda: small("M-M-*")),
        ("layers", lambda: small(LAYERS, layers=3)),
        ("heads", lambda: small(LAYERS, heads=8)),
        ("gated_mlp", lambda: small(LAYERS, gated_mlp=True)),
        ("latent", lambda: small(LAYERS, latent=LatentAttention(**LATENT))),
        ("layers", lambda: network("none", 32, 100)),
        ("ffn_dim", lambda: network("x", 32, 100, layers=1, heads=1, kv_heads=1, head_dim=4)),
        ("parameters", lambda: small(LAYERS, parameters=Q_(1, "Mparam"))),
        ("Formats.experts", lambda: Formats(experts="fp3")),
        ("vision", lambda: small(LAYERS, vision=Models.ResNet50)),
        ("heads", lambda: dataclasses.replace(Models.Mixtral_8x7B, stack=(LAYERS,))),
        ("latent", lambda: dataclasses.replace(Models.DeepSeek_V3, latent=other_heads())),
    ],
)
def test_what_contradicts_itself(argument, wrong):
    with pytest.raises(ConfigError) as caught:
        wrong()
    assert caught.value.argument == argument


def other_heads():
    return dataclasses.replace(Models.DeepSeek_V3.latent, heads=64)


def test_a_mixture_is_the_short_form():
    assert isinstance(Models.Mixtral_8x7B, MoETransformerModel)
    dense, mixed = Models.DeepSeek_V3.groups
    assert isinstance(mixed.feed_forward, Experts)
    assert (dense.blocks, mixed.blocks) == (2, 2)


def test_shares_of_a_sequence():
    """By adding up what each token attends to, up to half a token on the diagonal."""
    for seq_len, width in ((1_000, 100), (1_000, 1_000), (500, 2_000)):
        window = sum(min(spot + 0.5, width) for spot in range(seq_len)) / seq_len**2
        found = SlidingWindow(tokens=width).share(seq_len, 0.5)
        assert found == pytest.approx(window, rel=1e-5)
        assert TopKeys(tokens=width, heads=1, head_dim=1).share(seq_len, 0.5) == found
        parts = sum(spot % min(width, seq_len) + 0.5 for spot in range(seq_len)) / seq_len**2
        assert Chunks(tokens=width).share(seq_len, 0.5) == pytest.approx(parts, rel=1e-9)


def test_zoo_shows_a_line_for_each_group():
    rows = {row["field"]: row["text"] for row in row_details(NETWORKS["Qwen3-Next 80B-A3B"])}
    assert rows["stack[0]"].startswith("36 layers, the first at 0: LinearAttention(heads=32,")
    assert "Experts(count=512, per_token=10" in rows["stack[1]"]


def test_sources_of_layers():
    own = dataclasses.replace(CONFIG, title="a paper")
    attention = Attention(**HEADS)
    model = dataclasses.replace(
        small(Layers(count=1, attention=attention), Layers(count=2, feed_forward=MLP)),
        field_sources={"stack": own},
        parameters=None,
    )
    assert model.source_of("stack[0].attention.heads") == own
    assert model.source_of("hidden_dim") == CONFIG
    with pytest.raises(LookupError):
        model.source_of("stack[7].count")


def test_matrices_add_up_to_parameters():
    for name in sorted(NETWORKS):
        model = NETWORKS[name]
        for group in model.groups:
            # The kernels of a convolution are not matrices.
            kernels = sum(
                a.conv_width * a.conv_channels
                for a in group.attentions
                if isinstance(a, LinearAttention) and a.conv_width > 1
            )
            sizes = [m.count * m.rows * m.columns for m in group.matrices(model.hidden_dim)]
            router = 0
            if (block := group.experts) is not None:
                expert = block.expert_matrix(model.hidden_dim)
                assert expert.count * expert.rows * expert.columns == block.expert_parameters(
                    model.hidden_dim
                ), name
                router = model.hidden_dim * block.count
            assert sum(sizes) + kernels + router == group.unrouted_parameters(model.hidden_dim), (
                name
            )
