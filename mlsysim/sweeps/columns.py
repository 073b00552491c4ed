"""The columns of a sweep: which there are, and their values from the models of all rows."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mlsysim.core.errors import ConfigError, UnknownEntryError, shown
from mlsysim.core.fields import units_of
from mlsysim.core.table import Column
from mlsysim.core.units import si_factor
from mlsysim.sweeps.grid import Grid, Part
from mlsysim.sweeps.slices import Executors, Progress, reporter, run_slices

# Without them, a table cannot tell which of its rows to compare.
_MARKS = ("feasible", "valid")


def unknown(size: int, kind: np.dtype[Any]) -> NDArray[Any]:
    """Return a column of unknown values: NaN for numbers, False for switches, `None` for words."""
    if kind.kind in "fb":
        return np.full(size, math.nan if kind.kind == "f" else False)
    return np.full(size, None, object)


class SpreadColumn(Column):
    """A column with values along some axes of a grid, expanded to all rows when it is read.

    Parameters
    ----------
    compact
        The values, with a length of 1 along the other axes.
    shape
        Lengths of all axes.
    unit
        Unit of the numbers.
    missing
        Rows with an unknown value.
    """

    def __init__(
        self,
        compact: NDArray[Any],
        shape: tuple[int, ...],
        unit: str = "",
        missing: NDArray[np.bool_] | None = None,
    ) -> None:
        fields = {"unit": unit, "head": "", "sources": None, "estimated": None}
        self.__dict__.update(fields, _compact=compact, _shape=shape or (1,), _missing=missing)

    def __len__(self) -> int:
        return math.prod(self.__dict__["_shape"])

    @cached_property
    def values(self) -> NDArray[Any]:
        """All values, row by row."""
        spread = np.broadcast_to(self.__dict__["_compact"], self.__dict__["_shape"])
        known = _known(spread.reshape(-1), self.__dict__["_missing"])
        known.flags.writeable = False
        return known

    def picked(self, rows: Any) -> Column:
        """Return the column for some rows, given by an array of row numbers."""
        shape = self.__dict__["_shape"]
        spots = np.unravel_index(rows, shape)
        spread = np.broadcast_to(self.__dict__["_compact"], shape)
        missing = self.__dict__["_missing"]
        return Column(_known(spread[spots], None if missing is None else missing[rows]), self.unit)


def _known(values: NDArray[Any], missing: NDArray[np.bool_] | None) -> NDArray[Any]:
    if missing is None:
        return values
    blank = unknown(1, values.dtype)
    values = values.astype(blank.dtype)
    values[missing] = blank[0]
    return values


@dataclass(frozen=True)
class Head:
    """The unit of a column, and the type of its values."""

    unit: str
    kind: np.dtype[Any]


def heads_of(grid: Grid, names: Any) -> dict[str, Head]:
    """Return the columns of a sweep: the axes, the chosen fields, and what marks rows.

    Raises
    ------
    ConfigError
        If `names` is not a list of fields.
    """
    units = {name: unit for name, unit, plain in units_of(grid.cls.result) if not plain}
    fields = {name: Head(units.get(name, ""), kind) for name, kind in _output_types(grid).items()}
    axes = {name: Head(unit, _kind(values)) for name, (values, unit) in grid.shown().items()}
    every = {**axes, **fields, "valid": Head("", np.dtype(bool))}
    if names is None:
        return every
    if isinstance(names, str) or not all(isinstance(name, str) for name in names):
        raise ConfigError(
            f"columns = {shown(names)} is not a list of names: give fields of "
            f"{grid.cls.result.__name__}, such as {next(iter(fields))!r}",
            argument="columns",
        )
    for name in names:
        if name not in every:
            raise UnknownEntryError.build(name, "column", every)
    wanted = {*axes, *names, *_MARKS}
    return {name: head for name, head in every.items() if name in wanted}


def _kind(values: NDArray[Any]) -> np.dtype[Any]:
    switches = values.dtype == object and {type(value) for value in values} == {bool}
    return np.dtype(bool) if switches else values.dtype


def valid_rows(grid: Grid, parts: list[Part]) -> NDArray[np.bool_]:
    """Return a mask of the rows that have an answer."""
    valid = np.zeros(grid.size, bool)
    for part in parts:
        valid[part.rows] = part.valid
    return valid


def columns_of(
    grid: Grid,
    parts: list[Part],
    valid: NDArray[np.bool_],
    heads: Mapping[str, Head],
    executor: Executors | None = None,
    progress: Progress = False,
) -> dict[str, Column]:
    """Run the models, and return the axes and the outputs with a head, in their units.

    Outputs of invalid rows are unknown.
    """
    outputs = _outputs_of(grid, parts, heads, executor, progress)
    columns: dict[str, Column] = {
        name: SpreadColumn(values[grid.index[name]], grid.shape, unit)
        for name, (values, unit) in grid.shown().items()
    }
    missing = None if valid.all() else ~valid
    for name, values in outputs.items():
        if name not in heads:
            continue
        unit = heads[name].unit
        if missing is not None and name in columns:  # the result repeats this argument
            spread = np.broadcast_to(values, grid.shape).reshape(-1).copy()
            spread[missing] = grid.numbers(name)[missing] / si_factor(unit)
            columns[name] = Column(spread, unit)
        else:
            columns[name] = SpreadColumn(values, grid.shape, unit, missing)
    columns["valid"] = Column(valid)
    return columns


def _outputs_of(
    grid: Grid,
    parts: list[Part],
    heads: Mapping[str, Head],
    executor: Executors | None,
    progress: Progress,
) -> dict[str, NDArray[Any]]:
    """Run the models and join their outputs in their units, one column per output.

    If the model of a row does not return an output, the output is unknown in that row. In a row
    without a model, all outputs are unknown.
    """
    report = reporter(progress)
    joined: dict[str, NDArray[Any]] = {}
    before = grid.size - sum(len(part.valid) for part in parts)  # rows without a model
    for part in parts:
        shift = partial(_shifted, report, before, grid.size)
        model = partial(_named, part.model, heads)
        outputs = run_slices(model, part.inputs, part.shape, executor, shift)
        before += len(part.valid)
        for name, values in outputs.items():
            numbers = values.astype(float) if values.dtype.kind in "iu" else values
            if isinstance(part.rows, slice):
                joined[name] = numbers
                continue
            column = joined.setdefault(name, unknown(grid.size, numbers.dtype).reshape(grid.shape))
            column.reshape(-1)[part.rows] = np.broadcast_to(numbers, part.shape).reshape(-1)
    if not parts:
        joined = {name: unknown(1, kind) for name, kind in _output_types(grid).items()}
    return joined


def _named(
    model: Callable[[Any], dict[str, Any]], heads: Mapping[str, Head], inputs: Any
) -> dict[str, Any]:
    """Run a model for some of its outputs, so that no others travel from a worker or fill memory.

    They are converted while they are in the processor's cache. If the model has none of them, all
    are returned, because a slice without outputs is a lost one.
    """
    outputs = model(inputs)
    return {
        name: value if (factor := si_factor(heads[name].unit)) == 1 else value / factor
        for name, value in outputs.items()
        if name in heads
    } or outputs


def _output_types(grid: Grid) -> dict[str, np.dtype[Any]]:
    """Return the outputs of the solver's models, and their types, without running one."""
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
