"""Write the files of fitted constants in ``mlsysim/registry/data``."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from mlsysim.registry.tables import read_toml

DATA = Path(__file__).parents[2] / "mlsysim/registry/data"
WIDTH = 100


def write_rows(file: str, rows: Mapping[str, Mapping[str, Any]]) -> None:
    """Change rows of a file: each of the given keys and sections replaces what the row had."""
    content = dict(read_toml(file))
    content["rows"] = {key: {**row, **rows.get(key, {})} for key, row in content["rows"].items()}
    (DATA / file).write_text(toml_text(content), encoding="utf-8")
    read_toml.cache_clear()


def with_bands(constants: Mapping[str, float], edges: Mapping[str, float]) -> dict[str, Any]:
    """Return the section of a fit: its constants, and a pair of edges for each band."""
    bands = {name.removesuffix("_low"): edge for name, edge in edges.items() if "_low" in name}
    return {**constants} | {
        band: [round(low, 3), round(edges[f"{band}_high"], 3)] for band, low in bands.items()
    }


def toml_text(content: Mapping[str, Any]) -> str:
    """Return the text of a file, as all files of constants are laid out."""
    return "\n".join(_tables(content, ())).lstrip() + "\n"


def _tables(table: Mapping[str, Any], path: tuple[str, ...]) -> Iterator[str]:
    values = {key: value for key, value in table.items() if not isinstance(value, Mapping)}
    inner = {key: value for key, value in table.items() if isinstance(value, Mapping)}
    if values:
        yield f"\n[{'.'.join(path)}]" if path else ""
    for key, value in values.items():
        yield _line(key, value)
    for key, value in inner.items():
        yield from _tables(value, (*path, key))


def _line(key: str, value: Any) -> str:
    line = f"{key} = {_value(value)}"
    if len(line) <= WIDTH or not isinstance(value, list | tuple):
        return line
    items = textwrap.fill(
        ", ".join(_value(item).replace(" ", "\0") for item in value),
        WIDTH,
        initial_indent="    ",
        subsequent_indent="    ",
        break_long_words=False,
        break_on_hyphens=False,
    )
    return f"{key} = [\n{items},\n]".replace("\0", " ")


def _value(value: Any) -> str:
    if isinstance(value, list | tuple):
        return f"[{', '.join(_value(item) for item in value)}]"
    return json.dumps(value, ensure_ascii=False)
