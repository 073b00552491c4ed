"""Models: the shapes that decide how much they compute and move."""

from __future__ import annotations

import dataclasses
from functools import cached_property
from typing import Any

from mlsysim.core.errors import ConfigError, shown
from mlsysim.core.fields import ReadOnlyMapping, Record, derived, number, quantity, record, require
from mlsysim.core.types.layers import (
    Attention,
    AttentionBlock,
    DenseBlock,
    ExpertBlock,
    LatentBlock,
    LayerGroup,
)
from mlsysim.core.types.source import Entry, Source
from mlsysim.core.units import Q_, Quantity, fixed, format_number

__all__ = [
    "FixedShapeModel",
    "LatentAttention",
    "MoETransformerModel",
    "TransformerModel",
    "Workload",
]

_TOLERANCE = 0.02
"""Share by which stated parameters may differ from those of the shape's matrices. Biases, norms,
positions, routers and rounded totals stay below 1.4% in every row of the registry."""
_COUNTED = Source(
    title="Counted from the shape",
    note="matrices and embedding tables; biases, norms, positions and routers are left out",
)


@record
class Workload(Entry):
    """A model of any kind.

    Attributes
    ----------
    parameters : Quantity
        All parameters that are stored.
    """

    parameters: Quantity = quantity("param")


@record
class FixedShapeModel(Workload):
    """A network with constant work per sample: a CNN, an autoencoder, a recommender.

    Attributes
    ----------
    flops_per_sample : Quantity
        Operations of one inference; a multiply-accumulate counts as two.
    activations_per_sample : Quantity
        Elements that the layers of one inference write, in all.
    dense_parameters : Quantity or None
        Parameters that every sample uses, where that is not all of them.
    gathered_parameters : Quantity
        Parameters that one sample looks up in tables, in addition to the dense ones.
    input_shape : tuple of int
        Shape of one sample.
    """

    flops_per_sample: Quantity = quantity("flop")
    activations_per_sample: Quantity = quantity("count")
    dense_parameters: Quantity | None = quantity("param", default=None)
    gathered_parameters: Quantity = quantity("param", default=Q_(0, "param"), zero=True)
    input_shape: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        require(self, input_shape=tuple)
        if not all(type(size) is int and size > 0 for size in self.input_shape):
            raise ConfigError(
                f"{self.name}: input_shape = {shown(self.input_shape)} must hold whole numbers "
                "above zero, such as (3, 224, 224)",
                argument="input_shape",
            )
        dense = "parameters" if self.dense_parameters is None else "dense_parameters"
        used = self.si(dense) + self.si("gathered_parameters")
        if used > self.si("parameters"):
            raise ConfigError(
                f"{self.name}: a sample uses {format_number(Q_(used, 'param'))}, more than all "
                f"parameters = {format_number(self.parameters)}: correct them, or state "
                "dense_parameters, which otherwise are all parameters",
                argument="dense_parameters",
            )


@record
class LatentAttention(Record):
    """Ranks and widths of multi-head latent attention.

    Attributes
    ----------
    query_rank : int
        Width of the vector that a token's queries are made of.
    kv_rank : int
        Width of the vector that its keys and values are made of.
    nope_dim : int
        Width of the part of a query or key that the position leaves alone.
    rope_dim : int
        Width of the part that the position turns; keys share it among the heads.
    """

    query_rank: int = number(whole=True)
    kv_rank: int = number(whole=True)
    nope_dim: int = number(whole=True)
    rope_dim: int = number(whole=True)


