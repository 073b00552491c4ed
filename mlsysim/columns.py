"""Columns of a sweep: what the models of its parts return, joined and put in units."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mlsysim.core.fields import units_of
from mlsysim.core.table import Column
from mlsysim.core.units import si_factor
from mlsysim.grid import Grid, Part
from mlsysim.slices import Executors, Progress, evaluate, reporter

__all__ = ["columns_of", "outputs_of"]


def outputs_of(
    grid: Grid, parts: list[Part], executor: Executors | None, progress: Progress
) -> dict[str, NDArray[Any]]:
    """Run the models, and join what they return into one column per output.

    An output that the model of a row does not return is unknown there. A row without a model has
    no known outputs.
    """
    report = reporter(progress)
    found: dict[str, NDArray[Any]] = {}
    before = grid.size - sum(len(part.valid) for part in parts)  # rows without a model
    for part in parts:
        shift = partial(_shifted, report, before, grid.size)
        outputs = evaluate(part.model, part.inputs, part.shape, executor, shift)
        before += len(part.valid)
        for name, values in outputs.items():
            flat = values.reshape(-1)
            if flat.dtype.kind in "iu":
                flat = flat.astype(float)
            if len(parts) > 1:
                column = found.get(name, _unknown(grid.size, flat.dtype))
                column[part.rows] = flat
                flat = column
            found[name] = flat
    if not parts:
        found = {name: _unknown(grid.size, kind) for name, kind in _outputs(grid).items()}
    return found


def _outputs(grid: Grid) -> dict[str, np.dtype[Any]]:
    """Return what models of the solver return, and its type, without running one."""
    rest = grid.cls.rest({}, None)
    kinds = {"bool": np.dtype(bool), "str": np.dtype(str)}
    return {
        item.name: np.dtype(float) if "unit" in item.metadata else kinds[str(item.type)]
        for item in dataclasses.fields(grid.cls.result)
        if item.name not in rest
    }


def _shifted(
    report: Callable[[int, int], None], before: int, total: int, done: int, _: int
) -> None:
    report(before + done, total)


def _unknown(size: int, kind: np.dtype[Any]) -> NDArray[Any]:
    """Return a column of unknown values: NaN for numbers, False for switches, `None` for words."""
    if kind.kind in "fb":
        return np.full(size, math.nan if kind.kind == "f" else False)
    return np.full(size, None, object)


def columns_of(
    grid: Grid, outputs: dict[str, NDArray[Any]], valid: NDArray[np.bool_]
) -> dict[str, Column]:
    """Return the axes and the outputs in their units. Outputs of invalid rows are unknown."""
    columns = grid.columns()
    units = {name: unit for name, unit, plain in units_of(grid.cls.result) if not plain}
    every = bool(valid.all())
    while outputs:  # one at a time, so that only one column is in memory twice
        name = next(iter(outputs))
        values, unit = outputs.pop(name), units.get(name, "")
        factor = si_factor(unit)
        if factor != 1:
            values /= factor
        if not every and name in columns:  # the result repeats this argument
            values[~valid] = grid.numbers(name)[~valid] / factor
        elif not every:
            unknown = _unknown(1, values.dtype)
            values = values.astype(unknown.dtype, copy=False)
            values[~valid] = unknown[0]
        columns[name] = Column(values, unit)
    columns["valid"] = Column(valid)
    return columns
