"""Provenance in words: the sources and notes of registry rows."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from mlsysim.core.fields import Record
from mlsysim.core.formula import Formula
from mlsysim.core.types import PRECISIONS, Entry, Source

_SPELLED = {
    "ffn": "FFN",
    "kv": "KV",
    "len": "length",
    "mlp": "MLP",
    "nics": "NICs",
    "pue": "PUE",
    "seq": "sequence",
    "tdp": "TDP",
    "vocab": "vocabulary",
    "wue": "WUE",
}


# Characters with a meaning in Markdown, HTML or math. Underscores have none within a word; two
# hyphens would become a dash.
_MARKS = re.compile(r"[\\`*\[\]<>|&$~]|(?<!\w)_|_(?!\w)|(?<=-)-")
_ANCHOR = re.compile(r"\W+")
_ADDRESS_MARKS = str.maketrans({"(": "%28", ")": "%29", "|": "%7C", "\\": "%5C", "`": "%60"})


def escaped(text: object) -> str:
    """Escape text that users may have chosen, such as a name, so that Markdown keeps it."""
    return _MARKS.sub(r"\\\g<0>", " ".join(str(text).split()))


def linked(text: str, source: Source) -> str:
    """Write text as a Markdown link to a source, if the source has an address."""
    return f"[{text}]({source.url.translate(_ADDRESS_MARKS)})" if source.url else text


def cited(source: Source | None) -> str:
    """Write title and locator of a source, if any, as Markdown; the title links to its address."""
    if source is None:
        return ""
    parts = (linked(escaped(source.title), source), escaped(source.locator))
    return ", ".join(part for part in parts if part)


def field_words(path: str) -> str:
    """Write a field's path as words: ``memory.bandwidth`` as "memory bandwidth"."""
    *parents, name = path.split(".")
    text = name if name in PRECISIONS else " ".join([*parents, name]).replace("_", " ")
    return " ".join(_SPELLED.get(word, word) for word in text.split())


def describe(rows: Mapping[str, Any], notes: Mapping[str, str]) -> str:
    """Write rows as a Markdown list: name, note, and the reason for each estimate."""
    items = []
    for key, row in rows.items():
        note = notes.get(key, "")
        summary = note if note.startswith(row.name) else f"{escaped(row.name)}. {note}".strip()
        lines = [summary, *_estimates(row)]
        # An attribute of a class is plain text; a key of a mapping may be anything.
        term = f"`{key}`" if key.isidentifier() else escaped(key)
        items.append(f"[{term}]{{#{_ANCHOR.sub('-', key)}}}\n\n:   " + "\n\n    ".join(lines))
    return "\n\n".join(items)


def citations(rows: Mapping[str, Any]) -> dict[Source, dict[str, list[str]]]:
    """Return every source that rows cite, with the fields that it supports in each row.

    A row's own source supports all fields without another source; its list is then empty.
    """
    fields: dict[Source, dict[str, list[str]]] = {}
    for key, row in rows.items():
        if getattr(row, "source", None) is not None:
            fields.setdefault(row.source, {})[key] = []
        for path, source in getattr(row, "field_sources", {}).items():
            fields.setdefault(source, {}).setdefault(key, []).append(path)
    return fields


def cited_works(formulas: Iterable[Formula]) -> dict[str, list[str]]:
    """Return the key of every publication that formulas cite, with the formulas' names."""
    names: dict[str, list[str]] = {}
    for item in formulas:
        for key in item.works:
            names.setdefault(key, []).append(item.name)
    return names


def _estimates(row: Any) -> Iterator[str]:
    """Yield one line per source of a row's estimates: the fields, and the reason."""
    if not isinstance(row, Entry):
        return
    by_source: dict[Source, list[str]] = {}
    for path in _estimated_fields(row):
        by_source.setdefault(row.source_of(path), []).append(field_words(path))
    for source, fields in by_source.items():
        ground = escaped(source.title[:1].lower() + source.title[1:])
        if source.url:
            where = f", {escaped(source.locator)}" if source.locator else ""
            ground = f"{linked(escaped(source.title), source)}{where}"
            ground += f" ({escaped(source.note.rstrip('.'))})" if source.note else ""
        yield f"≈ {', '.join(fields)}: {ground}."


def _estimated_fields(row: Entry) -> Iterator[str]:
    """Yield the estimated fields in the order of the record, with groups expanded."""
    for item in dataclasses.fields(row):
        value = getattr(row, item.name)
        if not isinstance(value, Record) or isinstance(value, Entry):
            if item.name in row.estimated:
                yield item.name
            continue
        for inner in dataclasses.fields(value):
            path = f"{item.name}.{inner.name}"
            if row.is_estimated(path) and getattr(value, inner.name) is not None:
                yield path