@record
class TransformerModel(Workload):
    """A dense transformer.

    Attributes
    ----------
    parameters : Quantity
        All parameters that are stored, within 2% of those of the matrices and tables that the
        shape describes; `None` counts these.
    layers, hidden_dim, heads : int
        Depth, width of the residual stream, attention heads.
    kv_heads : int
        Key and value heads: `heads` for multi-head, fewer for grouped-query, 1 for multi-query.
    head_dim : int
        Width of one head; with latent attention, of its values.
    ffn_dim : int
        Inner width of the feed-forward block.
    gated_mlp : bool
        Whether the block has a gate (SwiGLU): three matrices instead of two.
    vocab_size : int
        Rows of the embedding table.
    seq_len : int
        Sequence length of training, and the default of every solver.
    tied_embeddings : bool
        Whether input and output share one table.
    causal : bool
        Whether a token attends only to those before it (decoder) or to all (encoder).
    dropout : bool or None
        Whether training drops elements out; `None` means that models without a gate do, as those
        of GPT-3's time did.
    latent : LatentAttention or None
        Ranks and widths of latent attention; `None` for plain heads.
    """

    # A quantity once the record is made, but `None` may be given.
    parameters: Any = quantity("param", default=None)
    layers: int = number(whole=True)
    hidden_dim: int = number(whole=True)
    heads: int = number(whole=True)
    kv_heads: int = number(whole=True)
    head_dim: int = number(whole=True)
    ffn_dim: int = number(whole=True)
    vocab_size: int = number(whole=True)
    seq_len: int = number(whole=True)
    gated_mlp: bool = dataclasses.field(default=False)
    tied_embeddings: bool = dataclasses.field(default=False)
    causal: bool = dataclasses.field(default=True)
    dropout: bool | None = dataclasses.field(default=None)
    latent: LatentAttention | None = dataclasses.field(default=None)

    def __post_init__(self) -> None:
        super().__post_init__()
        require(self, gated_mlp=bool, tied_embeddings=bool, causal=bool)
        if self.dropout is not None:
            require(self, dropout=bool)
        if self.heads % self.kv_heads:
            raise ConfigError(
                f"{self.name}: kv_heads = {self.kv_heads} must divide heads = {self.heads}",
                argument="kv_heads",
            )
        if self.latent is not None:
            require(self, latent=LatentAttention)
            if self.kv_heads != self.heads:
                raise ConfigError(
                    f"{self.name}: kv_heads = {self.kv_heads} must equal heads = {self.heads} with "
                    "latent attention, which makes keys and values for each head",
                    argument="kv_heads",
                )
        self._check_experts()
        self._count_parameters()

    def _check_experts(self) -> None:
        """Refuse experts that contradict each other; a dense model has none."""

    def _count_parameters(self) -> None:
        """Compare the parameters with the shape, or count them from it where none are stated."""
        in_layers, outside = self._matrices()
        counted = in_layers + outside
        sources = dict(self.field_sources)
        if self.parameters is None:
            sources["parameters"] = _COUNTED
            self._keep("parameters", fixed(Q_(counted, "param")))
            self._si["parameters"] = counted  # type: ignore[attr-defined]
        stated = self.si("parameters")
        if sources.get("parameters") == _COUNTED and stated != counted:
            del sources["parameters"]  # a copy of a counted row, with parameters of its own
        self._keep("field_sources", ReadOnlyMapping(sources))
        if stated < in_layers or abs(stated / counted - 1) > _TOLERANCE:
            raise ConfigError(
                f"{self.name}: parameters = {format_number(self.parameters)} contradicts the "
                f"shape, whose matrices and tables have {format_number(Q_(counted, 'param'))}: "
                f"correct one of them to within {_TOLERANCE:.0%}, or pass parameters=None to count "
                "them",
                argument="parameters",
            )

    def _matrices(self) -> tuple[float, float]:
        """Return the parameters of the layers' matrices, and of the embedding tables."""
        hidden, latent, values = self.hidden_dim, self.latent, self.heads * self.head_dim
        if latent is None:
            attention = 2 * hidden * self.head_dim * (self.heads + self.kv_heads)
        else:
            queries = self.heads * (latent.nope_dim + latent.rope_dim)
            attention = latent.query_rank * (hidden + queries)
            attention += hidden * (latent.kv_rank + latent.rope_dim)
            attention += latent.kv_rank * (self.heads * latent.nope_dim + values)
            attention += values * hidden
        experts = self.experts * self.expert_ffn_dim + self.shared_ffn_dim
        inner = (self.layers - self.moe_layers) * self.ffn_dim + self.moe_layers * experts
        in_layers = self.layers * attention + self.mlp_matrices * self.hidden_dim * inner
        return float(in_layers), float(self.embedding_tables * self.vocab_size * self.hidden_dim)

    @derived
    def mlp_matrices(self) -> int:
        """Matrices of a feed-forward block: 2, or 3 with a gate."""
        return 3 if self.gated_mlp else 2

    @derived
    def embedding_tables(self) -> int:
        """Tables for input and output: 1 if they share one, else 2."""
        return 1 if self.tied_embeddings else 2

    @derived
    def drops_out(self) -> float:
        """1 if training drops elements out, else 0."""
        return float(not self.gated_mlp if self.dropout is None else self.dropout)

    @derived
    def attended_fraction(self) -> float:
        """Share of the sequence that a token attends to on average: half of it if causal."""
        return 0.5 if self.causal else 1.0

    @derived
    def experts(self) -> int:
        """Experts of a layer. A dense model is as if each token visited the one block there is."""
        return 1

    @derived
    def experts_per_token(self) -> int:
        """Experts that each token visits."""
        return 1

    @derived
    def expert_ffn_dim(self) -> int:
        """Inner width of one expert."""
        return self.ffn_dim

    @derived
    def shared_ffn_dim(self) -> int:
        """Inner width of the shared expert that every token visits."""
        return 0

    @derived
    def moe_layers(self) -> int:
        """Layers that have experts."""
        return 0

    @cached_property
    def attention(self) -> Attention:
        """The attention that all layers share."""
        latent = self.latent
        if latent is None:
            return AttentionBlock(self.heads, self.kv_heads, self.head_dim, self.attended_fraction)
        return LatentBlock(
            self.heads,
            latent.query_rank,
            latent.kv_rank,
            latent.nope_dim,
            latent.rope_dim,
            self.head_dim,
            self.attended_fraction,
        )

    @cached_property
    def groups(self) -> tuple[LayerGroup, ...]:
        """The layers, in order."""
        dense = DenseBlock(self.ffn_dim, self.mlp_matrices)
        return (LayerGroup(0, self.layers, self.attention, dense),)


