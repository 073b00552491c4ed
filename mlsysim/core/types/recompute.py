"""Which activations a training step keeps, and which it computes again."""

from __future__ import annotations

from collections.abc import Mapping

from mlsysim.core.fields import ReadOnlyMapping, Record, number, record

__all__ = ["RECOMPUTE", "Recompute"]


@record
class Recompute(Record):
    """A way to trade operations for memory.

    Attributes
    ----------
    matrix_share : float
        Share of the layers' matrix products that the backward pass repeats.
    score_share : float
        Share of the attention scores that it repeats.
    kept_scores : float
        Share of the attention scores that are kept in memory.
    all_reduces_per_layer : int
        All-reduces of tensor parallelism per layer: two forward, two backward, and two more
        where the layer's forward pass is repeated.
    """

    name: str
    matrix_share: float = number(zero=True, most=1)
    score_share: float = number(zero=True, most=1)
    kept_scores: float = number(zero=True, most=1)
    all_reduces_per_layer: int = number(whole=True)


def _recompute(name: str, matrix: float, score: float, kept: float, all_reduces: int) -> Recompute:
    return Recompute(
        name=name,
        matrix_share=matrix,
        score_share=score,
        kept_scores=kept,
        all_reduces_per_layer=all_reduces,
    )


RECOMPUTE: Mapping[str, Recompute] = ReadOnlyMapping(
    {
        "none": _recompute("none", 0, 0, 1, 4),
        "selective": _recompute("selective", 0, 1, 0, 4),
        "full": _recompute("full", 1, 1, 0, 6),
    }
)
"""Korthikanti et al. (2022), section 5: nothing, the attention scores, or whole layers. Fused
attention (FlashAttention) never stores the scores, which is the selective kind."""
