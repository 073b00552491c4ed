"""Keys of a configuration: other names, defaults, keys to compute, and each value's origin."""

from __future__ import annotations

import functools
import json
import math
import re
from collections.abc import Callable, Mapping
from typing import Any

from mlsysim.core.errors import ConfigError, shown
from mlsysim.core.types import Source, cite
from mlsysim.registry.tables import DATA, read_toml

_LIBRARY = cite(read_toml("architectures.toml")["source"])
LIBRARY = _LIBRARY.title
"""Release of the library whose configuration classes state the defaults."""

MOST = 10**9
"""Larger numbers cannot be a width or count of a network."""
MAX_LAYERS = 2_000

NAMES: Mapping[str, tuple[str, ...]] = {
    field: tuple(keys) for field, keys in read_toml("architectures.toml")["keys"].items()
}
"""Keys of each field in the files of various families."""


class Keys:
    """Reads fields of one configuration, and records the key and origin of each.

    Parameters
    ----------
    data
        The configuration, or its `text_config`.
    library
        Folder of the class with the defaults in the library; empty without one.
    names
        Keys of fields that have other names in this kind of model.
    defaults
        Defaults of the class, by key.
    around
        The configuration that `data` is a part of.
    """

    def __init__(
        self,
        data: Mapping[str, Any],
        *,
        library: str = "",
        names: Mapping[str, tuple[str, ...]] | None = None,
        defaults: Mapping[str, Any] | None = None,
        around: Mapping[str, Any] | None = None,
        title: str = "config.json",
    ) -> None:
        self.data = data
        self.around = around or {}
        self.title = title
        self.sources: dict[str, Source] = {}
        self.missing: dict[str, tuple[str, ...]] = {}
        self.layer: int | None = None
        """The layer being read, for lists with one number per layer."""
        self._library = library
        self._names = {**NAMES, **(names or {})}
        self._of_kind = {key for keys in (names or {}).values() for key in keys}
        self._defaults = defaults or {}

    def names(self, field: str) -> tuple[str, ...]:
        """Return the possible keys of a field."""
        return self._names.get(field, (field,))

    def _stated(self, field: str) -> tuple[str, Any] | None:
        """Return the first key that is there, and its value."""
        found = None
        for name in self.names(field):
            place: Any = self.data
            for part in (name,) if name in place else name.split("."):
                place = place.get(part, _ABSENT) if isinstance(place, Mapping) else _ABSENT
            if place is not _ABSENT and (found is None or found[1] is None):
                found = (name, place)
        if found is None and field == "tied" and "tie_word_embeddings" in self.around:
            found = ("tie_word_embeddings", self.around["tie_word_embeddings"])
        return found

    def value(self, field: str) -> Any:
        """Return a field's value of any kind: the stated one, or the default; `None` if neither."""
        found = self._stated(field)
        if found is not None:
            self.sources[field] = Source(title=self.title, locator=found[0])
            return found[1]
        for name in self.names(field):
            if name in self._defaults:
                self.sources[field] = self._filled_in(name)
                return self._defaults[name]
        return None

    def stated(self, field: str) -> bool:
        """Return whether the file has one of the keys of a field, even if it is null."""
        return self._stated(field) is not None

    def filled_in(self) -> list[str]:
        """Return the keys of sizes that are the library's defaults."""
        return sorted(
            source.locator
            for field, source in self.sources.items()
            if source.title.startswith(LIBRARY)
            and field != "seq_len"
            and type(self._defaults.get(source.locator)) is int
        )

    def unread(self) -> list[str]:
        """Return the keys that state something, but that no field was read from.

        Among them are those of inner mappings that were read in part.
        """
        read = {source.locator for source in self.sources.values()}
        partly = {key.partition(".")[0] for key in read if "." in key}
        stated = [(key, item) for key, item in self.data.items() if not isinstance(item, Mapping)]
        for key, item in self.data.items():
            if isinstance(item, Mapping):
                inner = item.items() if key in partly else ()
                stated += [(f"{key}.{name}", part) for name, part in inner] or [(key, item)]
        nothing: tuple[Any, ...] = (None, False, "", 0, [], {})
        return [key for key, item in stated if item not in nothing and key not in read]

    def known(self, key: str) -> bool:
        """Return whether a key belongs to the kind, or to a field that was read."""
        if key in self._defaults or key in self._of_kind:
            return True
        read = [name for field in self.sources for name in self.names(field)]
        computed = (source.locator for source in self.sources.values() if " " in source.locator)
        return key in read or any(key in re.split(r"[^\w]", text) for text in computed)

    def _filled_in(self, key: str) -> Source:
        if not self._library:
            return Source(
                title="Code that comes with the weights",
                locator=key,
                note=f"default of that code; {self.title} does not state it",
            )
        file = f"configuration_{self._library}.py"
        return Source(
            title=f"{LIBRARY}, {file}",
            url=f"{_LIBRARY.url}/{self._library}/{file}",
            locator=key,
            note=f"default of the library; {self.title} does not state it",
        )

    def number(self, field: str, *, zero: bool = False) -> int | None:
        """Return a whole number, or `None` if it is null or absent.

        Raises
        ------
        ConfigError
            If the value is not a whole number, or out of range.
        """
        value = self.value(field)
        if isinstance(value, list):
            value = self._of_layer(field, value)
        if value is None:
            return None
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        if type(value) is not int or not (0 if zero else 1) <= value <= MOST:
            key = self.sources[field].locator
            raise ConfigError(
                f"{self.title}: {key} = {shown(value)} must be a whole number from "
                f"{0 if zero else 1} to {MOST:,}: correct it"
                + (", without quotes" if isinstance(value, str) else ""),
                argument=key,
            )
        return value

    def _of_layer(self, field: str, listed: list[Any]) -> Any:
        """Return a layer's item of a list with one for each."""
        key, layers = self.sources[field].locator, self.depth()
        if len(listed) != layers:
            raise ConfigError(
                f"{self.title}: {key} lists {len(listed)} numbers, but the model has {layers} "
                "layers: correct one of them",
                argument=key,
            )
        if self.layer is not None:
            return listed[self.layer]
        if any(type(item) is not int or item != listed[0] for item in listed):
            raise ConfigError(
                f"{self.title}: {key} = {shown(listed)} differs from layer to layer, which is not "
                "modeled: describe the network as a TransformerModel with a stack",
                argument=key,
            )
        return listed[0]

    def needed(self, field: str) -> int:
        """Return a required whole number.

        If it is missing, this is recorded and 1 returned, so that one error can list all missing
        keys.
        """
        found = self.number(field)
        if found is None:
            self.missing[field] = self.names(field)
            return 1
        return found

    def either(self, field: str, otherwise: int, from_: str) -> int:
        """Return a whole number or, if there is none, the value computed from `from_`."""
        found = self.number(field)
        if found is None:
            self.sources[field] = Source(title=self.title, locator=from_)
            return otherwise
        return found

    def count(self, field: str) -> int:
        """Return a whole number; absent and null mean zero."""
        return self.number(field, zero=True) or 0

    def flag(self, field: str | bool) -> bool:
        """Return a Boolean; absent or null means false.

        Raises
        ------
        ConfigError
            If the value is neither true nor false.
        """
        if isinstance(field, bool):
            return field
        value = self.value(field)
        if value is not None and not isinstance(value, bool):
            key = self.sources[field].locator
            raise ConfigError(
                f"{self.title}: {key} = {shown(value)} must be true or false, without quotes",
                argument=key,
            )
        return bool(value)

    def list_of(self, field: str, kind: type) -> list[Any] | None:
        """Return a list with one item for each layer, or `None`."""
        value = self.value(field)
        if value is None:
            return None
        if not isinstance(value, list) or not all(type(item) is kind for item in value):
            key = self.sources[field].locator
            raise ConfigError(
                f"{self.title}: {key} = {shown(value)} must be a list of {kind.__name__}",
                argument=key,
            )
        return value

    def depth(self) -> int:
        """Return the number of layers.

        Raises
        ------
        ConfigError
            If there are more than any network has, which would take long to read.
        """
        listed = self.value("layer_types")
        stated = self._stated("layers")
        if isinstance(listed, list) and listed and stated is None:
            layers = len(listed)
            self.sources["layers"] = self.sources["layer_types"]
        elif stated is not None and isinstance(stated[1], list):
            raise ConfigError(
                f"{self.title}: {stated[0]} = {shown(stated[1])} must be one whole number",
                argument=stated[0],
            )
        else:
            layers = self.needed("layers")
        if layers > MAX_LAYERS:
            raise ConfigError(
                f"{self.title}: {self.sources['layers'].locator} = {layers:,} is more than "
                f"{MAX_LAYERS:,} layers, the limit",
                argument=self.sources["layers"].locator,
            )
        return layers

    def check(self, model_type: str, known: str = "") -> None:
        """Reject a configuration that lacks required keys."""
        if not self.missing:
            return
        lines = [
            f"  {field}: {' or '.join(names[:3])}" for field, names in sorted(self.missing.items())
        ]
        raise ConfigError(
            f"{self.title} of model_type {shown(model_type)} does not state\n"
            + "\n".join(lines)
            + "\nAdd these keys to the file, or to the mapping with its content."
            + known,
            argument=next(iter(self.missing.values()))[0],
        )