@record
class MoETransformerModel(TransformerModel):
    """A transformer with experts as feed-forward blocks in some layers.

    Attributes
    ----------
    experts, experts_per_token : int
        Experts of a layer, and how many of them each token visits.
    expert_ffn_dim : int
        Inner width of one expert.
    shared_ffn_dim : int
        Inner width of the shared expert that every token visits.
    moe_layers : int
        Layers that have experts; the others have a block of `ffn_dim`.
    expert_biases : bool
        Whether experts add biases, which grouped products leave to separate kernels.
    """

    experts: int = number(whole=True)
    experts_per_token: int = number(whole=True)
    expert_ffn_dim: int = number(whole=True)
    shared_ffn_dim: int = number(whole=True, zero=True, default=0)
    moe_layers: int = number(whole=True)
    expert_biases: bool = dataclasses.field(default=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        require(self, expert_biases=bool)

    def _check_experts(self) -> None:
        for part, whole in (("experts_per_token", "experts"), ("moe_layers", "layers")):
            if getattr(self, part) > getattr(self, whole):
                raise ConfigError(
                    f"{self.name}: {part} = {getattr(self, part)} is more than {whole} = "
                    f"{getattr(self, whole)}: choose at most as many",
                    argument=part,
                )

    @derived
    def adds_biases(self) -> float:
        """1 if experts add biases, else 0."""
        return float(self.expert_biases)

    @cached_property
    def groups(self) -> tuple[LayerGroup, ...]:
        """The layers, in order: those without experts come first, as in DeepSeek-V3."""
        dense_layers = self.layers - self.moe_layers
        dense = DenseBlock(self.ffn_dim, self.mlp_matrices)
        experts = ExpertBlock(
            experts=self.experts,
            experts_per_token=self.experts_per_token,
            width=self.expert_ffn_dim,
            shared_width=self.shared_ffn_dim,
            matrices=self.mlp_matrices,
            biases=self.adds_biases,
        )
        return (
            LayerGroup(0, dense_layers, self.attention, dense),
            LayerGroup(dense_layers, self.moe_layers, self.attention, experts),
        )
