"""Qwen 2 to 3.6, dense and with experts."""

from mlsysim.core.catalog import Catalog
from mlsysim.core.types import cite
from mlsysim.registry.models.published import published

__all__ = ["Qwen"]


class Qwen(Catalog):
    """Qwen 2 to 3.6, dense and with experts."""

    Qwen2_0_5B = published("Qwen/Qwen2-0.5B", name="Qwen2 0.5B", seq_len=4_096)
    """The smallest Qwen2; input and output share a table."""

    Qwen2_1_5B = published("Qwen/Qwen2-1.5B", name="Qwen2 1.5B", seq_len=4_096)
    """The shape of Qwen2.5 1.5B; input and output share a table."""

    Qwen2_7B = published("Qwen/Qwen2-7B", name="Qwen2 7B", seq_len=4_096)
    """One head of keys and values per seven query heads. Qwen2.5 7B has the same shape."""

    Qwen2_72B = published("Qwen/Qwen2-72B", name="Qwen2 72B", seq_len=4_096)
    """The shape of Qwen2.5 72B."""

    Qwen1_5_7B = published("Qwen/Qwen1.5-7B", name="Qwen1.5 7B", seq_len=4_096)
    """Keys and values for all heads, and a vocabulary of 151,936."""

    Qwen2_5_3B = published("Qwen/Qwen2.5-3B", name="Qwen2.5 3B", seq_len=4_096)
    """Dense, with biases on queries, keys and values."""

    Qwen2_5_7B = published("Qwen/Qwen2.5-7B", name="Qwen2.5 7B", seq_len=4_096)
    """The model used most in fine-tuning recipes."""

    Qwen2_5_14B = published("Qwen/Qwen2.5-14B", name="Qwen2.5 14B", seq_len=4_096)
    """Like Qwen2.5 32B, with fewer layers and a narrower block."""

    Qwen2_5_32B = published("Qwen/Qwen2.5-32B", name="Qwen2.5 32B", seq_len=4_096)
    """Dense, 64 layers; QwQ 32B has the same shape."""

    Qwen2_5_72B = published("Qwen/Qwen2.5-72B", name="Qwen2.5 72B", seq_len=4_096)
    """The largest dense Qwen2.5."""

    Qwen1_5_MoE_A2_7B = published("Qwen/Qwen1.5-MoE-A2.7B", name="Qwen1.5 MoE A2.7B", seq_len=4_096)
    """60 experts, four per token, and a shared one as wide as four."""

    Qwen3_0_6B = published(
        "Qwen/Qwen3-0.6B", name="Qwen3 0.6B", seq_len=4_096, length=cite("qwen3_report")
    )
    """The smallest Qwen3."""

    Qwen3_1_7B = published(
        "Qwen/Qwen3-1.7B", name="Qwen3 1.7B", seq_len=4_096, length=cite("qwen3_report")
    )
    """Like Qwen3 0.6B, but twice as wide."""

    Qwen3_4B = published(
        "Qwen/Qwen3-4B", name="Qwen3 4B", seq_len=4_096, length=cite("qwen3_report")
    )
    """All heads together are wider than the residual stream."""

    Qwen3_8B = published(
        "Qwen/Qwen3-8B", name="Qwen3 8B", seq_len=4_096, length=cite("qwen3_report")
    )
    """Dense; input and output have separate tables."""

    Qwen3_14B = published(
        "Qwen/Qwen3-14B", name="Qwen3 14B", seq_len=4_096, length=cite("qwen3_report")
    )
    """Dense, 40 layers."""

    Qwen3_VL_235B_A22B = published(
        "Qwen/Qwen3-VL-235B-A22B-Instruct", name="Qwen3-VL 235B-A22B", seq_len=4_096
    )
    """Qwen3 235B-A22B with a longer context; the vision tower is not counted. The smaller models of
    this family have the shapes of Qwen3 with the same sizes."""

    Qwen3_Coder_480B_A35B = published(
        "Qwen/Qwen3-Coder-480B-A35B-Instruct", name="Qwen3-Coder 480B-A35B", seq_len=4_096
    )
    """160 experts, eight per token."""

    Qwen3_Next_80B_A3B = published(
        "Qwen/Qwen3-Next-80B-A3B-Instruct", name="Qwen3-Next 80B-A3B", seq_len=4_096
    )
    """Three layers of linear attention for each layer of softmax attention, and 512 experts."""

    Qwen3_5_9B = published("Qwen/Qwen3.5-9B", name="Qwen3.5 9B", seq_len=4_096)
    """Dense, with linear attention in three layers of four."""

    Qwen3_5_27B = published("Qwen/Qwen3.5-27B", name="Qwen3.5 27B", seq_len=4_096)
    """Dense, with linear attention in three layers of four. Qwen3.6 27B has the same shape."""

    Qwen3_5_35B_A3B = published("Qwen/Qwen3.5-35B-A3B", name="Qwen3.5 35B-A3B", seq_len=4_096)
    """256 experts, eight per token, with linear attention in three layers of four."""

    Qwen3_5_122B_A10B = published("Qwen/Qwen3.5-122B-A10B", name="Qwen3.5 122B-A10B", seq_len=4_096)
    """Like Qwen3.5 35B-A3B, but deeper and wider."""

    Qwen3_5_397B_A17B = published("Qwen/Qwen3.5-397B-A17B", name="Qwen3.5 397B-A17B", seq_len=4_096)
    """512 experts, ten per token, with linear attention in three layers of four."""
