"""Kinds of attention, and which tokens a token attends to."""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from operator import add
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from mlsysim.core import formulas as f
from mlsysim.core.errors import ConfigError, shown
from mlsysim.core.fields import Record, derived, number, record, require
from mlsysim.core.numeric import Value, minimum, when, where, zero_like

R = TypeVar("R", bound=Record)


def unchecked(kind: type[R], **numbers: Any) -> R:
    """Return a record of numbers that were already checked, such as arrays of a sweep."""
    made = object.__new__(kind)
    made.__dict__.update(numbers)
    return made


@dataclass(frozen=True)
class Matrix:
    """Equal matrices of a layer; if a layer has none, both sides are zero."""

    rows: Value
    columns: Value
    count: Value = 1

    @property
    def sides(self) -> Value:
        """Total of both sides over all of the matrices."""
        return self.count * (self.rows + self.columns)


@dataclass(frozen=True)
class Projection:
    """A product of all tokens with matrices that read the same input."""

    inner: Value
    widths: tuple[Value, ...]
    """Columns of each matrix; a layer without the matrix has none."""

    @property
    def columns(self) -> Value:
        """Columns of all its matrices."""
        return reduce(add, self.widths)

    @property
    def present(self) -> Value:
        """Whether the layer has it."""
        return self.inner * self.columns > 0

    @property
    def matrices(self) -> list[Matrix]:
        """Its matrices."""
        return [
            Matrix(when(width > 0, self.inner), when(self.inner > 0, width))
            for width in self.widths
        ]


@dataclass(frozen=True)
class CacheBytes:
    """Bytes of one element that a server keeps between tokens."""

    keys: Value
    """Of keys and values."""
    state: Value
    """Of the states of linear attention."""
    convolution: Value
    """Of earlier tokens that a convolution reads."""


@dataclass(frozen=True)
class Cache:
    """Cache of several sequences, in layers with one kind of attention."""

    size: Value
    """Bytes in all these layers, for all sequences."""
    heads: Value
    """Devices that can share it."""
    read: Value
    """Bytes of it that a decode step reads and writes."""
    limit: Value = None
    """Tokens up to which it grows: 0 for a state, `None` without a limit."""
    divided: bool = False
    """Whether ranks of decode context parallelism can divide its tokens."""


@record
class _Limited(Record):
    """A limit on the tokens that a token attends to."""

    tokens: int = number(whole=True)

    cached_whole: ClassVar[bool] = False
    """Whether a server keeps keys and values of the whole context."""

    def attended(self, context: Value) -> Value:
        """Return the most tokens that the newest token of a context attends to."""
        return minimum(self.tokens, context)

    def cached(self, context: Value) -> Value:
        """Return the most tokens whose keys and values a server keeps."""
        return context if self.cached_whole else minimum(self.tokens, context)

    def share(self, seq_len: Value, everywhere: Value) -> Value:
        """Return the mean share of a sequence that is attended to.

        `everywhere` is that share without a limit: 1/2 if causal, else 1. The first tokens have
        fewer tokens before them than the limit.
        """
        part = minimum(self.tokens, seq_len) / seq_len
        return part * (1 - (1 - everywhere) * part)


@record
class SlidingWindow(_Limited):
    """A token attends only to the most recent tokens.

    Attributes
    ----------
    tokens : int
        Width of the window, including the token itself.
    """


@record
class Chunks(_Limited):
    """A token attends to its own chunk of the sequence.

    Attributes
    ----------
    tokens : int
        Tokens of a chunk.
    """

    def share(self, seq_len: Value, everywhere: Value) -> Value:
        """Return the mean share of a sequence that is attended to."""
        return everywhere * minimum(self.tokens, seq_len) / seq_len


