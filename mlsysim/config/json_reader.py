"""JSON, strictly, with the line of every value.

The standard library decides whether the text is JSON. The code below then reads the same tokens
again, because the library does not keep their positions.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from mlsysim.config.document import Document
from mlsysim.config.faults import KeyPath

__all__ = ["read_json"]

_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\]]|[^\s{}\[\],:"]+', re.DOTALL)


def read_json(text: str, file: str = "") -> Document:
    """Read one JSON document.

    Raises
    ------
    ConfigError
        If the text is not JSON. Lesser faults are recorded in the document.
    """
    document = Document(file=file)
    try:
        # Numbers stay text here; they are read below by the same rules as in YAML.
        json.loads(text, parse_int=str, parse_float=str, parse_constant=str)
    except json.JSONDecodeError as fault:
        raise document.stop(f"not valid JSON: {fault.msg}", fault.lineno) from None
    except RecursionError:
        raise document.stop("nested too deeply") from None
    _Walk(document, text).read()
    return document


class _Walk:
    """Reads the tokens of valid JSON text."""

    def __init__(self, document: Document, text: str) -> None:
        self._document = document
        self._tokens = self._numbered(text)

    def read(self) -> None:
        self._document.data = self._value(*next(self._tokens), ())

    @staticmethod
    def _numbered(text: str) -> Iterator[tuple[str, int]]:
        line, end = 1, 0
        for match in _TOKEN.finditer(text):
            line += text.count("\n", end, match.start())
            end = match.start()
            yield match[0], line

    def _value(self, token: str, line: int, path: KeyPath) -> Any:
        self._document.enter(path, line)
        if token == "{":
            return self._object(path)
        if token == "[":
            return self._array(path)
        if token.startswith('"'):
            return self._document.text(json.loads(token), path)
        return self._document.scalar(token, path)

    def _object(self, path: KeyPath) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for token, line in self._tokens:
            if token == "}":
                break
            inner = self._document.add(found, json.loads(token), path, line)
            value = self._value(*next(self._tokens), inner or (*path, "?"))
            if inner is not None:
                self._document.lines[inner] = line
                found[str(inner[-1])] = value
        return found

    def _array(self, path: KeyPath) -> list[Any]:
        found: list[Any] = []
        for token, line in self._tokens:
            if token == "]":
                break
            found.append(self._value(token, line, (*path, len(found))))
        return found
