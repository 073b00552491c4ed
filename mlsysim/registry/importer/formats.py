"""Number formats of the weights, from `quantization_config`."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase
from typing import Any

from mlsysim.core.errors import ConfigError, shown
from mlsysim.core.types import Experts, Formats, LatentAttention, LinearAttention, Source
from mlsysim.registry.importer.layers import Part, Reader

__all__ = ["dtype_of", "read_formats"]

_DTYPES = {
    "bfloat16": "bf16",
    "float16": "fp16",
    "half": "fp16",
    "float32": "fp32",
    "float": "fp32",
    "float64": "fp64",
}
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
_ALGORITHMS = {
    "NVFP4": "fp4",
    "W4A16_NVFP4": "fp4",
    "FP8": "fp8",
    "FP8_PB_WO": "fp8",
    "W4A16_AWQ": "int4",
    "INT4_AWQ": "int4",
    "INT8_SQ": "int8",
    "W8A8_SQ_PER_CHANNEL": "int8",
    "MXFP4": "mxfp4",
}
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

    A part has the format of most of its products, by the names that published networks give them.
    What the file excepts keeps the type that it states for everything else.

    Raises
    ------
    ConfigError
        If the method, or the format it leaves weights in, is not known.
    """
    key = "quantization_config"
    found = config.get(key) or inner.get(key)
    source = Source(title=title, locator=key)
    state = _state(inner)
    if not isinstance(found, Mapping):
        if state is None:
            return None, source
        return Formats(state=state), Source(title=title, locator="mamba_ssm_dtype")
    kept = dtype_of(inner, config)
    excepted = _Exceptions(found, title)
    counts: dict[str, Counter[str | None]] = {part: Counter() for part in _PARTS}
    for layer, block in enumerate(parts):
        for part, names in _modules(block, reader):
            for name in names:
                module = f"model.layers.{layer}.{name}"
                own = None if excepted.has(module) else _format(found, module, title)
                counts[part][own or kept] += 1
    most = {part: found.most_common(1)[0][0] for part, found in counts.items() if found}
    return Formats(**most, embeddings=kept, state=state), source


def _modules(part: Part, reader: Reader) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield the parts of a layer, with the names of their products."""
    blocks = {**_BLOCKS, **reader.modules}
    if isinstance(part.attention, LinearAttention):
        yield "attention", _LINEAR if part.attention.delta_rule else _MIXER
    elif part.attention is not None:
        yield "attention", _LATENT if isinstance(part.attention, LatentAttention) else _ATTENTION
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


def _format(found: Mapping[str, Any], module: str, title: str) -> str | None:
    """Return the format of a module's weights; `None` if it is not quantized."""
    method = str(found.get("quant_method", "")).lower()
    algorithm = found.get("quant_algo")
    if algorithm == "MIXED_PRECISION":
        return _mixed(found, module, title)
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
        return _known(None, "bitsandbytes in 4 bits", title)
    if method in ("compressed-tensors", "modelopt"):
        return _grouped(found, module, title)
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
            f"{title}: quantization_config leaves weights in a format that is not known "
            f"({shown(what)}): {_WAY_OUT}",
            argument="quantization_config",
        )
    return name


def _grouped(found: Mapping[str, Any], module: str, title: str) -> str | None:
    """Return the format of the group that a module is in."""
    groups = found.get("config_groups")
    if not isinstance(groups, Mapping) or not groups:
        return _known(None, "no config_groups", title)
    for group in groups.values():
        targets = group.get("targets", ["Linear"]) if isinstance(group, Mapping) else []
        listed = targets if isinstance(targets, list) else []
        if not any(item == "Linear" or _plain(str(item)) == module for item in listed):
            continue
        weights = group.get("weights")
        if not isinstance(weights, Mapping):
            return _known(None, "a group without weights", title)
        bits, kind = _whole(weights.get("num_bits")), str(weights.get("type", "int"))
        return _known(_WIDTHS.get((kind, bits)), f"{bits} bits of type {kind}", title)
    return None


def _mixed(found: Mapping[str, Any], module: str, title: str) -> str | None:
    layers = found.get("quantized_layers")
    if not isinstance(layers, Mapping):
        return _grouped(found, module, title)
    for prefix in ("model", *_PREFIXES):
        entry = layers.get(f"{prefix}{module.removeprefix('model')}")
        if isinstance(entry, Mapping):
            algorithm = str(entry.get("quant_algo", "")).upper()
            return _known(_ALGORITHMS.get(algorithm), f"quant_algo {algorithm}", title)
    return None


class _Exceptions:
    """Modules that keep their format.

    Regular expressions come from the file and could take forever, so that only their `.*` is read.
    """

    def __init__(self, found: Mapping[str, Any], title: str) -> None:
        self._names: set[str] = set()
        patterns: set[str] = set()
        for key in ("ignore", "modules_to_not_convert", "exclude_modules", "ignored_layers"):
            listed = found.get(key)
            for item in listed if isinstance(listed, list) else ():
                if isinstance(item, str):
                    plain = _plain(item)
                    (patterns if "*" in plain else self._names).add(plain)
        if len(patterns) > _MOST_PATTERNS or any(item.count("*") > 5 for item in patterns):
            raise ConfigError(
                f"{title}: quantization_config excepts modules by {len(patterns)} patterns; at "
                f"most {_MOST_PATTERNS} with 5 stars each are read: {_WAY_OUT}",
                argument="quantization_config",
            )
        self._patterns = sorted(patterns)

    def has(self, module: str) -> bool:
        """Tell whether a module is excepted, or is in one that is."""
        words = module.split(".")
        around = (".".join(words[:end]) for end in range(1, len(words) + 1))
        # A name without a path, such as "self_attn", is meant wherever it occurs.
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
