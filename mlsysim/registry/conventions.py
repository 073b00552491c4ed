"""Counting rules, and the efficiency of the textbook model."""

from mlsysim.core.fields import number, quantity, record
from mlsysim.core.types import Entry, Source
from mlsysim.core.units import Q_, Quantity
from mlsysim.registry.sources.repositories import NCCL_TUNING_FILE

__all__ = ["CONVENTIONS", "TEXTBOOK_EFFICIENCY", "Conventions", "Efficiency"]


@record
class Conventions(Entry):
    """Counting rules.

    Attributes
    ----------
    flops_per_mac : Quantity
        Operations of one multiply-accumulate.
    mask_bytes : Quantity
        Bytes of one element of a dropout mask.
    statistic_bytes : Quantity
        Bytes of the softmax's statistic that fused attention keeps per query and head.
    forward_all_reduces : int
        All-reduces of tensor parallelism per layer in a forward pass.
    moment_bytes, master_bytes : Quantity
        Bytes per parameter of Adam's two moments, and of a master weight.
    tree_share : float
        Share of a ring's bandwidth that NCCL assumes for an all-reduce over a tree.
    """

    flops_per_mac: Quantity = quantity("flop")
    mask_bytes: Quantity = quantity("byte")
    statistic_bytes: Quantity = quantity("byte")
    forward_all_reduces: int = number(whole=True)
    moment_bytes: Quantity = quantity("byte")
    master_bytes: Quantity = quantity("byte")
    tree_share: float = number(most=1)


@record
class Efficiency(Entry):
    """A constant share of the peak arithmetic rate."""

    value: float = number()


_KAPLAN = Source(
    title="Kaplan et al. (2020), Scaling Laws for Neural Language Models",
    url="https://arxiv.org/abs/2001.08361",
    locator="section 2.1",
    checked="2026-11-20",
)
_KORTHIKANTI = Source(
    title="Korthikanti et al. (2022), Reducing Activation Recomputation",
    url="https://arxiv.org/abs/2205.05198",
    locator="section 4: masks take a single byte per element",
    checked="2026-11-20",
)
_FLASH = Source(
    title="Dao (2023), FlashAttention-2",
    url="https://arxiv.org/abs/2307.08691",
    locator="section 3.1: the logsumexp, one 32-bit number",
    checked="2026-11-20",
)
_MEGATRON = Source(
    title="Shoeybi et al. (2019), Megatron-LM",
    url="https://arxiv.org/abs/1909.08053",
    locator="section 3, Figure 4",
    checked="2026-11-20",
)
_ZERO = Source(
    title="Rajbhandari et al. (2020), ZeRO",
    url="https://arxiv.org/abs/1910.02054",
    locator="section 3.1",
    checked="2026-11-20",
)
_NCCL = Source(
    title="NCCL, tuning model",
    url=NCCL_TUNING_FILE,
    locator="ncclTopoTuneModel, NCCL_ALGO_TREE",
    checked="2026-11-22",
)

CONVENTIONS = Conventions(
    name="Conventions",
    source=_KAPLAN,
    flops_per_mac=Q_(2, "flop"),
    mask_bytes=Q_(1, "byte"),
    statistic_bytes=Q_(4, "byte"),
    forward_all_reduces=2,
    moment_bytes=Q_(8, "byte"),
    master_bytes=Q_(4, "byte"),
    tree_share=0.92,
    field_sources={
        "mask_bytes": _KORTHIKANTI,
        "statistic_bytes": _FLASH,
        "forward_all_reduces": _MEGATRON,
        "moment_bytes": _ZERO,
        "master_bytes": _ZERO,
        "tree_share": _NCCL,
    },
)
"""Counting rules that the literature shares."""

TEXTBOOK_EFFICIENCY = Efficiency(
    name="Textbook efficiency",
    source=Source(
        title="Narayanan et al. (2021), Efficient Large-Scale Language Model Training",
        url="https://arxiv.org/abs/2104.04473",
        locator="Table 1: 43 to 52% of peak",
        checked="2026-11-20",
        note="a round number in the published range, not fitted; the published shares refer to "
        "whole steps and count recomputed operations",
    ),
    value=0.5,
    estimated=frozenset({"value"}),
)
"""Share of peak that solvers assume by default."""
