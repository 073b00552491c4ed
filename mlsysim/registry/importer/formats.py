"""Number formats of the weights, from `quantization_config`."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from fnmatch import fnmatchcase
from typing import Any

from mlsysim.core.errors import ConfigError, shown
from mlsysim.core.types import Experts, Formats, LatentAttention, LinearAttention, Source
from mlsysim.registry.importer.layers import Part
from mlsysim.registry.importer.readers import Reader
from mlsysim.registry.tables import read_toml

_TABLE = read_toml("architectures.toml")["formats"]


def _formats_of(group: str) -> Mapping[str, str]:
    """Return the formats of a group of the table, by the names that files have for them."""
    return {name: kind for kind, names in _TABLE[group].items() for name in names}


_DTYPES, _ALGORITHMS, _QUARK = (_formats_of(group) for group in ("types", "algorithms", "quark"))
_EXCEPTIONS: tuple[str, ...] = tuple(_TABLE["exceptions"])
# Names that the products of a part have in published networks.
_ATTENTION = ("self_attn.q_proj", "self_attn.o_proj")
_LATENT = ("self_attn.q_b_proj", "self_attn.kv_b_proj", "self_attn.o_proj")
_LINEAR = ("linear_attn.out_proj",)
_MIXER = ("mixer.in_proj", "mixer.out_proj")
_BLOCKS = {"dense": "mlp", "experts": "mlp.experts.0", "shared": "mlp.shared_experts"}
_PARTS = ("attention", "feed_forward", "experts")
_PREFIXES = ("model.language_model", "language_model.model", "backbone")
_MOST_PATTERNS = 500
_WIDTHS = {("float", 8): "fp8", ("int", 8): "int8", ("int", 4): "int4", ("float", 4): "fp4"}
_FOUR_BITS = (
    "4 bits of bitsandbytes have a scale in fp32 for 64 weights, 0.5 bits per weight and as many "
    "bytes as fp4 here. If the scales are quantized too, they take 0.127 bits (Dettmers et al., "
    "2023, QLoRA, arXiv:2305.14314, section 3, Double Quantization), within 1% of int4"
)
_WAY_OUT = "remove quantization_config, and pass the precision to the solver"


def dtype_of(*configs: Mapping[str, Any]) -> str | None:
    """Return the format of the weights that are not quantized, or `None` if it is not stated."""
    for config in configs:
        for key in ("dtype", "torch_dtype"):
            name = config.get(key)
            if isinstance(name, str) and name.removeprefix("torch.") in _DTYPES:
                return _DTYPES[name.removeprefix("torch.")]
    return None


def read_formats(
    config: Mapping[str, Any],
    inner: Mapping[str, Any],
    parts: list[Part],
    reader: Reader,
    title: str,
) -> tuple[Formats | None, Source]:
    """Return the formats of the parts, and where they are stated.

    A part has the format of most of its products, by their names in published networks. Modules
    that the file excludes keep the type that it states for unquantized weights.

    Raises
    ------
    ConfigError
        If the method or the resulting format of weights is not known.
    """
    key = "quantization_config"
    found = inner.get(key) if config.get(key) is None else config[key]
    four = isinstance(found, Mapping) and found.get("load_in_4bit") is True
    source = Source(title=title, locator=key, note=_FOUR_BITS if four else "")
    state = _state(inner)
    if found is not None and not isinstance(found, Mapping):
        raise ConfigError(
            f"{title}: {key} = {shown(found)} must be keys and values: {_WAY_OUT}", argument=key
        )
    if found is None:
        if state is None:
            return None, source
        return Formats(state=state), Source(title=title, locator="mamba_ssm_dtype")
    kept = dtype_of(inner, config)
    lists = [found[key] for key in _EXCEPTIONS if isinstance(found.get(key), list)]
    excepted = _Modules([item for listed in lists for item in listed], title)
    groups = _groups(found, title)
    counts: dict[str, Counter[str | None]] = {part: Counter() for part in _PARTS}
    for layer, block in enumerate(parts):
        for part, names in _modules(block, reader):
            for name in names:
                module = f"model.layers.{layer}.{name}"
                own = None if excepted.has(module) else _format(found, groups, module, title)
                counts[part][own or kept] += 1
    most = {part: found.most_common(1)[0][0] for part, found in counts.items() if found}
    return Formats(**most, embeddings=kept, state=state), source


def _modules(part: Part, reader: Reader) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield the parts of a layer, with the names of their products."""
    blocks = {**_BLOCKS, **reader.modules}
    for attention in (part.attention, part.parallel_attention):
        if isinstance(attention, LinearAttention):
            usual = _LINEAR if attention.delta_rule else _MIXER
            mixer = blocks.get("mixer")
            yield "attention", (f"{mixer}.in_proj", f"{mixer}.out_proj") if mixer else usual
        elif attention is not None:
            yield "attention", _LATENT if isinstance(attention, LatentAttention) else _ATTENTION
    found = {"feed_forward": "dense"}
    if isinstance(part.feed_forward, Experts):
        found = {"experts": "experts"}
        found |= {"feed_forward": "shared"} if part.feed_forward.shared_width else {}
    for own, block in found.items() if part.feed_forward is not None else ():
        yield own, (f"{blocks[block]}.up_proj", f"{blocks[block]}.down_proj")


