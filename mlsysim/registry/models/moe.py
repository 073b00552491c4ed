"""Mixtures of experts: each token visits a few of the many feed-forward blocks in a layer.

`parameters` counts all experts, and includes routers, norms and biases; the experts that a token
visits follow from the shape.
"""

from mlsysim.core.catalog import Catalog
from mlsysim.core.types import LatentAttention, MoETransformerModel, cite
from mlsysim.core.units import Q_
from mlsysim.registry.models.published import published

__all__ = ["MoE"]


class MoE(Catalog):
    """Transformers with experts."""

    Mixtral_8x7B = MoETransformerModel(
        name="Mixtral 8x7B",
        source=cite("mixtral_8x7b"),
        parameters=Q_(46_702_792_704, "param"),
        layers=32,
        hidden_dim=4_096,
        heads=32,
        kv_heads=8,
        head_dim=128,
        ffn_dim=14_336,
        gated_mlp=True,
        vocab_size=32_000,
        seq_len=32_768,
        context=32_768,
        experts=8,
        experts_per_token=2,
        expert_ffn_dim=14_336,
        moe_layers=32,
    )
    """Eight experts in every layer; each token visits two. There is no dense block; `ffn_dim`
    repeats the width of an expert. Trained on contexts of 32k tokens."""

    Mixtral_8x22B = MoETransformerModel(
        name="Mixtral 8x22B",
        source=cite("mixtral_8x22b"),
        parameters=Q_(140_630_071_296, "param"),
        layers=56,
        hidden_dim=6_144,
        heads=48,
        kv_heads=8,
        head_dim=128,
        ffn_dim=16_384,
        gated_mlp=True,
        vocab_size=32_768,
        seq_len=65_536,
        context=65_536,
        experts=8,
        experts_per_token=2,
        expert_ffn_dim=16_384,
        moe_layers=56,
    )
    """Like Mixtral 8x7B, but deeper and wider, with a context of 64k tokens."""

    Qwen3_30B_A3B = MoETransformerModel(
        name="Qwen3 30B-A3B",
        source=cite("qwen3_moe"),
        field_sources={
            "context": cite("qwen3_context"),
            "seq_len": cite("qwen3_report"),
        },
        parameters=Q_(30_532_122_624, "param"),
        layers=48,
        hidden_dim=2_048,
        heads=32,
        kv_heads=4,
        head_dim=128,
        ffn_dim=6_144,
        gated_mlp=True,
        vocab_size=151_936,
        seq_len=4_096,
        context=40_960,
        experts=128,
        experts_per_token=8,
        expert_ffn_dim=768,
        moe_layers=48,
    )
    """128 small experts, eight per token. All heads together are wider than the residual stream.
    The file states a dense width, 6,144, that no layer uses."""

    Qwen3_235B_A22B = MoETransformerModel(
        name="Qwen3 235B-A22B",
        source=cite("qwen3_moe"),
        field_sources={
            "context": cite("qwen3_context"),
            "seq_len": cite("qwen3_report"),
        },
        parameters=Q_(235_093_634_560, "param"),
        layers=94,
        hidden_dim=4_096,
        heads=64,
        kv_heads=4,
        head_dim=128,
        ffn_dim=12_288,
        gated_mlp=True,
        vocab_size=151_936,
        seq_len=4_096,
        context=40_960,
        experts=128,
        experts_per_token=8,
        expert_ffn_dim=1_536,
        moe_layers=94,
    )
    """As Qwen3 30B-A3B, deeper and wider."""

    GPT_OSS_120B = published(
        "openai/gpt-oss-120b", name="gpt-oss-120b", seq_len=4_096, length=cite("gpt_oss_length")
    )
    """OpenAI's open-weight model; its experts are published in 4 bits. Every second layer attends
    to the last 128 tokens. `seq_len` is the length before the context was extended to 128k
    tokens."""

    GPT_OSS_20B = published(
        "openai/gpt-oss-20b", name="gpt-oss-20b", seq_len=4_096, length=cite("gpt_oss_length")
    )
    """The smaller gpt-oss: fewer layers, and a quarter of the experts."""

    DeepSeek_V3 = MoETransformerModel(
        name="DeepSeek-V3",
        source=cite("deepseek_v3"),
        field_sources={
            "context": cite("deepseek_v3_context"),
            "mtp_layers": cite("deepseek_v3_report"),
            "seq_len": cite("length_4k"),
        },
        parameters=Q_(671_026_419_200, "param"),
        layers=61,
        hidden_dim=7_168,
        heads=128,
        kv_heads=128,
        head_dim=128,
        latent=LatentAttention(query_rank=1_536, kv_rank=512, nope_dim=128, rope_dim=64),
        ffn_dim=18_432,
        gated_mlp=True,
        vocab_size=129_280,
        seq_len=4_096,
        context=163_840,
        experts=256,
        experts_per_token=8,
        expert_ffn_dim=2_048,
        shared_ffn_dim=2_048,
        moe_layers=58,
        expert_groups=8,
        groups_per_token=4,
        mtp_layers=1,
    )
    """256 experts, eight per token, and a shared one; the first three layers are dense. R1 has the
    same shape. A server caches a latent vector of 576 numbers per token and layer. Some frameworks
    train it without the layer that predicts a second token:
    ``dataclasses.replace(Models.DeepSeek_V3, mtp_layers=0)``."""

    Kimi_K2 = MoETransformerModel(
        name="Kimi K2",
        source=cite("kimi_k2"),
        field_sources={"context": cite("kimi_k2_context")},
        parameters=Q_(1_026_408_232_448, "param"),
        layers=61,
        hidden_dim=7_168,
        heads=64,
        kv_heads=64,
        head_dim=128,
        latent=LatentAttention(query_rank=1_536, kv_rank=512, nope_dim=128, rope_dim=64),
        ffn_dim=18_432,
        gated_mlp=True,
        vocab_size=163_840,
        seq_len=4_096,
        context=131_072,
        experts=384,
        experts_per_token=8,
        expert_ffn_dim=2_048,
        shared_ffn_dim=2_048,
        moe_layers=60,
    )
    """DeepSeek-V3's design with more experts, one dense layer and 64 heads."""

    Hy3 = MoETransformerModel(
        name="Hy3",
        source=cite("hy3"),
        field_sources={"context": cite("hy3_card"), "mtp_layers": cite("hy3_card")},
        estimated=frozenset({"seq_len"}),
        parameters=Q_(295_033_528_320, "param"),
        layers=80,
        hidden_dim=4_096,
        heads=64,
        kv_heads=8,
        head_dim=128,
        ffn_dim=13_312,
        gated_mlp=True,
        vocab_size=120_832,
        seq_len=4_096,
        context=262_144,
        experts=192,
        experts_per_token=8,
        expert_ffn_dim=1_536,
        shared_ffn_dim=1_536,
        moe_layers=79,
        mtp_layers=1,
    )
    """Tencent's mixture (preview): 192 experts, eight per token, and a shared one; the first layer
    is dense."""
