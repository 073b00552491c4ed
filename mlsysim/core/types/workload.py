"""Models: the shapes that determine their operations and memory traffic."""

from __future__ import annotations

import dataclasses
import math
from functools import cached_property
from typing import Any, cast

from mlsysim.core.errors import ConfigError, shown
from mlsysim.core.fields import ReadOnlyMapping, Record, derived, number, quantity, record, require
from mlsysim.core.numeric import zero_like
from mlsysim.core.types.attention import (
    Attention,
    AttentionKind,
    CacheBytes,
    LatentAttention,
    unchecked,
)
from mlsysim.core.types.layers import (
    Experts,
    FeedForward,
    LayerGroup,
    Layers,
    as_block,
    attention_layers,
    check_groups,
    grouped,
    placed,
    routes,
)
from mlsysim.core.types.precision import Formats, find_precision
from mlsysim.core.types.source import Entry, Source
from mlsysim.core.units import Q_, Quantity, fixed, format_number

_TOLERANCE = 0.02
"""Share by which stated parameters may differ from those of the shape's matrices. Biases, norms,
positions, routers and rounding stay below 1.4% in every row of the registry."""
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
        Total elements that the layers write in one inference.
    dense_parameters : Quantity or None
        Parameters that every sample uses, if not all of them.
    gathered_parameters : Quantity
        Parameters that one sample looks up in tables, in addition to the dense ones.
    input_shape : tuple of int
        Shape of one sample.
    layers : int or None
        Layers with weights. Each is at least one kernel.
    """

    flops_per_sample: Quantity = quantity("flop")
    activations_per_sample: Quantity = quantity("count")
    dense_parameters: Quantity | None = quantity("param", default=None)
    gathered_parameters: Quantity = quantity("param", default=Q_(0, "param"), zero=True)
    input_shape: tuple[int, ...] = ()
    layers: int | None = number(whole=True, default=None)

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
class VisionTower(Record):
    """A network that turns an image into tokens of a language model.

    Attributes
    ----------
    tokens : int
        Tokens of one image.
    network : FixedShapeModel
        The network, with the projection to the width of the language model.
    """

    tokens: int = number(whole=True)
    network: FixedShapeModel

    def __post_init__(self) -> None:
        super().__post_init__()
        require(self, network=FixedShapeModel)


_SHORT_FORM = ("layers", "heads", "kv_heads", "head_dim", "ffn_dim")


@record
class TransformerModel(Workload):
    """A transformer: layers that are all alike, or a stack of different ones.

    Layers that are all alike are described by `layers`, `heads`, `kv_heads`, `head_dim`,
    `ffn_dim`, `gated_mlp` and `latent`. Any other network is a `stack` of `Layers`, each with its
    attention and its feed-forward block, and leaves these out.

    Attributes
    ----------
    parameters : Quantity
        All stored parameters, within 2% of those of the shape's matrices and tables; `None` counts
        these. Layers for multi-token prediction are not included.
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
    context : int or None
        Longest sequence that the model has positions for, and that solvers accept; `None` if it is
        not known. Extended positions (RoPE scaling) are another record:
        ``dataclasses.replace(model, context=131_072)``.
    tied_embeddings : bool
        Whether input and output share one table.
    causal : bool
        Whether a token attends only to those before it (decoder) or to all (encoder).
    dropout : bool or None
        Whether training uses dropout; `None` means yes for models without a gate, like those of
        GPT-3's time.
    latent : LatentAttention or None
        Ranks and widths of latent attention; `None` for plain heads.
    stack : tuple of Layers
        Groups of layers, if not all are alike.
    formats : Formats or None
        Published formats of parts of the model, if they differ.
    mtp_layers : int
        Layers for multi-token prediction, after the others: each is like the last layer, with a
        projection of two hidden states to one, and uses the output projection once more. Training
        places them on the last stage; servers leave them out.
    vision : VisionTower or None
        The network in front that turns images into tokens. Its parameters are in `parameters`.
        Solvers time it if `images` gives the number of images per sequence.

    Examples
    --------
    Gemma 3 27B: five layers with a window of 1,024 tokens for each layer without one.

    >>> from mlsysim import Attention, FeedForward, Layers, SlidingWindow, Source, TransformerModel
    >>> mlp = FeedForward(width=21_504, gated=True)
    >>> heads = {"heads": 32, "kv_heads": 16, "head_dim": 128}
    >>> model = TransformerModel(
    ...     name="Gemma 3 27B",
    ...     source=Source(title="Gemma 3 technical report"),
    ...     hidden_dim=5_376,
    ...     vocab_size=262_144,
    ...     seq_len=32_768,
    ...     tied_embeddings=True,
    ...     stack=(
    ...         Layers(
    ...             count=52,
    ...             attention=Attention(**heads, reach=SlidingWindow(tokens=1_024)),
    ...             feed_forward=mlp,
    ...         ),
    ...         Layers(at=range(5, 62, 6), attention=Attention(**heads), feed_forward=mlp),
    ...     ),
    ... )
    >>> print(f"{model.parameters.to('Gparam'):.1f}")
    27.0 Gparam
    >>> print(f"{model.kv_cache_bytes('bf16', 131_072).to('GB'):.1f}")
    11.2 GB
    """

    # Always a quantity in the record, but callers may give `None`.
    parameters: Any = quantity("param", default=None)
    # Optional in the API; either the short form is complete, or there is a stack.
    layers: int = number(whole=True, default=None)
    hidden_dim: int = number(whole=True)
    heads: int = number(whole=True, default=None)
    kv_heads: int = number(whole=True, default=None)
    head_dim: int = number(whole=True, default=None)
    ffn_dim: int = number(whole=True, default=None)
    vocab_size: int = number(whole=True)
    seq_len: int = number(whole=True)
    gated_mlp: bool = dataclasses.field(default=False)
    tied_embeddings: bool = dataclasses.field(default=False)
    causal: bool = dataclasses.field(default=True)
    dropout: bool | None = dataclasses.field(default=None)
    latent: LatentAttention | None = dataclasses.field(default=None)
    stack: tuple[Layers, ...] = ()
    formats: Formats | None = None
    mtp_layers: int = number(whole=True, zero=True, default=0)
    vision: VisionTower | None = None
    context: int | None = number(whole=True, default=None)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.seq_len > self.positions:
            raise ConfigError(
                f"{self.name}: seq_len = {self.seq_len} is more than context = {self.context}: "
                "lower it, or state the longer context",
                argument="seq_len",
            )
        require(self, gated_mlp=bool, tied_embeddings=bool, causal=bool)
        for name, kind in (("dropout", bool), ("formats", Formats), ("vision", VisionTower)):
            if getattr(self, name) is not None:
                require(self, **{name: kind})
        if self.stack != ():
            self._check_stack()
        else:
            self._check_short_form()
        self._count_parameters()

    def _check_short_form(self) -> None:
        for name in _SHORT_FORM:
            if getattr(self, name) is None:
                raise ConfigError(
                    f"{self.name}: {name} is missing: give {', '.join(_SHORT_FORM)} for layers "
                    "that are all alike, or a stack of Layers",
                    argument=name,
                )
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
            for name, value in (("heads", self.heads), ("value_dim", self.head_dim)):
                given = getattr(self.latent, name)
                if given is not None and given != value:
                    raise ConfigError(
                        f"{self.name}: latent.{name} = {given} contradicts the model's {value}: "
                        "leave it out, or describe the layers in a stack",
                        argument="latent",
                    )
        self._check_experts()

    def _check_stack(self) -> None:
        """Check that the groups fit together, and give each of them its positions."""
        given: Any = self.stack
        if not isinstance(given, tuple) or not all(isinstance(part, Layers) for part in given):
            raise ConfigError(
                f"{self.name}: stack must be a tuple of Layers, got {shown(given)}",
                argument="stack",
            )
        clash = [name for name in _SHORT_FORM[1:] if getattr(self, name) is not None]
        clash += ["latent"] * (self.latent is not None) + ["gated_mlp"] * self.gated_mlp
        if clash or isinstance(self, MoETransformerModel):
            raise ConfigError(
                f"{self.name}: a stack and {', '.join(clash) or 'MoETransformerModel'} describe "
                "the same thing: leave one of the two out, and make a TransformerModel",
                argument=clash[0] if clash else "stack",
            )
        if all(part.attention is None for part in given):
            raise ConfigError(
                f"{self.name}: no layer of the stack has attention: give at least one group an "
                "attention of some kind",
                argument="stack",
            )
        total = sum(part.count for part in given)
        if self.layers not in (None, total):
            raise ConfigError(
                f"{self.name}: layers = {self.layers} contradicts the stack, which has {total}: "
                "pass layers=None to count them",
                argument="layers",
            )
        self._keep("layers", total)
        self._si["layers"] = total  # type: ignore[attr-defined]
        self._keep("stack", placed(given, self.name))

    def _check_experts(self) -> None:
        """Reject contradictory experts; a dense model has none."""

    def _count_parameters(self) -> None:
        """Compare the parameters with the shape, or count them from it if none are stated."""
        in_layers, outside = self._matrices()
        counted = in_layers + outside
        sources = dict(self.field_sources)
        if self.parameters is None:
            sources["parameters"] = _COUNTED
            self._keep("parameters", fixed(Q_(counted, "param")))
            self._si["parameters"] = counted  # type: ignore[attr-defined]
        stated = self.si("parameters")
        if sources.get("parameters") == _COUNTED and stated != counted:
            del sources["parameters"]  # a copy of a counted row, with its own parameters
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
        """Return the parameters of the layers' matrices, and those outside the layers."""
        in_layers = sum(group.count * group.parameters(self.hidden_dim) for group in self.groups)
        outside = float(self.embedding_tables * self.vocab_size * self.hidden_dim)
        if self.vision is not None:
            outside += self.vision.network.si("parameters")
        return float(in_layers), outside

    @property
    def plain_attention(self) -> bool:
        """Whether each layer has a feed-forward block, and attention to all tokens."""
        return all(group.plain for group in self.groups)

    @property
    def active_parameters(self) -> Quantity:
        """Parameters that a token uses: all except those of experts that it does not visit."""
        biased = self.field_sources.get("parameters") != _COUNTED
        idle = sum(
            group.count * group.experts.idle_parameters(self.hidden_dim, biased)
            for group in self.groups
            if group.experts is not None
        )
        return cast(Quantity, fixed(Q_(self.si("parameters") - idle, "param")))

    @property
    def mtp_parameters(self) -> Quantity:
        """Parameters of the layers for multi-token prediction, which `parameters` leaves out."""
        last = self.last_group.parameters(self.hidden_dim) + 2 * self.hidden_dim**2
        return cast(Quantity, fixed(Q_(float(self.mtp_layers * last), "param")))

    @property
    def last_group(self) -> LayerGroup:
        """The group of the last layer."""
        if self.groups[-1].at is None:
            return self.groups[-1]
        return max(self.groups, key=lambda group: group.at[-1] if group.at else 0)

    def kv_bytes_per_token(self, precision: str) -> Quantity:
        """Return the cache size per token in all layers, while the token is within reach of all.

        Parameters
        ----------
        precision
            Number format of the cache, such as ``"fp16"``.

        Returns
        -------
        Quantity
            Bytes of keys and values (or latent vectors), and of the keys of indexers.
        """
        return self.kv_cache_bytes(precision, 1)

    def kv_cache_bytes(self, precision: str, context: int) -> Quantity:
        """Return the size of the cache of a sequence, in all layers that have one.

        A layer with a sliding window or chunks caches no more tokens than these. For linear
        attention, see `state_bytes_per_sequence`.

        Parameters
        ----------
        precision
            Number format of the cache, such as ``"fp16"``.
        context
            Tokens of the sequence.

        Returns
        -------
        Quantity
            Bytes of one sequence.
        """
        each = find_precision(precision).si("bytes_per_element")
        return self._cached(context, CacheBytes(each, state=0, convolution=0))

    def state_bytes_per_sequence(self, precision: str) -> Quantity:
        """Return the size of linear attention's states per sequence, at any length; else zero.

        This includes the states of all heads, and the last tokens kept by short convolutions.

        Parameters
        ----------
        precision
            Number format, such as ``"fp32"``. If the model states a format for its states
            (`formats`), that one applies to the states, but not to the convolutions.

        Returns
        -------
        Quantity
            Bytes of one sequence.
        """
        each = find_precision(precision).si("bytes_per_element")
        stated = self.formats.state if self.formats else None
        state = each if stated is None else stated.si("bytes_per_element")
        return self._cached(0, CacheBytes(0, state, convolution=each))

    def _cached(self, context: int, each: CacheBytes) -> Quantity:
        """Return the cache of one sequence in all layers."""
        caches = [part for n, a in self.attentions for part in a.cache(n, 1, context, each)]
        return cast(Quantity, fixed(Q_(float(sum(part.size for part in caches)), "byte")))

    @derived
    def positions(self) -> float:
        """Longest sequence that solvers accept; infinite if the context is not known."""
        return self.context or math.inf

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
        """1 if training uses dropout, else 0."""
        if self.dropout is not None:
            return float(self.dropout)
        blocks = [layers.feed_forward for layers in self.stack if layers.feed_forward is not None]
        gated = any(block.gated for block in blocks) if self.stack else self.gated_mlp
        return float(not gated)

    @derived
    def attended_fraction(self) -> float:
        """Average share of the sequence that a token attends to: half of it if causal.

        Layers with limited reach attend to less.
        """
        return 0.5 if self.causal else 1.0

    @derived
    def split_heads(self) -> int:
        """The most tensor-parallel ranks with equally many heads in every layer."""
        return math.gcd(*(a.heads for group in self.groups for a in group.attentions))

    @derived
    def experts(self) -> int:
        """Experts of a layer, or the greatest common divisor if layers differ.

        A dense model counts as one expert, which each token visits.
        """
        return math.gcd(*(block.count for block in self._mixtures)) or 1

    @derived
    def experts_per_token(self) -> int:
        """Experts that each token visits, at most."""
        return max((block.per_token for block in self._mixtures), default=1)

    @derived
    def moe_layers(self) -> int:
        """Layers that have experts."""
        return sum(part.count for part in self.stack if routes(part.feed_forward))

    @property
    def routed_layers(self) -> Any:
        """Layers that route tokens to experts."""
        return self.moe_layers

    @property
    def _mixtures(self) -> list[Experts]:
        """The different experts of a stack."""
        return [block for part in self.stack if routes(block := part.feed_forward)]

    @cached_property
    def _attention(self) -> AttentionKind:
        """The attention of layers that are all alike."""
        latent = self.latent
        if latent is None:
            return unchecked(
                Attention,
                heads=self.heads,
                kv_heads=self.kv_heads,
                head_dim=self.head_dim,
                reach=None,
                gates=0,
                output_gate=False,
            )
        stated = {name: value for name, value in vars(latent).items() if name[0] != "_"}
        stated |= {"heads": self.heads, "value_dim": self.head_dim}
        return unchecked(LatentAttention, **stated)

    @property
    def _mlp(self) -> FeedForward:
        """The feed-forward block of layers that are all alike."""
        return unchecked(
            FeedForward, width=self.ffn_dim, gated=self.gated_mlp, matrices=self.mlp_matrices
        )

    @cached_property
    def groups(self) -> tuple[LayerGroup, ...]:
        """The groups of layers."""
        return grouped(self.stack) if self.stack else self._alike()

    def _alike(self) -> tuple[LayerGroup, ...]:
        """Return the groups of layers that are described by the short form."""
        return (LayerGroup(0, self.layers, self._attention, self._mlp),)

    @cached_property
    def attentions(self) -> tuple[tuple[Any, AttentionKind], ...]:
        """Each attention, and how many layers have it."""
        return attention_layers(self.groups, self.layers)


