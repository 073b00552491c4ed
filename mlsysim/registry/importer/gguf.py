"""Headers of GGUF files: metadata, shapes and formats of tensors; no weights are read."""

from __future__ import annotations

import dataclasses
import math
import struct
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any, BinaryIO

from mlsysim.core.errors import ConfigError, shown
from mlsysim.core.files import named
from mlsysim.core.types import Formats, TransformerModel, cite
from mlsysim.registry.importer.documents import copied
from mlsysim.registry.importer.keys import MAX_LAYERS
from mlsysim.registry.importer.model import model_of
from mlsysim.registry.importer.weights import check_count
from mlsysim.registry.tables import read_toml

_MOST_BYTES = 64 * 1024 * 1024
_MOST_ITEMS = 100_000
_MOST_TEXTS = 2_000_000
_KEPT = MAX_LAYERS

_TABLE = read_toml("architectures.toml")["gguf"]
_KINDS: Mapping[str, str] = _TABLE["kinds"]
_KEYS: Mapping[str, str] = _TABLE["keys"]
_TYPES: Mapping[int, tuple[str, str | None]] = {
    int(number): (name, formats[0] if formats else None)
    for number, (name, *formats) in _TABLE["types"].items()
}
_SCALARS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q"} | {
    12: "d"
}
_TEXT, _ARRAY = 8, 9
_PARTS = {
    "experts": "_exps.",
    "attention": ".attn_",
    "feed_forward": ".ffn_",
    "embeddings": "token_embd.",
}


def model_of_gguf(path: Path, *, name: str | None, seq_len: int | None) -> TransformerModel:
    """Return the model of a GGUF file.

    Raises
    ------
    ConfigError
        If the file is not GGUF, contains another kind of network, or has tensors that do not match
        its stated shape.
    """
    title = named(path)
    try:
        if not path.is_file():
            raise ConfigError(f"{title} is not a regular file")
        with path.open("rb") as file:
            metadata, tensors = _Header(file, title).read()
    except OSError as fault:
        raise ConfigError(f"{title} cannot be read: {fault.strerror}") from None
    except ValueError as fault:  # a null character in the path
        if isinstance(fault, ConfigError):
            raise
        raise ConfigError(f"{title} cannot be read: {shown(str(fault))}") from None
    config = _config(metadata, tensors, title)
    stated = metadata.get("general.name")
    own = name or (stated if isinstance(stated, str) and stated.strip() else path.stem)
    model = model_of(
        copied(config, title), name=own[:100], seq_len=seq_len, title="GGUF header", counted=True
    )
    held = sum(size for tensor, (size, _) in tensors.items() if "rope_f" not in tensor)
    check_count(model, float(held), title)
    return _with_formats(model, tensors)


def _config(
    metadata: Mapping[str, Any], tensors: Mapping[str, tuple[int, int]], title: str
) -> dict[str, Any]:
    """Return the metadata as the keys of a config.json."""
    kind = metadata.get("general.architecture")
    if not isinstance(kind, str) or kind not in _KINDS:
        raise ConfigError(
            f"{title}: general.architecture = {shown(kind)} is not read from GGUF files; known: "
            f"{', '.join(_KINDS)}. Pass the model's config.json instead",
            argument="source",
        )
    config: dict[str, Any] = {
        key: metadata[f"{kind}.{own}"] for own, key in _KEYS.items() if f"{kind}.{own}" in metadata
    }
    for key, value in config.items():
        if isinstance(value, list) and value and all(item == value[0] for item in value):
            config[key] = value[0]
    config["model_type"] = _KINDS[kind]
    config["num_hidden_layers"] = _less(config, "num_hidden_layers", "num_nextn_predict_layers")
    if kind == "llama" and config.get("num_experts"):
        config["model_type"] = "mixtral"
    if "tokens" in metadata:
        config.setdefault("vocab_size", metadata["tokens"])
    config["tie_word_embeddings"] = "output.weight" not in tensors
    config["attention_bias"] = "blk.0.attn_q.bias" in tensors
    if kind == "deepseek2":
        rope = metadata.get("deepseek2.rope.dimension_count")
        keys = metadata.get("deepseek2.attention.key_length_mla")
        config["qk_rope_head_dim"] = rope
        keys = keys or metadata.get("deepseek2.attention.key_length")
        config["qk_nope_head_dim"] = keys - rope if type(keys) is type(rope) is int else None
        config["v_head_dim"] = metadata.get("deepseek2.attention.value_length_mla") or metadata.get(
            "deepseek2.attention.value_length"
        )
        config.setdefault("q_lora_rank", None)
    return config


def _less(config: Mapping[str, Any], key: str, other: str) -> Any:
    value, part = config.get(key), config.get(other, 0)
    return value - part if type(value) is type(part) is int else value


