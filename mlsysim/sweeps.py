"""Sweeps: one solver over many configurations, evaluated on arrays by the solver's own model.

Arguments that are lists, tuples, ranges or arrays are axes. Numbers become arrays along their axis,
and so do the numbers of names and objects (precisions, fleets, models). A value that depends on two
of eight axes is computed along these two only. The model runs on slices of thousands of rows at a
time, and a column is expanded to all rows when it is read.
"""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mlsysim.core.errors import ConfigError, hint, shown
from mlsysim.core.fields import units_of, whole_fields
from mlsysim.core.result import Result
from mlsysim.core.table import Column, Table
from mlsysim.core.units import si_factor
from mlsysim.grid import Grid, Part
from mlsysim.slices import Executors, Progress, reporter, run_slices
from mlsysim.solvers.arguments import Choice, Whole
from mlsysim.solvers.base import Solver
from mlsysim.spread import SpreadColumn, unknown

_MODES = ("product", "zip")
_INVALID = ("raise", "mark", "drop")


class Sweep(Table):
    """Table of a sweep: the axes first, then the fields of the solver's result.

    Attributes
    ----------
    solver : type
        The solver that was swept.
    """

    def __init__(
        self, columns: Mapping[str, Column], solver: type[Solver[Any, Any]], grid: Grid
    ) -> None:
        super().__init__(columns)
        self.solver = solver
        self._grid = grid

    def row(self, index: int) -> dict[str, Any]:
        """Return one row as a mapping like a result of `solve`: with units, and `None` if unknown.

        Raises
        ------
        ConfigError
            If there is no such row.
        """
        whole = {n for n, kind in self.solver.parameters.items() if isinstance(kind, Whole)}
        whole |= whole_fields(self.solver.result)
        return {
            name: int(value) if name in whole and value is not None else value
            for name, value in super().row(index).items()
        }

    def result(self, index: int) -> Result:
        """Solve one row again, for its reasons and its derivation.

        Raises
        ------
        ConfigError
            If there is no such row, or the row's configuration is invalid.
        """
        row = self._position("index", index) % len(self)
        answer: Result = self.solver.solve(**self._grid.arguments(row))
        return answer

    def best(self, field: str, *, smallest: bool = False, feasible: bool = True) -> Result:
        """Return the full result of the row with the largest `field`.

        Parameters
        ----------
        field
            Column to compare.
        smallest
            Whether to find the smallest value instead.
        feasible
            Whether to consider only feasible rows, if the solver reports feasibility.

        Raises
        ------
        ConfigError
            If there is no row to choose from.
        """
        values = np.asarray(self._column(field).values)
        if values.dtype.kind not in "iufb":
            raise ConfigError(f"{field} has no numbers: choose another column", argument="field")
        values = values.astype(float)
        allowed = ~np.isnan(values)
        if feasible and "feasible" in self.columns:
            allowed &= np.asarray(self._column("feasible").values, dtype=bool)
        if not allowed.any():
            kind = "feasible " if feasible else ""
            raise ConfigError(f"no {kind}row among {len(self)}: widen the sweep")
        values = np.where(allowed, values, np.inf if smallest else -np.inf)
        return self.result(int(values.argmin() if smallest else values.argmax()))

    def where(self, mask: Any) -> Sweep:
        """Return the rows for which `mask` is true.

        Raises
        ------
        ConfigError
            If `mask` is not one True or False per row.
        """
        rows = _array(mask)
        if rows is None or rows.dtype.kind != "b" or rows.shape != (len(self),):
            raise ConfigError(
                f"mask must have {len(self)} values, True or False per row; got {shown(mask)}",
                argument="mask",
            )
        return self._picked(np.flatnonzero(rows))

    def sort(self, field: str, *, descending: bool = False) -> Sweep:
        """Return the rows in the order of `field`."""
        values = np.asarray(self._column(field).values)
        if values.dtype.kind == "O":  # names; unknown values come first
            values = np.array(["" if value is None else str(value) for value in values])
        order = np.argsort(values, kind="stable")
        return self._picked(order[::-1] if descending else order)

    def take(self, indices: Any) -> Sweep:
        """Return the rows at `indices`, in that order.

        Raises
        ------
        ConfigError
            If `indices` is not a list of row numbers.
        """
        rows = _array(indices)
        if (
            rows is None
            or (rows.size and rows.dtype.kind not in "iu")
            or rows.ndim != 1
            or (rows >= len(self)).any()
            or (rows < -len(self)).any()
        ):
            raise ConfigError(
                f"indices must be numbers of the table's {len(self)} rows; got {shown(indices)}",
                argument="indices",
            )
        return self._picked(
            rows.astype(int) % max(len(self), 1)
        )  # negative indices count from the end

    def _picked(self, rows: NDArray[Any]) -> Sweep:
        columns = {name: column.picked(rows) for name, column in self._columns.items()}
        return Sweep(columns, self.solver, self._grid.picked(rows))

    def _rebuilt(self, columns: Mapping[str, Column]) -> Sweep:
        return Sweep(columns, self.solver, self._grid)


def _array(value: Any) -> NDArray[Any] | None:
    """Return an array, or `None` if rows differ in length."""
    try:
        return np.asarray(value)
    except ValueError:
        return None


