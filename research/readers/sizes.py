"""Models for which a measurement gives a name, but no shape: variants, and sizes alone.

A name that contains a known model's name and size, such as "gemma-4-31B-it-QAT", is a variant with
the same shape. Otherwise the name states at least how many parameters the model has, and often how
many each token uses ("30B-A3B"). Decode reads the parameters in use once per token, so their number
determines most of its time. The rest of the shape then comes from the nearest of a few well-known
models.
"""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, TypeVar

from mlsysim.core.types import (
    Attention,
    FeedForward,
    Layers,
    MoETransformerModel,
    SlidingWindow,
    Source,
    TransformerModel,
)
from mlsysim.registry import Models
from research.readers.aliases import find_model, model_named, spellings
from research.rows import Row, Skip

_Shape = TypeVar("_Shape", bound=TransformerModel)

_TEMPLATES = (
    "SmolLM2_135M",
    "SmolLM2_360M",
    "Qwen3_0_6B",
    "Qwen3_1_7B",
    "Qwen3_4B",
    "Qwen3_8B",
    "Qwen3_14B",
    "Qwen3_32B",
    "Llama3_70B",
    "Llama3_405B",
)
_MIXTURES = ("Qwen3_30B_A3B", "Qwen3_235B_A22B", "DeepSeek_V3")
_ALWAYS_MIXTURES = {35: "Qwen3_5_35B_A3B", 36: "Qwen3_5_35B_A3B"}
"""Sizes in billions that today's open models have only as mixtures of experts. Names of fine-tunes
often leave out the active part: all `calibrate` rows of this size run at this model's rate."""
_DENSE = re.compile(r"seed-?oss")
"""Names of dense models with one of these sizes."""
_RESHAPED = re.compile(r"prun|reap|draft|eagle|dflash|upscale|merge|moe", re.IGNORECASE)
"""Words in names of models whose shape differs from that of the model they are made of."""
_LARGEST_DENSE = 100e9
"""Parameters above which a model without a stated active part may be a mixture of experts."""
_SMALLEST = 50e6
"""Parameters below which a number with an M is the length of a context."""
_OWN_SIZES = {
    # As their cards state them.
    "phi-3-medium": (14e9, 14e9),
    "mistral-nemo": (12.2e9, 12.2e9),
    "granite-4.0-h-small": (32e9, 9e9),
    "laguna-xs": (33e9, 3e9),
    # "Granite 4.0 Nano: Just how small can you go?" (IBM), and the shape in Ollama's library.
    "granite-4.0-1b": (1.63e9, 1.63e9),
    "granite-4.0-h-1b": (1.5e9, 1.5e9),
}
"""Sizes of models whose names do not state them, or round them by a third."""
_COUNT = r"(\d+(?:\.\d+)?)"
_ACTIVE = re.compile(rf"(?<![a-z0-9.]){_COUNT}b-?a{_COUNT}([bm])(?![a-z0-9])")
# E4B: four billion parameters take part in products, and the others are tables. R7B is of Cohere.
_WHOLE = re.compile(rf"(?<![a-z0-9.])[er]?{_COUNT}([bm])(?![a-z0-9])")
_WORD = re.compile(r"[-_:\s/]+")
_SIZE_WORD = re.compile(r"[ae]?\d+(\.\d+)?[bm]")
ESTIMATE = Source(
    title="Estimated from the size in a name",
    checked="2026-11-22",
    note="only the parameters are stated; the shape is scaled from a model of similar size",
)

_WINDOW = SlidingWindow(tokens=512)


def _gemma(
    name: str, hidden: int, kv: int, blocks: tuple[tuple[int, int], ...], full: range
) -> Any:
    """Return the part of a Gemma 4 model that reads every weight for every token."""
    attention: dict[str, Any] = {"heads": 8, "kv_heads": kv}
    last, stack = 0, []
    for count, width in blocks:
        block = FeedForward(width=width, gated=True)
        places = range(last, last + count)
        for near in (True, False):
            found = tuple(place for place in places if (place in full) != near)
            reach = {"head_dim": 256, "reach": _WINDOW} if near else {"head_dim": 512}
            heads = Attention(**attention, **reach)
            stack.append(Layers(at=found, attention=heads, feed_forward=block))
        last += count
    return TransformerModel(
        name=name,
        source=_GEMMA_SOURCE,
        hidden_dim=hidden,
        vocab_size=262_144,
        seq_len=4_096,
        tied_embeddings=True,
        stack=tuple(stack),
    )


_GEMMA_SOURCE = Source(
    title="google/gemma.cpp, pull request 919: configurations of Gemma 4 E2B and E4B",
    url="https://github.com/google/gemma.cpp/pull/919",
    checked="2026-11-23",
    note="heads as in the recipe of Megatron Bridge for E4B; tables of embeddings per layer, from "
    "which a token reads one row, and the small matrices that project it are left out",
)
_PARTS: Mapping[str, TransformerModel] = {
    # In E2B, the layers that read the keys of earlier ones have blocks twice as wide.
    "e2b": _gemma("Gemma 4 E2B", 1_536, 1, ((15, 6_144), (20, 12_288)), range(4, 35, 5)),
    "e4b": _gemma("Gemma 4 E4B", 2_560, 2, ((42, 10_240),), range(5, 42, 6)),
}
"""The part of a model that is read for each token, if most of the model is tables."""
_PART = re.compile(r"gemma-?4[-:_](e[24]b)(?![a-z0-9])")


