"""Language models without experts."""

from mlsysim.core.catalog import Catalog
from mlsysim.core.types import TransformerModel
from mlsysim.core.units import Q_
from mlsysim.registry.sources import models as src

__all__ = ["Language"]


class Language(Catalog):
    """Transformers for text."""

    GPT2 = TransformerModel(
        name="GPT-2",
        source=src.GPT2_XL,
        parameters=Q_(1_557_611_200, "param"),
        layers=48,
        hidden_dim=1600,
        heads=25,
        kv_heads=25,
        head_dim=64,
        ffn_dim=6400,
        vocab_size=50_257,
        seq_len=1024,
        tied_embeddings=True,
    )
    """The largest GPT-2, of 1.5 billion parameters."""

    GPT3 = TransformerModel(
        name="GPT-3",
        source=src.GPT3_PAPER,
        parameters=Q_(174_604_259_328, "param"),
        layers=96,
        hidden_dim=12_288,
        heads=96,
        kv_heads=96,
        head_dim=128,
        ffn_dim=49_152,
        vocab_size=50_257,
        seq_len=2048,
        tied_embeddings=True,
    )
    """GPT-3 175B."""

    GPT4 = TransformerModel(
        name="GPT-4 (unofficial)",
        source=src.GPT4_REPORTS,
        estimated=frozenset(
            {
                "parameters",
                "layers",
                "hidden_dim",
                "heads",
                "kv_heads",
                "head_dim",
                "ffn_dim",
                "gated_mlp",
                "vocab_size",
                "seq_len",
                "tied_embeddings",
            }
        ),
        parameters=Q_(1.8e12, "param"),
        layers=120,
        hidden_dim=10_752,
        heads=96,
        kv_heads=96,
        head_dim=112,
        ffn_dim=2 * 43_008,
        vocab_size=100_277,
        seq_len=8192,
    )
    """Reported, never published. A mixture of experts: `ffn_dim` is that of the two experts
    which a token visits, so that the shape yields the reported 280e9 active parameters, while
    `parameters` counts all that are stored."""

    BERT_Base = TransformerModel(
        name="BERT-Base",
        source=src.BERT_CONFIG,
        parameters=Q_(109_482_240, "param"),
        layers=12,
        hidden_dim=768,
        heads=12,
        kv_heads=12,
        head_dim=64,
        ffn_dim=3072,
        vocab_size=30_522,
        seq_len=512,
        tied_embeddings=True,
        causal=False,
    )
    """BERT-Base, uncased: an encoder."""

    Llama2_70B = TransformerModel(
        name="Llama 2 70B",
        source=src.LLAMA2_SHAPE,
        field_sources={"seq_len": src.LLAMA2_MODEL_CARD},
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
    )
    """Llama 2 70B: grouped-query attention, 69 billion parameters by count."""

    Llama3_8B = TransformerModel(
        name="Llama 3 8B",
        source=src.LLAMA3_SHAPE,
        field_sources={"seq_len": src.LLAMA3_MODEL_CARD},
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
    )
    """Llama 3 8B; Llama 3.1 8B has the same shape."""

    Llama3_70B = TransformerModel(
        name="Llama 3 70B",
        source=src.LLAMA3_SHAPE,
        field_sources={"seq_len": src.LLAMA3_MODEL_CARD},
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
    )
    """Llama 3 70B; Llama 3.1 70B and 3.3 70B have the same shape."""

    Llama3_405B = TransformerModel(
        name="Llama 3.1 405B",
        source=src.LLAMA3_405B,
        field_sources={"seq_len": src.LLAMA3_MODEL_CARD},
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
    )
    """The largest Llama 3.1. Most of its training ran on sequences of 8,192 tokens."""