def _state(config: Mapping[str, Any]) -> str | None:
    for key in ("mamba_ssm_dtype", "mamba_ssm_cache_dtype"):
        name = config.get(key)
        if isinstance(name, str) and name in _DTYPES:
            return _DTYPES[name]
    return None


def _format(found: Mapping[str, Any], groups: list[_Group], module: str, title: str) -> str | None:
    """Return the format of a module's weights; `None` if it is not quantized."""
    method = str(found.get("quant_method", "")).lower()
    algorithm = found.get("quant_algo")
    if algorithm == "MIXED_PRECISION":
        return _mixed(found, groups, module, title)
    if isinstance(algorithm, str):
        return _known(_ALGORITHMS.get(algorithm.upper()), f"quant_algo {algorithm}", title)
    if method == "fp8" or method == "fbgemm_fp8":
        return "fp8"
    if method == "mxfp4":
        return "mxfp4" if ".experts" in module else None
    if method in ("awq", "gptq", "auto-round", "hqq"):
        bits = found.get("bits", found.get("w_bit"))
        return _known({4: "int4", 8: "int8"}.get(_whole(bits)), f"{bits} bits", title)
    if method == "bitsandbytes":
        if found.get("load_in_8bit") is True:
            return "int8"
        kind = str(found.get("bnb_4bit_quant_type", "fp4")).lower()
        nested = found.get("bnb_4bit_use_double_quant") is True
        name = ("int4" if nested else "fp4") if kind in ("nf4", "fp4") else None
        four = found.get("load_in_4bit") is True
        return _known(name if four else None, f"bitsandbytes in 4 bits of type {kind}", title)
    if method == "quark":
        return _quark(groups, module, title)
    if method in ("compressed-tensors", "modelopt"):
        return _grouped(groups, module, title)
    raise ConfigError(
        f"{title}: quantization_config.quant_method = {shown(found.get('quant_method'))} is not "
        f"known: {_WAY_OUT}",
        argument="quantization_config",
    )


def _whole(value: Any) -> int:
    return value if type(value) is int else 0


def _known(name: str | None, what: str, title: str) -> str:
    if name is None:
        raise ConfigError(
            f"{title}: quantization_config stores weights in an unknown format ({shown(what)}): "
            f"{_WAY_OUT}",
            argument="quantization_config",
        )
    return name


def _groups(found: Mapping[str, Any], title: str) -> list[_Group]:
    """Return the groups that state formats, each with its modules; `None` for all of them."""
    groups = found.get("config_groups")
    made: list[_Group] = []
    if str(found.get("quant_method", "")).lower() == "quark":
        listed = found.get("layer_quant_config")
        for pattern, group in listed.items() if isinstance(listed, Mapping) else ():
            own = group if isinstance(group, Mapping) else {}
            made.append((own, _Modules([pattern], title)))
        everywhere = found.get("global_quant_config")
        return [*made, (everywhere if isinstance(everywhere, Mapping) else {}, None)]
    for group in groups.values() if isinstance(groups, Mapping) else ():
        own = group if isinstance(group, Mapping) else {}
        targets = own.get("targets", ["Linear"])
        listed = targets if isinstance(targets, list) else []
        made.append((own, None if "Linear" in listed else _Modules(listed, title)))
    return made


