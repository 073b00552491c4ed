"""Layers of a transformer: kinds of feed-forward blocks, and groups of equal layers."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from operator import add
from typing import Any, TypeGuard

from mlsysim.core import formulas as f
from mlsysim.core.errors import ConfigError, shown
from mlsysim.core.fields import Record, derived, number, record, require
from mlsysim.core.numeric import Value, maximum, minimum, where, zero_like
from mlsysim.core.types.attention import (
    AttentionKind,
    LatentAttention,
    Matrix,
    unchecked,
)


@record
class FeedForward(Record):
    """A feed-forward block that processes every token.

    Attributes
    ----------
    width : int
        Inner width of the block.
    gated : bool
        Whether it has a gate (SwiGLU): three matrices instead of two.
    """

    width: int = number(whole=True)
    gated: bool

    def __post_init__(self) -> None:
        super().__post_init__()
        require(self, gated=bool)

    @derived
    def matrices(self) -> int:
        """2, or 3 with a gate."""
        return 3 if self.gated else 2

    @property
    def inner_width(self) -> Value:
        """Inner width that a token uses."""
        return self.width

    def parameters(self, hidden_dim: Value) -> Value:
        """Return the parameters of its matrices."""
        return f.mlp_parameters(hidden_dim, self.width, self.matrices)

    def visited_parameters(self, hidden_dim: Value) -> Value:
        """Return the parameters that a token uses: all."""
        return self.parameters(hidden_dim)

    def unrouted_parameters(self, hidden_dim: Value) -> Value:
        """Return the parameters other than those of experts: all."""
        return self.parameters(hidden_dim)

    def routed_parameters(self, hidden_dim: Value) -> Value:
        """Return the parameters of experts: none."""
        return zero_like(hidden_dim)

    def common_matrices(self, hidden_dim: Value) -> list[Matrix]:
        """Return the matrices that every token uses."""
        return [Matrix(hidden_dim, self.width, self.matrices)]

    def buffered_parameters(self, hidden_dim: Value) -> Value:
        """Return the parameters that need their own gradient buffer: all."""
        return self.parameters(hidden_dim)

    def kept_width(self, hidden_dim: Value, narrow: Value, load: Value) -> Value:
        """Return the elements per token kept for the backward pass.

        `narrow` is the size of an element that a product keeps, divided by that of other elements.
        `load` is the rows of an expert, divided by its even share.
        """
        return (self.matrices - 1 + narrow) * self.inner_width

    def gradient_width(self, hidden_dim: Value, load: Value) -> Value:
        """Return the elements per token of its widest gradient."""
        return f.backward_width(1, hidden_dim, self.inner_width, self.matrices)


@record
class Experts(Record):
    """Experts and a shared part. Each token visits a few experts and the shared part.

    Attributes
    ----------
    count : int
        Experts of a layer.
    per_token : int
        Number of experts that each token visits.
    width : int
        Inner width of one expert.
    shared_width : int
        Inner width of the shared expert that every token visits.
    gated : bool
        Whether experts have a gate (SwiGLU): three matrices instead of two.
    latent_dim : int or None
        Width to which tokens are projected before dispatch, and from which the sum of the results
        is projected back (Nemotron 3 Super); `None` sends tokens at full width.
    adds_biases : bool
        Whether experts add biases, which grouped products leave to separate kernels.
    groups, groups_per_token : int
        Equal groups into which the router divides the experts, and the number of them in which a
        token's experts are (node-limited routing); 1 and 1 without such groups.
    """

    count: int = number(whole=True)
    per_token: int = number(whole=True)
    width: int = number(whole=True)
    shared_width: int = number(whole=True, zero=True, default=0)
    gated: bool
    latent_dim: int | None = number(whole=True, default=None)
    adds_biases: bool = False
    groups: int = number(whole=True, default=1)
    groups_per_token: int = number(whole=True, default=1)

    def __post_init__(self) -> None:
        super().__post_init__()
        require(self, gated=bool, adds_biases=bool)
        if self.per_token > self.count:
            raise ConfigError(
                f"per_token = {self.per_token} is more than count = {self.count} experts: choose "
                "at most as many",
                argument="per_token",
            )
        check_groups(self.count, self.per_token, self.groups, self.groups_per_token)

    @derived
    def matrices(self) -> int:
        """Matrices of an expert: 2, or 3 with a gate."""
        return 3 if self.gated else 2

    @derived
    def biases(self) -> float:
        """1 if experts add biases, else 0."""
        return float(self.adds_biases)

    @derived
    def latent_width(self) -> int:
        """Width of tokens inside experts; 0 if it is the full width."""
        return self.latent_dim or 0

    def most_nodes(self, nodes: Value) -> Value:
        """Return the most nodes that a token visits if groups are spread evenly over nodes."""
        return minimum(nodes, self.groups_per_token * maximum(1, nodes / self.groups))

    def token_width(self, hidden_dim: Value) -> Value:
        """Return the width of a token that is sent to an expert."""
        return where(self.latent_width > 0, self.latent_width, hidden_dim)

    @property
    def inner_width(self) -> Value:
        """Inner width that a token uses."""
        return self.per_token * self.width + self.shared_width

    def common_parameters(self, hidden_dim: Value) -> Value:
        """Return the parameters of the shared expert and of the projections around experts."""
        shared = f.mlp_parameters(hidden_dim, self.shared_width, self.matrices)
        around = 2 * hidden_dim * self.latent_width
        return where(self.latent_width > 0, shared + around, shared)

    def expert_parameters(self, hidden_dim: Value) -> Value:
        """Return the parameters of one expert."""
        return f.mlp_parameters(self.token_width(hidden_dim), self.width, self.matrices)

    def routed_parameters(self, hidden_dim: Value) -> Value:
        """Return the parameters of all experts."""
        return self.count * self.expert_parameters(hidden_dim)

    def idle_parameters(self, hidden_dim: Value, biased: bool) -> Value:
        """Return the parameters of unvisited experts, with their biases or without.

        Parameters that are counted from a shape are only those of matrices.
        """
        biases = (self.matrices - 1) * self.width + self.token_width(hidden_dim)
        expert = self.expert_parameters(hidden_dim) + biased * self.biases * biases
        return (self.count - self.per_token) * expert

    def parameters(self, hidden_dim: Value) -> Value:
        """Return the parameters of all its matrices, except the router's."""
        return self.routed_parameters(hidden_dim) + self.common_parameters(hidden_dim)

    def visited_parameters(self, hidden_dim: Value) -> Value:
        """Return the parameters that a token uses."""
        experts = self.per_token * self.expert_parameters(hidden_dim)
        return experts + self.common_parameters(hidden_dim)

    def unrouted_parameters(self, hidden_dim: Value) -> Value:
        """Return the parameters other than those of experts, including the router's."""
        return self.common_parameters(hidden_dim) + hidden_dim * self.count

    def common_matrices(self, hidden_dim: Value) -> list[Matrix]:
        """Return the matrices that every token uses, except the router."""
        shared = where(self.shared_width > 0, hidden_dim, 0)
        around = where(self.latent_width > 0, hidden_dim, 0)
        return [
            Matrix(shared, self.shared_width, self.matrices),
            Matrix(around, self.latent_width, 2),
        ]

    def expert_matrix(self, hidden_dim: Value) -> Matrix:
        """Return the matrices of one expert."""
        return Matrix(self.token_width(hidden_dim), self.width, self.matrices)

    def buffered_parameters(self, hidden_dim: Value) -> Value:
        """Return the parameters that need their own gradient buffer: those of one expert."""
        return self.expert_parameters(hidden_dim) + self.common_parameters(hidden_dim)

    def kept_width(self, hidden_dim: Value, narrow: Value, load: Value) -> Value:
        """Return the elements per token kept for the backward pass; see `FeedForward`."""
        # The copy of a token and the product of gate and input are inputs of products.
        width = f.kept_expert_width(
            load * self.per_token,
            narrow * self.token_width(hidden_dim),
            self.width,
            self.shared_width,
            self.matrices - 1 + narrow,
        )
        # Tokens in a narrower space are kept before dispatch and after the sum.
        return where(self.latent_width > 0, width + 2 * self.latent_width, width)

    def gradient_width(self, hidden_dim: Value, load: Value) -> Value:
        """Return the elements per token of its widest gradient."""
        sent = self.token_width(hidden_dim)
        return f.backward_width(load * self.per_token, sent, self.width, self.matrices)


