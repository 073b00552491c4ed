"""Language models without experts, and GPT-4, which is reported to have them."""

from mlsysim.core.types import MoETransformerModel, TransformerModel, cite
from mlsysim.core.units import Q_
from mlsysim.registry.catalogs import Llama
from mlsysim.registry.models.published import published

__all__ = ["Language"]


class Language(Llama):
    """Transformers for text."""

    GPT2_124M = TransformerModel(
        name="GPT-2 124M",
        source=cite("gpt2_xl"),
        parameters=Q_(124_439_808, "param"),
        layers=12,
        hidden_dim=768,
        heads=12,
        kv_heads=12,
        head_dim=64,
        ffn_dim=3072,
        vocab_size=50_257,
        seq_len=1024,
        context=1_024,
        tied_embeddings=True,
    )
    """The smallest GPT-2, called "gpt2" in checkpoints and tutorials."""

    GPT2 = TransformerModel(
        name="GPT-2 XL",
        source=cite("gpt2_xl"),
        parameters=Q_(1_557_611_200, "param"),
        layers=48,
        hidden_dim=1600,
        heads=25,
        kv_heads=25,
        head_dim=64,
        ffn_dim=6400,
        vocab_size=50_257,
        seq_len=1024,
        context=1_024,
        tied_embeddings=True,
    )
    """The largest GPT-2, with 1.5 billion parameters, called "gpt2-xl" in checkpoints."""

    GPT3 = TransformerModel(
        name="GPT-3",
        source=cite("gpt3_paper"),
        parameters=Q_(174_604_259_328, "param"),
        layers=96,
        hidden_dim=12_288,
        heads=96,
        kv_heads=96,
        head_dim=128,
        ffn_dim=49_152,
        vocab_size=50_257,
        seq_len=2048,
        context=2_048,
        tied_embeddings=True,
    )
    """GPT-3 175B."""

    GPT4 = MoETransformerModel(
        name="GPT-4 (unofficial)",
        source=cite("gpt4_reports"),
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
                "experts",
                "experts_per_token",
                "expert_ffn_dim",
                "moe_layers",
            }
        ),
        parameters=Q_(1_833_347_539_968, "param"),
        layers=120,
        hidden_dim=10_752,
        heads=96,
        kv_heads=96,
        head_dim=112,
        ffn_dim=43_008,
        vocab_size=100_277,
        seq_len=8192,
        experts=16,
        experts_per_token=2,
        expert_ffn_dim=43_008,
        moe_layers=120,
    )
    """Reported by the press, but never published: sixteen experts, two per token, 280e9 active
    parameters and 1.8e12 in total. There is no dense block; `ffn_dim` repeats the width of an
    expert."""

    BERT_Base = TransformerModel(
        name="BERT-Base",
        source=cite("bert_config"),
        parameters=Q_(109_482_240, "param"),
        layers=12,
        hidden_dim=768,
        heads=12,
        kv_heads=12,
        head_dim=64,
        ffn_dim=3072,
        vocab_size=30_522,
        seq_len=512,
        context=512,
        tied_embeddings=True,
        causal=False,
    )
    """BERT-Base, uncased: an encoder."""

    Mistral_7B = published(
        "mistralai/Mistral-7B-v0.1",
        name="Mistral 7B",
        seq_len=8_192,
        length=cite("mistral_7b_context"),
    )
    """Mistral 7B v0.1. A token attends to the last 4,096 tokens."""

    Qwen3_32B = TransformerModel(
        name="Qwen3 32B",
        source=cite("qwen3_32b"),
        field_sources={
            "context": cite("qwen3_context"),
            "seq_len": cite("qwen3_report"),
        },
        parameters=Q_(32_762_123_264, "param"),
        layers=64,
        hidden_dim=5_120,
        heads=64,
        kv_heads=8,
        head_dim=128,
        ffn_dim=25_600,
        gated_mlp=True,
        vocab_size=151_936,
        seq_len=4096,
        context=40_960,
    )
    """The largest dense Qwen3. All heads together are wider than the residual stream."""

    Nemotron4_340B = TransformerModel(
        name="Nemotron-4 340B",
        source=cite("nemotron4"),
        parameters=Q_(341_029_195_776, "param"),
        layers=96,
        hidden_dim=18_432,
        heads=96,
        kv_heads=8,
        head_dim=192,
        ffn_dim=73_728,
        vocab_size=256_000,
        seq_len=4096,
        context=4_096,
        dropout=False,
    )
    """NVIDIA's largest dense model; its block squares a ReLU and has no gate."""
