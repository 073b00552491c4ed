"""NVIDIA's hybrids: state-space layers, a few with attention, and experts."""

from mlsysim.core.catalog import Catalog
from mlsysim.registry.models.published import published

__all__ = ["Nemotron"]


class Nemotron(Catalog):
    """NVIDIA's hybrids: state-space layers, a few with attention, and experts."""

    Nemotron_H_56B = published("nvidia/Nemotron-H-56B-Base-8K", name="Nemotron-H 56B")
    """Dense: 54 state-space layers, 54 feed-forward ones and ten with attention."""

    Nemotron_Nano_9B_v2 = published(
        "nvidia/NVIDIA-Nemotron-Nano-9B-v2", name="Nemotron Nano 9B v2", seq_len=4_096
    )
    """Pruned from the 12B; four of 56 layers have attention."""

    Nemotron_Nano_12B_v2 = published(
        "nvidia/NVIDIA-Nemotron-Nano-12B-v2", name="Nemotron Nano 12B v2", seq_len=4_096
    )
    """Dense: 28 state-space layers, 28 feed-forward ones and six with attention."""

    Nemotron_3_Nano = published(
        "nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B-BF16", name="Nemotron 3 Nano 30B-A3B", seq_len=4_096
    )
    """128 experts, six per token; six of 52 layers have attention."""

    Nemotron_3_Nano_4B = published(
        "nvidia/NVIDIA-Nemotron-3-Nano-4B-BF16", name="Nemotron 3 Nano 4B", seq_len=4_096
    )
    """Dense; four of 42 layers have attention."""

    Nemotron_3_Super = published(
        "nvidia/NVIDIA-Nemotron-3-Super-120B-A12B-NVFP4",
        name="Nemotron 3 Super 120B-A12B",
        seq_len=4_096,
    )
    """512 experts in a narrower space, 22 per token."""

    Nemotron_3_Ultra = published(
        "nvidia/NVIDIA-Nemotron-3-Ultra-550B-A55B-BF16",
        name="Nemotron 3 Ultra 550B-A55B",
        seq_len=4_096,
    )
    """Like Nemotron 3 Super, but deeper and twice as wide."""