@record
class TopKeys(_Limited):
    """A token attends to the keys that an indexer scores highest (DeepSeek sparse attention).

    The indexer scores all tokens before this one. It has a query and a weight for each of its
    heads, and one key for all of them.

    Attributes
    ----------
    tokens : int
        Keys that a token attends to.
    heads, head_dim : int
        Heads of the indexer, and their width; both 0 in layers without an indexer, which attend to
        the keys that an earlier layer chose (GLM-5.2).
    """

    heads: int = number(whole=True, zero=True)
    head_dim: int = number(whole=True, zero=True)

    cached_whole: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if (self.heads == 0) != (self.head_dim == 0):
            raise ConfigError(
                f"TopKeys.heads = {self.heads} and head_dim = {self.head_dim}: give both, or 0 for "
                "both in layers without an indexer of their own",
                argument="heads" if self.heads == 0 else "head_dim",
            )

    def parameters(self, hidden_dim: Value, query_dim: Value) -> Value:
        """Return the indexer's parameters, with queries computed from `query_dim` elements."""
        return query_dim * self.heads * self.head_dim + hidden_dim * (self.head_dim + self.heads)

    def projections(self, hidden_dim: Value, query_dim: Value) -> list[Projection]:
        """Return the indexer's products: for queries, and for the key and the weights."""
        return [
            Projection(query_dim, (self.heads * self.head_dim,)),
            Projection(hidden_dim, (self.head_dim, self.heads)),
        ]

    def rating_flops(self, pairs: Value, flops_per_mac: Value) -> Value:
        """Return the operations to score pairs of a token and a key that it may attend to."""
        return flops_per_mac * self.heads * self.head_dim * pairs


Reach = SlidingWindow | Chunks | TopKeys


class _Kind(Record):
    """Answers of a kind of attention without latent vectors, states or an indexer."""

    has_state: ClassVar[bool] = False
    """Whether a server keeps a state of constant size instead of a cache."""

    if TYPE_CHECKING:

        @property
        def width(self) -> Value: ...
        def projections(self, hidden_dim: Value) -> list[Projection]: ...

    @property
    def indexer(self) -> TopKeys | None:
        """The indexer that chooses the keys to attend to; `None` without one."""
        return None

    @property
    def streamed_width(self) -> Value:
        """Elements per token that convolutions and gated norms read and write."""
        return 0

    @property
    def expansion_parameters(self) -> Value:
        """Parameters that expand latent vectors to heads."""
        return 0

    def expansions(self, hidden_dim: Value) -> list[Projection]:
        """Return the products that expand latent vectors to heads."""
        return []

    def matrices(self, hidden_dim: Value) -> list[Matrix]:
        """Return its matrices."""
        read = [matrix for each in self.projections(hidden_dim) for matrix in each.matrices]
        return [*read, Matrix(self.width, hidden_dim)]

    def recomputed_width(
        self, narrow: Value, copies: Value, norm_share: Value, latent_share: Value
    ) -> Value:
        """Return the elements per token that norms and expansions of latent vectors recompute.

        `narrow` is the size of an element that a product keeps, divided by that of other elements.
        `copies` is the number of tensor ranks that hold a norm's output.
        """
        return zero_like(latent_share)


