"""Rows that the importer creates from published configurations.

`configs.json` has one line per row: the address and date of the configuration, and the keys that
determine a number. Keys that repeat the library's defaults, or that only a tokenizer or an
initialization uses, are left out.
"""

from __future__ import annotations

import dataclasses
import functools
import json
from collections.abc import Mapping
from importlib.resources import files
from typing import Any

from mlsysim.core.catalog import Deferred
from mlsysim.core.types import Formats, Source, TransformerModel

__all__ = ["configurations", "published"]


@functools.cache
def configurations() -> Mapping[str, Mapping[str, Any]]:
    """Return the lines of `configs.json` by repository."""
    path = files("mlsysim.registry.models") / "configs.json"
    found: dict[str, dict[str, Any]] = json.loads(path.read_text(encoding="utf-8"))
    return found


def published(
    repository: str, *, name: str, seq_len: int | None = None, length: Source | None = None
) -> Deferred[TransformerModel]:
    """Return the row of a model with a configuration in `configs.json`.

    Parameters
    ----------
    repository
        Its repository on Hugging Face, such as ``"Qwen/Qwen3-8B"``.
    name
        The name as engineers print it.
    seq_len
        Sequence length of training; `None` takes the longest context that the file states.
    length
        Publication that states the length of training; without one, it is marked as an estimate.
    """
    return Deferred(functools.partial(_row, repository, name, seq_len, length))


def _row(
    repository: str, name: str, seq_len: int | None, length: Source | None
) -> TransformerModel:
    from mlsysim.registry.importer import model_of

    line = configurations()[repository]
    title = f"{repository}, config.json"
    model = model_of(line["config"], name=name, seq_len=seq_len, title=title)
    at = {"url": line["url"], "checked": line["checked"]}
    sources = {
        path: dataclasses.replace(source, **at) if title in source.title else source
        for path, source in model.field_sources.items()
    }
    estimated = set(model.estimated)
    if seq_len is not None:
        sources["seq_len"] = length or Source(
            title="Assumed", note="assumed: a common length in training"
        )
        estimated |= set() if length else {"seq_len"}
    formats = _of_the_state(model.formats)
    if formats is None:
        sources.pop("formats", None)
    notes = "; ".join(note for note in (line.get("note", ""), model.source.note) if note)
    return dataclasses.replace(
        model,
        source=dataclasses.replace(model.source, **at, note=notes),
        field_sources=sources,
        estimated=frozenset(estimated),
        formats=formats,
    )


def _of_the_state(formats: Formats | None) -> Formats | None:
    """Leave out the formats of weights, so that arguments choose them as for any other row."""
    if formats is None or formats.state is None:
        return None
    return Formats(state=formats.state)
