"""Write fitted constants to the files in ``mlsysim/registry/data``."""

from __future__ import annotations

import csv
import json
import textwrap
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mlsysim.core.types import Band
from mlsysim.registry.tables import read_toml
from research.rows import write_table

DATA = Path(__file__).parents[2] / "mlsysim/registry/data"
WIDTH = 100


def write_rows(file: str, rows: Mapping[str, Mapping[str, Any]]) -> None:
    """Change rows of a file: each of the given keys and sections replaces what the row had."""
    content = dict(read_toml(file))
    content["rows"] = {key: {**row, **rows.get(key, {})} for key, row in content["rows"].items()}
    (DATA / file).write_text(toml_text(content), encoding="utf-8")
    read_toml.cache_clear()


def write_cells(file: str, cells: Mapping[tuple[str, ...], Mapping[str, float | Band]]) -> None:
    """Change constants in a table, in rows that are given by their engine, core and format."""
    path = DATA / file
    with path.open(encoding="utf-8", newline="") as lines:
        rows = list(csv.DictReader(lines))
    for row in rows:
        constants = cells.get((row["engine"], row["core"], row["precision"]), {})
        for title, value in constants.items():
            if isinstance(value, Band):
                row[title] = "{:.3f} {:.3f}".format(*value.around(1))
            else:
                row[title] = f"{value:.6g}"
    write_table(path, rows)


def hierarchical(
    row: Mapping[str, Any], constants: Mapping[str, float], determined: Collection[str]
) -> dict[str, Any]:
    """Return the sections of a machine or a framework: `fitted`, and `population`.

    Constants that its runs do not determine follow from the other machines or frameworks. Those
    that the fit does not contain stay as they are.
    """
    elsewhere = {
        name
        for key, section in row.items()
        if isinstance(section, Mapping) and key not in ("fitted", "population")
        for name in section
    }
    mine = {name: value for name, value in constants.items() if name not in elsewhere}
    unfitted = {name: v for name, v in row.get("population", {}).items() if name not in mine}
    return {
        "fitted": {name: value for name, value in mine.items() if name in determined},
        "population": unfitted | {n: value for n, value in mine.items() if n not in determined},
    }


def band_of(ratios: Sequence[float] | NDArray[np.float64]) -> Band:
    """Return the band between the 10th and the 90th percentile of measured over predicted values.

    A band contains its prediction, also where most runs lie on one side.
    """
    low, high = np.percentile(ratios, [10, 90])
    return Band(low=min(1.0, float(low)), high=max(1.0, float(high)))


def with_bands(constants: Mapping[str, float], bands: Mapping[str, Band]) -> dict[str, Any]:
    """Return the section of a fit: its constants, and a pair of edges for each known band."""
    return {**constants} | {
        name: [round(edge, 3) for edge in band.around(1)]
        for name, band in bands.items()
        if band.known
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
