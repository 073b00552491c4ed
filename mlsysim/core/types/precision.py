"""Number formats and the bytes that each element takes."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from mlsysim.core.errors import ConfigError, shown
from mlsysim.core.fields import ReadOnlyMapping, Record, number, quantity, record
from mlsysim.core.units import Q_, Quantity


@record
class Precision(Record):
    """A number format."""

    name: str
    """Name in the API, such as ``"fp16"``."""
    bits: int = number(whole=True)
    """Bits per element in memory."""
    bytes_per_element: Quantity = quantity("byte")
    """Memory per element."""
    scale_bytes: Quantity = quantity("byte", zero=True)
    """Bytes of scale factors per weight in checkpoints; formats of 8 bits and more have too few to
    count."""
    training_bytes: Quantity = quantity("byte")
    """Memory per weight, gradient and activation in training, where formats narrower than 16 bits
    are used only in products."""


def _precision(name: str, bits: int, scale_bytes: float = 0) -> Precision:
    return Precision(
        name=name,
        bits=bits,
        bytes_per_element=Q_(bits / 8, "byte"),
        scale_bytes=Q_(scale_bytes, "byte"),
        training_bytes=Q_(max(bits, 16) / 8, "byte"),
    )


PRECISIONS: Mapping[str, Precision] = ReadOnlyMapping(
    {
        "fp64": _precision("fp64", 64),
        "fp32": _precision("fp32", 32),
        # TF32 is a mode of the matrix units; its tensors take four bytes per element.
        "tf32": _precision("tf32", 32),
        "fp16": _precision("fp16", 16),
        "bf16": _precision("bf16", 16),
        "fp8": _precision("fp8", 8),
        "int8": _precision("int8", 8),
        # NVFP4: a scale in FP8 for 16 weights (Alvarez et al., 2025, Introducing NVFP4,
        # https://developer.nvidia.com/blog/introducing-nvfp4-for-efficient-and-accurate-low-precision-inference/).
        "fp4": _precision("fp4", 4, 1 / 16),
        # A scale of one byte for 32 weights (OCP Microscaling Formats Specification 1.0, table 1,
        # https://www.opencompute.org/documents/ocp-microscaling-formats-mx-v1-0-spec-final-pdf).
        "mxfp4": _precision("mxfp4", 4, 1 / 32),
        # AWQ and GPTQ: a scale in 16 bits and a zero point in 4 for 128 weights.
        "int4": _precision("int4", 4, 2.5 / 128),
    }
)


def _file_format(name: str, bits: float) -> Precision:
    """Return a format by its mean bits per weight, scales and wider tensors included."""
    whole = int(bits)
    return _precision(name, whole, (bits - whole) / 8)


FILE_FORMATS: Mapping[str, Precision] = ReadOnlyMapping(
    {
        # Mean bits per weight of Llama 3.1 8B (llama.cpp, tools/quantize/README.md,
        # https://github.com/ggml-org/llama.cpp/blob/master/tools/quantize/README.md).
        name: _file_format(name, bits)
        for name, bits in {
            "iq1_s": 2.0042,
            "iq1_m": 2.1460,
            "iq2_xxs": 2.3824,
            "iq2_xs": 2.5882,
            "iq2_s": 2.7403,
            "iq2_m": 2.9294,
            "iq3_xxs": 3.2548,
            "iq3_s": 3.6606,
            "iq3_m": 3.7628,
            "iq4_xs": 4.4597,
            "iq4_nl": 4.6818,
            # Blocks of 32 weights and a scale in 16 bits.
            "q4_0": 4.5,
            "q2_k_s": 2.9697,
            "q2_k": 3.1593,
            "q3_k_s": 3.6429,
            "q3_k_l": 4.2979,
            "q4_k_s": 4.6672,
            "q4_k_m": 4.8944,
            "q5_k_s": 5.5704,
            "q5_k_m": 5.7036,
            "q6_k": 6.5633,
            "q8_0": 8.5008,
        }.items()
    }
)
"""Formats of GGUF files: only for storage, so `weight_precision` takes them and `precision` does
not. Tensors of a file differ in width, so the bits are means."""


def find_precision(name: Any, argument: str = "precision", *, files: bool = False) -> Precision:
    """Look a precision up by name.

    Parameters
    ----------
    name
        Its name, or the precision itself.
    argument
        Name of the solver's argument, for the error.
    files
        Whether formats of GGUF files are admitted, in which devices only store weights.

    Raises
    ------
    ConfigError
        If there is no such precision; the message lists all of them.
    """
    known = {**PRECISIONS, **FILE_FORMATS} if files else PRECISIONS
    if isinstance(name, Precision) and name == known.get(name.name):
        return name
    if not isinstance(name, str) or name not in known:
        same = isinstance(name, str) and name.lower() in known
        hint = f'; did you mean "{name.lower()}"?' if same else ""
        raise ConfigError(
            f"{argument} = {shown(name)} is unknown; choose one of {', '.join(known)}{hint}",
            argument=argument,
        )
    return known[name]


@record
class Formats(Record):
    """Published number formats of parts of a model, if they differ.

    Servers keep these parts in these formats, with block scales, whatever `weight_precision` is.
    With `None`, that argument applies to the part. Training ignores them.

    Attributes
    ----------
    attention, feed_forward, experts, embeddings : str or None
        Formats of the weights of attention, of feed-forward blocks without experts and shared
        experts, of experts, and of the embedding tables.
    state : str or None
        Format of the state that linear attention keeps for a sequence.
    """

    # Callers may give names; the record stores the formats.
    attention: Any = None
    feed_forward: Any = None
    experts: Any = None
    embeddings: Any = None
    state: Any = None

    def __post_init__(self) -> None:
        super().__post_init__()
        for item in dataclasses.fields(self):
            if (name := getattr(self, item.name)) is not None:
                self._keep(item.name, find_precision(name, f"Formats.{item.name}", files=True))
