"""Models from published configuration files: a path or a mapping in, a model out."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mlsysim.core.errors import ConfigError, shown
from mlsysim.core.files import UNPRINTABLE, named
from mlsysim.core.types import TransformerModel
from mlsysim.registry.importer.documents import copied, decoded, read_json
from mlsysim.registry.importer.model import model_of

__all__ = ["from_config", "model_of"]


def from_config(
    source: Any, *, name: str | None = None, seq_len: int | None = None, weights: Any = None
) -> TransformerModel:
    """See `Models.from_config`."""
    if seq_len is not None and (type(seq_len) is not int or not 1 <= seq_len <= 10**9):
        raise ConfigError(
            f"seq_len = {shown(seq_len)} must be a whole number of tokens from 1",
            argument="seq_len",
        )
    if name is not None and (not isinstance(name, str) or not name.strip()):
        raise ConfigError(f"name = {shown(name)} must be a text", argument="name")
    if isinstance(source, Mapping):
        config, label = copied(source, "the mapping"), ""
    else:
        path = decoded(source)
        if path.suffix.lower() == ".gguf":
            from mlsysim.registry.importer.gguf import model_of_gguf

            return model_of_gguf(path, name=name, seq_len=seq_len)
        try:
            inside = path.is_dir()
        except (OSError, ValueError):  # a null character, or a name that is too long
            inside = False
        file = path / "config.json" if inside else path
        if not _there(file):
            raise ConfigError(
                f"{named(file)} cannot be read: there is no such file; only local files are read, "
                "so download the model's config.json first, and give its path",
                argument="source",
            )
        config = _with_quantization(read_json(file), path) if inside else read_json(file)
        label = file.resolve().parent.name if file.name == "config.json" else file.stem
    model = model_of(config, name=name or _name(config, label), seq_len=seq_len)
    if weights is not None:
        from mlsysim.registry.importer.weights import check_weights

        check_weights(model, weights, config)
    return model


def _there(file: Path) -> bool:
    try:
        return file.exists()
    except (OSError, ValueError):  # the function that reads the file reports the error
        return True


def _with_quantization(config: dict[str, Any], directory: Path) -> dict[str, Any]:
    """Return a configuration with the formats from the separate file of older checkpoints."""
    file = directory / "hf_quant_config.json"
    if config.get("quantization_config") or not file.is_file():
        return config
    stated = read_json(file).get("quantization")
    return {**config, "quantization_config": stated} if isinstance(stated, dict) else config


def _name(config: Mapping[str, Any], label: str) -> str:
    """Return the name stated in the file, or that of its directory, or its kind."""
    stated = config.get("_name_or_path")
    own = stated.rstrip("/").rpartition("/")[2] if isinstance(stated, str) else ""
    given = own or label or str(config.get("model_type") or "model")
    return UNPRINTABLE.sub("", given)[:100] or "model"
