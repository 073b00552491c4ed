"""Llama: Meta's dense models."""

from mlsysim.core.catalog import Catalog
from mlsysim.core.types import TransformerModel, cite
from mlsysim.core.units import Q_

__all__ = ["Llama"]


class Llama(Catalog):
    """Llama of three generations."""

    Llama1_7B = TransformerModel(
        name="LLaMA 7B",
        source=cite("llama1"),
        parameters=Q_(6_738_415_616, "param"),
        layers=32,
        hidden_dim=4_096,
        heads=32,
        kv_heads=32,
        head_dim=128,
        ffn_dim=11_008,
        gated_mlp=True,
        vocab_size=32_000,
        seq_len=2048,
        context=2_048,
    )
    """The smallest LLaMA of 2023."""

    Llama1_13B = TransformerModel(
        name="LLaMA 13B",
        source=cite("llama1"),
        parameters=Q_(13_015_864_320, "param"),
        layers=40,
        hidden_dim=5_120,
        heads=40,
        kv_heads=40,
        head_dim=128,
        ffn_dim=13_824,
        gated_mlp=True,
        vocab_size=32_000,
        seq_len=2048,
        context=2_048,
    )
    """LLaMA 13B."""

    Llama1_33B = TransformerModel(
        name="LLaMA 33B",
        source=cite("llama1"),
        parameters=Q_(32_528_943_616, "param"),
        layers=60,
        hidden_dim=6_656,
        heads=52,
        kv_heads=52,
        head_dim=128,
        ffn_dim=17_920,
        gated_mlp=True,
        vocab_size=32_000,
        seq_len=2048,
        context=2_048,
    )
    """LLaMA 33B, whose published weights are called 30B."""

    Llama1_65B = TransformerModel(
        name="LLaMA 65B",
        source=cite("llama1"),
        parameters=Q_(65_285_660_672, "param"),
        layers=80,
        hidden_dim=8_192,
        heads=64,
        kv_heads=64,
        head_dim=128,
        ffn_dim=22_016,
        gated_mlp=True,
        vocab_size=32_000,
        seq_len=2048,
        context=2_048,
    )
    """LLaMA 65B."""

    Llama2_7B = TransformerModel(
        name="Llama 2 7B",
        source=cite("llama2_small"),
        field_sources={
            "context": cite("llama2_model_card"),
            "seq_len": cite("llama2_model_card"),
        },
        parameters=Q_(6_738_415_616, "param"),
        layers=32,
        hidden_dim=4_096,
        heads=32,
        kv_heads=32,
        head_dim=128,
        ffn_dim=11_008,
        gated_mlp=True,
        vocab_size=32_000,
        seq_len=4096,
        context=4_096,
    )
    """Llama 2 7B: the shape of LLaMA 7B, with twice the context."""

    Llama2_13B = TransformerModel(
        name="Llama 2 13B",
        source=cite("llama2_small"),
        field_sources={
            "context": cite("llama2_model_card"),
            "seq_len": cite("llama2_model_card"),
        },
        parameters=Q_(13_015_864_320, "param"),
        layers=40,
        hidden_dim=5_120,
        heads=40,
        kv_heads=40,
        head_dim=128,
        ffn_dim=13_824,
        gated_mlp=True,
        vocab_size=32_000,
        seq_len=4096,
        context=4_096,
    )
    """Llama 2 13B."""

    Llama2_70B = TransformerModel(
        name="Llama 2 70B",
        source=cite("llama2_shape"),
        field_sources={
            "context": cite("llama2_model_card"),
            "seq_len": cite("llama2_model_card"),
        },
        parameters=Q_(68_976_648_192, "param"),
        layers=80,
        hidden_dim=8192,
        heads=64,
        kv_heads=8,
        head_dim=128,
        ffn_dim=28_672,
        gated_mlp=True,
        vocab_size=32_000,
        seq_len=4096,
        context=4_096,
    )
    """Llama 2 70B: grouped-query attention, 69 billion parameters by count."""

    Llama3_8B = TransformerModel(
        name="Llama 3 8B",
        source=cite("llama3_shape"),
        field_sources={
            "context": cite("llama3_context"),
            "seq_len": cite("llama3_model_card"),
        },
        parameters=Q_(8_030_261_248, "param"),
        layers=32,
        hidden_dim=4096,
        heads=32,
        kv_heads=8,
        head_dim=128,
        ffn_dim=14_336,
        gated_mlp=True,
        vocab_size=128_256,
        seq_len=8192,
        context=131_072,
    )
    """Llama 3 8B; Llama 3.1 8B has the same shape."""

    Llama3_70B = TransformerModel(
        name="Llama 3 70B",
        source=cite("llama3_shape"),
        field_sources={
            "context": cite("llama3_context"),
            "seq_len": cite("llama3_model_card"),
        },
        parameters=Q_(70_553_706_496, "param"),
        layers=80,
        hidden_dim=8192,
        heads=64,
        kv_heads=8,
        head_dim=128,
        ffn_dim=28_672,
        gated_mlp=True,
        vocab_size=128_256,
        seq_len=8192,
        context=131_072,
    )
    """Llama 3 70B; Llama 3.1 70B and 3.3 70B have the same shape."""

    Llama3_405B = TransformerModel(
        name="Llama 3.1 405B",
        source=cite("llama3_405b"),
        field_sources={
            "context": cite("llama3_context"),
            "seq_len": cite("llama3_model_card"),
        },
        parameters=Q_(405_853_388_800, "param"),
        layers=126,
        hidden_dim=16_384,
        heads=128,
        kv_heads=8,
        head_dim=128,
        ffn_dim=53_248,
        gated_mlp=True,
        vocab_size=128_256,
        seq_len=8192,
        context=131_072,
    )
    """The largest Llama 3.1. Most of its training ran on sequences of 8,192 tokens."""