def _grouped(groups: list[_Group], module: str, title: str) -> str | None:
    """Return the format of the group that a module is in."""
    if not groups:
        return _known(None, "no config_groups", title)
    for group, modules in groups:
        if modules is not None and not modules.has(module):
            continue
        weights = group.get("weights")
        if not isinstance(weights, Mapping):
            return _known(None, "a group without weights", title)
        bits, kind = _whole(weights.get("num_bits")), str(weights.get("type", "int"))
        if (kind, bits, weights.get("group_size")) == ("float", 4, 32):
            return "mxfp4"
        return _known(_WIDTHS.get((kind, bits)), f"{bits} bits of type {kind}", title)
    return None


def _quark(groups: list[_Group], module: str, title: str) -> str | None:
    """Return the format of a module under AMD's Quark; `None` if its weights stay wide."""
    group = next(own for own, modules in groups if modules is None or modules.has(module))
    weights = group.get("weight")
    if weights is None:
        return None
    spec = weights if isinstance(weights, Mapping) else {}
    kind = str(spec.get("dtype", "")).lower()
    block = (spec.get("qscheme", "per_group"), spec.get("group_size", 32))
    name = None if kind == "fp4" and block != ("per_group", 32) else _QUARK.get(kind)
    return _known(name, f"{kind} of quark", title)


def _mixed(found: Mapping[str, Any], groups: list[_Group], module: str, title: str) -> str | None:
    layers = found.get("quantized_layers")
    if not isinstance(layers, Mapping):
        return _grouped(groups, module, title)
    words = module.split(".")
    # A whole block may be listed instead of its products, such as "mlp.experts".
    for around in (".".join(words[1:end]) for end in range(len(words), 1, -1)):
        for prefix in ("model", *_PREFIXES):
            entry = layers.get(f"{prefix}.{around}")
            if isinstance(entry, Mapping):
                algorithm = str(entry.get("quant_algo", "")).upper()
                return _known(_ALGORITHMS.get(algorithm), f"quant_algo {algorithm}", title)
    return None


class _Modules:
    """Modules that a file lists by their names and by patterns.

    Regular expressions from a file could take forever to match, so only their `.*` is supported.
    """

    def __init__(self, listed: Iterable[Any], title: str) -> None:
        self._names: set[str] = set()
        patterns: set[str] = set()
        for item in listed:
            if isinstance(item, str):
                plain = _plain(item)
                (patterns if "*" in plain else self._names).add(plain)
        if len(patterns) > _MOST_PATTERNS or any(item.count("*") > 5 for item in patterns):
            raise ConfigError(
                f"{title}: quantization_config lists modules by {len(patterns)} patterns; at "
                f"most {_MOST_PATTERNS} with 5 stars each are read: {_WAY_OUT}",
                argument="quantization_config",
            )
        self._patterns = sorted(patterns)

    def has(self, module: str) -> bool:
        """Return whether a module or its parent is listed."""
        words = module.split(".")
        around = (".".join(words[:end]) for end in range(1, len(words) + 1))
        # A name without a path, such as "self_attn", matches wherever it occurs.
        return (
            any(name in self._names for name in around)
            or any(word in self._names for word in words)
            or any(
                fnmatchcase(module, pattern) or fnmatchcase(module, f"{pattern}.*")
                for pattern in self._patterns
            )
        )


def _plain(pattern: str) -> str:
    """Return a pattern with the names that modules have here."""
    if pattern.startswith("re:"):
        pattern = re.sub(r"[\\^$]", "", pattern[3:].replace(".*", "*"))
    pattern = pattern.replace("[", "").replace("?", "")
    for prefix in _PREFIXES:
        if pattern.startswith(f"{prefix}."):
            return f"model{pattern.removeprefix(prefix)}"
    return pattern


_Group = tuple[Mapping[str, Any], _Modules | None]
