"""Layer groups: a transformer as a sequence of equal layers, and the blocks of a layer."""

from __future__ import annotations

from dataclasses import dataclass

from mlsysim.core.numeric import Value, maximum, minimum

__all__ = [
    "Attention",
    "AttentionBlock",
    "DenseBlock",
    "ExpertBlock",
    "FeedForward",
    "LatentBlock",
    "LayerGroup",
]


@dataclass(frozen=True)
class AttentionBlock:
    """Attention with query heads, and as many or fewer heads for keys and values."""

    heads: Value
    kv_heads: Value
    head_dim: Value
    attended_fraction: Value
    """Share of the sequence that a token attends to on average."""

    @property
    def width(self) -> Value:
        """Width of all heads together."""
        return self.heads * self.head_dim

    @property
    def qkv_width(self) -> Value:
        """Columns of the product that makes queries, keys and values."""
        return self.head_dim * (self.heads + 2 * self.kv_heads)

    @property
    def cached_heads(self) -> Value:
        """Heads whose keys and values a server keeps."""
        return self.kv_heads

    @property
    def cached_dim(self) -> Value:
        """Half of what it keeps for each of them, keys and values together."""
        return self.head_dim

    @property
    def decode_dim(self) -> Value:
        """Mean width of a key and a value, as a server attends to its cache."""
        return self.head_dim


@dataclass(frozen=True)
class LatentBlock:
    """Multi-head latent attention: keys and values of all heads are made of one short vector.

    In training and in prefill each head has keys and values of its own. A server keeps the short
    vector and the position's part of the keys, one for all heads, and decodes by attending to
    them as they are: the matrices that would make keys and values of them are absorbed into the
    projections of queries and outputs.
    """

    heads: Value
    query_rank: Value
    kv_rank: Value
    nope_dim: Value
    """Width of a key that the position leaves alone."""
    rope_dim: Value
    """Width of the part that tells the position, which the heads share."""
    value_dim: Value
    attended_fraction: Value
    """Share of the sequence that a token attends to on average."""

    @property
    def key_dim(self) -> Value:
        """Width of a query or a key."""
        return self.nope_dim + self.rope_dim

    @property
    def kv_heads(self) -> Value:
        """Heads with keys and values of their own: all."""
        return self.heads

    @property
    def head_dim(self) -> Value:
        """Mean width of a key and a value."""
        return (self.key_dim + self.value_dim) / 2

    @property
    def width(self) -> Value:
        """Width of all heads' outputs together."""
        return self.heads * self.value_dim

    @property
    def latent_width(self) -> Value:
        """Width of the vector that keys and values are made of, with the position's part."""
        return self.kv_rank + self.rope_dim

    @property
    def cached_heads(self) -> Value:
        """One vector serves all heads, and every device of a group needs it."""
        return 1

    @property
    def cached_dim(self) -> Value:
        """Half of what a server keeps of a token."""
        return self.latent_width / 2

    @property
    def decode_dim(self) -> Value:
        """Mean width of a key and a value, as a server attends to its cache."""
        return (self.latent_width + self.kv_rank) / 2


Attention = AttentionBlock | LatentBlock


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
    attention: Attention
    feed_forward: FeedForward

    def layers_before(self, layer: Value) -> Value:
        """Return the number of these layers among the first layers of the model."""
        return minimum(self.count, maximum(0, layer - self.first))
