"""Devices and models that measurements call by name."""

from __future__ import annotations

import re

from mlsysim.core.types import Accelerator, TransformerModel
from mlsysim.registry import Hardware, Models
from mlsysim.validation.rows import Row, Skip

__all__ = ["accelerator_named", "model_named"]

# How published runs write models that the registry spells otherwise.
_MODELS = {
    "DeepSeekV3": "DeepSeek_V3",
    "GPT OSS 120B": "GPT_OSS_120B",
    "Qwen3_30B_a3B": "Qwen3_30B_A3B",
    "Qwen3_235B_a22B": "Qwen3_235B_A22B",
    "Kimi_K2": "Kimi_K2",
}


def _plain(text: str) -> str:
    return re.sub(r"[^a-z0-9]", "", text.lower())


def model_named(row: Row) -> TransformerModel:
    """Return the registry's model that a row without a shape names.

    Raises
    ------
    Skip
        If there is none, or it is not a transformer.
    """
    text = re.sub(r" \(.*\)$", "", row.text("model"))
    known = {_plain(name): name for name in Models.names()}
    found = _MODELS.get(text) or known.get(_plain(text))
    if found is None:
        raise Skip(f"model {row.text('model')!r}: no shape given, and none in the registry")
    model: object = Models[found]
    if not isinstance(model, TransformerModel):
        raise Skip(f"model {row.text('model')!r} is not a transformer")
    return model


def accelerator_named(label: str) -> Accelerator:
    """Return the registry's device whose name a label holds; the longest such name.

    Raises
    ------
    Skip
        If it holds none.
    """
    words, plain = re.findall(r"[a-z0-9]+", label.lower()), _plain(label)
    # A short name must be a word of its own: T4 is not part of another.
    held = [n for n in Hardware.names() if _plain(n) in (words if len(n) < 5 else plain)]
    if not held:
        raise Skip(f"hardware {label!r} is not in the registry")
    device: Accelerator = Hardware[max(held, key=len)]
    return device
