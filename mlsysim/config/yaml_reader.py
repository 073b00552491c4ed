"""Safe YAML: PyYAML parses the structure, and our own rules read the scalars.

Tags, anchors, aliases and merge keys are rejected, so that a file means exactly what it appears to
mean.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import yaml

from mlsysim.config.document import Document
from mlsysim.config.faults import KeyPath
from mlsysim.core.errors import ConfigError

__all__ = ["read_yaml"]

_MARKERS = (yaml.StreamStartEvent, yaml.StreamEndEvent, yaml.DocumentEndEvent)
# Errors that PyYAML raises on malformed text: its own, and others when it converts numbers.
_MALFORMED = (yaml.YAMLError, ValueError, OverflowError, RecursionError)


def read_yaml(text: str, file: str = "") -> Document:
    """Read one YAML document.

    Raises
    ------
    ConfigError
        If the text is not YAML. Lesser faults are recorded in the document.
    """
    document = Document(file=file)
    try:
        _Reader(document, yaml.parse(text, Loader=yaml.SafeLoader)).read()
    except ConfigError:
        raise
    except yaml.MarkedYAMLError as fault:
        mark = fault.problem_mark or fault.context_mark
        said = " ".join(part for part in (fault.context, fault.problem) if part)
        raise document.stop(f"not valid YAML: {said}", mark.line + 1 if mark else None) from None
    except _MALFORMED as fault:
        said = " ".join(str(fault).split())[:200]
        raise document.stop(f"not valid YAML: {said}") from None
    return document


class _Reader:
    """Walks the events of PyYAML's parser."""

    def __init__(self, document: Document, events: Iterator[yaml.Event]) -> None:
        self._document = document
        self._events = events

    def read(self) -> None:
        found = False
        for event in self._events:
            line = _line(event)
            if isinstance(event, yaml.DocumentStartEvent):
                if event.version or event.tags:
                    self._document.fault((), "directives (%YAML, %TAG) are not allowed", line)
                continue
            if isinstance(event, _MARKERS):
                continue
            if found:
                raise self._document.stop("a second document begins here: keep one per file", line)
            found = True
            self._document.data = self._value(event, ())

    def _value(self, event: yaml.Event, path: KeyPath) -> Any:
        line = _line(event)
        self._document.enter(path, line)
        self._refuse_references(event, path, line)
        if isinstance(event, yaml.ScalarEvent):
            return self._scalar(event, path)
        if isinstance(event, yaml.SequenceStartEvent):
            return [self._value(item, (*path, index)) for index, item in enumerate(self._items())]
        if isinstance(event, yaml.MappingStartEvent):
            return self._mapping(path)
        return None

    def _items(self) -> Iterator[yaml.Event]:
        for event in self._events:
            if isinstance(event, yaml.CollectionEndEvent):
                return
            yield event

    def _mapping(self, path: KeyPath) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for event in self._items():
            line = _line(event)
            inner = self._key(event, found, path, line)
            value = self._value(next(self._events), inner or (*path, "?"))
            if inner is not None:
                self._document.lines[inner] = line
                found[str(inner[-1])] = value
        return found

    def _key(
        self, event: yaml.Event, known: dict[str, Any], path: KeyPath, line: int
    ) -> KeyPath | None:
        self._refuse_references(event, (*path, "?"), line)
        if not isinstance(event, yaml.ScalarEvent):
            if isinstance(event, yaml.CollectionStartEvent):
                self._value(event, (*path, "?"))
            self._document.also((*path, "?"), "a key must be a plain name", line)
            return None
        if event.value == "<<" and event.style is None:
            self._document.fault((*path, "<<"), "merge keys are not allowed: write it out", line)
            return None
        return self._document.add(known, event.value, path, line)

    def _scalar(self, event: yaml.ScalarEvent, path: KeyPath) -> Any:
        if event.style is None:
            return self._document.scalar(event.value, path)
        return self._document.text(event.value, path)

    def _refuse_references(self, event: yaml.Event, path: KeyPath, line: int) -> None:
        if isinstance(event, yaml.AliasEvent):
            self._document.fault(path, f"the alias *{event.anchor:.40} is not allowed", line)
        elif getattr(event, "anchor", None):
            anchor = event.anchor  # type: ignore[attr-defined]
            self._document.fault(path, f"the anchor &{anchor:.40} is not allowed", line)
        if getattr(event, "tag", None):
            tag = event.tag  # type: ignore[attr-defined]
            self._document.fault(path, f"the tag {tag:.40} is not allowed", line)


def _line(event: yaml.Event) -> int:
    return event.start_mark.line + 1 if event.start_mark else 1
