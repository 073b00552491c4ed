"""Google's Gemma: layers with a window, and some that see everything."""

from mlsysim.core.catalog import Catalog
from mlsysim.registry.models.published import published

__all__ = ["Gemma"]


class Gemma(Catalog):
    """Google's Gemma: layers with a window, and some that see everything."""

    Gemma_2B = published("google/gemma-2b", name="Gemma 2B")
    """One head of keys and values, and a vocabulary of 256,000."""

    Gemma2_2B = published("google/gemma-2-2b", name="Gemma 2 2B")
    """Every other layer has a window of 4,096 tokens."""

    Gemma2_9B = published("google/gemma-2-9b", name="Gemma 2 9B")
    """Every other layer has a window of 4,096 tokens."""

    Gemma2_27B = published("google/gemma-2-27b", name="Gemma 2 27B")
    """Every other layer has a window of 4,096 tokens."""

    Gemma3_1B = published("google/gemma-3-1b-it", name="Gemma 3 1B", seq_len=4_096)
    """Text only; about five layers of six have a window of 512 tokens."""

    Gemma3_4B = published("google/gemma-3-4b-it", name="Gemma 3 4B", seq_len=4_096)
    """Five layers of six have a window of 1,024 tokens. Parameters include the vision tower."""

    Gemma3_12B = published("google/gemma-3-12b-it", name="Gemma 3 12B", seq_len=4_096)
    """Like Gemma 3 4B, but deeper and wider."""

    Gemma3_27B = published("google/gemma-3-27b-it", name="Gemma 3 27B", seq_len=4_096)
    """Like Gemma 3 12B, but deeper and wider."""

    Gemma4_26B_A4B = published("google/gemma-4-26B-A4B", name="Gemma 4 26B-A4B", seq_len=4_096)
    """128 experts, eight per token. The vision tower is not counted."""

    Gemma4_31B = published("google/gemma-4-31B", name="Gemma 4 31B", seq_len=4_096)
    """Dense, with a window in five layers of six. The vision tower is not counted."""