def stated_size(row: Row) -> tuple[float, float] | None:
    """Return the parameters of a row's model, and those in use per token; `None` if not stated.

    The name comes first, because the column `params_b` counts what a hub does: elements of packed
    weights.
    """
    name = row.text("model").rsplit("/", 1)[-1].lower()
    for start, size in _OWN_SIZES.items():
        if start in name:
            return size
    if found := _ACTIVE.search(name):
        return float(found[1]) * 1e9, float(found[2]) * (1e9 if found[3] == "b" else 1e6)
    for number, unit in _WHOLE.findall(name):
        total = float(number) * (1e9 if unit == "b" else 1e6)
        if total >= _SMALLEST:
            return total, total
    whole = row.number("params_b")
    if not whole or whole <= 0:
        return None
    return whole * 1e9, (row.number("active_b") or whole) * 1e9


def _count(parameters: Any) -> float:
    return float(parameters.to("param").magnitude)


def _nearest(keys: tuple[str, ...], total: float, active: float) -> Any:
    def distance(key: str) -> float:
        model: Any = Models[key]
        used, whole = _count(model.active_parameters), _count(model.parameters)
        return abs(math.log(used / active)) + abs(math.log(whole / total))

    return Models[min(keys, key=distance)]


def of_size(total: float, active: float) -> TransformerModel:
    """Return a model with `total` parameters, of which a token uses `active`.

    A dense model has the width of its feed-forward blocks scaled, a mixture its layers and then
    its experts.

    Raises
    ------
    Skip
        If no template can be scaled to that size.
    """
    key = _ALWAYS_MIXTURES.get(round(total / 1e9))
    if key and (active >= total or round(active / 1e9) == 3):
        model: TransformerModel = Models[key]
        return model
    if active >= total > _LARGEST_DENSE:
        raise Skip(
            f"a model of {total / 1e9:g}B may be a mixture of experts: its name does not state "
            "how many parameters a token uses"
        )
    return _dense(total) if active >= total else _mixture(total, active)


def _named(model: _Shape, **changes: Any) -> _Shape:
    """Return a model that is known by its size alone, with some of its shape changed."""
    nothing: dict[str, Any] = {"field_sources": {}, "estimated": frozenset(), "context": None}
    return replace(model, source=ESTIMATE, parameters=None, **nothing, **changes)


def _dense(total: float) -> TransformerModel:
    base: TransformerModel = _nearest(_TEMPLATES, total, total)
    block = base.layers * base.mlp_matrices * base.hidden_dim
    width = round((total - _count(base.parameters)) / block + base.ffn_dim)
    if width < 1:
        raise Skip(f"{total / 1e9:g} billion parameters are fewer than the smallest known model's")
    return _named(base, name=f"dense model of {total / 1e9:g}B", ffn_dim=width)


def _mixture(total: float, active: float) -> TransformerModel:
    base: MoETransformerModel = _nearest(_MIXTURES, total, active)
    layers = max(2, round(base.layers * active / _count(base.active_parameters)))
    dense = max(0, min(base.layers - base.moe_layers, layers - 1))
    count = layers - dense
    each = count * 3 * base.hidden_dim * base.expert_ffn_dim
    name = f"mixture of {total / 1e9:g}B, {active / 1e9:g}B active"
    # Groups of experts need not divide the number that follows from the size.
    own: dict[str, int] = {"expert_groups": 1, "groups_per_token": 1, "mtp_layers": 0}
    few = _named(base, name=name, layers=layers, moe_layers=count, **own)
    experts = round(base.experts + (total - _count(few.parameters)) / each)
    if experts < base.experts_per_token:
        raise Skip(f"{active / 1e9:g} of {total / 1e9:g} billion active parameters fit no template")
    return replace(few, experts=experts, parameters=None)


def _words(name: str) -> tuple[str, ...]:
    return tuple(word for word in _WORD.split(name.lower()) if word)


@functools.cache
def _sized_names() -> tuple[tuple[tuple[str, ...], str], ...]:
    """Return the words of all known names that state a size, longest first."""
    found: dict[tuple[str, ...], str] = {}
    for name, key in spellings():
        words = _words(name.rsplit("/", 1)[-1])
        for end in (words, words[:-1] if words and words[-1].startswith("a") else ()):
            if len(end) > 1 and any(_SIZE_WORD.fullmatch(word) for word in end[1:]):
                found.setdefault(end, key)
    return tuple(sorted(found.items(), key=lambda item: -len(item[0])))


def variant_of(label: str) -> TransformerModel | None:
    """Return the known model whose name and size a label contains, or `None`."""
    if _RESHAPED.search(label):
        return None
    words = _words(re.sub(r"\.gguf$", "", label.rsplit("/", 1)[-1], flags=re.IGNORECASE))

    parts = {words[at:end] for at in range(len(words)) for end in range(at, len(words) + 1)}
    key = next((key for part, key in _sized_names() if part in parts), None)
    model = None if key is None else Models[key]
    return model if isinstance(model, TransformerModel) else None


def model_or_estimate(row: Row) -> tuple[TransformerModel, str]:
    """Return a row's model, and what was assumed about it; empty if it is in the registry.

    Raises
    ------
    Skip
        If neither its name nor the row's columns state its shape or its size.
    """
    try:
        return model_named(row), ""
    except Skip as unknown:
        if find_model(row.text("model")) is not None:  # known, but not a transformer
            raise
        part = _PART.search(row.text("model").lower())
        model = _PARTS[part[1]] if part else variant_of(row.text("model"))
        if model is not None:
            return model, f"shape of {model.name}"
        size = stated_size(row) if not _RESHAPED.search(row.text("model")) else None
        if size is None:
            raise unknown
        dense = _DENSE.search(row.text("model").lower())
        model = _dense(size[0]) if dense else of_size(*size)
        return model, f"shape estimated from its size: {model.name}"
