"""Published networks whose layers are not all alike, from configuration files; and a fleet."""

import dataclasses

from mlsysim import (
    Attention,
    Experts,
    FeedForward,
    Fleet,
    LatentAttention,
    Layers,
    LinearAttention,
    Models,
    SlidingWindow,
    Source,
    Systems,
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


def mamba2():
    mixer = LinearAttention(heads=80, key_heads=1, key_dim=128, value_dim=64, chunk=256)
    return network(
        "Mamba-2 2.7B", 2_560, 50_288, Layers(count=64, attention=mixer), tied_embeddings=True
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


IN_REGISTRY = (
    *("GPT_OSS_120B", "GPT_OSS_20B", "Llama4_Scout", "DeepSeek_V3_2", "GLM_5", "GLM_5_2"),
    *("Qwen3_Next_80B_A3B", "Jamba_v0_1", "Nemotron_H_56B", "Nemotron_3_Nano", "Nemotron_3_Super"),
    "LFM2_8B_A1B",
)
# Without a context, so that sequences of any length may be asked for.
NETWORKS = {
    row.name: dataclasses.replace(row, context=None)
    for row in (
        *(Models[name] for name in IN_REGISTRY),
        gemma3("Gemma 3 27B", 5_376, 62, 32, 128, 21_504),
        gemma3("Gemma 3 12B", 3_840, 48, 16, 256, 15_360),
        mamba2(),
        falcon_h1(),
        kimi_linear(),
    )
}
