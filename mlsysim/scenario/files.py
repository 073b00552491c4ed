"""Files of plain data in YAML or JSON, and the line of each value.

YAML, JSON and Python data become the same events, which one reader turns into a document. A plain
scalar is `null`, `true`, `false`, a JSON number, or text. Nothing else is interpreted: `yes`,
`0o17` and `1:30` are text. Tags, anchors, aliases and merge keys are rejected, so that a file means
exactly what it appears to mean.

A schema is a JSON Schema with two further keywords: ``reads`` is a function that makes a value of
plain data, and ``faults`` are the messages for keywords of the schema.
"""

from __future__ import annotations

import dataclasses
import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from mlsysim.core.errors import ConfigError, hint, shown
from mlsysim.core.files import UNPRINTABLE, named, read_bytes
from mlsysim.core.units import read_amount
from mlsysim.solvers.arguments import Choice

if TYPE_CHECKING:
    from jsonschema import ValidationError

KeyPath = tuple[str | int, ...]
Schema = dict[str, Any]
TEXT: Schema = {"type": "string"}
NUMBER: Schema = {"type": "number"}


def spell(path: KeyPath) -> str:
    """Write a key path as text: ``limits.latency.at_most``, ``macro.limits[2]``."""
    text = ""
    for part in path:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else part
    return text


@dataclass(frozen=True)
class Fault:
    """One thing that is wrong with a configuration.

    Attributes
    ----------
    file : str
        Name of the file; empty if there is none.
    line : int or None
        Line number, from 1.
    path : str
        The key at fault, as in ``"arguments.tp_size"``; empty for the whole file.
    message : str
        What is wrong, what is allowed, and the nearest valid name.
    """

    file: str
    line: int | None
    path: str
    message: str

    def __str__(self) -> str:
        numbered = f"line {self.line}" if self.line else ""
        place = f"{self.file}:{self.line}" if self.file and self.line else self.file or numbered
        return ": ".join(part for part in (place, self.path, self.message) if part)


def refusal(faults: Sequence[Fault]) -> ConfigError:
    """Compose the one error that reports all faults, in the order of the file."""
    ordered = sorted(set(faults), key=lambda fault: (fault.line or 0, fault.path, fault.message))
    count = f"{len(ordered)} faults" if len(ordered) > 1 else "a fault"
    where = next((fault.file for fault in ordered if fault.file), "")
    head = f"the configuration{f' {where}' if where else ''} has {count}:"
    lines = [f"  {fault}" for fault in ordered]
    return ConfigError("\n".join([head, *lines]), argument=ordered[0].path, faults=ordered)


MAX_DEPTH = 20
MAX_VALUES = 5000
MAX_NUMBER = 1e30
_MAX_TEXT = 10_000
_NUMBER = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?")
_NOT_FINITE = re.compile(r"[-+]?\.?(inf|infinity|nan)", re.IGNORECASE)
_WORDS = {"null": None, "true": True, "false": False, "": None}


