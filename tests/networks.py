"""Published networks whose layers are not all alike, from configuration files; and a fleet."""

from __future__ import annotations

import dataclasses

from mlsysim import (
    Attention,
    Chunks,
    Experts,
    FeedForward,
    Fleet,
    LatentAttention,
    Layers,
    LinearAttention,
    SlidingWindow,
    Source,
    Systems,
    TopKeys,
    TransformerModel,
)

CONFIG = Source(title="config.json of the model on Hugging Face")


def fleet_of(count, node=Systems.Nodes.DGX_H100, fabric=Systems.Fabrics.InfiniBand_NDR):
    return Fleet(name="Test", node=node, count=count, fabric=fabric)


def network(name, hidden_dim, vocab_size, *stack, seq_len=4_096, **more):
    return TransformerModel(
        name=name,
        source=CONFIG,
        hidden_dim=hidden_dim,
        vocab_size=vocab_size,
        seq_len=seq_len,
        stack=stack,
        **more,
    )


def gemma3(name, hidden_dim, layers, heads, head_dim, width):
    shape = {"heads": heads, "kv_heads": heads // 2, "head_dim": head_dim}
    mlp = FeedForward(width=width, gated=True)
    whole = range(5, layers, 6)
    local = Attention(**shape, reach=SlidingWindow(tokens=1_024))
    return network(
        name,
        hidden_dim,
        262_208,
        Layers(count=layers - len(whole), attention=local, feed_forward=mlp),
        Layers(at=whole, attention=Attention(**shape), feed_forward=mlp),
        tied_embeddings=True,
    )


def gpt_oss(name, layers, experts):
    shape = {"heads": 64, "kv_heads": 8, "head_dim": 64}
    block = Experts(count=experts, per_token=4, width=2_880, gated=True, adds_biases=True)
    local = Attention(**shape, reach=SlidingWindow(tokens=128))
    return network(
        name,
        2_880,
        201_088,
        Layers(at=range(0, layers, 2), attention=local, feed_forward=block),
        Layers(count=layers // 2, attention=Attention(**shape), feed_forward=block),
    )


def llama4_scout():
    shape = {"heads": 40, "kv_heads": 8, "head_dim": 128}
    block = Experts(count=16, per_token=1, width=8_192, shared_width=8_192, gated=True)
    local = Attention(**shape, reach=Chunks(tokens=8_192))
    return network(
        "Llama 4 Scout",
        5_120,
        202_048,
        Layers(count=36, attention=local, feed_forward=block),
        Layers(at=range(3, 48, 4), attention=Attention(**shape), feed_forward=block),
    )


def deepseek(name, reach):
    latent = LatentAttention(
        query_rank=1_536,
        kv_rank=512,
        nope_dim=128,
        rope_dim=64,
        heads=128,
        value_dim=128,
        reach=reach,
    )
    block = Experts(count=256, per_token=8, width=2_048, shared_width=2_048, gated=True)
    return network(
        name,
        7_168,
        129_280,
        Layers(count=3, attention=latent, feed_forward=FeedForward(width=18_432, gated=True)),
        Layers(count=58, attention=latent, feed_forward=block),
        mtp_layers=1,
    )


def glm5():
    latent = LatentAttention(
        query_rank=2_048,
        kv_rank=512,
        nope_dim=192,
        rope_dim=64,
        heads=64,
        value_dim=256,
        reach=TopKeys(tokens=2_048, heads=32, head_dim=128),
    )
    block = Experts(count=256, per_token=8, width=2_048, shared_width=2_048, gated=True)
    return network(
        "GLM-5",
        6_144,
        154_880,
        Layers(count=3, attention=latent, feed_forward=FeedForward(width=12_288, gated=True)),
        Layers(count=75, attention=latent, feed_forward=block),
    )


def qwen3_next():
    block = Experts(count=512, per_token=10, width=512, shared_width=512, gated=True)
    linear = LinearAttention(
        heads=32, key_heads=16, key_dim=128, value_dim=128, gates=2, delta_rule=True
    )
    whole = Attention(heads=16, kv_heads=2, head_dim=256, output_gate=True)
    return network(
        "Qwen3-Next 80B-A3B",
        2_048,
        151_936,
        Layers(count=36, attention=linear, feed_forward=block),
        Layers(at=range(3, 48, 4), attention=whole, feed_forward=block),
    )


def mamba2():
    mixer = LinearAttention(heads=80, key_heads=1, key_dim=128, value_dim=64, chunk=256)
    return network(
        "Mamba-2 2.7B", 2_560, 50_288, Layers(count=64, attention=mixer), tied_embeddings=True
    )


def jamba():
    mixer = LinearAttention(heads=8_192, key_heads=1, key_dim=16, value_dim=1, gate_rank=256)
    mlp = FeedForward(width=14_336, gated=True)
    experts = Experts(count=16, per_token=2, width=14_336, gated=True)
    whole = Attention(heads=32, kv_heads=8, head_dim=128)
    return network(
        "Jamba v0.1",
        4_096,
        65_536,
        Layers(at=range(4, 32, 8), attention=whole, feed_forward=mlp),
        Layers(at=range(1, 32, 2), attention=mixer, feed_forward=experts),
        Layers(count=12, attention=mixer, feed_forward=mlp),
    )


def nemotron(name, hidden_dim, pattern, mixer, whole, block, letter):
    def at(sign):
        return tuple(spot for spot, own in enumerate(pattern) if own == sign)

    return network(
        name,
        hidden_dim,
        131_072,
        Layers(at=at("M"), attention=LinearAttention(**mixer, value_dim=64, chunk=128)),
        Layers(at=at("*"), attention=Attention(**whole, head_dim=128)),
        Layers(at=at(letter), feed_forward=block),
    )


def nemotron_h():
    return nemotron(
        "Nemotron-H 56B",
        8_192,
        "M-M-M-M*-" + 9 * "M-M-M-M-M*-" + "M-M-M-M-M-",
        {"heads": 256, "key_heads": 8, "key_dim": 256},
        {"heads": 64, "kv_heads": 8},
        FeedForward(width=32_768, gated=False),
        "-",
    )


def nemotron3_nano():
    return nemotron(
        "Nemotron 3 Nano",
        2_688,
        "MEMEM*EMEMEM*EMEMEM*EMEMEM*EMEMEM*EMEMEMEM*EMEMEMEME",
        {"heads": 64, "key_heads": 8, "key_dim": 128},
        {"heads": 32, "kv_heads": 2},
        Experts(count=128, per_token=6, width=1_856, shared_width=3_712, gated=False),
        "E",
    )


def nemotron3_super():
    return nemotron(
        "Nemotron 3 Super",
        4_096,
        "MEMEMEM*EMEMEMEM*EMEMEMEM*EMEMEMEMEM*EMEMEMEMEM*EMEMEMEMEM*EMEMEMEMEM*EMEMEMEM*EMEMEMEME",
        {"heads": 128, "key_heads": 8, "key_dim": 128},
        {"heads": 32, "kv_heads": 2},
        Experts(
            count=512, per_token=22, width=2_688, shared_width=5_376, gated=False, latent_dim=1_024
        ),
        "E",
    )


def falcon_h1():
    return network(
        "Falcon-H1 7B",
        3_072,
        130_049,
        Layers(
            count=44,
            attention=Attention(heads=12, kv_heads=2, head_dim=128),
            parallel_attention=LinearAttention(
                heads=24, key_heads=1, key_dim=256, value_dim=128, chunk=256
            ),
            feed_forward=FeedForward(width=12_288, gated=True),
        ),
    )


def lfm2():
    conv = LinearAttention(heads=2_048, key_heads=1, key_dim=0, value_dim=1, conv_width=3)
    whole = Attention(heads=32, kv_heads=8, head_dim=64)
    block = Experts(count=32, per_token=4, width=1_792, gated=True)
    return network(
        "LFM2 8B-A1B",
        2_048,
        65_536,
        Layers(count=2, attention=conv, feed_forward=FeedForward(width=7_168, gated=True)),
        Layers(at=(2, 6, 10, 14, 18, 21), attention=whole, feed_forward=block),
        Layers(count=16, attention=conv, feed_forward=block),
        tied_embeddings=True,
    )


def kimi_linear():
    linear = LinearAttention(
        heads=32,
        key_heads=32,
        key_dim=128,
        value_dim=128,
        gates=129,
        gate_rank=128,
        output_gate_rank=128,
        delta_rule=True,
    )
    latent = LatentAttention(kv_rank=512, nope_dim=128, rope_dim=64, heads=32, value_dim=128)
    block = Experts(count=256, per_token=8, width=1_024, shared_width=1_024, gated=True)
    return network(
        "Kimi Linear 48B-A3B",
        2_304,
        163_840,
        Layers(at=(0,), attention=linear, feed_forward=FeedForward(width=9_216, gated=True)),
        Layers(at=(3, 7, 11, 15, 19, 23, 26), attention=latent, feed_forward=block),
        Layers(count=19, attention=linear, feed_forward=block),
    )


def glm5_2():
    """Of 78 layers, 21 have an indexer; the others attend to the keys that it chose."""
    first, mixed = glm5().stack
    own = mixed.attention
    shared = dataclasses.replace(own, reach=TopKeys(tokens=2_048, heads=0, head_dim=0))
    chosen = [layer for layer in range(78) if max(layer - 2, 0) % 4 == 0]
    return network(
        "GLM-5.2",
        6_144,
        154_880,
        dataclasses.replace(first, at=range(3)),
        dataclasses.replace(mixed, count=None, at=tuple(chosen[3:])),
        dataclasses.replace(mixed, count=57, attention=shared, at=None),
    )


NETWORKS = {
    row.name: row
    for row in (
        gemma3("Gemma 3 27B", 5_376, 62, 32, 128, 21_504),
        gemma3("Gemma 3 12B", 3_840, 48, 16, 256, 15_360),
        gpt_oss("gpt-oss-120b", 36, 128),
        gpt_oss("gpt-oss-20b", 24, 32),
        llama4_scout(),
        deepseek("DeepSeek-V3.2", TopKeys(tokens=2_048, heads=64, head_dim=128)),
        glm5(),
        qwen3_next(),
        mamba2(),
        jamba(),
        nemotron_h(),
        nemotron3_nano(),
        nemotron3_super(),
        falcon_h1(),
        lfm2(),
        kimi_linear(),
        glm5_2(),
    )
}
