"""Files with keys that need arithmetic before they describe layers: multipliers and blocks.

Each function adds keys to those of the file, named after the keys from which they are computed, so
that the source of a number is the file's own key.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from mlsysim.core.errors import ConfigError, shown

__all__ = ["REWRITTEN", "kind_without_name"]


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