@dataclass
class Document:
    """The document that was read."""

    data: Any = None
    """Mappings, lists, text, numbers, Booleans and `None`."""
    file: str = ""
    """Name of the file; empty if there is none."""
    lines: dict[KeyPath, int] = field(default_factory=dict)
    faults: list[Fault] = field(default_factory=list)
    spoiled: set[KeyPath] = field(default_factory=set)
    """Key paths that already have a fault, so that their values are invalid."""

    def fault(self, path: KeyPath, message: str, line: int | None = None) -> None:
        """Record a fault, unless the same place already has one."""
        if any(path[:end] in self.spoiled for end in range(len(path) + 1)):
            return
        self.spoiled.add(path)
        self.also(path, message, line)

    def also(self, path: KeyPath, message: str, line: int | None = None) -> None:
        """Record a fault, even if the place already has one."""
        self.faults.append(Fault(self.file, line or self.line_of(path), spell(path), message))

    def read(self, schema: Schema) -> Any:
        """Return what the schema makes of the data, and record every fault in it.

        The JSON Schema decides about keys, groups and types. The values themselves are checked by
        the function that reads them, so that a file is refused for the reasons for which Python is.
        """
        from jsonschema import Draft202012Validator  # loaded only for files

        for error in Draft202012Validator(schema).iter_errors(self.data):
            if "reads" in error.schema and not _GROUPS & error.schema.keys():
                continue
            for path, message in _faults_of(error):
                self.fault(path, message)
        return self._read(schema, self.data, ())

    def _read(self, schema: Schema, data: Any, path: KeyPath) -> Any:
        value = data
        if isinstance(data, Mapping):
            properties, others = schema.get("properties", {}), schema.get("additionalProperties")
            value = {
                key: self._read(properties.get(key, others) or {}, item, (*path, key))
                for key, item in data.items()
            }
        elif isinstance(data, list):
            items = schema.get("items", {})
            value = [self._read(items, item, (*path, place)) for place, item in enumerate(data)]
        if "reads" not in schema or any(
            path[: len(other)] == other[: len(path)] for other in self.spoiled
        ):
            return value
        try:
            return schema["reads"](value)
        except ConfigError as fault:
            self.fault((*path, *_key_of(fault, data)), str(fault))
        return None

    def stop(self, message: str, line: int | None = None, path: KeyPath = ()) -> ConfigError:
        """Compose the error for a fault after which reading cannot continue."""
        return refusal([*self.faults, Fault(self.file, line, spell(path), message)])

    def line_of(self, path: KeyPath) -> int | None:
        """Return the line of a key path, or of the innermost known parent."""
        for end in range(len(path), -1, -1):
            if path[:end] in self.lines:
                return self.lines[path[:end]]
        return None


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


def _key_of(fault: ConfigError, data: Any) -> KeyPath:
    """Return the key that a fault of a group names, or that has the value it names."""
    argument = getattr(fault, "argument", None)
    items = data.items() if isinstance(data, Mapping) else ()
    return next(((key,) for key, value in items if argument in (key, str(value))), ())


_GROUPS = {"properties", "additionalProperties", "items"}


def public(schema: Any) -> Any:
    """Return a schema with only the keywords of JSON Schema."""
    if isinstance(schema, list):
        return [public(item) for item in schema]
    if not isinstance(schema, Mapping):
        return schema
    return {key: public(item) for key, item in schema.items() if key not in ("reads", "faults")}


def section(properties: Mapping[str, Schema], **rest: Any) -> Schema:
    """Return the schema of a group of keys; others are unknown."""
    return {
        "type": "object",
        "properties": dict(properties),
        "additionalProperties": False,
        **rest,
    }


def amount_of(name: str, unit: str, value: Any) -> Any:
    """Read text with a unit, or a plain number if there is no unit.

    Raises
    ------
    ConfigError
        If it is something else.
    """
    if isinstance(value, str):
        amount = read_amount(value, unit, name)
        return amount if unit else amount.to("").magnitude
    if type(value) in (int, float) and not unit:
        return value
    example = f'a number and a unit, as in "5 {unit}"' if unit else "a number"
    raise ConfigError(f"is {kind_of(value)}: write {example}")


def record_schema(kind: type[Any], **others: Schema) -> Schema:
    """Return the schema of a record: that of each field, or its schema in `others`."""
    fields = [item for item in dataclasses.fields(kind) if item.name != "field_sources"]
    missing = dataclasses.MISSING
    return section(
        {item.name: others.get(item.name) or field_schema(item) for item in fields},
        required=[
            item.name
            for item in fields
            if item.default is missing and item.default_factory is missing
        ],
        reads=lambda values: kind(**values),
    )


def field_schema(item: dataclasses.Field[Any]) -> Schema:
    """Return the schema of a field: text, a number, or an amount."""
    if "unit" not in item.metadata:
        return TEXT
    if item.metadata["plain"]:
        return NUMBER
    return {**TEXT, "reads": partial(amount_of, item.name, item.metadata["unit"])}


