"""From the layers of a configuration to a model with sources."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping
from difflib import get_close_matches
from typing import Any

from mlsysim.core.errors import ConfigError, shown
from mlsysim.core.types import (
    Attention,
    Chunks,
    Experts,
    FeedForward,
    LatentAttention,
    Layers,
    LinearAttention,
    MoETransformerModel,
    SlidingWindow,
    Source,
    TopKeys,
    TransformerModel,
    VisionTower,
)
from mlsysim.core.units import Q_
from mlsysim.registry.importer.formats import read_formats
from mlsysim.registry.importer.keys import (
    LIBRARY,
    REWRITTEN,
    Keys,
    defaults_of,
    kind_without_name,
)
from mlsysim.registry.importer.layers import Part, parts, tower_of
from mlsysim.registry.importer.readers import READERS, REFUSED, Reader
from mlsysim.registry.importer.rules import stated_experts
from mlsysim.registry.tables import read_toml

_ASSUMED_LENGTH = 2_048
_DROPOUT = (
    "attention_dropout",
    "hidden_dropout",
    "hidden_dropout_prob",
    "attn_pdrop",
    "resid_pdrop",
    "dropout",
)
_TABLE = read_toml("architectures.toml")
_STRUCTURE, _UNCHANGING, _SIZE = (
    re.compile("|".join(_TABLE[group][patterns]))
    for group, patterns in (("unknown", "structure"), ("unknown", "harmless"), ("known", "sizes"))
)
_HARMLESS = re.compile(rf"(\w+\.)?({'|'.join(_TABLE['known']['harmless'])})")
"""Whole names of keys, with or without the mapping that holds them."""
_GENERIC = Reader(bias="attention_bias", mlp_bias="mlp_bias", mixture=stated_experts)
"""Reader of unknown kinds, which must state everything."""
_GATED = ("silu", "swiglu", "swish")
# Fields of the record, and the fields from which they are computed.
_FIELDS = {
    "layers": "layers",
    "hidden_dim": "hidden_dim",
    "heads": "heads",
    "kv_heads": "kv_heads",
    "head_dim": "head_dim",
    "ffn_dim": "ffn_dim",
    "vocab_size": "vocab_size",
    "seq_len": "seq_len",
    "context": "seq_len",
    "tied_embeddings": "tied",
    "gated_mlp": "gated_mlp",
    "mtp_layers": "mtp_layers",
    "experts": "experts",
    "experts_per_token": "per_token",
    "stack": "layer_types",
}
_MIXTURE_FIELDS = {
    "expert_ffn_dim": "expert_dim",
    "shared_ffn_dim": "shared_dim",
    "moe_layers": "dense_layers",
    "expert_groups": "groups",
    "groups_per_token": "groups_per_token",
}
_LATENT_FIELDS = {
    "latent.query_rank": "query_rank",
    "latent.kv_rank": "kv_rank",
    "latent.nope_dim": "nope_dim",
    "latent.rope_dim": "rope_dim",
    "head_dim": "value_dim",
}
_BLOCK_FIELDS: Mapping[type, Mapping[str, str]] = {
    Attention: {"heads": "heads", "kv_heads": "kv_heads", "head_dim": "head_dim"},
    LatentAttention: {
        name: name
        for name in ("query_rank", "kv_rank", "nope_dim", "rope_dim", "heads", "value_dim")
    },
    FeedForward: {"width": "ffn_dim"},
    Experts: {
        "count": "experts",
        "per_token": "per_token",
        "width": "expert_dim",
        "shared_width": "shared_dim",
        "groups": "groups",
        "groups_per_token": "groups_per_token",
    },
    LinearAttention: {"conv_width": "conv_width"},
}
_REACH_FIELDS: Mapping[type, Mapping[str, str]] = {
    SlidingWindow: {"tokens": "window"},
    Chunks: {"tokens": "attention_chunk_size"},
    TopKeys: {"tokens": "index_topk", "heads": "index_n_heads", "head_dim": "index_head_dim"},
}


def model_of(
    config: Mapping[str, Any],
    *,
    name: str,
    seq_len: int | None = None,
    title: str = "config.json",
    counted: bool = False,
) -> TransformerModel:
    """Return the model that a configuration describes.

    `counted` means that its parameters are compared with those of a file of weights, so that keys
    which are not read cannot hide a part of them.

    Raises
    ------
    ConfigError
        If the configuration is incomplete, contradicts itself, or cannot be expressed.
    """
    inner, kind = _language_model(config, title)
    reader = READERS.get(kind, _GENERIC)
    if kind in REWRITTEN:
        inner = REWRITTEN[kind](inner, title)
    keys = Keys(
        inner,
        library=reader.library,
        names=reader.names,
        defaults={**defaults_of(reader.library), **reader.defaults},
        around=config if inner is not config else None,
        title=title,
    )
    estimated = _check_unknown(keys, kind)
    if kind not in READERS:
        reader = _guessed(reader, inner)
    try:
        layer_parts = parts(keys, reader)
    except ConfigError as fault:
        if fault.message.startswith(title):
            raise
        keys.check(kind)  # a missing number was read as 1, which may not fit the others
        raise _in_file(fault, keys) from None
    hidden, vocab = keys.needed("hidden_dim"), keys.needed("vocab_size")
    length = _length(keys, reader, seq_len)
    # A default of the library is an example's; a table of positions is a limit in any case.
    certain = keys.stated("seq_len") or reader.positions is not None
    context = keys.number("seq_len") if certain else None
    if length is None:
        estimated.add("seq_len")
        length = _ASSUMED_LENGTH
    tied = keys.flag("tied")
    outside = _outside(keys, reader, hidden, vocab)
    predicts = keys.flag("mtp_if") if "mtp_if" in reader.names else True
    mtp_layers = (
        keys.count("mtp_layers") if predicts and reader.names.get("mtp_layers") != () else 0
    )
    formats, formats_source = read_formats(config, inner, layer_parts, reader, title)
    for field in ("hidden_dim", "layers"):
        # Without them, the library's example would be read instead of a model.
        if not keys.stated(field) and not (field == "layers" and keys.stated("layer_types")):
            keys.missing[field] = keys.names(field)
    keys.check(kind, "" if kind in READERS else _known())
    tables = (1 if tied else 2) * vocab * hidden
    total = sum(_matrices(part, hidden) + part.other for part in layer_parts) + outside + tables
    tower = tower_of(config, hidden, title)
    unread = [] if counted else _unread(keys, kind)
    if unread:
        estimated.add("parameters")
    note = _note(config, keys, tower, unread)
    in_tower = 0 if tower is None else int(tower.network.si("parameters"))
    shape = _short(layer_parts) or {"stack": _stack(layer_parts)}
    record_class = MoETransformerModel if "experts" in shape else TransformerModel
    sources = _sources(keys, record_class, shape, layer_parts)
    sources["parameters"] = Source(
        title=f"Counted from {title}",
        note="matrices, embedding tables, norms, biases, routers and position tables",
    )
    if context is None:
        sources.pop("context", None)
    if seq_len is not None:
        sources["seq_len"] = Source(title="Argument of from_config", locator="seq_len")
    elif "seq_len" in estimated:
        sources["seq_len"] = Source(title="Assumed", note=f"{title} states no context length")
    if formats is not None:
        sources["formats"] = formats_source
    if (matrices := sum(_matrices(part, hidden) for part in layer_parts) + tables) * 1.02 < total:
        raise ConfigError(
            f"{title}: norms, biases and tables of positions have "
            f"{(total - matrices) / total:.0%} of the parameters; only networks in which they have "
            "less than 2% are modeled",
            argument="parameters",
        )
    try:
        return record_class(
            name=name,
            source=Source(title=title, locator=f"model_type {kind}", note=note),
            field_sources=sources,
            estimated=frozenset(estimated),
            parameters=Q_(float(total + in_tower), "param"),
            hidden_dim=hidden,
            vocab_size=vocab,
            seq_len=length,
            context=context,
            tied_embeddings=tied,
            causal=reader.causal,
            dropout=_dropout(inner),
            formats=formats,
            mtp_layers=mtp_layers,
            vision=tower,
            **shape,
        )
    except ConfigError as fault:
        raise ConfigError(f"{title}: {fault.message}", argument=fault.argument) from None  # type: ignore[attr-defined]


def _in_file(fault: ConfigError, keys: Keys) -> ConfigError:
    """Convert an error about a field to one that names the file and the keys to correct."""
    field = getattr(fault, "argument", "")
    fields = ("heads", "kv_heads") if field == "kv_heads" else (field,)
    read = [keys.sources[name].locator for name in fields if name in keys.sources]
    advice = f"; correct {' or '.join(read)}" if read else ""
    return ConfigError(f"{keys.title}: {fault.message}{advice}", argument=field)


def _language_model(config: Mapping[str, Any], title: str) -> tuple[Mapping[str, Any], str]:
    """Return the part of a configuration that describes the language model, and its kind."""
    outer = config.get("model_type") or kind_without_name(config)
    if isinstance(outer, str) and outer in REFUSED:
        raise ConfigError(
            f"{title}: model_type {shown(outer)} cannot be read: {REFUSED[outer]}; to time a "
            "forward pass alone, describe the network as a FixedShapeModel",
            argument="model_type",
        )
    for part in ("text_config", "llm_config", "language_config", "thinker_config"):
        inner = config.get(part)
        if isinstance(inner, Mapping):
            kind = inner.get("model_type", outer)
            config_part = {**inner, "model_type": kind if isinstance(kind, str) else outer}
            return _language_model(config_part, title)
    return config, _kind(outer, config, title)


def _kind(kind: Any, config: Mapping[str, Any], title: str) -> str:
    if isinstance(named := config.get("_class_name"), str):
        raise ConfigError(
            f"{title} describes {shown(named)} of the diffusers library, an image or video model "
            "without a vocabulary: describe one step as a FixedShapeModel with its operations",
            argument="_class_name",
        )
    if not isinstance(kind, str) or not kind:
        raise ConfigError(
            f"{title} does not state model_type, the kind of the model: add it, as in "
            '"model_type": "llama"' + _known(),
            argument="model_type",
        )
    return kind


def _known(kind: str = "") -> str:
    near = get_close_matches(kind, READERS, 3)
    hint = f". If the model_type is misspelled, did you mean {' or '.join(near)}?" if near else "."
    common = ", ".join(("llama", "mistral", "qwen3", "qwen3_moe", "gemma3", "deepseek_v3"))
    return f"{hint} {len(READERS)} kinds are known, among them {common} and gpt_oss."


def _check_unknown(keys: Keys, kind: str) -> set[str]:
    """Require the common keys of an unknown kind, and return the fields that are estimates."""
    if kind in READERS:
        return set()
    strange = [key for key, value in keys.data.items() if value and _STRUCTURE.search(key)]
    if strange:
        raise ConfigError(
            f"{keys.title}: {', '.join(strange[:5])} of model_type {shown(kind)} change the "
            "layers in an unknown way: describe the network as a TransformerModel with a stack, "
            "or state the model_type of a kind with the same layers" + _known(kind),
            argument=strange[0],
        )
    for field in ("layers", "hidden_dim", "heads", "kv_heads", "ffn_dim", "vocab_size", "seq_len"):
        keys.needed(field)
    if keys.value("tied") is None:
        keys.missing["tied"] = keys.names("tied")
    # Blocks with other activations exist with and without a gate.
    if not isinstance(keys.value("gated_mlp"), bool) and keys.value("hidden_act") not in _GATED:
        keys.missing["gated_mlp"] = ("gated_mlp", f"hidden_act of {', '.join(_GATED)}")
    switched_off = keys.value("use_sliding_window") is False
    if keys.count("window") and not switched_off and keys.value("layer_types") is None:
        keys.missing["layer_types"] = (
            "layer_types",
            f"{keys.sources['window'].locator} = None if there is no window",
        )
    keys.check(kind, _known(kind))
    if isinstance(keys.value("gated_mlp"), bool):
        return {"parameters"}
    keys.sources["gated_mlp"] = keys.sources["hidden_act"]
    return {"parameters", "gated_mlp"}


def _guessed(reader: Reader, config: Mapping[str, Any]) -> Reader:
    gate = config.get("gated_mlp")
    gated = gate if isinstance(gate, bool) else config.get("hidden_act") in _GATED
    return dataclasses.replace(reader, gated=gated)


def _unread(keys: Keys, kind: str) -> list[str]:
    """Return unread keys that may change the layers.

    Raises
    ------
    ConfigError
        If the name of one is that of a size or a block, and its kind has no such key.
    """
    if kind not in READERS:
        return [key for key in keys.unread() if not _UNCHANGING.search(key)]
    unread = [key for key in keys.unread() if not _HARMLESS.fullmatch(key) and not keys.known(key)]
    strange = [key for key in unread if _SIZE.search(key)]
    if strange:
        raise ConfigError(
            f"{keys.title}: {', '.join(strange[:5])} of model_type {shown(kind)} may change the "
            "layers, but a model of this kind has no such key: set it to null if it does not, "
            "correct the model_type, or describe the network as a TransformerModel with a stack",
            argument=strange[0],
        )
    return unread


def _length(keys: Keys, reader: Reader, given: int | None) -> int | None:
    file_length = keys.number("seq_len")
    if reader.positions is not None and file_length is None:
        keys.missing["seq_len"] = keys.names("seq_len")
    return file_length if given is None else given


def _outside(keys: Keys, reader: Reader, hidden: int, vocab: int) -> int:
    """Return the parameters outside the layers and the vocabulary tables."""
    total = reader.norm * hidden if reader.final_norm else 0
    if reader.positions is not None:
        total += (keys.count("seq_len") + reader.positions) * hidden
    if keys.flag(reader.head_bias):
        total += vocab
    width = keys.number("word_embed_proj_dim")
    if width not in (None, hidden):
        raise ConfigError(
            f"{keys.title}: word_embed_proj_dim = {width} differs from the width of the layers, "
            f"{hidden}, which is not modeled: describe the network as a TransformerModel",
            argument="word_embed_proj_dim",
        )
    return total + (reader.outside(keys) if reader.outside else 0)


def _matrices(part: Part, hidden: int) -> int:
    blocks = (part.attention, part.parallel_attention, part.feed_forward)
    return int(sum(block.parameters(hidden) for block in blocks if block is not None))


def _dropout(config: Mapping[str, Any]) -> bool | None:
    rates = [config[key] for key in _DROPOUT if isinstance(config.get(key), int | float)]
    return any(value > 0 for value in rates) if rates else None


def _short(layer_parts: list[Part]) -> dict[str, Any] | None:
    """Return the short form of layers that are all alike, except for experts in the last ones."""
    attention, last = layer_parts[0].attention, layer_parts[-1].feed_forward
    alike = all(
        part.attention == attention and part.parallel_attention is None for part in layer_parts
    )
    if not alike or not isinstance(attention, Attention | LatentAttention) or attention.reach:
        return None
    dense = [
        part.feed_forward for part in layer_parts if isinstance(part.feed_forward, FeedForward)
    ]
    mixed = [part.feed_forward for part in layer_parts if isinstance(part.feed_forward, Experts)]
    ordered = [*dense, *mixed] == [part.feed_forward for part in layer_parts]
    if not ordered or any(block != dense[0] for block in dense) or any(b != last for b in mixed):
        return None
    shape: dict[str, Any] = {"layers": len(layer_parts), "heads": attention.heads}
    if isinstance(attention, LatentAttention):
        shape |= {
            "kv_heads": attention.heads,
            "head_dim": attention.value_dim,
            "latent": LatentAttention(
                query_rank=attention.query_rank,
                kv_rank=attention.kv_rank,
                nope_dim=attention.nope_dim,
                rope_dim=attention.rope_dim,
            ),
        }
    elif attention.output_gate:
        return None
    else:
        shape |= {"kv_heads": attention.kv_heads, "head_dim": attention.head_dim}
    if not isinstance(last, Experts):
        return shape | {"ffn_dim": dense[0].width, "gated_mlp": dense[0].gated}
    if last.latent_dim is not None:
        return None
    return shape | {
        "ffn_dim": dense[0].width if dense else last.width,
        "gated_mlp": last.gated,
        "experts": last.count,
        "experts_per_token": last.per_token,
        "expert_ffn_dim": last.width,
        "shared_ffn_dim": last.shared_width,
        "expert_biases": last.adds_biases,
        "moe_layers": len(mixed),
        "expert_groups": last.groups,
        "groups_per_token": last.groups_per_token,
    }


def _stack(layer_parts: list[Part]) -> tuple[Layers, ...]:
    """Return equal layers as groups, with positions unless they are consecutive."""
    groups: dict[Any, list[int]] = {}
    for spot, part in enumerate(layer_parts):
        blocks = (part.attention, part.feed_forward, part.parallel_attention)
        groups.setdefault(blocks, []).append(spot)
    at = list(groups.values())
    in_order = [spot for spots in at for spot in spots] == list(range(len(layer_parts)))
    return tuple(
        Layers(
            count=len(spots),
            attention=attention,
            feed_forward=feed_forward,
            parallel_attention=parallel,
            at=None if in_order else tuple(spots),
        )
        for (attention, feed_forward, parallel), spots in groups.items()
    )


def _sources(
    keys: Keys,
    record_class: type[TransformerModel],
    shape: Mapping[str, Any],
    layer_parts: list[Part],
) -> dict[str, Source]:
    fields = dict(_FIELDS)
    if record_class is MoETransformerModel:
        fields |= _MIXTURE_FIELDS
        if not any(isinstance(part.feed_forward, FeedForward) for part in layer_parts):
            fields["ffn_dim"] = "expert_dim"
    if "latent" in shape:
        fields |= _LATENT_FIELDS | {"kv_heads": "heads"}
    sources = {path: keys.sources[field] for path, field in fields.items() if field in keys.sources}
    if "stack" in shape:
        sources.setdefault("stack", Source(title=keys.title, locator=_read_keys(keys)))
        sources |= _inner_sources(keys, shape["stack"])
    else:
        sources.pop("stack", None)
    return sources


def _inner_sources(keys: Keys, stack: tuple[Layers, ...]) -> dict[str, Source]:
    """Return the sources of the numbers in each group of a stack."""
    sources = {}
    for spot, layers in enumerate(stack):
        for block in ("attention", "feed_forward", "parallel_attention"):
            for path, field in _BLOCK_FIELDS.get(type(getattr(layers, block)), {}).items():
                if field in keys.sources:
                    sources[f"stack[{spot}].{block}.{path}"] = keys.sources[field]
        reach = _REACH_FIELDS.get(type(getattr(layers.attention, "reach", None)), {})
        for path, field in reach.items():
            if field in keys.sources:
                sources[f"stack[{spot}].attention.reach.{path}"] = keys.sources[field]
    return sources


def _read_keys(keys: Keys) -> str:
    read = dict.fromkeys(
        source.locator for source in keys.sources.values() if source.title == keys.title
    )
    return ", ".join(read)


def _note(
    config: Mapping[str, Any], keys: Keys, tower: VisionTower | None, unread: list[str]
) -> str:
    others = [part for part in ("vision_config", "audio_config") if config.get(part)]
    others = [part for part in others if tower is None or part != "vision_config"]
    notes = [f"the language model; {' and '.join(others)} not read"] if others else []
    if unread:
        notes.append(f"not read: {', '.join(unread[:20])}")
    if filled := keys.filled_in():
        notes.append(f"defaults of {LIBRARY}: {', '.join(filled)}")
    if keys.count("attn_res_block_size"):
        notes.append("attention over earlier residuals is counted, but not timed")
    return "; ".join(notes)
