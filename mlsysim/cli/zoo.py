"""The zoo on the command line: catalogs as tables, one row with its sources."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from mlsysim.core.errors import ConfigError, UnknownEntryError
from mlsysim.core.table import Column, Table
from mlsysim.core.types import Accelerator, Workload
from mlsysim.core.units import format_number
from mlsysim.coverage import support
from mlsysim.registry import Hardware, Infra, Models, Systems
from mlsysim.scenario.names import find_entry
from mlsysim.scenario.scorecard import plain

__all__ = ["CATALOGS", "catalog_of", "joined", "listing", "overview", "row_details", "supported"]

CATALOGS: dict[str, Any] = {
    "hardware": Hardware,
    "models": Models,
    "systems": Systems,
    "infra": Infra,
}
_SHOWN = {
    "Hardware": ("release_year", "compute.fp16", "memory.capacity", "memory.bandwidth", "tdp"),
    "Models": ("parameters", "layers", "hidden_dim", "flops_per_sample"),
    "Fabrics": ("bandwidth", "latency"),
    "Links": ("bandwidth", "latency"),
    "Nodes": ("accelerator", "accelerators_per_node", "scale_up", "power", "unit_price"),
    "Clusters": ("node", "count", "fabric"),
    "Tiers": ("memory", "power", "latency"),
    "Offers": ("accelerator", "region", "commitment", "date", "price"),
    "Grids": ("carbon_intensity", "pue", "wue"),
    "Racks": ("power", "cooling", "pue"),
    "Datacenters": ("grid", "pue", "wue"),
}
_UNITS = {
    "Models": {"parameters": "Mparam", "flops_per_sample": "MFLOP"},
    "Nodes": {"power": "kW"},
}


def catalog_of(name: str) -> Any:
    """Return the catalog with that name."""
    if name not in CATALOGS:
        raise UnknownEntryError.build(name, "catalog", CATALOGS)
    return CATALOGS[name]


def overview() -> Table:
    """Return one row per catalog."""
    texts = {
        "catalog": list(CATALOGS),
        "rows": [len(catalog) for catalog in CATALOGS.values()],
        "tiers": [", ".join(catalog.tiers()) for catalog in CATALOGS.values()],
    }
    return Table({name: Column(values) for name, values in texts.items()})


def listing(catalog: Any) -> Iterator[tuple[str, Table]]:
    """Yield a title and a table for each part of a catalog with rows of one kind."""
    parts = {catalog.__name__: catalog} if catalog.__name__ in _SHOWN else catalog.tiers()
    for title, part in parts.items():
        yield title, part.table(*_SHOWN[title], units=_UNITS.get(title))


def joined(parts: Mapping[str, Table]) -> Table:
    """Join the parts of a catalog into one table.

    Columns with the same name and unit are merged. Cells are empty if a part has no such column.
    """
    keys = dict.fromkeys(
        (name, table.units.get(name, "")) for table in parts.values() for name in table.columns
    )
    columns = {"part": Column([title for title, table in parts.items() for _ in table])}
    for name, unit in keys:
        cells: list[Any] = []
        for table in parts.values():
            has = name in table.columns and table.units.get(name, "") == unit
            cells += [getattr(row[name], "magnitude", row[name]) if has else None for row in table]
        columns[f"{name} ({unit})" if unit else name] = Column(cells)
    return Table(columns, limit=None)


def supported(
    models: str | None,
    devices: str | None,
    precisions: str | None,
    questions: str | None,
    statuses: str | None,
) -> Table:
    """Return the support matrix for comma-separated names; `None` takes all of them.

    Raises
    ------
    ConfigError
        If there is neither a model nor a device, or a name is not known.
    """
    if models is None and devices is None:
        raise ConfigError(
            "support needs --model or --device; for all models on all devices, see the page "
            '"What is supported" in the documentation',
            argument="model",
        )
    return support(
        models=_rows(models, Workload),
        devices=_rows(devices, Accelerator),
        precisions=_names(precisions),
        questions=_names(questions),
        statuses=_names(statuses),
    )


def _names(text: str | None) -> list[str] | None:
    return None if text is None else [name.strip() for name in text.split(",")]


def _rows(text: str | None, kind: type) -> list[Any] | None:
    names = _names(text)
    return None if names is None else [find_entry(name, (kind,)) for name in names]


def row_details(row: Any) -> list[dict[str, Any]]:
    """Return every value of a row: name, text, plain value, source, whether it is estimated."""
    table = type(row)  # the record class, for its fields
    return [
        {
            "field": path,
            "text": format_number(getattr(value, "name", value)),
            "value": plain(value),
            "estimated": bool(getattr(row, "is_estimated", lambda _: False)(path)),
            "source": _source(row, path),
        }
        for path, value in _values(row, table)
    ]


def _values(row: Any, kind: type, prefix: str = "") -> Iterator[tuple[str, Any]]:
    for name in kind.__dataclass_fields__:  # type: ignore[attr-defined]
        if name in ("source", "field_sources", "estimated", "note"):
            continue
        value = getattr(row, name)
        if hasattr(value, "__dataclass_fields__") and not hasattr(value, "source"):
            yield from _values(value, type(value), f"{prefix}{name}.")
        elif isinstance(value, tuple) and value and hasattr(value[0], "summary"):
            for spot, item in enumerate(value):
                yield f"{prefix}{name}[{spot}]", item.summary
        elif value is not None:
            yield prefix + name, value


def _source(row: Any, path: str) -> str:
    if not hasattr(row, "source_of"):
        return str(row.source or "") if hasattr(row, "source") else ""
    source = row.source_of(path.split("[")[0])
    return f"{source}{f' <{source.url}>' if source.url else ''}"
