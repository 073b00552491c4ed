"""Devices and servers in YAML files, for the command line and configurations."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from mlsysim.core.errors import ConfigError
from mlsysim.core.types import Accelerator, Compute, Memory, NetworkFabric, Node, Source
from mlsysim.registry.names import row_of
from mlsysim.scenario.files import read_file
from mlsysim.scenario.mappings import Part

__all__ = ["load_hardware"]

_SERVER = "accelerator"
"""A key that only servers have."""


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
    if document.faults:
        raise document.stop("cannot be read")
    data = document.data
    kind = Node if isinstance(data, Mapping) and _SERVER in data else Accelerator
    hardware: Accelerator | Node = _row(kind, Part(document, (), data))
    return hardware


def _row(kind: type[Any], part: Part) -> Any:
    """Return a record whose fields are the keys of a mapping."""
    items = [item for item in dataclasses.fields(kind) if item.name != "field_sources"]
    needed = [
        item.name
        for item in items
        if item.default is dataclasses.MISSING and item.default_factory is dataclasses.MISSING
    ]
    part.only(*needed, optional=[item.name for item in items if item.name not in needed])
    values = {item.name: _value(item, part) for item in items if item.name in part.data}
    try:
        return kind(**values)
    except ConfigError as fault:
        if getattr(fault, "faults", ()):  # already rejected with its location
            raise
        # The argument of an error is a field, or an unknown name that a field has.
        places = {key: key for key in part.data} | {str(part.data[key]): key for key in part.data}
        place = places.get(str(getattr(fault, "argument", "")), "name")
        raise part.refusal(place, fault.message) from None


def _value(item: dataclasses.Field[Any], part: Part) -> Any:
    """Return the value of a field."""
    name = item.name
    if name in _NESTED:
        return _NESTED[name](part, name)
    if "unit" not in item.metadata:
        return part.text(name)
    if not item.metadata["plain"]:
        return part.amount(name, item.metadata["unit"])
    value = part.number(name)
    return int(value) if value.is_integer() else value


def _entry(kind: type[Any]) -> Callable[[Part, str], Any]:
    """Return a reader of a row that is a name of the catalog, or a mapping."""

    def read(part: Part, name: str) -> Any:
        if isinstance(part.data[name], Mapping):
            return _row(kind, part.part(name))
        text = part.text(name)
        if text.lower().endswith((".yaml", ".yml")) and kind is Accelerator:
            return load_hardware(text)
        try:
            return row_of(text, (kind,), name)
        except ConfigError as fault:
            raise part.refusal(name, fault.message) from None

    return read


def _source(part: Part, name: str) -> Source:
    if isinstance(part.data[name], Mapping):
        texts = part.part(name)
        texts.only("title", optional=("url", "locator", "checked", "note"))
        return Source(**{key: texts.text(key) for key in texts.data})
    return Source(title=part.text(name))


_NESTED: Mapping[str, Callable[[Part, str], Any]] = {
    "source": _source,
    "estimated": lambda part, name: frozenset(part.texts(name)),
    "compute": lambda part, name: _row(Compute, part.part(name)),
    "memory": lambda part, name: _row(Memory, part.part(name)),
    "accelerator": _entry(Accelerator),
    "scale_up": _entry(NetworkFabric),
}
"""Readers of fields that are neither amounts nor text."""