FeedForwardKind = FeedForward | Experts


def check_groups(experts: int, per_token: int, groups: int, groups_per_token: int) -> None:
    """Reject groups of experts that are not equal or too few for a token."""
    if (
        experts % groups
        or groups_per_token > groups
        or groups_per_token * experts < per_token * groups
    ):
        raise ConfigError(
            f"groups = {groups} and groups_per_token = {groups_per_token} do not divide {experts} "
            f"experts so that a token finds {per_token}: choose a divisor of the experts, and at "
            "most as many groups per token, with enough experts",
            argument="groups",
        )


def single_expert(block: FeedForwardKind | None) -> int:
    """Return 1 if a block is an expert that every token visits, 2 with a shared one, else 0.

    Models treat such a block as a dense one, because nothing is routed.
    """
    if not isinstance(block, Experts) or block.count != 1:
        return 0
    if block.latent_dim is not None or block.adds_biases:
        return 0
    return 1 if block.shared_width == 0 else 2


def routes(block: FeedForwardKind | None) -> TypeGuard[Experts]:
    """Return whether a block has experts to choose from."""
    return isinstance(block, Experts) and not single_expert(block)


def as_block(expert: Experts, single: int) -> FeedForward:
    """Return the dense block equivalent to a single expert, in any form; see `single_expert`."""
    width = expert.width if single == 1 else expert.width + expert.shared_width
    return unchecked(FeedForward, width=width, gated=expert.gated, matrices=expert.matrices)


