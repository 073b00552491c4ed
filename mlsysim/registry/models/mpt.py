"""MPT: MosaicML's family, in the configurations of its training benchmarks."""

from mlsysim.core.catalog import Catalog
from mlsysim.core.types import TransformerModel, cite
from mlsysim.core.units import Q_

__all__ = ["MPT"]


class MPT(Catalog):
    """MPT from 125 million to 70 billion parameters, with learned positions and biases.

    The published MPT-7B and MPT-30B have neither, so they are slightly smaller than these rows.
    """

    MPT_125M = TransformerModel(
        name="MPT 125M",
        source=cite("mpt"),
        parameters=Q_(125_311_488, "param"),
        layers=12,
        hidden_dim=768,
        heads=12,
        kv_heads=12,
        head_dim=64,
        ffn_dim=3_072,
        vocab_size=50_368,
        seq_len=2048,
        tied_embeddings=True,
        dropout=False,
    )
    """Configuration mpt-125m.yaml."""

    MPT_350M = TransformerModel(
        name="MPT 350M",
        source=cite("mpt"),
        parameters=Q_(355_985_408, "param"),
        layers=24,
        hidden_dim=1_024,
        heads=16,
        kv_heads=16,
        head_dim=64,
        ffn_dim=4_096,
        vocab_size=50_368,
        seq_len=2048,
        tied_embeddings=True,
        dropout=False,
    )
    """Configuration mpt-350m.yaml."""

    MPT_760M = TransformerModel(
        name="MPT 760M",
        source=cite("mpt"),
        parameters=Q_(760_470_528, "param"),
        layers=24,
        hidden_dim=1_536,
        heads=12,
        kv_heads=12,
        head_dim=128,
        ffn_dim=6_144,
        vocab_size=50_368,
        seq_len=2048,
        tied_embeddings=True,
        dropout=False,
    )
    """Configuration mpt-760m.yaml."""

    MPT_1B = TransformerModel(
        name="MPT 1B",
        source=cite("mpt"),
        parameters=Q_(1_315_950_592, "param"),
        layers=24,
        hidden_dim=2_048,
        heads=16,
        kv_heads=16,
        head_dim=128,
        ffn_dim=8_192,
        vocab_size=50_368,
        seq_len=2048,
        tied_embeddings=True,
        dropout=False,
    )
    """Configuration mpt-1b.yaml."""

    MPT_3B = TransformerModel(
        name="MPT 3B",
        source=cite("mpt"),
        parameters=Q_(2_651_837_440, "param"),
        layers=32,
        hidden_dim=2_560,
        heads=20,
        kv_heads=20,
        head_dim=128,
        ffn_dim=10_240,
        vocab_size=50_368,
        seq_len=2048,
        tied_embeddings=True,
        dropout=False,
    )
    """Configuration mpt-3b.yaml."""

    MPT_7B = TransformerModel(
        name="MPT 7B",
        source=cite("mpt"),
        parameters=Q_(6_658_859_008, "param"),
        layers=32,
        hidden_dim=4_096,
        heads=32,
        kv_heads=32,
        head_dim=128,
        ffn_dim=16_384,
        vocab_size=50_368,
        seq_len=2048,
        tied_embeddings=True,
        dropout=False,
    )
    """Configuration mpt-7b.yaml."""

    MPT_13B = TransformerModel(
        name="MPT 13B",
        source=cite("mpt"),
        parameters=Q_(12_853_954_560, "param"),
        layers=40,
        hidden_dim=5_120,
        heads=40,
        kv_heads=40,
        head_dim=128,
        ffn_dim=20_480,
        vocab_size=50_368,
        seq_len=2048,
        tied_embeddings=True,
        dropout=False,
    )
    """Configuration mpt-13b.yaml."""

    MPT_30B = TransformerModel(
        name="MPT 30B",
        source=cite("mpt"),
        parameters=Q_(29_975_214_080, "param"),
        layers=48,
        hidden_dim=7_168,
        heads=56,
        kv_heads=56,
        head_dim=128,
        ffn_dim=28_672,
        vocab_size=50_368,
        seq_len=2048,
        tied_embeddings=True,
        dropout=False,
    )
    """Configuration mpt-30b.yaml."""

    MPT_70B = TransformerModel(
        name="MPT 70B",
        source=cite("mpt"),
        parameters=Q_(64_862_437_376, "param"),
        layers=80,
        hidden_dim=8_192,
        heads=64,
        kv_heads=64,
        head_dim=128,
        ffn_dim=32_768,
        vocab_size=50_368,
        seq_len=2048,
        tied_embeddings=True,
        dropout=False,
    )
    """Configuration mpt-70b.yaml."""
