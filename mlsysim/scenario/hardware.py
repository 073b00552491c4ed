"""Devices and servers in YAML files, for the command line and configurations."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from mlsysim.core.types import Accelerator, Compute, Memory, NetworkFabric, Node, Source
from mlsysim.registry.names import row_of
from mlsysim.scenario.files import Schema, amount_of, read_file, refusal, section

__all__ = ["load_hardware"]

_SERVER = "accelerator"
"""A key that only servers have."""
_TEXT: Schema = {"type": "string"}


def load_hardware(path: str | Path) -> Accelerator | Node:
    """Read a device or a server from a YAML file.

    The keys are the fields of `Accelerator` or `Node`, with amounts as text, such as
    ``tdp: 300 W``. A `source` may be its title alone. The `accelerator` and the `scale_up` links of
    a server are names of the catalog, or mappings like a file of their own.

    Parameters
    ----------
    path
        A file that ends in ``.yaml`` or ``.yml``.

    Returns
    -------
    Accelerator or Node
        A server if the file has the key `accelerator`, and otherwise a device.

    Raises
    ------
    ConfigError
        If the file cannot be read, or a key or a value is wrong. The message names the line.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import mkdtemp
    >>> from mlsysim import load_hardware
    >>> file = Path(mkdtemp()) / "card.yaml"
    >>> size = file.write_text(
    ...     '''
    ... name: Workshop card
    ... source: Made up for this example
    ... release_year: 2026
    ... compute: {fp16: 200 TFLOP/s, int8: 400 TFLOP/s}
    ... memory: {capacity: 48 GB, bandwidth: 900 GB/s}
    ... tdp: 300 W
    ... '''
    ... )
    >>> load_hardware(file).memory.capacity.magnitude
    48
    """
    document = read_file(path)
    server = isinstance(document.data, Mapping) and _SERVER in document.data
    hardware: Accelerator | Node = document.read(_record_of(Node if server else Accelerator))
    if document.faults:
        raise refusal(document.faults)
    return hardware


def _record_of(kind: type[Any]) -> Schema:
    """Return the schema of a record: its fields are the keys."""
    items = [item for item in dataclasses.fields(kind) if item.name != "field_sources"]
    needed = [
        item.name
        for item in items
        if item.default is dataclasses.MISSING and item.default_factory is dataclasses.MISSING
    ]
    properties = {item.name: _field(item) for item in items}
    return section(properties, required=needed, reads=lambda values: kind(**values))


def _field(item: dataclasses.Field[Any]) -> Schema:
    """Return the schema of a field."""
    match item.name:
        case "source":
            keys = ("title", "url", "locator", "checked", "note")
            texts = section(dict.fromkeys(keys, _TEXT), required=["title"])
            return _text_or(texts | {"reads": lambda values: Source(**values)}, _source_of)
        case "estimated":
            return {"type": "array", "items": _TEXT, "reads": frozenset}
        case "compute":
            return _record_of(Compute)
        case "memory":
            return _record_of(Memory)
        case "accelerator":
            return _text_or(_record_of(Accelerator), _accelerator_of)
        case "scale_up":
            return _text_or(_record_of(NetworkFabric), _link_of)
    if "unit" not in item.metadata:
        return _TEXT
    if item.metadata["plain"]:
        return {"type": "number"}
    return {**_TEXT, "reads": partial(amount_of, item.name, item.metadata["unit"])}


def _text_or(record: Schema, named: Callable[[str], Any]) -> Schema:
    """Return the schema of a record that may be text instead."""

    def read(value: Any) -> Any:
        return named(value) if isinstance(value, str) else record["reads"](value)

    return {**record, "type": ["string", "object"], "reads": read}


def _source_of(title: str) -> Source:
    return Source(title=title)


def _accelerator_of(name: str) -> Any:
    if name.lower().endswith((".yaml", ".yml")):
        return load_hardware(name)
    return row_of(name, (Accelerator,), "accelerator")


def _link_of(name: str) -> Any:
    return row_of(name, (NetworkFabric,), "scale_up")
