"""Which activations a training step keeps, and which it computes again."""

from __future__ import annotations

from mlsysim.core.fields import Record, number, record

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
    """

    name: str
    matrix_share: float = number(zero=True)
    score_share: float = number(zero=True)
    kept_scores: float = number(zero=True)


RECOMPUTE: dict[str, Recompute] = {
    "none": Recompute(name="none", matrix_share=0, score_share=0, kept_scores=1),
    "selective": Recompute(name="selective", matrix_share=0, score_share=1, kept_scores=0),
    "full": Recompute(name="full", matrix_share=1, score_share=1, kept_scores=0),
}
"""Korthikanti et al. (2022), section 5: nothing, the attention scores, or whole layers. Fused
attention (FlashAttention) never stores the scores, which is the selective kind."""