@record
class Layers(Record):
    """Equal layers of a transformer, and their positions.

    Attributes
    ----------
    count : int
        Number of layers; `None` counts `at`.
    attention : Attention, LatentAttention, LinearAttention or None
        Their attention; `None` if they have only a feed-forward block.
    feed_forward : FeedForward, Experts or None
        Their feed-forward block; `None` if they have only attention.
    parallel_attention : Attention, LatentAttention, LinearAttention or None
        A second attention that reads the same tokens as the first, with its output added to the
        first one's (Falcon-H1). Both share a norm, and tensor-parallel ranks sum their outputs
        once.
    at : range, tuple of int or None
        Their positions among all layers, from 0: ``range(3, 48, 4)`` is every fourth of 48 layers.
        Layers without `at` take the remaining positions, in the order of the stack.

    Examples
    --------
    Three layers with linear attention, then one with full attention, 12 times:

    >>> from mlsysim import Attention, FeedForward, Layers, LinearAttention
    >>> block = FeedForward(width=5_120, gated=True)
    >>> stack = (
    ...     Layers(
    ...         at=range(3, 48, 4),
    ...         attention=Attention(heads=16, kv_heads=2, head_dim=256),
    ...         feed_forward=block,
    ...     ),
    ...     Layers(
    ...         count=36,
    ...         attention=LinearAttention(heads=32, key_heads=16, key_dim=128, value_dim=128),
    ...         feed_forward=block,
    ...     ),
    ... )
    >>> [layers.count for layers in stack]
    [12, 36]
    """

    count: int = number(whole=True, default=None)
    attention: AttentionKind | None = None
    feed_forward: FeedForwardKind | None = None
    parallel_attention: AttentionKind | None = None
    at: tuple[int, ...] | range | None = None
    # The first group in the stack with the same attention, with the same feed-forward block, and
    # with the same parallel attention, which are then one object in all forms; and how a single
    # expert is a block (`as_block`). A tuple, so that stacked forms have it in common.
    _same: tuple[int, ...] = dataclasses.field(default=(), init=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "at", self._positions())
        given: Any = self.count
        if self.at is not None and given is None:
            object.__setattr__(self, "count", given := len(self.at))
        super().__post_init__()
        if given is None:
            raise ConfigError(
                "Layers.count is missing: give the number of layers, or their positions (at)",
                argument="count",
            )
        if self.at is not None and len(self.at) != self.count:
            raise ConfigError(
                f"Layers.count = {self.count}, but at has {len(self.at)} positions: leave count "
                "out, or correct one of them",
                argument="count",
            )
        for name, kinds in (
            ("attention", AttentionKind),
            ("feed_forward", FeedForwardKind),
            ("parallel_attention", AttentionKind),
        ):
            value = getattr(self, name)
            if value is not None and not isinstance(value, kinds):
                known = ", ".join(kind.__name__ for kind in kinds.__args__)
                raise ConfigError(
                    f"Layers.{name} must be one of {known} or None, got {shown(value)}",
                    argument=name,
                )
        if self.attention is None and self.feed_forward is None:
            raise ConfigError(
                "Layers have neither attention nor a feed_forward block: give at least one",
                argument="attention",
            )
        if self.attention is None and self.parallel_attention is not None:
            raise ConfigError(
                "Layers with a parallel_attention need an attention that it is parallel to: give "
                "both, or only attention",
                argument="parallel_attention",
            )
        for latent in (self.attention, self.parallel_attention):
            if isinstance(latent, LatentAttention) and None in (latent.heads, latent.value_dim):
                raise ConfigError(
                    "LatentAttention in Layers needs its own heads and value_dim: give both",
                    argument="heads" if latent.heads is None else "value_dim",
                )

    @property
    def summary(self) -> str:
        """One line that describes these layers."""
        blocks = (self.attention, self.parallel_attention, self.feed_forward)
        parts = [_described(part) for part in blocks]
        where_at = "" if self.at is None else f", the first at {min(self.at)}"
        return f"{self.count} layers{where_at}: {' + '.join(part for part in parts if part)}"

    def _positions(self) -> tuple[int, ...] | None:
        given: Any = self.at
        if given is None:
            return None
        known = tuple(given) if isinstance(given, range | tuple | list) else ()
        if not known or not all(type(spot) is int and spot >= 0 for spot in known):
            raise ConfigError(
                f"Layers.at = {shown(given)} is not a range or tuple of positions from 0, such as "
                "range(3, 48, 4)",
                argument="at",
            )
        if len(set(known)) < len(known):
            raise ConfigError("Layers.at names a position twice: leave one out", argument="at")
        return tuple(sorted(known))