_TYPES = {
    "object": "keys and values",
    "array": "a list",
    "string": "text, in quotes if necessary",
    "boolean": "true or false",
    "number": "a number",
    "null": "null",
}


def _faults_of(error: ValidationError) -> Iterator[tuple[KeyPath, str]]:
    """Yield the path and the message of each fault that breaks a rule of a schema."""
    path, keyword = tuple(error.absolute_path), str(error.validator)
    value: Any = error.instance
    schema: Any = error.schema
    rule, properties = schema[keyword], schema.get("properties", {})
    message = schema.get("faults", {}).get(keyword)
    match keyword:
        case "additionalProperties":
            for key in value.keys() - properties.keys():
                nearest = hint(key, properties, f"allowed: {', '.join(properties)}")
                yield (*path, key), f"unknown key; {nearest}"
        case "required" | "dependentRequired":
            if keyword == "dependentRequired":
                rule = [name for key in rule.keys() & value.keys() for name in rule[key]]
            for name in rule:
                if name not in value:
                    yield (*path, name), message or "is missing"
        case "type":
            types = [_TYPES[name] for name in ([rule] if isinstance(rule, str) else rule)]
            keys = f": {', '.join(properties)}" if properties else ""
            yield path, f"is {kind_of(value)}: write {' or '.join(types)}{keys}"
        case "enum":
            nearest = hint(value, rule)
            text = f"{shown(value)} is not one of {', '.join(rule)}"
            yield path, f"{text}; {nearest}" if nearest else text
        case _:
            yield path, message or error.message


def kind_of(value: Any) -> str:
    """Describe the type of a value, for a message."""
    if value is None:
        return "empty"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return f"the text {value[:60]!r}"
    if isinstance(value, (int, float)):
        return f"the number {value}"
    return "a list" if isinstance(value, list) else "a group of keys"


