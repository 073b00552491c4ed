"""Counting rules, and the efficiency of the textbook model."""

from mlsysim.core.fields import number, quantity, record
from mlsysim.core.types import Entry, cite
from mlsysim.core.units import Q_, Quantity


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


CONVENTIONS = Conventions(
    name="Conventions",
    source=cite("kaplan_counting"),
    flops_per_mac=Q_(2, "flop"),
    mask_bytes=Q_(1, "byte"),
    statistic_bytes=Q_(4, "byte"),
    forward_all_reduces=2,
    moment_bytes=Q_(8, "byte"),
    master_bytes=Q_(4, "byte"),
    tree_share=0.92,
    field_sources={
        "mask_bytes": cite("korthikanti_masks"),
        "statistic_bytes": cite("dao_statistic"),
        "forward_all_reduces": cite("megatron_all_reduces"),
        "moment_bytes": cite("rajbhandari_states"),
        "master_bytes": cite("rajbhandari_states"),
        "tree_share": cite("nccl_trees"),
    },
)
"""Counting rules that the literature shares."""

TEXTBOOK_EFFICIENCY = Efficiency(
    name="Textbook efficiency",
    source=cite("textbook_efficiency"),
    value=0.5,
    estimated=frozenset({"value"}),
)
"""Share of peak that solvers assume by default."""