class _Scores(_Kind):
    """Attention that scores keys and caches them: what its kinds have in common."""

    if TYPE_CHECKING:
        reach: Reach | None
        output_gate: bool

        @property
        def heads(self) -> Value: ...
        @property
        def kv_heads(self) -> Value: ...
        @property
        def head_dim(self) -> Value: ...

    def __post_init__(self) -> None:
        super().__post_init__()
        require(self, output_gate=bool)
        if self.reach is not None and not isinstance(self.reach, Reach):
            raise ConfigError(
                f"{type(self).__name__}.reach must be a SlidingWindow, Chunks, TopKeys or None, "
                f"got {shown(self.reach)}",
                argument="reach",
            )

    @property
    def indexer(self) -> TopKeys | None:
        """The indexer that chooses the keys to attend to; `None` without one."""
        return self.reach if isinstance(self.reach, TopKeys) else None

    @derived
    def gates(self) -> int:
        """1 if a gate scales the output, else 0."""
        return int(self.output_gate)

    @property
    def gate_width(self) -> Value:
        """Columns of the product that computes the output's gate."""
        return where(self.gates > 0, self.width, 0)

    @property
    def cached_heads(self) -> Value:
        """Heads whose keys and values a server keeps."""
        return self.kv_heads

    @property
    def cached_dim(self) -> Value:
        """Half of the cached elements per head and token, keys and values together."""
        return self.head_dim

    @property
    def decode_dim(self) -> Value:
        """Mean width of a key and a value, as a server attends to its cache."""
        return self.head_dim

    @property
    def extra_parts(self) -> Value:
        """Parts with their own kernels, in addition to those of plain attention."""
        return 0 if self.indexer is None else where(self.indexer.heads > 0, 1, 0)

    def query_inner(self, hidden_dim: Value) -> Value:
        """Return the width of the input to the query matrix."""
        return hidden_dim

    @property
    def caches_whole(self) -> bool:
        """Whether a server keeps keys and values of the whole context.

        Ranks of decode context parallelism divide the tokens of such caches only. Each rank keeps
        all of a window or a state.
        """
        return self.reach is None or self.reach.cached_whole

    @property
    def score_heads(self) -> Value:
        """Heads with a matrix of scores."""
        return self.heads

    @property
    def swapped_keys(self) -> tuple[Value, Value]:
        """Heads of keys and values, and their width, as ranks swap heads for tokens."""
        return self.kv_heads, self.head_dim

    @property
    def inner_width(self) -> Value:
        """Total width of all tensors inside attention, over all heads."""
        return 2 * self.head_dim * (self.heads + self.kv_heads) + self.gate_width

    def attended(self, context: Value) -> Value:
        """Return the tokens that the newest token of a context attends to."""
        return context if self.reach is None else self.reach.attended(context)

    def share(self, seq_len: Value, everywhere: Value) -> Value:
        """Return the mean share of a sequence that a token attends to; see `SlidingWindow`."""
        return everywhere if self.reach is None else self.reach.share(seq_len, everywhere)

    def score_flops(
        self,
        layers: Value,
        seq_len: Value,
        everywhere: Value,
        flops_per_mac: Value,
        skips: Value = True,
    ) -> Value:
        """Return the operations in the scores of a token of a sequence.

        `everywhere` is the share of the sequence that it attends to without a limit: 1/2 if causal.
        A kernel with `skips` leaves out positions that the token does not attend to.
        """
        share = where(skips, self.share(seq_len, everywhere), 1)
        score = f.attention_score_flops(
            layers, self.heads, self.head_dim, seq_len, share, flops_per_mac
        )
        if self.indexer is None:
            return score
        pairs = seq_len * where(skips, everywhere, 1)
        return score + layers * self.indexer.rating_flops(pairs, flops_per_mac)

    def decode_score_flops(self, layers: Value, context: Value, flops_per_mac: Value) -> Value:
        """Return the operations in scores to decode one token after a context."""
        attended = self.attended(context)
        score = f.attention_score_flops(
            layers, self.heads, self.decode_dim, attended, 1, flops_per_mac
        )
        if self.indexer is None:
            return score
        return score + layers * self.indexer.rating_flops(context, flops_per_mac)

    def cache(
        self, layers: Value, sequences: Value, context: Value, each: CacheBytes
    ) -> list[Cache]:
        """Return the cache of sequences of this length, in a number of layers."""
        cached = context if self.reach is None else self.reach.cached(context)
        heads, width = self.cached_heads, self.cached_dim
        size = f.kv_cache_size(layers, heads, width, sequences * cached, each.keys)
        if self.indexer is None:
            limit = None if self.caches_whole or self.reach is None else self.reach.tokens
            return [Cache(size, heads, size, limit, self.caches_whole)]
        # Each device scores all keys, so it holds all keys of the indexer.
        attended = sequences * self.indexer.attended(context)
        read = f.kv_cache_size(layers, heads, width, attended, each.keys)
        keys = layers * sequences * context * self.indexer.head_dim * each.keys
        return [Cache(size, heads, read, divided=self.caches_whole), Cache(keys, 1, keys)]

    def passed_bytes(
        self, tokens: Value, sequences: Value, shards: Value, element_bytes: Value
    ) -> Value:
        """Return the bytes that ranks that share sequences send each other: keys and values."""
        layer = f.kv_cache_size(1, self.kv_heads, self.head_dim, tokens, element_bytes)
        return f.kv_per_device(layer, shards, self.kv_heads)

    def _complete(self, parameters: Value, hidden_dim: Value) -> Value:
        """Add the parameters of a gate and of an indexer."""
        parameters = parameters + hidden_dim * self.gate_width
        if self.indexer is None:
            return parameters
        return parameters + self.indexer.parameters(hidden_dim, self.query_inner(hidden_dim))

    def _of_indexer(self, hidden_dim: Value) -> list[Projection]:
        if self.indexer is None:
            return []
        return self.indexer.projections(hidden_dim, self.query_inner(hidden_dim))

    def _all_kept(self, width: Value, narrow: Value) -> Value:
        """Add what attention keeps around its heads for the backward pass."""
        # The gate, and the output before it.
        kept_width = width + 2 * self.gate_width
        # Attention keeps its output in 16 bits, and a product in 8 bits its own copy of it.
        kept_width = kept_width + where(narrow < 1, narrow * self.width, 0)
        if self.indexer is None:
            return kept_width
        index = self.indexer.heads * self.indexer.head_dim
        return kept_width + (index + self.indexer.head_dim + self.indexer.heads)