class _Reader:
    """Turns the events of PyYAML's parser into a document."""

    def __init__(self, events: Iterator[yaml.Event], file: str = "") -> None:
        self.document = Document(file=file)
        self._events = events
        self._values = 0

    def read(self) -> Document:
        """Read all events."""
        documents = 0
        for event in self._events:
            line = _line(event)
            if isinstance(event, yaml.DocumentStartEvent):
                if event.version or event.tags:
                    self.document.fault((), "directives (%YAML, %TAG) are not allowed", line)
                continue
            if isinstance(event, _MARKERS):
                continue
            if documents:
                raise self.document.stop("a second document begins here: keep one per file", line)
            documents += 1
            self.document.data = self._value(event, ())
        return self.document

    def _value(self, event: yaml.Event, path: KeyPath) -> Any:
        line = _line(event)
        if line is not None:
            self.document.lines.setdefault(path, line)
        self._values += 1
        if self._values > MAX_VALUES:
            text = f"more than {MAX_VALUES} values: configurations have fewer"
            raise self.document.stop(text, line)
        if len(path) > MAX_DEPTH:
            raise self.document.stop(f"nested deeper than {MAX_DEPTH} levels", line)
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
        mapping: dict[str, Any] = {}
        for event in self._items():
            key = self._key(event, mapping, path)
            line = _line(event)
            if key is not None and line is not None:
                self.document.lines[(*path, key)] = line
            value = self._value(next(self._events), (*path, "?" if key is None else key))
            if key is not None:
                mapping[key] = value
        return mapping

    def _key(self, event: yaml.Event, mapping: dict[str, Any], path: KeyPath) -> str | None:
        """Return the next key of a mapping; `None` if it is invalid."""
        line, unknown = _line(event), (*path, "?")
        self._refuse_references(event, unknown, line)
        if not isinstance(event, yaml.ScalarEvent):
            if isinstance(event, yaml.CollectionStartEvent):
                self._value(event, unknown)
            self.document.also(unknown, "a key must be a plain name", line)
            return None
        key: Any = event.value
        if key == "<<" and event.style is None:
            self.document.fault((*path, "<<"), "merge keys are not allowed: write it out", line)
        elif not isinstance(key, str) or not key or len(key) > 100 or UNPRINTABLE.search(key):
            text = repr(key) if len(repr(key)) < 100 else f"{repr(key)[:60]}..."
            self.document.also(unknown, f"the key {text} is not a name", line)
        elif key in mapping:
            self.document.fault((*path, key), "the key occurs twice: remove one of them", line)
        else:
            return key
        return None

    def _scalar(self, event: yaml.ScalarEvent, path: KeyPath) -> Any:
        value: Any = event.value
        try:
            if event.style is None and isinstance(value, str):
                value = scalar_of(value)
        except ConfigError as fault:
            self.document.fault(path, fault.message)
            return None
        if isinstance(value, str):
            if UNPRINTABLE.search(value):
                self.document.fault(path, "the text contains characters that cannot be printed")
            elif len(value) > _MAX_TEXT:
                self.document.fault(path, f"the text is longer than {_MAX_TEXT:,} characters")
        elif type(value) in (int, float):
            # In this order, because an integer may be too large for a float.
            if abs(value) > MAX_NUMBER or math.isnan(value):
                text = f"the number is not finite, or beyond {MAX_NUMBER:g}"
                self.document.fault(path, text)
        elif value is not None and not isinstance(value, bool):
            text = f"a {type(value).__name__} is not plain data"
            self.document.fault(path, f'{text}: write names, numbers, and text as "200 ms"')
            return None
        return value

    def _refuse_references(self, event: yaml.Event, path: KeyPath, line: int | None) -> None:
        if isinstance(event, yaml.AliasEvent):
            self.document.fault(path, f"the alias *{event.anchor:.40} is not allowed", line)
        elif getattr(event, "anchor", None):
            anchor = event.anchor  # type: ignore[attr-defined]
            self.document.fault(path, f"the anchor &{anchor:.40} is not allowed", line)
        if getattr(event, "tag", None):
            tag = event.tag  # type: ignore[attr-defined]
            self.document.fault(path, f"the tag {tag:.40} is not allowed", line)


def _line(event: yaml.Event) -> int | None:
    return event.start_mark.line + 1 if event.start_mark else None


def document_of(data: Any) -> Document:
    """Apply the same rules to Python data."""
    return _Reader(_events_of_data(data)).read()


def _events_of_data(value: Any) -> Iterator[yaml.Event]:
    if isinstance(value, Mapping):
        yield yaml.MappingStartEvent(None, None, True)
        for key, item in value.items():
            yield yaml.ScalarEvent(None, None, (False, True), key, style='"')
            yield from _events_of_data(item)
        yield yaml.MappingEndEvent()
    elif isinstance(value, (list, tuple)):
        yield yaml.SequenceStartEvent(None, None, True)
        for item in value:
            yield from _events_of_data(item)
        yield yaml.SequenceEndEvent()
    else:
        style = '"' if isinstance(value, str) else None
        yield yaml.ScalarEvent(None, None, (True, False), value, style=style)


_MARKERS = (yaml.StreamStartEvent, yaml.StreamEndEvent, yaml.DocumentEndEvent)
# Errors that PyYAML raises on malformed text: its own, and others when it converts numbers.
_MALFORMED = (yaml.YAMLError, ValueError, OverflowError, RecursionError)


def _read_yaml(text: str, file: str) -> Document:
    reader = _Reader(yaml.parse(text, Loader=yaml.SafeLoader), file)
    try:
        return reader.read()
    except ConfigError:
        raise
    except yaml.MarkedYAMLError as fault:
        mark = fault.problem_mark or fault.context_mark
        reason = " ".join(part for part in (fault.context, fault.problem) if part)
        line = mark.line + 1 if mark else None
    except _MALFORMED as fault:
        line, reason = None, " ".join(str(fault).split())[:200]
    raise reader.document.stop(f"not valid YAML: {reason}", line)


