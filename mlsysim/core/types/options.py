"""Named ways to run a training step: the pipeline's schedule, and attention."""

from __future__ import annotations

from collections.abc import Mapping

from mlsysim.core.fields import ReadOnlyMapping, Record, number, quantity, record
from mlsysim.core.units import Q_, Quantity

__all__ = [
    "ATTENTION",
    "CP_KINDS",
    "LOSSES",
    "SCHEDULES",
    "AttentionKernel",
    "ContextExchange",
    "Loss",
    "Schedule",
]


@record
class Schedule(Record):
    """The order of passes in a pipeline.

    Attributes
    ----------
    all_forward_first : float
        1 if all forward passes come first (GPipe), 0 if they alternate with backward passes.
    """

    name: str
    all_forward_first: float = number(zero=True, most=1)


@record
class AttentionKernel(Record):
    """How attention is computed.

    Attributes
    ----------
    fused : float
        1 if one kernel does it all, 0 if scores pass through memory.
    written_scores : float
        Share of the scores that pass through memory.
    backward : float
        Operations of the backward pass over those of the forward pass. A fused kernel computes
        the scores again: five products for two.
    """

    name: str
    fused: float = number(zero=True, most=1)
    written_scores: float = number(zero=True, most=1)
    backward: float = number()


@record
class ContextExchange(Record):
    """How devices that share sequences exchange what attention needs.

    Attributes
    ----------
    gathers : float
        1 if each device gathers all keys and values before it attends, 0 if they go round the
        devices while these attend.
    by_heads : float
        1 if the devices swap positions for heads, so that each attends over whole sequences.
    """

    name: str
    gathers: float = number(zero=True, most=1)
    by_heads: float = number(zero=True, most=1)


@record
class Loss(Record):
    """How the loss is computed from the logits.

    Attributes
    ----------
    copy_bytes : Quantity
        Bytes per logit next to the logits: of copies in 32 bits and of their gradients.
    """

    name: str
    copy_bytes: Quantity = quantity("byte", zero=True)


SCHEDULES: Mapping[str, Schedule] = ReadOnlyMapping(
    {
        "1f1b": Schedule(name="1f1b", all_forward_first=0),
        "gpipe": Schedule(name="gpipe", all_forward_first=1),
    }
)
"""Narayanan et al. (2021), section 2.2.1, and Huang et al. (2019)."""

ATTENTION: Mapping[str, AttentionKernel] = ReadOnlyMapping(
    {
        "fused": AttentionKernel(name="fused", fused=1, written_scores=0, backward=2.5),
        "unfused": AttentionKernel(name="unfused", fused=0, written_scores=1, backward=2),
    }
)
"""Dao (2023), FlashAttention-2, section 4.1, and plain attention."""

CP_KINDS: Mapping[str, ContextExchange] = ReadOnlyMapping(
    {
        "ring": ContextExchange(name="ring", gathers=0, by_heads=0),
        "all_gather": ContextExchange(name="all_gather", gathers=1, by_heads=0),
        "ulysses": ContextExchange(name="ulysses", gathers=0, by_heads=1),
    }
)
"""Liu, Zaharia and Abbeel (2023), Ring Attention; Llama Team (2024), The Llama 3 Herd of Models,
section 3.3.2; Jacobs et al. (2023), DeepSpeed Ulysses."""

LOSSES: Mapping[str, Loss] = ReadOnlyMapping(
    {
        "fused": Loss(name="fused", copy_bytes=Q_(0, "byte")),
        "unfused": Loss(name="unfused", copy_bytes=Q_(8, "byte")),
    }
)
"""Hsu et al. (2024), Liger Kernel, section 3.2: the gradient takes the logits' place. PyTorch's
loss holds log-probabilities and their gradient in 32 bits; cutting it into eight chunks frees 7.3
GiB of Llama 3 8B at 8,192 tokens (github.com/pytorch/torchtitan/pull/996): 7.5 bytes per logit."""