@record
class Attention(_Scores):
    """Softmax attention: multi-head, grouped-query or multi-query.

    Attributes
    ----------
    heads : int
        Query heads.
    kv_heads : int
        Key and value heads: `heads` for multi-head, fewer for grouped-query, 1 for multi-query.
    head_dim : int
        Width of one head.
    reach : SlidingWindow, Chunks, TopKeys or None
        Which tokens a token attends to; `None` for all.
    output_gate : bool
        Whether a gate as wide as the queries, with its own matrix, scales the output (Qwen3-Next).
    """

    heads: int = number(whole=True)
    kv_heads: int = number(whole=True)
    head_dim: int = number(whole=True)
    reach: Reach | None = None
    output_gate: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.heads % self.kv_heads:
            raise ConfigError(
                f"kv_heads = {self.kv_heads} must divide heads = {self.heads}",
                argument="kv_heads",
            )

    @property
    def width(self) -> Value:
        """Width of all heads together."""
        return self.heads * self.head_dim

    def parameters(self, hidden_dim: Value) -> Value:
        """Return the parameters of its matrices."""
        plain = f.attention_parameters(hidden_dim, self.heads, self.kv_heads, self.head_dim)
        return self._complete(plain, hidden_dim)

    def projections(self, hidden_dim: Value) -> list[Projection]:
        """Return the products over the token, all but the output projection."""
        keys = values = self.kv_heads * self.head_dim
        read = Projection(hidden_dim, (self.width, keys, values, self.gate_width))
        return [read, *self._of_indexer(hidden_dim)]

    def kept_width(self, narrow: Value, copies: Value) -> Value:
        """Return the elements per token kept for the backward pass, split over tensor ranks.

        `narrow` and `copies` are those of `recomputed_width`.
        """
        width = f.kept_attention_width(self.heads, self.kv_heads, self.head_dim)
        return self._all_kept(width, narrow)