_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\]]|[^\s{}\[\],:"]+', re.DOTALL)


def _read_json(text: str, file: str) -> Document:
    reader = _Reader(_events_of_json(text), file)
    try:
        # Numbers stay text here; they are read below by the same rules as in YAML.
        json.loads(text, parse_int=str, parse_float=str, parse_constant=str)
    except json.JSONDecodeError as fault:
        raise reader.document.stop(f"not valid JSON: {fault.msg}", fault.lineno) from None
    except RecursionError:
        raise reader.document.stop("nested too deeply") from None
    return reader.read()


def _events_of_json(text: str) -> Iterator[yaml.Event]:
    """Yield valid JSON as the events of PyYAML's parser."""
    line, end = 0, 0
    for match in _TOKEN.finditer(text):
        line += text.count("\n", end, match.start())
        end = match.start()
        mark, token = yaml.Mark("", end, line, 0, None, 0), match[0]
        match token[0]:
            case "{":
                yield yaml.MappingStartEvent(None, None, True, mark)
            case "[":
                yield yaml.SequenceStartEvent(None, None, True, mark)
            case "}":
                yield yaml.MappingEndEvent(mark)
            case "]":
                yield yaml.SequenceEndEvent(mark)
            case '"':
                yield yaml.ScalarEvent(
                    None, None, (False, True), json.loads(token), mark, style='"'
                )
            case _:
                yield yaml.ScalarEvent(None, None, (True, False), token, mark)


MAX_BYTES = 64 * 1024
"""Larger files are rejected. A configuration takes one or two thousand bytes."""

_READERS = {"yaml": _read_yaml, "json": _read_json}
_FORMATS = {".yaml": "yaml", ".yml": "yaml", ".json": "json"}


def read_file(path: str | Path, *, most: int = MAX_BYTES) -> Document:
    """Read a file of at most this many bytes, as YAML or JSON by its suffix.

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
    try:
        content = read_bytes(place, most)
    except ConfigError as fault:
        raise _refused(str(path), fault.message.removeprefix(f"{named(place)} ")) from None
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as fault:
        line = content.count(b"\n", 0, fault.start) + 1
        raise _refused(place.name, f"is not UTF-8 text (byte {fault.start + 1})", line) from None
    return _read(kind, text, place.name)


def read_text(text: str, kind: str) -> Document:
    """Read text, as ``"yaml"`` or ``"json"``.

    Raises
    ------
    ConfigError
        If the text is not of this kind. Lesser faults are recorded in the document.
    """
    Choice.among(_READERS).admit("kind", kind)
    if not isinstance(text, str):
        raise ConfigError(f"text must be a str, not {type(text).__name__}", argument="text")
    if len(text) > MAX_BYTES:
        raise _refused("", f"is larger than {MAX_BYTES // 1024} KiB: configurations are smaller")
    return _read(kind, text, "")


def _read(kind: str, text: str, file: str) -> Document:
    if "\0" in text:
        raise _refused(file, "is binary, not text")
    if not text.strip():
        raise _refused(file, "is empty")
    return _READERS[kind](text, file)


def _refused(file: str, message: str, line: int | None = None) -> ConfigError:
    return refusal([Fault(named(file), line, "", message)])


class _Dumper(yaml.SafeDumper):
    """Quotes text that the reader would interpret as a number or a keyword."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def _text(dumper: yaml.SafeDumper, value: str) -> yaml.ScalarNode:
    try:
        plain = scalar_of(value) == value
    except ConfigError:
        plain = False
    return dumper.represent_scalar("tag:yaml.org,2002:str", value, style=None if plain else '"')


_Dumper.add_representer(str, _text)


def write_yaml(data: Mapping[str, Any]) -> str:
    """Return the data as a YAML document."""
    return yaml.dump(dict(data), Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=100)
