"""Formats that published runs name by a label, and models as files in these formats hold them."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

from mlsysim.core.errors import shown
from mlsysim.core.types import (
    FILE_FORMATS,
    Accelerator,
    Experts,
    Formats,
    TransformerModel,
    find_precision,
)
from research.readers.sizes import ESTIMATE
from research.rows import Skip

_STORED = (
    # Of mixtures that the table of llama.cpp does not have, the next wider one counts.
    (r"(q8_0|q8_k_xl)", "q8_0"),
    (r"q6_k(_\w+)?", "q6_k"),
    (r"q5_k(_[mlp]|_xl)?", "q5_k_m"),
    (r"q4_k(_[mlp]|_xl)?", "q4_k_m"),
    (r"q3_k(_[mlp]|_xl)?", "q3_k_l"),
    (r"q2_k(_[mlp]|_xl)?", "q2_k"),
    # MLX keeps a scale and an offset in 16 bits for 64 weights: half a bit per weight.
    (r"(mlx-)?8bit", "q8_0"),
    (r"(mlx-)?6bit", "q6_k"),
    (r"(mlx-)?4bit", "q4_0"),
    (r"int8", "int8"),
    (r"int4|gptq4?|awq", "int4"),
    (r"nvfp4|fp4", "fp4"),
    (r"mxfp4", "mxfp4"),
    (r"fp8", "fp8"),
    (r"(f16|fp16)( \(gguf\))?", "fp16"),
    (r"bf16|bfloat16|16 bit \(fp16 or bf16\)", "bf16"),
)
_HEADS = {"q8_0": "q8_0"}
"""Formats of the embeddings and the output projection in GGUF files; narrower ones have Q6_K."""
_BLOCK = 256
"""Weights in a block of the formats of GGUF with K or I in their name. Matrices whose rows are no
multiple of it are stored in wider formats of 32 weights (llama.cpp, src/llama-quant.cpp)."""
_MIXED = {
    "q2_k": (2.625, 4.5),
    "q3_k_l": (3.4375, 6.0),
    "q4_k_s": (4.5, 5.5),
    "q4_k_m": (4.5, 7.0),
    "q5_k_s": (5.5, 6.0),
    "q5_k_m": (5.5, 7.25),
    "q6_k": (6.5625, 8.5),
}
"""Bits of the first matrices of a feed-forward block, and of its last one if the block's width is
no multiple of `_BLOCK`: the format that replaces its own, on average over layers."""
_FALLBACK = ((3.6, "q4_0"), (4.4, "iq4_nl"), (5.0, "q5_k_m"), (6.0, "q6_k"), (7.0, "q8_0"))
"""The format with about as many bits as the wider one, for formats of up to so many bits."""
_KEPT = {"fp8": "fp8", "fp8_e4m3": "fp8", "q8_0": "int8", "q4_0": "int4"}
_KEPT_WIDE = ("16 bit", "f16", "fp16", "bf16")


def formats_of(label: str, kept: str, device: Accelerator) -> tuple[str, str, str]:
    """Return the formats of arithmetic, weights, and keys and values.

    Arithmetic is in the format of the weights if the device supports it, otherwise in 16 bits. If
    `kept`, the format of keys and values, is not stated, it is assumed to be 8 bits for weights in
    FP8 or FP4, and 16 bits otherwise.

    Raises
    ------
    Skip
        If the label names no format that weights are stored in.
    """
    text = re.sub(r"^(ud|unsloth)-|-qat$", "", label.lower())
    stored = text if text in FILE_FORMATS else None
    stored = stored or next((name for words, name in _STORED if re.fullmatch(words, text)), None)
    if text in ("", "unstated"):
        raise Skip("the format of the weights is not stated")
    if stored is None:
        raise Skip(f"weight_precision = {shown(label)}: weights of that width are not modeled")
    rates = device.compute.precisions
    wide = "bf16" if "bf16" in rates else "fp16"
    if find_precision(stored, files=True).bits >= 16:
        arithmetic = stored if stored in rates else wide
        stored = arithmetic
    else:
        arithmetic = stored if stored in ("fp8", "fp4") and stored in rates else wide
    return arithmetic, stored, _kept(kept.lower(), arithmetic, wide)


def as_stored(model: TransformerModel, stored: str) -> TransformerModel:
    """Return a model as its checkpoint holds it.

    GGUF files have narrow embeddings as well. Checkpoints of Qwen3.5 and Qwen3.6 in NVFP4 run at
    the rate of attention in 16 bits, in all `calibrate` rows.
    """
    if stored == "fp4" and model.name.startswith("Qwen3.5"):
        return replace(model, formats=replace(model.formats or Formats(), attention="bf16"))
    if stored not in FILE_FORMATS:
        return model
    head = _HEADS.get(stored, "q6_k")
    own: dict[str, Any] = {}
    if model.hidden_dim % _BLOCK:
        head = "q8_0"
        own = dict.fromkeys(("attention", "feed_forward", "experts"), _without_blocks(stored))
    elif stored in _MIXED and model.source != ESTIMATE:
        own = _with_wide_ends(model, stored)
    return replace(model, formats=replace(model.formats or Formats(), embeddings=head, **own))


def _with_wide_ends(model: TransformerModel, stored: str) -> dict[str, str]:
    """Return the formats of the blocks whose last matrix has rows of no whole number of blocks.

    Such are the experts of Gemma 4 26B-A4B, which are 704 wide, and those of Nemotron 3 Nano. The
    format is the one with about as many bits as the matrices have on average.
    """
    found: dict[str, str] = {}
    first, last = _MIXED[stored]
    for group in model.groups:
        block = group.feed_forward
        if block is None:
            continue
        mean = (first * (block.matrices - 1) + last) / block.matrices
        nearest = _nearest_format(mean)
        mixture = isinstance(block, Experts)
        widths = {"experts" if mixture else "feed_forward": block.width}
        if isinstance(block, Experts) and block.shared_width:
            widths["feed_forward"] = block.shared_width
        found |= {part: nearest for part, width in widths.items() if width % _BLOCK}
    return found


def _nearest_format(bits: float) -> str:
    return min(FILE_FORMATS, key=lambda name: abs(_bits(name) - bits))


def _bits(stored: str) -> float:
    """Return the mean bits of a weight in a format of files."""
    form = FILE_FORMATS[stored]
    return float(8 * (form.si("bytes_per_element") + form.si("scale_bytes")))


def _without_blocks(stored: str) -> str:
    """Return the format of a matrix whose rows are no multiple of a block."""
    if stored in ("q8_0", "q4_0", "iq4_nl"):
        return stored
    return next(name for most, name in _FALLBACK if _bits(stored) <= most)


def _kept(label: str, arithmetic: str, wide: str) -> str:
    if label in ("", "unstated"):
        return "fp8" if arithmetic in ("fp8", "fp4") else wide
    if label in _KEPT_WIDE:
        return wide
    if label not in _KEPT:
        raise Skip(f"kv_precision = {shown(label)}: keys and values of that width are not modeled")
    return _KEPT[label]
