"""Files of plain data in YAML or JSON: their text, their size limit, and their reader."""

from __future__ import annotations

from os import PathLike
from pathlib import Path

from mlsysim.config.document import Document
from mlsysim.config.faults import Fault, refusal
from mlsysim.config.json_reader import read_json
from mlsysim.config.yaml_reader import read_yaml
from mlsysim.core.errors import ConfigError, shown
from mlsysim.core.files import named, read_bytes

__all__ = ["MAX_BYTES", "read_file", "read_text"]

MAX_BYTES = 64 * 1024
"""Larger files are rejected. A configuration takes one or two thousand bytes."""

_READERS = {"yaml": read_yaml, "json": read_json}
_FORMATS = {".yaml": "yaml", ".yml": "yaml", ".json": "json"}


def read_file(path: str | Path) -> Document:
    """Read a file, as YAML or JSON by its suffix.

    Raises
    ------
    ConfigError
        If the file cannot be read, or is neither YAML nor JSON. Lesser faults are recorded in the
        document.
    """
    if not isinstance(path, (str, PathLike)):
        raise ConfigError(
            f"path = {shown(path)} is not a path: give one such as 'run.yaml'", argument="path"
        )
    place = Path(path)
    kind = _FORMATS.get(place.suffix.lower())
    if kind is None:
        raise _refused(place.name, f"has no suffix of {', '.join(_FORMATS)}")
    return _READERS[kind](_decoded(_bytes_of(place), place.name), place.name)


def read_text(text: str, kind: str) -> Document:
    """Read text, as ``"yaml"`` or ``"json"``.

    Raises
    ------
    ConfigError
        If the text is not of this kind. Lesser faults are recorded in the document.
    """
    if not isinstance(kind, str) or kind not in _READERS:
        raise ConfigError(
            f"kind = {shown(kind)} is unknown: choose one of {', '.join(_READERS)}",
            argument="kind",
        )
    if not isinstance(text, str):
        raise ConfigError(f"text must be a str, not {type(text).__name__}", argument="text")
    if len(text) > MAX_BYTES:
        limit = f"is larger than {MAX_BYTES // 1024} KiB: configurations are smaller"
        raise _refused("", limit)
    return _READERS[kind](_printable(text, ""))


def _refused(file: str, message: str) -> ConfigError:
    return refusal([Fault(named(file), None, "", message)])


def _bytes_of(path: Path) -> bytes:
    try:
        return read_bytes(path, MAX_BYTES)
    except ConfigError as fault:
        raise _refused(str(path), fault.message.removeprefix(f"{named(path)} ")) from None


def _decoded(content: bytes, file: str) -> str:
    try:
        return _printable(content.decode("utf-8-sig"), file)
    except UnicodeDecodeError as fault:
        line = content.count(b"\n", 0, fault.start) + 1
        message = f"is not UTF-8 text (byte {fault.start + 1})"
        raise refusal([Fault(file, line, "", message)]) from None


def _printable(text: str, file: str) -> str:
    if "\0" in text:
        raise _refused(file, "is binary, not text")
    if not text.strip():
        raise _refused(file, "is empty")
    return text
