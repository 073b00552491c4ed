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
from typing import Any

from mlsysim.core.errors import UnknownEntryError
from mlsysim.core.fields import Record, number, record
from mlsysim.core.types import Formats, Source, TransformerModel
from mlsysim.registry.importer.model import model_of
from mlsysim.registry.tables import DATA


@functools.cache
def configurations() -> Mapping[str, Mapping[str, Any]]:
    """Return the lines of `configs.json` by repository."""
    lines: dict[str, dict[str, Any]] = json.loads(
        (DATA / "configs.json").read_text(encoding="utf-8")
    )
    return lines


@record
class PublishedModel(Record):
    """A row of a model with a configuration in `configs.json`.

    Attributes
    ----------
    repository : str
        Its repository on Hugging Face, such as ``"Qwen/Qwen3-8B"``.
    name : str
        The name as engineers print it.
    seq_len : int or None
        Sequence length of training; `None` takes the longest context that the file states.
    field_sources : Mapping[str, Source]
        The publication that states `seq_len`; without one, it is marked as an estimate.
    """

    repository: str
    name: str
    seq_len: int | None = number(whole=True, default=None)
    field_sources: Mapping[str, Source] = dataclasses.field(default_factory=dict)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.repository not in configurations():
            raise UnknownEntryError.build(self.repository, "repository", configurations())
        for field in self.field_sources:
            if field != "seq_len":
                raise UnknownEntryError.build(field, "field with a source", ["seq_len"])

    def model(self) -> TransformerModel:
        """Return the model that the importer reads from the configuration."""
        line = configurations()[self.repository]
        title = f"{self.repository}, config.json"
        model = model_of(line["config"], name=self.name, seq_len=self.seq_len, title=title)
        at = {"url": line["url"], "checked": line["checked"]}
        sources = {
            path: dataclasses.replace(source, **at) if title in source.title else source
            for path, source in model.field_sources.items()
        }
        estimated = set(model.estimated)
        if self.seq_len is not None:
            assumed = Source(title="Assumed", note="assumed: a common length in training")
            sources["seq_len"] = self.field_sources.get("seq_len", assumed)
            estimated |= {"seq_len"} - set(self.field_sources)
        formats = _of_the_state(model.formats)
        if formats is None:
            sources.pop("formats", None)
        stored = _stored(model.formats)
        notes = "; ".join(filter(None, (line.get("note"), model.source.note, stored)))
        return dataclasses.replace(
            model,
            source=dataclasses.replace(model.source, **at, note=notes),
            field_sources=sources,
            estimated=frozenset(estimated),
            formats=formats,
        )


def _stored(formats: Formats | None) -> str:
    """Return a remark on the format in which most weights are published."""
    weights = formats and (formats.experts or formats.feed_forward)
    return f"weights published in {weights.name}; weight_precision takes it" if weights else ""


def _of_the_state(formats: Formats | None) -> Formats | None:
    """Leave out the formats of weights, so that arguments choose them as for any other row."""
    if formats is None or formats.state is None:
        return None
    return Formats(state=formats.state)