def _described(part: Record | None) -> str:
    """Return the kind of a block and its fields that differ from their defaults."""
    if part is None:
        return ""
    fields = []
    for item in dataclasses.fields(part):
        value = getattr(part, item.name)
        if value != item.default and value is not None:
            fields.append(
                f"{item.name}={_described(value) if isinstance(value, Record) else value}"
            )
    return f"{type(part).__name__}({', '.join(fields)})"


@dataclass(frozen=True)
class LayerGroup:
    """Equal layers, as models read them."""

    first: Value
    """Number of layers before them, if they are consecutive."""
    count: Value
    attention: AttentionKind | None
    feed_forward: FeedForwardKind | None
    at: tuple[int, ...] | None = None
    """Positions of the layers, if they are not consecutive."""
    parallel_attention: AttentionKind | None = None

    @property
    def attentions(self) -> tuple[AttentionKind, ...]:
        """The attention of a layer: one kind, two in parallel, or none."""
        both = (self.attention, self.parallel_attention)
        return tuple(a for a in both if a is not None)

    @property
    def experts(self) -> Experts | None:
        """The experts of its feed-forward block; `None` without any."""
        return self.feed_forward if isinstance(self.feed_forward, Experts) else None

    @property
    def inner_width(self) -> Value:
        """Inner width of the feed-forward block that a token uses."""
        return 0 if self.feed_forward is None else self.feed_forward.inner_width

    def attention_parameters(self, hidden_dim: Value) -> Value:
        """Return the parameters of all attention of one layer."""
        parts = [a.parameters(hidden_dim) for a in self.attentions]
        return reduce(add, parts) if parts else zero_like(hidden_dim)

    def visited_parameters(self, hidden_dim: Value) -> Value:
        """Return the feed-forward parameters that a token uses in one layer."""
        block = self.feed_forward
        return zero_like(hidden_dim) if block is None else block.visited_parameters(hidden_dim)

    def routed_parameters(self, hidden_dim: Value) -> Value:
        """Return the parameters of the experts of one layer."""
        block = self.feed_forward
        return zero_like(hidden_dim) if block is None else block.routed_parameters(hidden_dim)

    def unrouted_parameters(self, hidden_dim: Value) -> Value:
        """Return the parameters of one layer other than those of experts."""
        attention, block = self.attention_parameters(hidden_dim), self.feed_forward
        return attention if block is None else attention + block.unrouted_parameters(hidden_dim)

    def parameters(self, hidden_dim: Value) -> Value:
        """Return the parameters of the matrices of one layer, except the router's."""
        attention, block = self.attention_parameters(hidden_dim), self.feed_forward
        return attention if block is None else attention + block.parameters(hidden_dim)

    def matrices(self, hidden_dim: Value) -> list[Matrix]:
        """Return the matrices of one layer other than those of experts and routers."""
        block = self.feed_forward
        common = [] if block is None else block.common_matrices(hidden_dim)
        return [matrix for a in self.attentions for matrix in a.matrices(hidden_dim)] + common

    @property
    def plain(self) -> bool:
        """Whether a layer has a feed-forward block, and attention to all tokens."""
        a = self.attention
        scores = a is not None and a.caches_whole and a.indexer is None
        return scores and self.parallel_attention is None and self.feed_forward is not None

    @property
    def blocks(self) -> int:
        """Blocks with their own norm and residual connection: 2, or 1 if one is missing."""
        return (self.attention is not None) + (self.feed_forward is not None)


