"""Layer groups: a transformer as a sequence of equal layers, and the blocks of a layer."""

from __future__ import annotations

from dataclasses import dataclass

from mlsysim.core.numeric import Value, maximum, minimum

__all__ = ["AttentionBlock", "DenseBlock", "ExpertBlock", "FeedForward", "LayerGroup"]


@dataclass(frozen=True)
class AttentionBlock:
    """Attention with query heads, and as many or fewer heads for keys and values."""

    heads: Value
    kv_heads: Value
    head_dim: Value
    attended_fraction: Value
    """Share of the sequence that a token attends to on average."""
    kept_width: Value
    """Elements per token that it keeps for the backward pass; NaN if it follows from the heads."""

    @property
    def width(self) -> Value:
        """Width of all heads together."""
        return self.heads * self.head_dim

    @property
    def qkv_width(self) -> Value:
        """Columns of the product that makes queries, keys and values."""
        return self.head_dim * (self.heads + 2 * self.kv_heads)


@dataclass(frozen=True)
class DenseBlock:
    """A feed-forward block that processes every token."""

    width: Value
    matrices: Value
    """2, or 3 with a gate."""


@dataclass(frozen=True)
class ExpertBlock:
    """Experts, from which each token takes some, and a shared part for every token."""

    experts: Value
    experts_per_token: Value
    width: Value
    """Inner width of one expert."""
    shared_width: Value
    matrices: Value
    """Of an expert: 2, or 3 with a gate."""
    biases: Value
    """1 if experts add biases, else 0."""


FeedForward = DenseBlock | ExpertBlock


@dataclass(frozen=True)
class LayerGroup:
    """Equal layers, one after the other."""

    first: Value
    """Layers that come before them."""
    count: Value
    attention: AttentionBlock
    feed_forward: FeedForward

    def layers_before(self, layer: Value) -> Value:
        """Return the number of these layers among the first layers of the model."""
        return minimum(self.count, maximum(0, layer - self.first))
