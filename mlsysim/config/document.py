"""Documents: plain data, and the line of each value.

The readers of YAML and JSON share the rules below. A plain scalar is `null`, `true`, `false`, a
JSON number, or text. Nothing else is interpreted: `yes`, `0o17` and `1:30` are text.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from mlsysim.config.faults import Fault, KeyPath, refusal, spell
from mlsysim.core.errors import ConfigError
from mlsysim.core.files import UNPRINTABLE

__all__ = ["MAX_DEPTH", "MAX_NUMBER", "MAX_VALUES", "Document", "document_of", "scalar_of"]

MAX_DEPTH = 20
MAX_VALUES = 5000
MAX_NUMBER = 1e30
_MAX_TEXT = 10_000
_NUMBER = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?")
_NOT_FINITE = re.compile(r"[-+]?\.?(inf|infinity|nan)", re.IGNORECASE)
_WORDS = {"null": None, "true": True, "false": False, "": None}


@dataclass
class Document:
    """The document that was read.

    Attributes
    ----------
    data : object
        Mappings, lists, text, numbers, Booleans and `None`.
    file : str
        Name of the file; empty if there is none.
    lines : dict
        Line of each key path.
    faults : list of Fault
        Faults found by the reader.
    """

    data: Any = None
    file: str = ""
    lines: dict[KeyPath, int] = field(default_factory=dict)
    faults: list[Fault] = field(default_factory=list)
    spoiled: set[KeyPath] = field(default_factory=set)
    """Key paths that already have a fault, so that their values are invalid."""
    values: int = 0

    def fault(self, path: KeyPath, message: str, line: int | None = None) -> None:
        """Record a fault, unless the same place already has one."""
        if any(path[:end] in self.spoiled for end in range(len(path) + 1)):
            return
        self.spoiled.add(path)
        self.also(path, message, line)

    def also(self, path: KeyPath, message: str, line: int | None = None) -> None:
        """Record a fault, even if the place already has one."""
        self.faults.append(Fault(self.file, line or self.line_of(path), spell(path), message))

    def stop(self, message: str, line: int | None = None, path: KeyPath = ()) -> ConfigError:
        """Compose the error for a fault after which reading cannot continue."""
        return refusal([*self.faults, Fault(self.file, line, spell(path), message)])

    def line_of(self, path: KeyPath) -> int | None:
        """Return the line of a key path, or of the innermost known parent."""
        for end in range(len(path), -1, -1):
            if path[:end] in self.lines:
                return self.lines[path[:end]]
        return None

    def enter(self, path: KeyPath, line: int | None) -> None:
        """Count a value that is about to be read, and reject documents that are far too large."""
        if line is not None:
            self.lines.setdefault(path, line)
        self.values += 1
        if self.values > MAX_VALUES:
            raise self.stop(f"more than {MAX_VALUES} values: configurations have fewer", line)
        if len(path) > MAX_DEPTH:
            raise self.stop(f"nested deeper than {MAX_DEPTH} levels", line)

    def add(
        self, known: dict[str, Any], key: Any, path: KeyPath, line: int | None
    ) -> KeyPath | None:
        """Return the path of a mapping's next key; `None` if the key is invalid."""
        if not isinstance(key, str) or not key or len(key) > 100 or UNPRINTABLE.search(key):
            shown = repr(key) if len(repr(key)) < 100 else f"{repr(key)[:60]}..."
            self.also((*path, "?"), f"the key {shown} is not a name", line)
            return None
        if key in known:
            self.fault((*path, key), "the key occurs twice: remove one of them", line)
            return None
        return (*path, key)

    def text(self, value: str, path: KeyPath) -> str:
        """Return text that can be printed."""
        if UNPRINTABLE.search(value):
            self.fault(path, "the text contains characters that cannot be printed")
        elif len(value) > _MAX_TEXT:
            self.fault(path, f"the text is longer than {_MAX_TEXT:,} characters")
        return value

    def scalar(self, written: str, path: KeyPath) -> Any:
        """Read a plain scalar."""
        try:
            value = scalar_of(written)
        except ConfigError as fault:
            self.fault(path, fault.message)
            return None
        return self.text(value, path) if isinstance(value, str) else value


def scalar_of(written: str) -> Any:
    """Read a plain scalar by the strict rules: a keyword, a JSON number, or text.

    Raises
    ------
    ConfigError
        If the number is not finite, or too large or too small.
    """
    if written in _WORDS:
        return _WORDS[written]
    if _NOT_FINITE.fullmatch(written):
        raise ConfigError(f"{written} is not a finite number; if it is text, put it in quotes")
    match = _NUMBER.fullmatch(written)
    if match is None:
        return written
    if len(written) > 40:
        raise ConfigError(f"the number {written[:20]}... has too many digits")
    value = float(written)
    vanished = value == 0 and re.search("[1-9]", written.lower().partition("e")[0])
    if abs(value) > MAX_NUMBER or vanished:
        raise ConfigError(
            f"the number {written} is out of range: write it with a more suitable unit"
        )
    return value if match[2] or match[3] else int(written)


def document_of(data: Any) -> Document:
    """Apply the same rules to Python data."""
    document = Document()
    document.data = _copied(data, (), document)
    return document


def _copied(value: Any, path: KeyPath, document: Document) -> Any:
    document.enter(path, None)
    if isinstance(value, str):
        return document.text(value, path)
    if value is None or isinstance(value, bool):
        return value
    if type(value) in (int, float):
        # In this order, because an integer may be too large for a float.
        if abs(value) > MAX_NUMBER or math.isnan(value):
            document.fault(path, f"the number is not finite, or beyond {MAX_NUMBER:g}")
        return value
    if isinstance(value, Mapping):
        copy: dict[str, Any] = {}
        for key, item in value.items():
            inner = document.add(copy, key, path, None)
            if inner is not None:
                copy[key] = _copied(item, inner, document)
        return copy
    if isinstance(value, (list, tuple)):
        return [_copied(item, (*path, index), document) for index, item in enumerate(value)]
    kind = type(value).__name__
    document.fault(path, f'a {kind} is not plain data: write names, numbers, and text as "200 ms"')
    return None