def attention_layers(
    groups: Sequence[LayerGroup], layers: Value
) -> tuple[tuple[Value, AttentionKind], ...]:
    """Return each attention of the groups of a model, and how many of its layers have it."""
    kinds: dict[int, tuple[list[Value], AttentionKind]] = {}
    for group in groups:
        for attention in group.attentions:
            kinds.setdefault(id(attention), ([], attention))[0].append(group.count)
    everywhere = all(len(group.attentions) == 1 for group in groups)
    if len(kinds) == 1 and everywhere:  # by far the most common case; it needs no sum
        return ((layers, groups[0].attentions[0]),)
    return tuple((reduce(add, counts), attention) for counts, attention in kinds.values())


def grouped(stack: tuple[Layers, ...]) -> tuple[LayerGroup, ...]:
    """Return the groups of a stack, in any form."""
    groups = []
    first: Value = 0
    blocks: dict[int, FeedForwardKind | None] = {}
    for layers in stack:
        attention, feed_forward, parallel, single = layers._same
        if feed_forward not in blocks:
            block = stack[feed_forward].feed_forward
            if isinstance(block, Experts) and single:
                block = as_block(block, single)
            blocks[feed_forward] = block
        groups.append(
            LayerGroup(
                first,
                layers.count,
                stack[attention].attention,
                blocks[feed_forward],
                None if layers.at is None else tuple(layers.at),
                stack[parallel].parallel_attention,
            )
        )
        first = first + layers.count
    return tuple(groups)


def placed(stack: tuple[Layers, ...], name: str) -> tuple[Layers, ...]:
    """Return a stack in which either all layers have positions or none do."""
    positions = [layers.at for layers in stack]
    if any(at is not None for at in positions):
        positions = _filled(stack, name)
    attentions = [layers.attention for layers in stack]
    blocks = [layers.feed_forward for layers in stack]
    parallel = [layers.parallel_attention for layers in stack]
    made = []
    for layers, at in zip(stack, positions, strict=True):
        part = dataclasses.replace(layers, at=at)
        first = (
            attentions.index(layers.attention),
            blocks.index(layers.feed_forward),
            parallel.index(layers.parallel_attention),
        )
        object.__setattr__(part, "_same", (*first, single_expert(layers.feed_forward)))
        made.append(part)
    return tuple(made)


def _filled(stack: tuple[Layers, ...], name: str) -> list[tuple[int, ...] | range | None]:
    """Return the positions of all groups, if some state them."""
    total = sum(layers.count for layers in stack)
    taken = [spot for layers in stack for spot in layers.at or ()]
    if len(set(taken)) < len(taken):
        twice = next(spot for spot in taken if taken.count(spot) > 1)
        raise ConfigError(
            f"{name}: two groups of layers are at position {twice}: change `at` of one",
            argument="stack",
        )
    if max(taken) >= total:
        raise ConfigError(
            f"{name}: a layer is at position {max(taken)}, but the stack has {total} layers: "
            "positions count from 0, so correct `at` or the counts",
            argument="stack",
        )
    left = iter(sorted({*range(total)} - {*taken}))
    return [
        tuple(next(left) for _ in range(layers.count)) if layers.at is None else layers.at
        for layers in stack
    ]
