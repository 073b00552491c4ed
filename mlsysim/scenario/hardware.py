"""Devices and servers in YAML files, for the command line and configurations."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from mlsysim.core.types import Accelerator, Compute, Memory, NetworkFabric, Node, Source
from mlsysim.registry.names import row_of
from mlsysim.scenario.files import TEXT, Schema, read_file, record_schema, refusal, section


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
    # Only servers have this key.
    server = isinstance(document.data, Mapping) and "accelerator" in document.data
    hardware: Accelerator | Node = document.read(_SERVER if server else _DEVICE)
    if document.faults:
        raise refusal(document.faults)
    return hardware


def _text_or(record: Schema, named: Callable[[str], Any]) -> Schema:
    """Return the schema of a record that may be text instead."""

    def read(value: Any) -> Any:
        return named(value) if isinstance(value, str) else record["reads"](value)

    return {**record, "type": ["string", "object"], "reads": read}


def _accelerator_of(name: str) -> Any:
    if name.lower().endswith((".yaml", ".yml")):
        return load_hardware(name)
    return row_of(name, (Accelerator,), "accelerator")


def _link_of(name: str) -> Any:
    return row_of(name, (NetworkFabric,), "scale_up")


_SOURCE = section(
    dict.fromkeys(("title", "url", "locator", "checked", "note"), TEXT),
    required=["title"],
    reads=lambda values: Source(**values),
)
_PROVENANCE: dict[str, Schema] = {
    "source": _text_or(_SOURCE, lambda title: Source(title=title)),
    "estimated": {"type": "array", "items": TEXT, "reads": frozenset},
}
_DEVICE = record_schema(
    Accelerator, compute=record_schema(Compute), memory=record_schema(Memory), **_PROVENANCE
)
_LINK = record_schema(NetworkFabric, **_PROVENANCE)
_SERVER = record_schema(
    Node,
    accelerator=_text_or(_DEVICE, _accelerator_of),
    scale_up=_text_or(_LINK, _link_of),
    **_PROVENANCE,
)
