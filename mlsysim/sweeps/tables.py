"""Sweeps: one solver over many configurations, evaluated on arrays by the solver's own model.

Arguments that are lists, tuples, ranges or arrays are axes. Numbers become arrays along their axis,
and so do the numbers of names and objects (precisions, fleets, models). A value that depends on two
of eight axes is computed along these two only. The model runs on slices of thousands of rows at a
time, and a column is expanded to all rows when it is read.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from mlsysim.core.errors import ConfigError, UnknownEntryError, hint, shown
from mlsysim.core.fields import whole_fields
from mlsysim.core.result import Result
from mlsysim.core.table import Column, Table
from mlsysim.solvers.arguments import Choice, Whole
from mlsysim.solvers.base import Solver
from mlsysim.sweeps.blocks import Work, needed_pyarrow, run_blocks
from mlsysim.sweeps.columns import Head, columns_of, heads_of, valid_rows
from mlsysim.sweeps.grid import Grid, check_room
from mlsysim.sweeps.reductions import ROW, Best, Pareto, Quantiles, Reduction, Rows
from mlsysim.sweeps.slices import Executors, Progress

_MODES = ("product", "zip")
_INVALID = ("raise", "mark", "drop")
_WAYS_OUT = (
    "name the columns to keep (`columns`), write the rows to files (`into`), keep only the best of "
    "them or their quantiles (`reduce`), or "
)


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
            raise _no_numbers(field, "field")
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


@overload
def sweep(
    solver: type[Solver[Any, Any]] | Solver[Any, Any],
    *,
    how: str = "product",
    invalid: str = "raise",
    columns: Sequence[str] | None = None,
    into: None = None,
    reduce: None = None,
    executor: Executors | None = None,
    progress: Progress = False,
    **arguments: Any,
) -> Sweep: ...
@overload
def sweep(
    solver: type[Solver[Any, Any]] | Solver[Any, Any], *, reduce: Best | Pareto, **arguments: Any
) -> Sweep: ...
@overload
def sweep(
    solver: type[Solver[Any, Any]] | Solver[Any, Any], *, reduce: Quantiles, **arguments: Any
) -> Table: ...
@overload
def sweep(
    solver: type[Solver[Any, Any]] | Solver[Any, Any],
    *,
    reduce: Sequence[Reduction],
    **arguments: Any,
) -> tuple[Any, ...]: ...
@overload
def sweep(
    solver: type[Solver[Any, Any]] | Solver[Any, Any], *, into: str | Path, **arguments: Any
) -> Path: ...
def sweep(
    solver: type[Solver[Any, Any]] | Solver[Any, Any],
    *,
    how: str = "product",
    invalid: str = "raise",
    columns: Sequence[str] | None = None,
    into: str | Path | None = None,
    reduce: Reduction | Sequence[Reduction] | None = None,
    executor: Executors | None = None,
    progress: Progress = False,
    **arguments: Any,
) -> Table | tuple[Table, ...] | Path:
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
    columns
        Fields of the result to keep, next to the axes and the columns ``feasible`` and ``valid``.
        All of them by default. A million rows take 8 MB per column.
    into
        A new folder for the rows, one Parquet file for about a million of them. It needs pyarrow.
        If the sweep ends early, the same call resumes it, and computes only files that are not yet
        complete. Workers on other machines need the same folder.
    reduce
        What to keep of the rows instead of a table: `Best`, `Pareto`, `Quantiles`, or a list of
        them. They are merged while blocks of rows are computed. With the folder of a complete
        sweep in `into`, they are taken from its files.
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
        returns for its arguments. With `reduce`, the rows that it keeps or a table of quantiles,
        or a tuple of these for a list. With only `into`, the path of the folder.

    Raises
    ------
    ConfigError
        If an argument is unknown or out of range, axes differ in length under ``"zip"``, a
        configuration is invalid and `invalid` is ``"raise"``, the table would not fit in memory,
        or the folder has other files.
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
    given = _with_defaults(cls, arguments)
    grid = Grid(cls, given, how)
    heads = heads_of(grid, columns)
    if into is not None or reduce is not None:
        if invalid == "drop":
            heads = {ROW: Head("", np.dtype(int)), **heads}
        reductions = _reductions(reduce, heads)
        folder = None if into is None else Path(into).absolute()
        if folder is not None:
            needed_pyarrow()
        work = Work(heads, invalid, reductions, folder)
        merged = run_blocks(grid, work, given, executor, progress)
        tables = tuple(
            item.table(rows) if isinstance(item, Quantiles) else _chosen(rows, cls, grid)
            for item, rows in zip(reductions, merged, strict=True)
        )
        if into is not None and reduce is None:
            return Path(into)
        return tables[0] if isinstance(reduce, Reduction) else tables
    # Rows are dropped from a complete table, so memory holds two.
    copies = 2 if invalid == "drop" else 1
    row_bytes = copies * sum(max(head.kind.itemsize, 1) for head in heads.values())
    check_room(grid.lengths, grid.size, row_bytes, "rows", _WAYS_OUT)
    try:
        parts = grid.parts()
        valid = valid_rows(grid, parts)
        if invalid == "raise" and not valid.all():
            grid.refuse(valid)
        values = columns_of(grid, parts, valid, heads, executor, progress)
    except MemoryError as fault:
        raise ConfigError(
            f"{grid.size:,} rows are too many for the memory: {_WAYS_OUT}cut an axis into parts, "
            "and sweep each of them"
        ) from fault
    table = Sweep({n: column for n, column in values.items() if n in heads}, cls, grid)
    return table.where(valid) if invalid == "drop" else table


def _reductions(reduce: Any, heads: Mapping[str, Head]) -> tuple[Reduction, ...]:
    """Return the reductions, and reject those of columns that are not numbers, or not there."""
    listed = reduce if isinstance(reduce, list | tuple) else () if reduce is None else (reduce,)
    for item in listed:
        if not isinstance(item, Reduction):
            raise ConfigError(
                f"reduce = {shown(item)} must be Best, Pareto or Quantiles, or a list of them",
                argument="reduce",
            )
        for name in item.fields:
            if name not in heads:
                raise UnknownEntryError.build(name, "column", heads)
            if heads[name].kind.kind not in "iufb":
                raise _no_numbers(name, "reduce")
    return tuple(listed)


def _no_numbers(field: str, argument: str) -> ConfigError:
    return ConfigError(f"{field} has no numbers: choose another column", argument=argument)


def _chosen(rows: Rows, cls: type[Solver[Any, Any]], grid: Grid) -> Sweep:
    """Return the rows that a reduction has kept, in its order."""
    columns = {name: column for name, column in rows.items() if name != ROW}
    return Sweep(columns, cls, grid.picked(rows[ROW].values))


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
