"""Reading untrusted configurations: size, depth and kinds of values are limited."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from typing import Any

from mlsysim.core.errors import ConfigError, shown
from mlsysim.core.files import named, read_bytes

MAX_BYTES = 10 * 1024 * 1024
MAX_DEPTH = 20
MAX_VALUES = 200_000
MAX_KEY = 500
MAX_TEXT = 1_000_000
MAX_NUMBER = 1e30


def read_json(path: Path) -> dict[str, Any]:
    """Read a file that contains one JSON object.

    Raises
    ------
    ConfigError
        If it cannot be read, is larger than 10 MB, is not JSON, or is not an object.
    """
    return parsed(read_bytes(path, MAX_BYTES), named(path))


def parsed(content: bytes, name: str) -> dict[str, Any]:
    """Read one JSON object from bytes; `name` is for errors."""
    try:
        data = json.loads(content.decode("utf-8-sig"))
    except UnicodeDecodeError as fault:
        raise ConfigError(f"{name} is not UTF-8 text (byte {fault.start + 1})") from None
    except RecursionError:
        raise ConfigError(f"{name} is nested deeper than {MAX_DEPTH} levels") from None
    except ValueError as fault:  # not JSON, or an integer with thousands of digits
        raise ConfigError(f"{name} is not valid JSON: {shown(str(fault))}") from None
    return copied(data, name)


def copied(data: Any, name: str) -> dict[str, Any]:
    """Return a copy of a mapping with only plain data: dictionaries, lists and scalars.

    Raises
    ------
    ConfigError
        If it is not a mapping, or contains something that a JSON file could not or should not
        contain.
    """
    if not isinstance(data, Mapping):
        raise ConfigError(
            f"{name} holds {shown(data)}, not keys and values: give the contents of a config.json",
            argument="source",
        )
    taken: dict[str, Any] = _Copy(name).of(data, 0)
    return taken


class _Copy:
    def __init__(self, name: str) -> None:
        self._name = name
        self._values = 0

    def of(self, value: Any, depth: int) -> Any:
        self._values += 1
        if self._values > MAX_VALUES:
            raise ConfigError(f"{self._name} holds more than {MAX_VALUES:,} values, the limit")
        if depth > MAX_DEPTH:
            raise ConfigError(f"{self._name} is nested deeper than {MAX_DEPTH} levels, the limit")
        if value is None or isinstance(value, bool):
            return value
        if isinstance(value, str):
            if len(value) > MAX_TEXT:
                raise ConfigError(
                    f"{self._name} holds a text of more than {MAX_TEXT:,} characters, the limit"
                )
            return str(value)
        if type(value) in (int, float):
            # Infinity is in published files, as an upper limit of a time step.
            if isinstance(value, int) and abs(value) > MAX_NUMBER:
                raise ConfigError(f"{self._name}: a number is beyond {MAX_NUMBER:g}, the limit")
            return None if isinstance(value, float) and math.isnan(value) else value
        if isinstance(value, Mapping):
            return {self._key(key): self.of(item, depth + 1) for key, item in value.items()}
        if isinstance(value, list | tuple):
            return [self.of(item, depth + 1) for item in value]
        raise ConfigError(
            f"{self._name} holds {shown(value)}, which is not plain data: give text, numbers, "
            "Booleans, lists and mappings",
            argument="source",
        )

    def _key(self, key: Any) -> str:
        if not isinstance(key, str) or len(key) > MAX_KEY:
            raise ConfigError(
                f"{self._name}: the key {shown(key)} is not a text of at most {MAX_KEY} characters"
            )
        return str(key)


def decoded(source: Any) -> Path:
    """Return a path, or raise an error that explains how to give one."""
    if not isinstance(source, str | PathLike):
        raise ConfigError(
            f"source = {shown(source)} is neither a path nor a mapping: give the path of a "
            "config.json, of the directory that holds it or of a .gguf file, or its contents",
            argument="source",
        )
    return Path(source)
