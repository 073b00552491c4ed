"""Catalogs on the command line: tables of rows, one row with its sources."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from operator import attrgetter
from typing import Any

import click

from mlsysim.cli.formats import flat, formatted, show
from mlsysim.cli.options import Names
from mlsysim.core.catalog import paths
from mlsysim.core.errors import ConfigError, UnknownEntryError, spelled
from mlsysim.core.result import plain
from mlsysim.core.table import Column, Table
from mlsysim.core.types import PRECISIONS, Accelerator, Entry, Workload
from mlsysim.core.units import format_number
from mlsysim.coverage import QUESTIONS, STATUSES
from mlsysim.coverage import support as supported
from mlsysim.registry import Hardware, Infra, Models, Systems
from mlsysim.registry.names import entries
from mlsysim.scenario.names import find_entry

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


def _rows_named(ctx: click.Context) -> list[str]:
    catalog = ctx.params.get("catalog")
    return list(CATALOGS[catalog].names()) if catalog in CATALOGS else []


@click.command()
@click.argument("catalog", required=False, type=Names(lambda _: CATALOGS))
@click.argument("name", required=False, type=Names(_rows_named))
@formatted
def zoo(catalog: str | None, name: str | None, form: str) -> None:
    """List the catalogs, the rows of one catalog, or one row with its sources.

    CATALOG is hardware, models, systems, or infra. NAME is one of its rows, such as H100.
    """
    if catalog is None:
        show(form, overview())
        return
    if catalog not in CATALOGS:
        raise UnknownEntryError.build(catalog, "catalog", CATALOGS)
    rows = CATALOGS[catalog]
    if name is None:
        _show_catalog(form, dict(_listing(rows)))
    else:
        name = spelled(name, rows.names(), f"{rows.__name__} entry")
        _show_row(form, name, row_details(rows[name]))


def overview() -> Table:
    """Return one row per catalog."""
    texts = {
        "catalog": list(CATALOGS),
        "rows": [len(catalog) for catalog in CATALOGS.values()],
        "tiers": [", ".join(catalog.tiers()) for catalog in CATALOGS.values()],
    }
    return Table({name: Column(values) for name, values in texts.items()})


def _show_catalog(form: str, parts: dict[str, Table]) -> None:
    show(
        form,
        parts,
        text=lambda: "\n\n".join(f"{title}\n{table}" for title, table in parts.items()),
        data=lambda: plain(parts),
        table=lambda: _joined(parts),
        markdown=lambda: "\n\n".join(
            f"**{title}**\n\n{table._repr_markdown_()}" for title, table in parts.items()
        ),
    )


def _show_row(form: str, name: str, details: list[dict[str, Any]]) -> None:
    width = max(len(item["field"]) for item in details)
    texts = [f"{'≈ ' if item['estimated'] else ''}{item['text']}" for item in details]
    values = flat({item["field"]: item["value"] for item in details})
    more = {key: Column([item[key] for item in details]) for key in ("estimated", "source")}
    fields = Column([item["field"] for item in details])
    show(
        form,
        details,
        text=lambda: "\n".join(
            f"{item['field']:<{width}}  {text}  [{item['source']}]"
            for item, text in zip(details, texts, strict=True)
        ),
        data=lambda: {"name": name, "fields": details},
        table=lambda: Table({key: Column(values[key]) for key in values.columns} | more),
        markdown=lambda: Table(
            {"field": fields, "value": Column(texts), "source": more["source"]}, limit=None
        )._repr_markdown_(),
    )


def _listing(catalog: Any) -> Iterator[tuple[str, Table]]:
    """Yield a title and a table for each part of a catalog with rows of one kind."""
    parts = {catalog.__name__: catalog} if catalog.__name__ in _SHOWN else catalog.tiers()
    for title, part in parts.items():
        yield title, part.table(*_SHOWN[title], units=_UNITS.get(title))


def _joined(parts: Mapping[str, Table]) -> Table:
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


@click.command()
@click.option(
    "--model",
    type=Names(lambda _: entries(Workload)),
    help="Models, or files such as ./config.json.",
)
@click.option("--device", type=Names(lambda _: entries(Accelerator)), help="Devices.")
@click.option("--precision", type=Names(lambda _: PRECISIONS), help="Number formats.")
@click.option("--question", type=Names(lambda _: QUESTIONS), help=f"Any of {', '.join(QUESTIONS)}.")
@click.option("--status", type=Names(lambda _: STATUSES), help=f"Any of {', '.join(STATUSES)}.")
@formatted
def support(
    model: str | None,
    device: str | None,
    precision: str | None,
    question: str | None,
    status: str | None,
    form: str,
) -> None:
    """Show which models run on which devices, and which results have an error band.

    Give --model, --device, or both. Each option also takes several names, separated by commas.
    """
    if model is None and device is None:
        raise ConfigError(
            "support needs --model or --device; for all models on all devices, see the page "
            '"What is supported" in the documentation',
            argument="model",
        )
    table = supported(
        models=_rows(model, Workload),
        devices=_rows(device, Accelerator),
        precisions=_names(precision),
        questions=_names(question),
        statuses=_names(status),
    )
    show(form, table)


def _names(text: str | None) -> list[str] | None:
    return None if text is None else [name.strip() for name in text.split(",")]


def _rows(text: str | None, kind: type) -> list[Any] | None:
    names = _names(text)
    return None if names is None else [find_entry(name, (kind,)) for name in names]


def row_details(row: Any) -> list[dict[str, Any]]:
    """Return every value of a row: name, text, plain value, source, whether it is estimated."""
    entry = isinstance(row, Entry)
    return [
        {
            "field": path,
            "text": str(value)
            if path.endswith("year")
            else format_number(getattr(value, "name", value)),
            "value": plain(value),
            "estimated": entry and row.is_estimated(path),
            "source": _cited(row, path) if entry else str(row.source or ""),
        }
        for path, value in _values(row)
    ]


def _values(row: Any) -> Iterator[tuple[str, Any]]:
    for path in paths(row):
        value = attrgetter(path)(row)
        if isinstance(value, tuple) and value and hasattr(value[0], "summary"):
            yield from ((f"{path}[{spot}]", item.summary) for spot, item in enumerate(value))
        elif value is not None:
            yield path, value


def _cited(row: Entry, path: str) -> str:
    source = row.source_of(path.split("[")[0])
    return f"{source}{f' <{source.url}>' if source.url else ''}"
