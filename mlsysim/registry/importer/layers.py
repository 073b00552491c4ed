"""Layers of a network and its vision tower, from the keys of its configuration."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from mlsysim.core.errors import ConfigError, shown
from mlsysim.core.types import (
    Attention,
    Chunks,
    Experts,
    FeedForward,
    FixedShapeModel,
    LatentAttention,
    LinearAttention,
    SlidingWindow,
    Source,
    TopKeys,
    VisionTower,
)
from mlsysim.core.units import Q_
from mlsysim.registry.importer.keys import Keys
from mlsysim.registry.importer.readers import Reader
from mlsysim.registry.tables import read_toml


@dataclass(frozen=True)
class Part:
    """One layer, and its parameters outside matrices: norms, biases, routers."""

    attention: Attention | LatentAttention | LinearAttention | None
    feed_forward: FeedForward | Experts | None
    other: int
    parallel_attention: LinearAttention | None = None


_KINDS: Mapping[str, str] = read_toml("architectures.toml")["layer_types"]


def parts(keys: Keys, reader: Reader) -> list[Part]:
    """Return the layers of a configuration, in order.

    Raises
    ------
    ConfigError
        If a key contradicts another, or states something that cannot be expressed.
    """
    for key, allowed in reader.needs.items():
        value = keys.value(key)
        if value is not None and value not in allowed:
            raise ConfigError(
                f"{keys.title}: {key} = {shown(value)} changes the layers in a way that is not "
                f"modeled; only {' or '.join(map(str, allowed))} is: describe the network as a "
                "TransformerModel with a stack",
                argument=key,
            )
    _check_blocks(keys, reader)
    layers = keys.depth()
    kinds = _listed(keys, layers) or (reader.kinds or _everywhere)(keys, layers)
    if reader.global_heads:
        kinds[-1] = "full"  # as in the library, whatever the list states
    if reader.indexers is not None:
        indexers = reader.indexers(keys, layers)
        kinds = [
            kind if own_indexer else "shared"
            for kind, own_indexer in zip(kinds, indexers, strict=True)
        ]
    mixed = _mixed(keys, reader, layers)
    parts_of: dict[Any, Part] = {}
    layer_parts = []
    has_lists = _differ(keys.data, layers)
    for layer, pair in enumerate(zip(kinds, mixed, strict=True)):
        keys.layer = layer
        distinct = (*pair, layer if has_lists else None)
        if distinct not in parts_of:
            parts_of[distinct] = _part(keys, reader, *pair)
        layer_parts.append(parts_of[distinct])
    keys.layer = None
    return [
        part for part in layer_parts if part.attention is not None or part.feed_forward is not None
    ]


def _differ(data: Mapping[str, Any], layers: int) -> bool:
    """Return whether there is a list that could have per-layer numbers."""
    inner = [value for value in data.values() if isinstance(value, Mapping)]
    values = (value for part in (data, *inner) for value in part.values())
    return any(
        isinstance(value, list)
        and len(value) == layers
        and all(isinstance(item, int | float) for item in value)
        and len({*value}) > 1
        for value in values
    )


def _check_blocks(keys: Keys, reader: Reader) -> None:
    """Reject blocks that the file states but that its kind does not have."""
    dense = reader.mixture is None and not reader.single
    experts = keys.value("experts") if dense else None
    # A single expert counts as none, and lists have their own checks.
    some = isinstance(experts, int) and experts > 1
    rank = keys.value("kv_rank") if reader.attention != "latent" else None
    for block, stated in (("experts", some), ("kv_rank", rank)):
        if stated:
            key = keys.sources[block].locator
            raise ConfigError(
                f"{keys.title}: {key} = {shown(keys.value(block))}, but this model_type has no "
                f"{'experts' if block == 'experts' else 'latent attention'}: correct one of them",
                argument=key,
            )


def _everywhere(keys: Keys, layers: int) -> list[str]:
    return ["full"] * layers


def _listed(keys: Keys, layers: int) -> list[str]:
    listed = keys.list_of("layer_types", str)
    if listed is None:
        return []
    key = keys.sources["layer_types"].locator
    if len(listed) != layers:
        raise ConfigError(
            f"{keys.title}: {key} lists {len(listed)} layers, but the model has {layers}: correct "
            "one of them",
            argument=key,
        )
    for kind in listed:
        if kind not in _KINDS:
            raise ConfigError(
                f"{keys.title}: {key} has {shown(kind)}, which is not one of {', '.join(_KINDS)}",
                argument=key,
            )
    return [_KINDS[kind] for kind in listed]


def _mixed(keys: Keys, reader: Reader, layers: int) -> list[bool]:
    listed = keys.list_of("mlp_layer_types", str)
    if listed is not None:
        if len(listed) != layers or not {*listed} <= {"dense", "sparse"}:
            raise ConfigError(
                f"{keys.title}: mlp_layer_types = {shown(listed)} must have dense or sparse for "
                f"each of {layers} layers",
                argument="mlp_layer_types",
            )
        return [kind == "sparse" for kind in listed]
    if reader.mixture is None:
        return [False] * layers
    return reader.mixture(keys, layers)


def _part(keys: Keys, reader: Reader, kind: str, has_experts: bool) -> Part:
    hidden = keys.needed("hidden_dim")
    norms = reader.norms if isinstance(reader.norms, int) else reader.norms(keys)
    attention: Attention | LatentAttention | LinearAttention | None = None
    feed_forward: FeedForward | Experts | None = None
    if reader.gaps:
        lacking = (kind == "mlp") + (keys.number("ffn_dim", zero=True) == 0)
        norms -= lacking
        if lacking == 2:
            return Part(None, None, 0)
    other = norms * reader.norm * hidden + reader.in_layer
    parallel = None
    if kind not in ("mlp", "moe"):
        attention, more = _attention(keys, reader, kind, hidden)
        other += more
        if reader.parallel:
            parallel, more = _LINEAR[reader.linear](keys, hidden)
            other += more
    if reader.gaps and keys.number("ffn_dim", zero=True) == 0:
        pass
    elif not reader.single or kind in ("mlp", "moe"):
        if has_experts or kind == "moe":
            feed_forward, more = _experts(keys, reader, hidden)
        else:
            feed_forward, more = _dense(keys, reader, hidden)
        other += more
    return Part(attention, feed_forward, other, parallel)


def _attention(
    keys: Keys, reader: Reader, kind: str, hidden: int
) -> tuple[Attention | LatentAttention | LinearAttention, int]:
    if kind == "linear":
        if reader.linear not in _LINEAR:
            raise ConfigError(
                f"{keys.title}: layer_types has linear attention, which is not modeled for this "
                "model_type: describe the network as a TransformerModel with a stack",
                argument="layer_types",
            )
        return _LINEAR[reader.linear](keys, hidden)
    if reader.attention == "latent" and keys.flag(reader.latent_if):
        gated = keys.flag(reader.output_gate)
        return _latent(keys, hidden, own_indexer=kind != "shared", gated=gated)
    return _heads(keys, reader, kind, hidden)


def head_shape(keys: Keys, hidden: int) -> tuple[int, int, int]:
    """Return heads, key and value heads, and the width of a head."""
    heads = keys.needed("heads")
    if keys.flag("multi_query") and not keys.flag("new_decoder_architecture"):
        kv_heads = 1  # Falcon and GPT-BigCode, whatever the stated number of heads
        keys.sources["kv_heads"] = keys.sources["multi_query"]
    else:
        kv_heads = keys.either("kv_heads", heads, keys.names("heads")[0])
    rule = f"{keys.names('hidden_dim')[0]} / {keys.names('heads')[0]}"
    head_dim = keys.either("head_dim", max(1, hidden // heads), rule)
    return heads, kv_heads, head_dim


def _heads(keys: Keys, reader: Reader, kind: str, hidden: int) -> tuple[Attention, int]:
    heads, kv_heads, head_dim = head_shape(keys, hidden)
    reach: SlidingWindow | Chunks | None = None
    same = False
    if kind == "sliding":
        reach = SlidingWindow(tokens=keys.needed("window"))
    elif kind == "chunked":
        reach = Chunks(tokens=keys.needed("attention_chunk_size"))
    elif reader.global_heads:
        head_dim = keys.number("global_head_dim") or head_dim
        same = keys.flag("attention_k_eq_v")
        if same:
            kv_heads = keys.number("num_global_key_value_heads") or kv_heads
    attention = Attention(
        heads=heads,
        kv_heads=kv_heads,
        head_dim=head_dim,
        reach=reach,
        output_gate=keys.flag(reader.output_gate),
    )
    other = 0
    if keys.flag(reader.bias) or keys.flag(reader.qkv_bias):
        other += head_dim * (heads + 2 * kv_heads)
    if keys.flag(reader.bias) or keys.flag(reader.out_bias):
        other += hidden
    if reader.qk_norm and keys.flag(reader.qk_norm_if):
        other += head_dim * (2 if reader.qk_norm == "head" else heads + kv_heads)
    other += heads if reader.sinks else 0
    if same:  # keys are values before their norms: one matrix computes both
        other -= hidden * kv_heads * head_dim
    return attention, other


def _latent(
    keys: Keys, hidden: int, *, own_indexer: bool, gated: bool
) -> tuple[LatentAttention, int]:
    query_rank = keys.number("query_rank", zero=True) or None
    kv_rank, rope_dim = keys.needed("kv_rank"), keys.needed("rope_dim")
    reach = None
    other = kv_rank + (query_rank or 0)
    if keys.number("index_topk") is not None:
        reach = TopKeys(
            tokens=keys.needed("index_topk"),
            heads=keys.needed("index_n_heads") if own_indexer else 0,
            head_dim=keys.needed("index_head_dim") if own_indexer else 0,
        )
        other += 2 * reach.head_dim  # its keys have a norm with a bias
    attention = LatentAttention(
        query_rank=query_rank,
        kv_rank=kv_rank,
        nope_dim=keys.needed("nope_dim"),
        rope_dim=rope_dim,
        heads=keys.needed("heads"),
        value_dim=keys.needed("value_dim"),
        reach=reach,
        output_gate=gated,
    )
    if keys.flag("attention_bias"):
        other += (query_rank or 0) + kv_rank + rope_dim + hidden
    return attention, other


def _delta(keys: Keys, hidden: int) -> tuple[LinearAttention, int]:
    """Gated DeltaNet (Qwen3-Next)."""
    linear = LinearAttention(
        heads=keys.needed("linear_num_value_heads"),
        key_heads=keys.needed("linear_num_key_heads"),
        key_dim=keys.needed("linear_key_head_dim"),
        value_dim=keys.needed("linear_value_head_dim"),
        conv_width=keys.needed("conv_width"),
        gates=2,
        delta_rule=True,
    )
    return linear, 2 * linear.heads + linear.value_dim


def _kda(keys: Keys, hidden: int) -> tuple[LinearAttention, int]:
    """Kimi delta attention: each channel of a key has its own decay."""
    heads, width = keys.needed("linear_num_heads"), keys.needed("linear_head_dim")
    linear = LinearAttention(
        heads=heads,
        key_heads=heads,
        key_dim=width,
        value_dim=width,
        conv_width=keys.needed("conv_width"),
        gates=width + 1,
        gate_rank=width,
        output_gate_rank=None if keys.flag("full_rank_gate") else width,
        delta_rule=True,
    )
    # The record computes the update from the low-rank vector too; here it comes from the token.
    other = (hidden - width) * heads
    return linear, other + heads * width + heads + width  # steps, decay of each head, and the norm


def _short_convolution(keys: Keys, hidden: int) -> tuple[LinearAttention, int]:
    """LFM2: a convolution between two gates, in which every channel is a head without a state."""
    linear = LinearAttention(
        heads=hidden,
        key_heads=1,
        key_dim=0,
        value_dim=1,
        conv_width=keys.needed("conv_width"),
    )
    return linear, 5 * hidden if keys.flag("conv_bias") else 0


def _lightning(keys: Keys, hidden: int) -> tuple[LinearAttention, int]:
    """Lightning attention (MiniMax-Text-01): a fixed decay for each head, and no convolution."""
    heads, _, head_dim = head_shape(keys, hidden)
    linear = LinearAttention(
        heads=heads,
        key_heads=heads,
        key_dim=head_dim,
        value_dim=head_dim,
        conv_width=1,
        gates=0,
        chunk=keys.number("block_size") or 256,
    )
    return linear, heads * head_dim


def _mamba2(keys: Keys, hidden: int) -> tuple[LinearAttention, int]:
    heads = keys.needed("mamba_heads")
    inner_dim = keys.number("inner_dim")
    if keys.value("mamba_head_dim") == "auto":
        inner = keys.needed("expand") * hidden if inner_dim is None else inner_dim
    else:
        inner = heads * keys.needed("mamba_head_dim")
    if inner % heads or inner != (inner if inner_dim is None else inner_dim):
        key = keys.sources["mamba_heads"].locator
        raise ConfigError(
            f"{keys.title}: {key} = {heads} does not fit the mixer's width of "
            f"{inner_dim or inner}: the heads times their width must equal it",
            argument=key,
        )
    linear = LinearAttention(
        heads=heads,
        key_heads=keys.needed("mamba_groups"),
        key_dim=keys.needed("state_dim"),
        value_dim=inner // heads,
        conv_width=keys.needed("conv_width"),
        chunk=keys.number("mamba_chunk") or 256,
    )
    other = 3 * heads  # decay, skip and step of each head
    if keys.value("mamba_rms_norm") is None or keys.flag("mamba_rms_norm"):
        other += inner
    if keys.flag("mamba_conv_bias"):
        other += inner + 2 * linear.key_heads * linear.key_dim
    if keys.flag("mamba_proj_bias"):
        other += 2 * inner + 2 * linear.key_heads * linear.key_dim + heads
    states_out_bias = keys.value("mamba_out_bias") is not None
    if keys.flag("mamba_out_bias" if states_out_bias else "mamba_proj_bias"):
        other += hidden
    return linear, other


def _mamba(keys: Keys, hidden: int) -> tuple[LinearAttention, int]:
    """Mamba: every channel is a head, and B, C and the step are computed from the channels."""
    inner = keys.either("inner_dim", keys.needed("expand") * hidden, "expand * hidden_size")
    state, conv = keys.needed("state_dim"), keys.needed("conv_width")
    rank_key = keys.value("dt_rank")
    rank = -(-hidden // 16) if rank_key in (None, "auto") else keys.needed("dt_rank")
    linear = LinearAttention(
        heads=inner,
        key_heads=1,
        key_dim=state,
        value_dim=1,
        conv_width=conv,
        gate_rank=rank,
        chunk=256,
    )
    other = inner * state + 2 * inner  # decay, skip, and the bias of the step
    # The record computes B, C and the rank from the token, with the convolution over B and C.
    other += (inner - hidden) * (rank + 2 * state)
    other -= (conv if conv > 1 else 0) * 2 * state - (inner if conv == 1 else 0)
    other += inner if keys.flag("mamba_conv_bias") else 0
    other += 2 * inner + hidden if keys.flag("mamba_proj_bias") else 0
    other += rank + 2 * state if keys.flag("mamba_norms") else 0
    return linear, other


_LINEAR: Mapping[str, Callable[[Keys, int], tuple[LinearAttention, int]]] = {
    "conv": _short_convolution,
    "delta": _delta,
    "kda": _kda,
    "lightning": _lightning,
    "mamba": _mamba,
    "mamba2": _mamba2,
}


def _dense(keys: Keys, reader: Reader, hidden: int) -> tuple[FeedForward, int]:
    width = keys.either("ffn_dim", 4 * hidden, f"4 * {keys.names('hidden_dim')[0]}")
    other = 0
    if keys.flag(reader.mlp_bias):
        other = width * (2 if reader.gated else 1) + hidden
    return FeedForward(width=width, gated=reader.gated), other


def _experts(keys: Keys, reader: Reader, hidden: int) -> tuple[Experts, int]:
    count, width = keys.needed("experts"), keys.needed("expert_dim")
    shared = keys.count("shared_dim") or keys.count("shared_experts") * width
    latent = keys.number("moe_latent_size")
    # Groups limit the experts of a token, unless the router takes the best of all.
    greedy = keys.value("topk_method") == "greedy"
    groups = 1 if greedy else keys.count("groups") or 1
    experts = Experts(
        count=count,
        per_token=keys.needed("per_token"),
        width=width,
        shared_width=shared,
        gated=reader.gated,
        latent_dim=latent,
        adds_biases=reader.expert_bias,
        groups=groups,
        groups_per_token=keys.needed("groups_per_token") if groups > 1 else 1,
    )
    other = hidden * count + (count if reader.router_bias else 0)
    if reader.expert_bias:
        other += count * (width * (2 if reader.gated else 1) + (latent or hidden))
    other += hidden if reader.shared_gate and shared else 0
    other += latent or 0 if keys.flag("latent_moe_use_norm") else 0
    if keys.flag("enable_moe_block"):
        # Gemma 4: three more norms, and scales of the router's input and of each expert.
        other += 4 * hidden + count
    return experts, other


def tower_of(config: Mapping[str, Any], hidden: int, title: str) -> VisionTower | None:
    """Return the tower of a configuration; `None` without one, or if it is of another kind.

    Gemma 3 has a SigLIP encoder: each image is divided into patches, and means over patches are the
    tokens. Its attention is not causal. Operations count products and attention; activations are
    the outputs of products.
    """
    vision = config.get("vision_config")
    if (
        not isinstance(vision, Mapping)
        or vision.get("model_type") != "siglip_vision_model"
        or config.get("model_type") != "gemma3"
        or vision.get("vision_use_head") is not False
    ):
        return None
    keys = Keys(vision, title=f"{title}, vision_config")
    whole = Keys(config, title=title)
    width, inner, layers = (keys.needed(name) for name in ("hidden_dim", "ffn_dim", "layers"))
    image, patch = keys.needed("image_size"), keys.needed("patch_size")
    tokens = whole.needed("mm_tokens_per_image")
    keys.check("siglip_vision_model")
    whole.check("gemma3")
    patches = max(1, image // patch) ** 2
    channels = (keys.number("num_channels") or 3) * patch**2
    layer = 4 * width**2 + 2 * width * inner
    biases = 4 * width + inner + width
    norms = 4 * width
    parameters = (
        channels * width
        + width
        + patches * width
        + layers * (layer + biases + norms)
        + 2 * width
        + width * hidden
        + width
    )
    products = patches * (channels * width + layers * layer) + tokens * width * hidden
    attention = 2 * layers * patches**2 * width
    written = patches * (width + layers * (5 * width + inner)) + tokens * hidden
    return VisionTower(
        tokens=tokens,
        network=FixedShapeModel(
            name="SigLIP",
            source=Source(title=title, locator="vision_config"),
            parameters=Q_(float(parameters), "param"),
            flops_per_sample=Q_(2.0 * (products + attention), "flop"),
            activations_per_sample=Q_(float(written), "count"),
            input_shape=(keys.number("num_channels") or 3, image, image),
        ),
    )
