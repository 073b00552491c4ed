"""Rules that `architectures.toml` names: kinds of layers that no list states, and others."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from mlsysim.core.errors import ConfigError, shown
from mlsysim.registry.importer.keys import Keys

# Kinds of layers, if the file does not list them


def windows(keys: Keys, layers: int) -> list[str]:
    """A window in every layer, unless it is null."""
    return ["sliding" if keys.count("window") else "full"] * layers


def late_windows(keys: Keys, layers: int) -> list[str]:
    """Qwen: windows in the layers from `max_window_layers`, if they are switched on."""
    window = keys.flag("use_sliding_window") and keys.count("window")
    first = keys.count("max_window_layers") if window else layers
    return ["sliding" if layer >= first else "full" for layer in range(layers)]


def every(period: int, other: str = "sliding", first: int = 1) -> Callable[..., list[str]]:
    """Full attention at a fixed interval of layers, and another kind in the others."""

    def kinds(keys: Keys, layers: int) -> list[str]:
        pattern = keys.value("period")
        step = len(pattern) if isinstance(pattern, str) and pattern else keys.number("period")
        step = step or period
        if other == "sliding" and not keys.count("window"):
            return ["full"] * layers
        return [other if (layer + first) % step else "full" for layer in range(layers)]

    return kinds


def llama4(keys: Keys, layers: int) -> list[str]:
    """Chunks in layers with positions; `no_rope_layers` has a 1 for each of them."""
    turned = keys.list_of("no_rope_layers", int)
    if turned:
        return ["chunked" if turn else "full" for turn in _as_long(keys, "no_rope_layers", layers)]
    return every(4, "chunked")(keys, layers)


def _as_long(keys: Keys, field: str, layers: int) -> list[Any]:
    listed = keys.value(field)
    if len(listed) != layers:
        raise ConfigError(
            f"{keys.title}: {field} lists {len(listed)} layers, but the model has {layers}: "
            "correct one of them",
            argument=field,
        )
    return list(listed)


def minimax(keys: Keys, layers: int) -> list[str]:
    """MiniMax-Text-01: `attn_type_list` has a 1 for each softmax layer."""
    if keys.list_of("attn_type_list", int):
        listed = _as_long(keys, "attn_type_list", layers)
        return ["full" if kind else "linear" for kind in listed]
    return ["full" if layer % 2 == 0 else "linear" for layer in range(layers)]


def softmax(keys: Keys, layers: int) -> list[str]:
    """MiniMax-M2: full attention, and a list that says so."""
    return minimax(keys, layers) if keys.list_of("attn_type_list", int) else ["full"] * layers


def linear(keys: Keys, layers: int) -> list[str]:
    """Linear attention in every layer."""
    return ["linear"] * layers


def full_at(key: str) -> Callable[[Keys, int], list[str]]:
    """Full attention in the layers that a key lists, and linear attention elsewhere."""

    def kinds(keys: Keys, layers: int) -> list[str]:
        spots = keys.list_of(key, int) or []
        return ["full" if layer in spots else "linear" for layer in range(layers)]

    return kinds


def lfm2(keys: Keys, layers: int) -> list[str]:
    """LFM2: attention in the layers that are listed, or in all; convolutions elsewhere."""
    spots = keys.list_of("full_attn_idxs", int)
    return ["full" if spots is None or layer in spots else "linear" for layer in range(layers)]


def kimi_linear(keys: Keys, layers: int) -> list[str]:
    """Kimi Linear: two lists of layers, which count from 1."""
    full, linear = (keys.list_of(field, int) for field in ("full_attn_layers", "kda_layers"))
    if full is None or linear is None:
        return ["full" if layer and layer % 4 == 0 else "linear" for layer in range(layers)]
    if sorted(full + linear) != list(range(1, layers + 1)):
        raise ConfigError(
            f"{keys.title}: full_attn_layers and kda_layers of linear_attn_config must have each "
            f"of the layers from 1 to {layers} once",
            argument="linear_attn_config",
        )
    return ["full" if layer + 1 in full else "linear" for layer in range(layers)]


def indexers(keys: Keys, layers: int) -> list[bool]:
    """GLM-5.2: layers with their own indexer, listed or at a fixed interval."""
    listed, field = keys.value("indexer_types"), "indexer_types"
    if listed is None:
        listed, field = keys.value("index_topk_pattern"), "index_topk_pattern"
    if listed is None:
        step = keys.count("index_topk_freq") or 1
        offset = keys.number("index_skip_topk_offset", zero=True)
        first = (2 if offset is None else offset) - 1
        return [max(layer - first, 0) % step == 0 for layer in range(layers)]
    names = {"full": True, "shared": False, "F": True, "S": False}
    kinds = list(listed) if isinstance(listed, str | list) else []
    known = len(kinds) == layers and all(isinstance(k, str) and k in names for k in kinds)
    if not known or not names[kinds[0]]:
        raise ConfigError(
            f"{keys.title}: {field} = {shown(listed)} must have full or shared for each of "
            f"{layers} layers, and full for the first",
            argument=field,
        )
    return [names[kind] for kind in kinds]


def jamba(keys: Keys, layers: int) -> list[str]:
    """Full attention at a fixed interval of layers, from an offset."""
    period, offset = keys.needed("attn_layer_period"), keys.count("attn_layer_offset")
    return ["full" if layer % period == offset else "linear" for layer in range(layers)]


_LETTERS = {"M": "linear", "*": "full", "-": "mlp", "E": "moe"}


def nemotron_h(keys: Keys, layers: int) -> list[str]:
    """One letter for each layer."""
    pattern = keys.value("hybrid_override_pattern")
    if not isinstance(pattern, str):
        keys.missing["layer_types"] = ("layers_block_type", "hybrid_override_pattern")
        return ["full"] * layers
    wrong = sorted(set(pattern) - set(_LETTERS))
    if wrong or len(pattern) != layers:
        raise ConfigError(
            f"{keys.title}: hybrid_override_pattern = {shown(pattern)} must have one of "
            f"{', '.join(_LETTERS)} for each of {layers} layers",
            argument="hybrid_override_pattern",
        )
    return [_LETTERS[letter] for letter in pattern]


# Layers with experts


def everywhere(keys: Keys, layers: int) -> list[bool]:
    """Experts in every layer, if there are any."""
    return [bool(keys.count("experts"))] * layers


def first_dense(keys: Keys, layers: int) -> list[bool]:
    """Experts after the first layers, as in DeepSeek."""
    dense = keys.count("dense_layers")
    step = keys.number("moe_layer_freq") or 1
    some = bool(keys.count("experts"))
    return [some and layer >= dense and layer % step == 0 for layer in range(layers)]


def sparse_steps(keys: Keys, layers: int) -> list[bool]:
    """Qwen: every `decoder_sparse_step`-th layer, but for those in `mlp_only_layers`."""
    step = keys.number("decoder_sparse_step") or 1
    dense = keys.list_of("mlp_only_layers", int) or []
    some = bool(keys.count("experts"))
    return [some and layer not in dense and (layer + 1) % step == 0 for layer in range(layers)]


def stated_experts(keys: Keys, layers: int) -> list[bool]:
    """Unknown kinds: by the keys of Qwen or of DeepSeek, whichever are present."""
    if any(keys.data.get(key) for key in ("mlp_only_layers", "decoder_sparse_step")):
        return sparse_steps(keys, layers)
    return first_dense(keys, layers)


def interleaved(keys: Keys, layers: int) -> list[bool]:
    """Llama 4."""
    listed = keys.list_of("moe_layers", int)
    if listed is not None:
        return [layer in listed for layer in range(layers)]
    step = keys.number("interleave_moe_layer_step") or 1
    return [(layer + 1) % step == 0 for layer in range(layers)]


def ernie(keys: Keys, layers: int) -> list[bool]:
    """Experts between a first and a last layer."""
    step = keys.number("moe_layer_interval") or 1
    end = keys.value("moe_layer_end_index")
    last = layers - 1 if end in (None, -1) else keys.count("moe_layer_end_index")
    first = keys.count("dense_layers")
    return [(layer + 1) % step == 0 and first <= layer <= last for layer in range(layers)]


def jamba_experts(keys: Keys, layers: int) -> list[bool]:
    """Experts at a fixed interval of layers, from an offset."""
    period, offset = keys.needed("expert_layer_period"), keys.count("expert_layer_offset")
    some = (keys.number("experts") or 1) > 1
    return [some and layer % period == offset for layer in range(layers)]


def gemma4_experts(keys: Keys, layers: int) -> list[bool]:
    """Experts in every layer, if they are switched on."""
    return [keys.flag("enable_moe_block")] * layers


# Norms and parameters of single kinds


def falcon_norms(keys: Keys) -> int:
    """Norms of a layer of Falcon."""
    if keys.flag("new_decoder_architecture"):
        return keys.number("num_ln_in_parallel_attn") or 2
    return 1 if keys.flag("parallel_attn") else 2


def kimi_norms(keys: Keys) -> int:
    """Kimi K3: each block attends to the residuals of earlier ones, with a norm and a query."""
    return 6 if keys.count("attn_res_block_size") else 2


def kimi_outside(keys: Keys) -> int:
    """The last norm and query over residuals."""
    return 2 * keys.needed("hidden_dim") if keys.count("attn_res_block_size") else 0


def stablelm_norms(keys: Keys) -> int:
    """Norms of a layer of StableLM."""
    return 1 if keys.flag("use_parallel_residual") else 2


def bert(keys: Keys) -> int:
    """Types of segments, the norm of embeddings, and the head that the architecture names."""
    hidden = keys.needed("hidden_dim")
    other = (keys.count("type_vocab_size") + 2) * hidden
    named = keys.data.get("architectures")
    if isinstance(named, list) and named and str(named[0]).endswith("Model"):
        return other + hidden * hidden + hidden  # the pooler
    return other + hidden * hidden + 3 * hidden + keys.needed("vocab_size")


def modernbert(keys: Keys) -> int:
    """The norm of embeddings replaces the first norm of the first layer."""
    named = keys.data.get("architectures")
    if isinstance(named, list) and named and str(named[0]).endswith("ForMaskedLM"):
        hidden = keys.needed("hidden_dim")
        return hidden * hidden + hidden + keys.needed("vocab_size")
    return 0


def bloom(keys: Keys) -> int:
    """The norm of embeddings."""
    return 2 * keys.needed("hidden_dim")


RULES: Mapping[str, Mapping[str, Callable[..., Any]]] = {
    field: {rule.__name__: rule for rule in rules}
    for field, rules in {
        "kinds": (
            *(every, full_at, windows, late_windows, linear, softmax),
            *(jamba, kimi_linear, lfm2, llama4, minimax, nemotron_h),
        ),
        "mixture": (
            *(everywhere, first_dense, sparse_steps, interleaved),
            *(ernie, gemma4_experts, jamba_experts),
        ),
        "indexers": (indexers,),
        "norms": (falcon_norms, kimi_norms, stablelm_norms),
        "outside": (bert, bloom, kimi_outside, modernbert),
    }.items()
}
"""Rules of each field of a reader, by name; `every` and `full_at` return one for their settings."""