_ABSENT = object()


@functools.cache
def _library_defaults() -> Mapping[str, Mapping[str, Any]]:
    contents: dict[str, dict[str, Any]] = json.loads(
        (DATA / "library_defaults.json").read_text(encoding="utf-8")
    )
    return contents


def defaults_of(library: str) -> Mapping[str, Any]:
    """Return the defaults of a configuration class of the library, by key."""
    return _library_defaults().get(library, {})


# Files with keys that need arithmetic before they describe layers: multipliers and blocks. Each
# function adds keys to those of the file, named after the keys from which they are computed, so
# that the source of a number is the file's own key.


def _whole(value: Any, key: str, title: str, most: int = 10**9) -> int:
    if type(value) is not int or not 1 <= value <= most:
        raise ConfigError(
            f"{title}: {key} = {shown(value)} must be a whole number from 1 to {most:,}",
            argument=key.partition(".")[0],
        )
    return value


def _factor(value: Any, key: str, title: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < 1_000:
        raise ConfigError(
            f"{title}: {key} = {shown(value)} must be a number above 0 and below 1,000",
            argument=key.partition(".")[0],
        )
    return float(value)


def _openelm(config: Mapping[str, Any], title: str) -> dict[str, Any]:
    """OpenELM: the width of a block is a multiple of the model's, rounded to a divisor."""
    factors = config.get("ffn_multipliers")
    if not isinstance(factors, list):
        return dict(config)
    hidden = _whole(config.get("model_dim"), "model_dim", title)
    step = _whole(config.get("ffn_dim_divisor", 256), "ffn_dim_divisor", title, 10**6)
    widths = []
    for factor in factors:
        wanted = _factor(factor, "ffn_multipliers", title) * hidden
        width = max(step, int(wanted + step / 2) // step * step)
        widths.append(width + step if width < 0.9 * wanted else width)
    return {**config, "model_dim * ffn_multipliers": widths}


def _nemotron_nas(config: Mapping[str, Any], title: str) -> dict[str, Any]:
    """Nemotron from a neural architecture search: each layer states its blocks, if any."""
    blocks = config.get("block_configs")
    if not isinstance(blocks, list):
        return dict(config)
    hidden = _whole(config.get("hidden_size"), "hidden_size", title)
    heads = _whole(config.get("num_attention_heads"), "num_attention_heads", title)
    kinds, kv_heads, widths = [], [], []
    for block in blocks:
        parts = block if isinstance(block, Mapping) else {}
        attention, mlp = parts.get("attention"), parts.get("ffn")
        if not isinstance(attention, Mapping) or not isinstance(mlp, Mapping):
            raise ConfigError(
                f"{title}: block_configs has {shown(block)}, which does not state attention and "
                "ffn",
                argument="block_configs",
            )
        for part in (attention, mlp):
            if any(part.get(key) for key in ("replace_with_linear", "sparsify", "window_length")):
                raise ConfigError(
                    f"{title}: block_configs has {shown(part)}, which is not modeled: describe the "
                    "network as a TransformerModel with a stack",
                    argument="block_configs",
                )
        kinds.append("mlp" if attention.get("no_op") is True else "full_attention")
        shared = attention.get("n_heads_in_group")
        kv_heads.append(
            1 if kinds[-1] == "mlp" else heads // _whole(shared, "n_heads_in_group", title, heads)
        )
        widths.append(0 if mlp.get("no_op") is True else _nas_width(mlp, hidden, title))
    return {
        **config,
        "layer_types": kinds,
        "num_attention_heads / block_configs.attention.n_heads_in_group": kv_heads,
        "hidden_size * block_configs.ffn.ffn_mult": widths,
    }


def _nas_width(mlp: Mapping[str, Any], hidden: int, title: str) -> int:
    factor = _factor(mlp.get("ffn_mult"), "block_configs.ffn.ffn_mult", title)
    return math.ceil(int(2 * factor * hidden / 3) / 256) * 256


def _gpt_neo(config: Mapping[str, Any], title: str) -> dict[str, Any]:
    """GPT-Neo: kinds of layers, and how often each list of them is repeated."""
    given = config.get("attention_types", [[["global", "local"], 12]])
    names = {"global": "full_attention", "local": "sliding_attention"}
    kinds: list[str] = []
    try:
        for listed, times in given:
            kinds += [names[kind] for kind in listed] * _whole(
                times, "attention_types", title, 2_000
            )
    except (KeyError, TypeError, ValueError):
        raise ConfigError(
            f"{title}: attention_types = {shown(given)} must hold lists of global and local, and "
            "how often each is repeated",
            argument="attention_types",
        ) from None
    return {**config, "layer_types": kinds}


def _lfm2(config: Mapping[str, Any], title: str) -> dict[str, Any]:
    """LFM2: the width of a block is two thirds of the one stated, rounded up."""
    if config.get("block_auto_adjust_ff_dim", True) is not True:
        return dict(config)
    key = "block_ff_dim" if config.get("block_ff_dim") is not None else "intermediate_size"
    width = 2 * _whole(config.get(key, 12_288), key, title) // 3
    factor = config.get("block_ffn_dim_multiplier", 1.0)
    if factor is not None:
        step = _whole(config.get("block_multiple_of", 256), "block_multiple_of", title)
        width = int(_factor(factor, "block_ffn_dim_multiplier", title) * width)
        width = -(-width // step) * step
    return {**config, "block_ff_dim, adjusted": max(1, width)}


def _mamba_ssm(config: Mapping[str, Any], title: str) -> dict[str, Any]:
    """Files of the package mamba_ssm, which pads the vocabulary and defines widths in its code."""
    own = config.get("ssm_cfg")
    layer = own if isinstance(own, Mapping) else {}
    for key in ("attn_layer_idx", "d_intermediate"):
        if config.get(key):
            raise ConfigError(
                f"{title}: {key} = {shown(config[key])} of mamba_ssm is not modeled: describe the "
                "network as a TransformerModel with a stack",
                argument=key,
            )
    made = dict(config)
    vocab, unit = config.get("vocab_size", 50_277), config.get("pad_vocab_size_multiple", 8)
    step = _whole(unit, "pad_vocab_size_multiple", title)
    made["vocab_size"] = math.ceil(_whole(vocab, "vocab_size", title) / step) * step
    if layer.get("layer") == "Mamba2":
        hidden = _whole(config.get("d_model"), "d_model", title)
        width = _whole(layer.get("headdim", 64), "ssm_cfg.headdim", title)
        inner = _whole(layer.get("expand", 2), "ssm_cfg.expand", title) * hidden
        made["d_model * ssm_cfg.expand / ssm_cfg.headdim"] = max(1, inner // width)
    return made


REWRITTEN: Mapping[str, Callable[[Mapping[str, Any], str], dict[str, Any]]] = {
    "openelm": _openelm,
    "nemotron-nas": _nemotron_nas,
    "deci": _nemotron_nas,
    "gpt_neo": _gpt_neo,
    "lfm2": _lfm2,
    "mamba_ssm": _mamba_ssm,
    "mamba2_ssm": _mamba_ssm,
}
"""Functions that compute the keys of a kind, from the file and its title."""


def kind_without_name(config: Mapping[str, Any]) -> str | None:
    """Return the kind of a file that does not state `model_type`, if its keys show it."""
    layer = config.get("ssm_cfg")
    if isinstance(layer, Mapping) and "d_model" in config:
        return "mamba2_ssm" if layer.get("layer") == "Mamba2" else "mamba_ssm"
    return None