@record
class LatentAttention(_Scores):
    """Multi-head latent attention: keys and values of all heads come from one latent vector.

    In training and prefill, each head has its own keys and values. A server caches the latent
    vector and the position part of the keys, shared by all heads. Decode attends to these directly:
    the matrices that would expand them to keys and values are absorbed into the projections of
    queries and outputs.

    Attributes
    ----------
    query_rank : int or None
        Width of the latent vector of a token's queries; `None` computes queries directly from the
        token.
    kv_rank : int
        Width of the latent vector of its keys and values.
    nope_dim : int
        Width of the part of a query or key without position encoding.
    rope_dim : int
        Width of the part with rotary position encoding; heads share that part of the keys.
    heads, value_dim : int or None
        Heads, and the width of a value; required in `Layers`. In the `latent` of a model, `None`
        takes the model's `heads` and `head_dim`.
    reach : SlidingWindow, Chunks, TopKeys or None
        Which tokens a token attends to; `None` for all.
    output_gate : bool
        Whether a gate as wide as all values, with its own matrix, scales the output (Kimi K3).
    """

    query_rank: int | None = number(whole=True, default=None)
    kv_rank: int = number(whole=True)
    nope_dim: int = number(whole=True)
    rope_dim: int = number(whole=True)
    # Optional in the API; models fill them in before blocks are read.
    heads: int = number(whole=True, default=None)
    value_dim: int = number(whole=True, default=None)
    reach: Reach | None = None
    output_gate: bool = False

    @derived
    def query_vector(self) -> int:
        """Width of the latent vector of queries; 0 if there is none."""
        return self.query_rank or 0

    def query_inner(self, hidden_dim: Value) -> Value:
        """Return the width of the input to the query matrix."""
        return where(self.query_vector > 0, self.query_vector, hidden_dim)

    @property
    def key_dim(self) -> Value:
        """Width of a query or a key."""
        return self.nope_dim + self.rope_dim

    @property
    def kv_heads(self) -> Value:
        """Heads with their own keys and values: all."""
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
        """Width of the latent vector of keys and values, including the position part."""
        return self.kv_rank + self.rope_dim

    @property
    def cached_heads(self) -> Value:
        """1: one vector serves all heads, and every device of a group needs it."""
        return 1

    @property
    def cached_dim(self) -> Value:
        """Half of the elements that a server caches per token."""
        return self.latent_width / 2

    @property
    def decode_dim(self) -> Value:
        """Mean width of a key and a value, as a server attends to its cache."""
        return (self.latent_width + self.kv_rank) / 2

    @property
    def extra_parts(self) -> Value:
        """Parts with their own kernels, in addition to those of plain attention."""
        return 1 + super().extra_parts

    @property
    def expansion_parameters(self) -> Value:
        """Parameters that expand latent vectors to heads."""
        queries = self.query_vector * self.key_dim
        return self.heads * (queries + self.kv_rank * (self.nope_dim + self.value_dim))

    def parameters(self, hidden_dim: Value) -> Value:
        """Return the parameters of its matrices."""
        compressed = f.latent_attention_parameters(
            hidden_dim,
            self.heads,
            self.query_vector,
            self.kv_rank,
            self.nope_dim,
            self.rope_dim,
            self.value_dim,
        )
        # Without a latent vector, queries are computed directly from the token.
        direct = (
            hidden_dim * self.heads * self.key_dim
            + hidden_dim * (self.query_vector + self.latent_width)
            + self.kv_rank * self.heads * (self.nope_dim + self.value_dim)
            + self.width * hidden_dim
        )
        return self._complete(where(self.query_vector > 0, compressed, direct), hidden_dim)

    def projections(self, hidden_dim: Value) -> list[Projection]:
        """Return the products over the token, all but the output projection."""
        return [
            Projection(hidden_dim, (self.query_vector, self.latent_width)),
            *self.expansions(hidden_dim),
            Projection(hidden_dim, (self.gate_width,)),
            *self._of_indexer(hidden_dim),
        ]

    def expansions(self, hidden_dim: Value) -> list[Projection]:
        """Return the products that expand latent vectors to heads."""
        return [
            Projection(self.query_inner(hidden_dim), (self.heads * self.key_dim,)),
            Projection(self.kv_rank, (self.heads * (self.nope_dim + self.value_dim),)),
        ]

    def kept_width(self, narrow: Value, copies: Value) -> Value:
        """Return the elements per token kept for the backward pass; see `Attention`."""
        # Latent vectors before and after their norms, whole on each rank unless ranks split norms.
        short = (1 + narrow) * self.query_vector + self.latent_width + narrow * self.kv_rank
        heads = f.kept_latent_width(self.heads, self.key_dim, self.value_dim)
        return self._all_kept(heads + short * copies, narrow)

    def recomputed_width(
        self, narrow: Value, copies: Value, norm_share: Value, latent_share: Value
    ) -> Value:
        """Return the elements per token that norms and expansions of latent vectors recompute."""
        short = narrow * (self.query_vector + self.kv_rank) * copies
        heads = self.heads * (2 * self.key_dim + self.value_dim)
        return norm_share * short + latent_share * heads