@record
class MoETransformerModel(TransformerModel):
    """A transformer with equal experts in some layers, which come last: the short form.

    Any other mixture of experts is a `TransformerModel` with a `stack`.

    Attributes
    ----------
    experts, experts_per_token : int
        Experts of a layer, and the number that each token visits.
    expert_ffn_dim : int
        Inner width of one expert.
    shared_ffn_dim : int
        Inner width of the shared expert that every token visits.
    moe_layers : int
        Layers that have experts; the others have a block of `ffn_dim`.
    expert_biases : bool
        Whether experts add biases, which grouped products leave to separate kernels.
    expert_groups, groups_per_token : int
        Equal groups into which the router divides the experts, and the number of them in which a
        token's experts are (node-limited routing); 1 and 1 without such groups.
    """

    experts: int = number(whole=True)
    experts_per_token: int = number(whole=True)
    expert_ffn_dim: int = number(whole=True)
    shared_ffn_dim: int = number(whole=True, zero=True, default=0)
    moe_layers: int = number(whole=True)
    expert_biases: bool = dataclasses.field(default=False)
    expert_groups: int = number(whole=True, default=1)
    groups_per_token: int = number(whole=True, default=1)
    _single: tuple[int, ...] = dataclasses.field(default=(), init=False, compare=False)

    def _check_experts(self) -> None:
        require(self, expert_biases=bool)
        for part, whole in (("experts_per_token", "experts"), ("moe_layers", "layers")):
            if getattr(self, part) > getattr(self, whole):
                raise ConfigError(
                    f"{self.name}: {part} = {getattr(self, part)} is more than {whole} = "
                    f"{getattr(self, whole)}: choose at most as many",
                    argument=part,
                )
        check_groups(
            self.experts, self.experts_per_token, self.expert_groups, self.groups_per_token
        )
        if self.experts == 1 and not self.expert_biases:
            object.__setattr__(self, "_single", (1 if self.shared_ffn_dim == 0 else 2,))

    @derived
    def adds_biases(self) -> float:
        """1 if experts add biases, else 0."""
        return float(self.expert_biases)

    @property
    def routed_layers(self) -> Any:
        """Layers that route tokens to experts: none if there is a single one."""
        return zero_like(self.moe_layers) if self._single else self.moe_layers

    def _alike(self) -> tuple[LayerGroup, ...]:
        """Return the groups: layers without experts come first, as in DeepSeek-V3."""
        dense_layers = self.layers - self.moe_layers
        experts = unchecked(
            Experts,
            count=self.experts,
            per_token=self.experts_per_token,
            width=self.expert_ffn_dim,
            shared_width=self.shared_ffn_dim,
            gated=self.gated_mlp,
            matrices=self.mlp_matrices,
            latent_dim=None,
            latent_width=0,
            biases=self.adds_biases,
            groups=self.expert_groups,
            groups_per_token=self.groups_per_token,
        )
        block = as_block(experts, self._single[0]) if self._single else experts
        return (
            LayerGroup(0, dense_layers, self._attention, self._mlp),
            LayerGroup(dense_layers, self.moe_layers, self._attention, block),
        )