def sweep(
    solver: type[Solver[Any, Any]] | Solver[Any, Any],
    *,
    how: str = "product",
    invalid: str = "raise",
    executor: Executors | None = None,
    progress: Progress = False,
    **arguments: Any,
) -> Sweep:
    """Solve many configurations at once.

    Parameters
    ----------
    solver
        A solver, such as `DistributedSolver`.
    how
        ``"product"`` combines every value of every axis with every other; ``"zip"`` reads axes of
        equal length side by side, one configuration per position.
    invalid
        What to do with configurations that `solve` rejects, such as sizes that do not tile the
        fleet: ``"raise"`` the error of the first, ``"mark"`` them (column ``valid`` is False and
        numbers are NaN), or ``"drop"`` them. A value that is wrong in every configuration, such as
        a negative size, is always an error.
    executor
        What computes the slices of a large sweep: any `concurrent.futures.Executor`, such as a pool
        of threads or processes or the ``get_executor()`` of a Dask client, or a function that
        creates one. Without it, slices are computed here, one after the other. The table is the
        same either way. If a worker dies, its slice is submitted again, up to three times in total.
        A process pool dies with any of its workers, so pass a function that can create another
        pool. Workers of a process pool ignore Ctrl-C from then on; the sweeping process stops them.
    progress
        True draws a bar on standard error; a function is called with the rows done and the total
        after each slice.
    **arguments
        The solver's arguments. A list, tuple, range or array is an axis. Its values may include
        `None` if the solver takes `None`.

    Returns
    -------
    Sweep
        One row per configuration: axes, then the solver's fields. Each row equals what `solve`
        returns for its arguments.

    Raises
    ------
    ConfigError
        If an argument is unknown or out of range, axes differ in length under ``"zip"``, a
        configuration is invalid and `invalid` is ``"raise"``, or the table would not fit in
        memory.
    ExecutorError
        If the executor lost a slice on every attempt.

    Examples
    --------
    >>> from mlsysim import DistributedSolver, Models, Systems, sweep
    >>> table = sweep(
    ...     DistributedSolver,
    ...     model=Models.Llama3_70B,
    ...     fleet=Systems.Clusters.Research_256,
    ...     batch_size=256,
    ...     tp_size=[1, 2, 4, 8],
    ...     pp_size=[1, 2, 4, 8],
    ...     microbatch_count=16,
    ... )
    >>> len(table)
    16
    """
    cls = solver if isinstance(solver, type) else type(solver)
    if not issubclass(cls, Solver) or not hasattr(cls, "solve"):
        raise ConfigError(
            f"solver = {shown(solver)} is not a solver: pass one such as DistributedSolver",
            argument="solver",
        )
    for name, value, known in (("how", how, _MODES), ("invalid", invalid, _INVALID)):
        Choice.among(known).admit(name, value)
    # Rows are dropped from a complete table, so memory holds two.
    grid = Grid(cls, _with_defaults(cls, arguments), how, copies=2 if invalid == "drop" else 1)
    try:
        return _computed(grid, invalid, executor, progress)
    except MemoryError as fault:
        raise ConfigError(
            f"{grid.size:,} rows are too many for the memory: cut an axis into parts, and sweep "
            "each of them"
        ) from fault


def _computed(grid: Grid, invalid: str, executor: Executors | None, progress: Progress) -> Sweep:
    parts = grid.parts()
    valid = np.zeros(grid.size, bool)
    for part in parts:
        valid[part.rows] = part.valid
    if invalid == "raise" and not valid.all():
        grid.refuse(valid)
    outputs = _outputs_of(grid, parts, executor, progress)
    table = Sweep(_columns_of(grid, outputs, valid), grid.cls, grid)
    return table.where(valid) if invalid == "drop" else table


def _outputs_of(
    grid: Grid, parts: list[Part], executor: Executors | None, progress: Progress
) -> dict[str, NDArray[Any]]:
    """Run the models and join their outputs, one column per output.

    If the model of a row does not return an output, the output is unknown in that row. In a row
    without a model, all outputs are unknown.
    """
    report = reporter(progress)
    joined: dict[str, NDArray[Any]] = {}
    before = grid.size - sum(len(part.valid) for part in parts)  # rows without a model
    for part in parts:
        shift = partial(_shifted, report, before, grid.size)
        outputs = run_slices(part.model, part.inputs, part.shape, executor, shift)
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


def _columns_of(
    grid: Grid, outputs: dict[str, NDArray[Any]], valid: NDArray[np.bool_]
) -> dict[str, Column]:
    """Return the axes and the outputs in their units. Outputs of invalid rows are unknown."""
    columns = grid.columns()
    units = {name: unit for name, unit, plain in units_of(grid.cls.result) if not plain}
    fields = {item.name for item in dataclasses.fields(grid.cls.result)}
    missing = None if valid.all() else ~valid
    for name, values in outputs.items():
        if name not in fields:
            continue  # an intermediate value of the model
        unit = units.get(name, "")
        factor = si_factor(unit)
        converted = values if factor == 1 else values / factor
        if missing is not None and name in columns:  # the result repeats this argument
            spread = np.broadcast_to(converted, grid.shape).reshape(-1).copy()
            spread[missing] = grid.numbers(name)[missing] / factor
            columns[name] = Column(spread, unit)
        else:
            columns[name] = SpreadColumn(converted, grid.shape, unit, missing)
    columns["valid"] = Column(valid)
    return columns


def _with_defaults(cls: type[Solver[Any, Any]], arguments: Mapping[str, Any]) -> dict[str, Any]:
    known = cls.defaults
    for name in arguments:
        if name not in known:
            nearest = hint(name, known, f"known: {', '.join(known)}")
            raise ConfigError(
                f"{cls.__name__} has no argument {shown(name)}; {nearest}", argument=name
            )
    missing = [n for n, v in known.items() if v is inspect.Parameter.empty and n not in arguments]
    if missing:
        raise ConfigError(f"{missing[0]} is missing: it has no default", argument=missing[0])
    return {**known, **arguments}