@record
class LinearAttention(_Kind):
    """Linear attention and state-space layers: a state of constant size instead of a cache.

    Each head keeps a matrix of `key_dim` by `value_dim`, which every token updates and reads. In
    the terms of Mamba-2, `value_dim` is the width of a head, keys and queries are B and C,
    `key_dim` is the size of the state, and `key_heads` are the groups.

    Attributes
    ----------
    heads : int
        Heads, each with its own state.
    key_heads : int
        Heads of keys and queries, each shared by several heads.
    key_dim, value_dim : int
        Widths of a key and of a value. Without keys (0) there are no states, and only the
        convolution mixes tokens (LFM2).
    conv_width : int
        Width, in tokens, of the short convolution over queries, keys and values; 1 without one.
    gates : int
        Numbers per head that control decay and update: 1 in Mamba-2, 2 in Gated DeltaNet.
    gate_rank : int or None
        Rank of the matrices that compute these; `None` computes them directly from the token.
    output_gate : bool
        Whether a gate as wide as all values scales the output.
    output_gate_rank : int or None
        Rank of the matrices that compute this gate (Kimi Linear); `None` computes it directly from
        the token.
    delta_rule : bool
        Whether a token replaces the state's value for its key rather than adding to it, which takes
        another read of the state (DeltaNet).
    chunk : int
        Tokens that training and prefill process together, as a small attention matrix.
    """

    has_state: ClassVar[bool] = True
    """Whether a server keeps a state of constant size instead of a cache."""
    caches_whole: ClassVar[bool] = False
    """Whether a server keeps keys and values of the whole context."""
    extra_parts: ClassVar[int] = 1
    """Parts with their own kernels, in addition to those of plain attention."""

    heads: int = number(whole=True)
    key_heads: int = number(whole=True)
    key_dim: int = number(whole=True, zero=True)
    value_dim: int = number(whole=True)
    conv_width: int = number(whole=True, default=4)
    gates: int = number(whole=True, zero=True, default=1)
    gate_rank: int | None = number(whole=True, default=None)
    output_gate: bool = True
    output_gate_rank: int | None = number(whole=True, default=None)
    delta_rule: bool = False
    chunk: int = number(whole=True, default=64)

    def __post_init__(self) -> None:
        super().__post_init__()
        require(self, output_gate=bool, delta_rule=bool)
        if self.heads % self.key_heads:
            raise ConfigError(
                f"key_heads = {self.key_heads} must divide heads = {self.heads}",
                argument="key_heads",
            )
        if self.output_gate_rank is not None and not self.output_gate:
            raise ConfigError(
                f"output_gate_rank = {self.output_gate_rank}, but output_gate is false: leave one "
                "of the two out",
                argument="output_gate_rank",
            )

    @derived
    def gate_vector(self) -> int:
        """Width of the low-rank vector of the gates; 0 if there is none."""
        return self.gate_rank or 0

    @derived
    def output_gates(self) -> int:
        """1 if a gate scales the output, else 0."""
        return int(self.output_gate)

    @derived
    def output_gate_vector(self) -> int:
        """Width of the low-rank vector of this gate; 0 if there is none."""
        return self.output_gate_rank or 0

    @derived
    def state_reads(self) -> int:
        """Times that a token reads the state."""
        return 2 if self.delta_rule else 1

    @property
    def width(self) -> Value:
        """Width of all values together."""
        return self.heads * self.value_dim

    @property
    def conv_channels(self) -> Value:
        """Width of queries, keys and values together, the channels of the convolution."""
        return 2 * self.key_heads * self.key_dim + self.width

    @property
    def gate_width(self) -> Value:
        """Numbers per token that control decay and update."""
        return self.gates * self.heads

    @property
    def in_width(self) -> Value:
        """Columns of the product over the token: queries, keys, values, and the gates."""
        gates = where(self.gate_vector > 0, self.gate_vector, self.gate_width)
        ranked = self.output_gate_vector
        output_gate = where(ranked > 0, ranked, self.output_gates * self.width)
        return self.conv_channels + output_gate + gates

    @property
    def state_elements(self) -> Value:
        """Elements of the states of all heads, for one sequence."""
        return self.heads * self.key_dim * self.value_dim

    @property
    def conv_elements(self) -> Value:
        """Elements of earlier tokens that the convolution keeps, for one sequence."""
        return (self.conv_width - 1) * self.conv_channels

    @property
    def cached_heads(self) -> Value:
        """Heads whose states a server keeps."""
        return self.heads

    @property
    def decode_dim(self) -> Value:
        """Mean width of a key and a value."""
        return (self.key_dim + self.value_dim) / 2

    @property
    def score_heads(self) -> Value:
        """Heads with a matrix of scores: none."""
        return zero_like(self.heads)

    @property
    def swapped_keys(self) -> tuple[Value, Value]:
        """Heads of keys, and their width, as ranks swap heads for tokens."""
        return self.key_heads, self.key_dim

    @property
    def inner_width(self) -> Value:
        """Total width of all tensors inside attention, over all heads."""
        return self.in_width + self.width

    @property
    def streamed_width(self) -> Value:
        """Elements per token that the convolution and the gated norm read and write.

        The norm reads the states' output and the gate, and writes its own output.
        """
        return where(self.conv_width > 1, 2 * self.conv_channels, 0) + 3 * self.width

    def parameters(self, hidden_dim: Value) -> Value:
        """Return the parameters of its matrices and of the convolution."""
        return (
            hidden_dim * (self.in_width + self.width)
            + self.gate_vector * self.gate_width
            + self.output_gate_vector * self.width
            + where(self.conv_width > 1, self.conv_width, 0) * self.conv_channels
        )

    def projections(self, hidden_dim: Value) -> list[Projection]:
        """Return the products over the token, all but the output projection.

        One product computes everything that it needs from a token.
        """
        return [
            Projection(hidden_dim, (self.in_width,)),
            Projection(self.gate_vector, (self.gate_width,)),
            Projection(self.output_gate_vector, (self.width,)),
        ]

    def score_flops(
        self,
        layers: Value,
        seq_len: Value,
        everywhere: Value,
        flops_per_mac: Value,
        skips: Value = True,
    ) -> Value:
        """Return the operations in the states of a token of a sequence."""
        return layers * self._state_flops(minimum(self.chunk, seq_len), flops_per_mac)

    def decode_score_flops(self, layers: Value, context: Value, flops_per_mac: Value) -> Value:
        """Return the operations in states to decode one token."""
        return layers * self._state_flops(0, flops_per_mac)

    def _state_flops(self, chunk: Value, flops_per_mac: Value) -> Value:
        """Return the operations of a token in the states of one layer."""
        chunk = where(self.key_dim > 0, chunk, 0)  # without states, there is no chunk to read
        return f.linear_attention_flops(
            self.heads, self.key_dim, self.value_dim, self.state_reads, chunk, flops_per_mac
        )

    def cache(
        self, layers: Value, sequences: Value, context: Value, each: CacheBytes
    ) -> list[Cache]:
        """Return the states of sequences, in a number of layers, at any length."""
        state = each.state * self.state_elements + each.convolution * self.conv_elements
        size = layers * sequences * state
        return [Cache(size, self.cached_heads, 2 * size, limit=0)]

    def passed_bytes(
        self, tokens: Value, sequences: Value, shards: Value, element_bytes: Value
    ) -> Value:
        """Return the bytes that ranks that share sequences send each other: states.

        A rank passes on the state after its own tokens, whatever their number.
        """
        states = f.kv_per_device(self.state_elements, shards, self.heads)
        return sequences * states * element_bytes

    def kept_width(self, narrow: Value, copies: Value) -> Value:
        """Return the elements per token kept for the backward pass; see `Attention`.

        These are queries, keys, values and gates before the convolution, a low-rank gate, the
        states' result, and the output. Kernels recompute the convolution's result and the states at
        chunk boundaries.
        """
        return self.in_width + where(self.output_gate_vector > 0, 3, 2) * self.width


AttentionKind = Attention | LatentAttention | LinearAttention
