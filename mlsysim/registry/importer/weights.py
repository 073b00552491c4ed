"""Parameters in weight files, compared with those of the shape."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mlsysim.core.errors import ConfigError, shown
from mlsysim.core.files import named
from mlsysim.core.types import TransformerModel, find_precision
from mlsysim.registry.importer.documents import MAX_BYTES, copied, decoded, parsed, read_json
from mlsysim.registry.importer.formats import dtype_of

TOLERANCE = 0.005
_OTHER = re.compile(r"(^|\.)(vision|visual|audio|multi_modal_projector|mm_projector|embed_vision)")


def check_weights(model: TransformerModel, weights: Any, config: Mapping[str, Any]) -> None:
    """Compare a model with the index or the header of its weights.

    Parameters
    ----------
    model
        The model that was read from the configuration.
    weights
        Path of a ``model.safetensors.index.json`` or ``.safetensors`` file, or the contents of the
        index or of the header.
    config
        The configuration.

    Raises
    ------
    ConfigError
        If they differ by more than 0.5%, or the weights are quantized.
    """
    if config.get("quantization_config"):
        raise ConfigError(
            "weights: files of a quantized model contain scales and packed numbers, which are not "
            "parameters: leave weights out, or pass those of the model before quantization",
            argument="weights",
        )
    if isinstance(weights, Mapping):
        data, name = copied(weights, "weights"), "weights"
    else:
        path = decoded(weights)
        name = named(path)
        data = _header(path) if path.suffix == ".safetensors" else read_json(path)
    metadata = data.get("metadata")
    if isinstance(metadata, Mapping) and "total_size" in metadata:
        inner = config.get("text_config")
        stored = dtype_of(*([inner] if isinstance(inner, Mapping) else []), config)
        size = metadata["total_size"]
        if stored is None or type(size) not in (int, float) or size <= 0:
            raise ConfigError(
                f"{name}: metadata.total_size = {shown(size)} cannot be compared: it must be a "
                "number of bytes, and the configuration must state torch_dtype",
                argument="weights",
            )
        check_count(model, size / find_precision(stored).si("bytes_per_element"), name)
    else:
        check_count(model, _elements(data, name, towers=model.vision is not None), name)


def check_count(model: TransformerModel, elements: float, name: str) -> None:
    """Reject a number of elements other than the model's, with or without multi-token layers."""
    counted = model.si("parameters")
    mtp = model.mtp_parameters.to("param").magnitude
    table = model.vocab_size * model.hidden_dim  # files may repeat tables for these layers
    expected = (counted, counted + mtp, counted + mtp + 2 * table * model.mtp_layers)
    if not any(abs(elements / count - 1) <= TOLERANCE for count in expected):
        raise ConfigError(
            f"{name} holds {elements / 1e9:,.4g} billion parameters, but the configuration "
            f"describes {counted / 1e9:,.4g} billion: they belong to different models, or to parts "
            "that are not read, such as a vision tower",
            argument="weights",
        )


def _header(path: Path) -> dict[str, Any]:
    """Read the header of a .safetensors file: its length in 8 bytes, and JSON."""
    name = named(path)
    try:
        if not path.is_file():
            raise ConfigError(f"{name} is not a regular file")
        with path.open("rb") as file:
            length = int.from_bytes(file.read(8), "little")
            if not 2 <= length <= MAX_BYTES:
                raise ConfigError(
                    f"{name}: its header has {length:,} bytes; those of .safetensors files that "
                    f"are read have at most {MAX_BYTES:,}"
                )
            return parsed(file.read(length), name)
    except (OSError, ValueError) as fault:
        if isinstance(fault, ConfigError):
            raise
        raise ConfigError(f"{name} cannot be read: {shown(str(fault))}") from None


def _elements(header: Mapping[str, Any], name: str, *, towers: bool) -> float:
    total = 0
    for tensor, entry in header.items():
        if tensor == "__metadata__" or (_OTHER.search(tensor) and not towers):
            continue
        shape = entry.get("shape") if isinstance(entry, Mapping) else None
        if not isinstance(shape, list) or not all(type(n) is int and 0 <= n < 1e12 for n in shape):
            raise ConfigError(
                f"{name}: the tensor {shown(tensor)} has no shape: give the index or the header of "
                "a .safetensors file",
                argument="weights",
            )
        total += math.prod(shape)
    return float(total)
