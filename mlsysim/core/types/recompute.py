"""Which activations a training step keeps, and which it recomputes."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations

from mlsysim.core.fields import ReadOnlyMapping, Record, number, record

__all__ = ["RECOMPUTE", "Recompute"]


@record
class Recompute(Record):
    """A way to trade operations for memory.

    Attributes
    ----------
    matrix_share : float
        Share of the layers' matrix products that the backward pass recomputes.
    score_share : float
        Share of the attention scores that it recomputes.
    kept_scores : float
        Share of the attention scores that are kept in memory.
    all_reduces_per_layer : int
        All-reduces of tensor parallelism per layer: two forward, two backward, and two more if the
        layer's forward pass is recomputed.
    norm_share, activation_share, latent_share : float
        Share of the norms, of the feed-forward blocks' nonlinearities, and of latent attention's
        up-projections that it recomputes instead of keeping their results.
    """

    name: str
    matrix_share: float = number(zero=True, most=1)
    score_share: float = number(zero=True, most=1)
    kept_scores: float = number(zero=True, most=1)
    all_reduces_per_layer: int = number(whole=True)
    norm_share: float = number(zero=True, most=1)
    activation_share: float = number(zero=True, most=1)
    latent_share: float = number(zero=True, most=1)


_MODULES = ("selective", "norms", "swiglu", "mla_up")


def _recompute(modules: tuple[str, ...], whole: bool = False) -> Recompute:
    scores, norms, activation, latent = (float(name in modules) for name in _MODULES)
    return Recompute(
        name="full" if whole else "+".join(modules) or "none",
        matrix_share=float(whole),
        score_share=float(whole) or scores,
        kept_scores=0 if whole else 1 - scores,
        all_reduces_per_layer=6 if whole else 4,
        norm_share=norms,
        activation_share=activation,
        latent_share=latent,
    )


def _named() -> dict[str, Recompute]:
    chosen = [parts for n in range(len(_MODULES) + 1) for parts in combinations(_MODULES, n)]
    return {row.name: row for row in [*map(_recompute, chosen), _recompute((), whole=True)]}


RECOMPUTE: Mapping[str, Recompute] = ReadOnlyMapping(_named())
"""Nothing, the attention scores (selective) or whole layers: Korthikanti et al. (2022), section 5.
Fused attention (FlashAttention) never stores the scores, which is the selective kind. Norms, SwiGLU
and up-projections of latent attention: DeepSeek-AI (2024), DeepSeek-V3, section 3.2.3, and
Megatron-Core's recompute_modules (layernorm, moe_act, mla_up_proj)."""
