"""Megatron: the GPT models that Megatron-LM's scaling study measures."""

from mlsysim.core.catalog import Catalog
from mlsysim.core.types import TransformerModel, cite
from mlsysim.core.units import Q_

__all__ = ["Megatron"]


class Megatron(Catalog):
    """GPT from 1.7 to 1,008 billion parameters; vocabulary of 51,200. None was fully trained."""

    GPT_1B7 = TransformerModel(
        name="Megatron GPT 1.7B",
        source=cite("megatron"),
        parameters=Q_(1_652_230_656, "param"),
        layers=24,
        hidden_dim=2_304,
        heads=24,
        kv_heads=24,
        head_dim=96,
        ffn_dim=9_216,
        vocab_size=51_200,
        seq_len=2048,
        tied_embeddings=True,
    )
    """Printed as 1.7B parameters."""

    GPT_3B6 = TransformerModel(
        name="Megatron GPT 3.6B",
        source=cite("megatron"),
        parameters=Q_(3_562_168_320, "param"),
        layers=30,
        hidden_dim=3_072,
        heads=32,
        kv_heads=32,
        head_dim=96,
        ffn_dim=12_288,
        vocab_size=51_200,
        seq_len=2048,
        tied_embeddings=True,
    )
    """Printed as 3.6B parameters."""

    GPT_7B5 = TransformerModel(
        name="Megatron GPT 7.5B",
        source=cite("megatron"),
        parameters=Q_(7_467_786_240, "param"),
        layers=36,
        hidden_dim=4_096,
        heads=32,
        kv_heads=32,
        head_dim=128,
        ffn_dim=16_384,
        vocab_size=51_200,
        seq_len=2048,
        tied_embeddings=True,
    )
    """Printed as 7.5B parameters."""

    GPT_18B = TransformerModel(
        name="Megatron GPT 18.4B",
        source=cite("megatron"),
        parameters=Q_(18_449_756_160, "param"),
        layers=40,
        hidden_dim=6_144,
        heads=48,
        kv_heads=48,
        head_dim=128,
        ffn_dim=24_576,
        vocab_size=51_200,
        seq_len=2048,
        tied_embeddings=True,
    )
    """Printed as 18.4B parameters."""

    GPT_39B = TransformerModel(
        name="Megatron GPT 39.1B",
        source=cite("megatron"),
        parameters=Q_(39_096_041_472, "param"),
        layers=48,
        hidden_dim=8_192,
        heads=64,
        kv_heads=64,
        head_dim=128,
        ffn_dim=32_768,
        vocab_size=51_200,
        seq_len=2048,
        tied_embeddings=True,
    )
    """Printed as 39.1B parameters."""

    GPT_76B = TransformerModel(
        name="Megatron GPT 76.1B",
        source=cite("megatron"),
        parameters=Q_(76_050_739_200, "param"),
        layers=60,
        hidden_dim=10_240,
        heads=80,
        kv_heads=80,
        head_dim=128,
        ffn_dim=40_960,
        vocab_size=51_200,
        seq_len=2048,
        tied_embeddings=True,
    )
    """Printed as 76.1B parameters."""

    GPT_145B = TransformerModel(
        name="Megatron GPT 145.6B",
        source=cite("megatron"),
        parameters=Q_(145_622_261_760, "param"),
        layers=80,
        hidden_dim=12_288,
        heads=96,
        kv_heads=96,
        head_dim=128,
        ffn_dim=49_152,
        vocab_size=51_200,
        seq_len=2048,
        tied_embeddings=True,
    )
    """Printed as 145.6B parameters."""

    GPT_310B = TransformerModel(
        name="Megatron GPT 310.1B",
        source=cite("megatron"),
        parameters=Q_(310_130_540_544, "param"),
        layers=96,
        hidden_dim=16_384,
        heads=128,
        kv_heads=128,
        head_dim=128,
        ffn_dim=65_536,
        vocab_size=51_200,
        seq_len=2048,
        tied_embeddings=True,
    )
    """Printed as 310.1B parameters."""

    GPT_530B = TransformerModel(
        name="Megatron GPT 529.6B",
        source=cite("megatron_large"),
        parameters=Q_(529_600_819_200, "param"),
        layers=105,
        hidden_dim=20_480,
        heads=128,
        kv_heads=128,
        head_dim=160,
        ffn_dim=81_920,
        vocab_size=51_200,
        seq_len=2048,
        tied_embeddings=True,
    )
    """Printed as 529.6B parameters."""

    GPT_1T = TransformerModel(
        name="Megatron GPT 1008.0B",
        source=cite("megatron_large"),
        parameters=Q_(1_008_038_758_400, "param"),
        layers=128,
        hidden_dim=25_600,
        heads=160,
        kv_heads=160,
        head_dim=160,
        ffn_dim=102_400,
        vocab_size=51_200,
        seq_len=2048,
        tied_embeddings=True,
    )
    """Printed as 1008.0B parameters."""