def _with_formats(
    model: TransformerModel, tensors: Mapping[str, tuple[int, int]]
) -> TransformerModel:
    """Return the model with the format that most weights of each part have."""
    sizes: dict[str, Counter[int]] = {part: Counter() for part in _PARTS}
    for tensor, (size, kind) in tensors.items():
        part = next((part for part, mark in _PARTS.items() if mark in tensor), None)
        if part is not None and not tensor.endswith(".bias") and "norm" not in tensor:
            sizes[part][kind] += size
    most = {part: found.most_common(1)[0][0] for part, found in sizes.items() if found}
    known = {part: _TYPES.get(kind, (f"type {kind}", None)) for part, kind in most.items()}
    words = ", ".join(f"{part} mostly {name}" for part, (name, _) in known.items())
    unknown = [name for name, own in known.values() if own is None]
    note = f"{words}; {', '.join(unknown)} not modeled: pass a precision" if unknown else words
    formats = Formats(**{part: own for part, (_, own) in known.items()})
    source = dataclasses.replace(cite("gguf_types"), note=note)
    return dataclasses.replace(
        model, formats=formats, field_sources={**model.field_sources, "formats": source}
    )


class _Header:
    """Reads the header once, from its beginning."""

    def __init__(self, file: BinaryIO, name: str) -> None:
        self._file = file
        self._name = name
        self._left = _MOST_BYTES

    def read(self) -> tuple[dict[str, Any], dict[str, tuple[int, int]]]:
        if self._bytes(4) != b"GGUF":
            raise ConfigError(f"{self._name} is not a GGUF file: it does not begin with GGUF")
        version, tensors, pairs = self._unpack("I"), self._unpack("Q"), self._unpack("Q")
        if version not in (2, 3):
            raise ConfigError(f"{self._name}: version {version} of GGUF is not read, only 2 and 3")
        if max(tensors, pairs) > _MOST_ITEMS:
            raise ConfigError(
                f"{self._name} states {max(tensors, pairs):,} entries; the limit is {_MOST_ITEMS:,}"
            )
        metadata: dict[str, Any] = {}
        for _ in range(pairs):
            key = self._text()
            value = self._value(self._unpack("I"))
            if key == "tokenizer.ggml.tokens":
                metadata["tokens"] = value if isinstance(value, int) else len(value)
            else:
                metadata[key] = value
        return metadata, dict(self._tensor() for _ in range(tensors))

    def _tensor(self) -> tuple[str, tuple[int, int]]:
        name, dims = self._text(), self._unpack("I")
        if dims > 8:
            raise ConfigError(f"{self._name}: the tensor {shown(name)} has {dims} dimensions")
        size = math.prod(self._unpack("Q") for _ in range(dims))
        kind = self._unpack("I")
        self._unpack("Q")
        if size > 10**15:
            raise ConfigError(f"{self._name}: the tensor {shown(name)} has {size:,} elements")
        return name, (size, kind)

    def _value(self, kind: int) -> Any:
        if kind in _SCALARS:
            return self._unpack(_SCALARS[kind])
        if kind == _TEXT:
            return self._text()
        if kind != _ARRAY:
            raise ConfigError(f"{self._name}: metadata has a value of unknown type {kind}")
        inner, length = self._unpack("I"), self._unpack("Q")
        if inner == _ARRAY or length > (_MOST_TEXTS if inner == _TEXT else _MOST_BYTES):
            raise ConfigError(
                f"{self._name}: metadata has an array of {length:,} items or of arrays"
            )
        # Of longer arrays, such as the vocabulary of a tokenizer, only the number matters.
        if inner == _TEXT:
            for _ in range(length):
                self._bytes(self._unpack("Q"))
            return length
        if inner not in _SCALARS:
            raise ConfigError(f"{self._name}: metadata has values of unknown type {inner}")
        form = f"<{length}{_SCALARS[inner]}"
        held = self._bytes(struct.calcsize(form))
        return list(struct.unpack(form, held)) if length <= _KEPT else length

    def _text(self) -> str:
        return self._bytes(self._unpack("Q")).decode("utf-8", "replace")

    def _unpack(self, form: str) -> Any:
        return struct.unpack(f"<{form}", self._bytes(struct.calcsize(f"<{form}")))[0]

    def _bytes(self, count: int) -> bytes:
        self._left -= count
        if self._left < 0:
            raise ConfigError(
                f"{self._name}: its header is larger than {_MOST_BYTES // 2**20} MiB, the limit"
            )
        found = self._file.read(count)
        if len(found) < count:
            raise ConfigError(f"{self._name} ends within its header: it is incomplete")
        return found
