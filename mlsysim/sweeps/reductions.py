"""Reductions of a sweep: what to keep of rows that are too many to keep.

A reduction of all rows is merged from the reductions of any blocks of them, in any order: the rows
to keep of all blocks are the rows to keep of those that each block keeps.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mlsysim.core.errors import ConfigError, shown
from mlsysim.core.table import Column, Table

ROW = "row"
"""The number of each row, among the columns of a block."""

Rows = Mapping[str, Column]
"""Columns of a block."""

# Quantiles keep this many bits of a number, so they are within 2^-10 = 0.1% of the exact ones.
_BITS = 10


@dataclass(frozen=True)
class Best:
    """The rows with the largest values of a column, best first.

    Parameters
    ----------
    field : str
        Column to compare.
    count : int
        Number of rows. Of equal rows, the first are kept.
    smallest : bool
        Whether to find the smallest values instead.
    feasible : bool
        Whether to consider only feasible rows, if the solver reports feasibility.

    Examples
    --------
    >>> from mlsysim import Best, Hardware, Models, SingleNodeSolver, sweep
    >>> fastest = sweep(
    ...     SingleNodeSolver,
    ...     model=Models.ResNet50,
    ...     hardware=Hardware.H100,
    ...     batch_size=range(1, 65),
    ...     reduce=Best("latency", count=2, smallest=True),
    ... )
    >>> fastest["batch_size"].tolist()
    [1, 2]
    """

    field: str
    count: int = 1
    smallest: bool = False
    feasible: bool = True

    def __post_init__(self) -> None:
        if type(self.count) is not int or self.count < 1:
            raise ConfigError(
                f"count = {shown(self.count)} must be a whole number of at least 1",
                argument="count",
            )

    @property
    def fields(self) -> tuple[str, ...]:
        """The columns that are compared."""
        return (self.field,)

    def reduced(self, rows: Rows) -> Rows:
        """Return the rows to keep of a block."""
        usable = _usable(rows, self.fields, self.feasible)
        values = _numbers(rows, self.field, usable) * (1 if self.smallest else -1)
        if len(values) > self.count:
            near = values <= np.partition(values, self.count - 1)[self.count - 1]
            usable, values = usable[near], values[near]
        order = np.lexsort((_numbers(rows, ROW, usable), values))
        return _picked(rows, usable[order[: self.count]])

    merged = reduced


@dataclass(frozen=True, init=False)
class Pareto:
    """The rows that no other row beats in every column, ordered by the first column.

    Of rows that are equal in all these columns, the first is kept.

    Parameters
    ----------
    largest : str or sequence of str
        Columns where more is better.
    smallest : str or sequence of str
        Columns where less is better.
    feasible : bool
        Whether to consider only feasible rows, if the solver reports feasibility.
    """

    largest: tuple[str, ...]
    smallest: tuple[str, ...]
    feasible: bool

    def __init__(
        self,
        largest: str | Sequence[str] = (),
        smallest: str | Sequence[str] = (),
        *,
        feasible: bool = True,
    ) -> None:
        for name, fields in (("largest", largest), ("smallest", smallest)):
            names = (fields,) if isinstance(fields, str) else tuple(fields)
            object.__setattr__(self, name, names)
        object.__setattr__(self, "feasible", feasible)
        if not self.fields:
            raise ConfigError(
                "Pareto has no columns to compare: name some as `largest` or `smallest`",
                argument="largest",
            )

    @property
    def fields(self) -> tuple[str, ...]:
        """The columns that are compared."""
        return *self.largest, *self.smallest

    def reduced(self, rows: Rows) -> Rows:
        """Return the rows to keep of a block."""
        usable = _usable(rows, self.fields, self.feasible)
        goals = [-_numbers(rows, name, usable) for name in self.largest]
        goals += [_numbers(rows, name, usable) for name in self.smallest]
        order = np.argsort(_numbers(rows, ROW, usable))
        front = order[unbeaten(np.column_stack(goals)[order])]
        return _picked(rows, usable[front])

    merged = reduced


@dataclass(frozen=True, init=False)
class Quantiles:
    """Quantiles of columns over all rows, within 0.1% of the exact values.

    Values are rounded to 10 binary digits and counted, so a result needs a few thousand counts
    however many rows there are, and does not depend on their order. Whole numbers up to 1024 are
    exact. The quantile at a share is the smallest value that this share of the rows does not
    exceed.

    Parameters
    ----------
    *fields : str
        Columns with numbers. Rows in which a column is unknown do not count for it.
    at : sequence of float
        Shares of the rows, from 0 to 1.
    feasible : bool
        Whether to consider only feasible rows, if the solver reports feasibility.
    """

    fields: tuple[str, ...]
    at: tuple[float, ...]
    feasible: bool

    def __init__(
        self, *fields: str, at: Sequence[float] = (0.1, 0.5, 0.9), feasible: bool = True
    ) -> None:
        for name, value in (("fields", fields), ("at", tuple(at)), ("feasible", feasible)):
            object.__setattr__(self, name, value)
        if not fields:
            raise ConfigError("Quantiles has no columns: name some", argument="fields")
        if not self.at or not all(0 <= share <= 1 for share in self.at):
            raise ConfigError(
                f"at = {shown(at)} must be shares of the rows, from 0 to 1", argument="at"
            )

    def reduced(self, rows: Rows) -> Rows:
        """Return the rounded values of a block, and how often each occurs."""
        counted: dict[str, Column] = {}
        for name in self.fields:
            values = _numbers(rows, name, _usable(rows, (name,), self.feasible))
            fraction, exponent = np.frexp(values)
            rounded = np.ldexp(np.round(np.ldexp(fraction, _BITS)), exponent - _BITS)
            values, counts = np.unique(rounded, return_counts=True)
            counted[name] = Column(values, rows[name].unit)
            counted[_count(name)] = Column(counts)
        return counted

    def merged(self, blocks: Rows) -> Rows:
        """Return the counts of all blocks from their counts, one block below the other."""
        counted: dict[str, Column] = {}
        for name in self.fields:
            values, place = np.unique(blocks[name].values, return_inverse=True)
            counts = np.zeros(len(values), np.int64)
            np.add.at(counts, place, blocks[_count(name)].values)
            counted[name] = Column(values, blocks[name].unit)
            counted[_count(name)] = Column(counts)
        return counted

    def table(self, counted: Rows) -> Table:
        """Return the quantiles; they are unknown if no row counts."""
        columns = {"quantile": Column(np.array(self.at))}
        for name in self.fields:
            values, total = counted[name].values, np.cumsum(counted[_count(name)].values)
            if len(values):
                values = values[np.searchsorted(total, np.array(self.at) * total[-1])]
            else:
                values = np.full(len(self.at), np.nan)
            columns[name] = Column(values, counted[name].unit)
        return Table(columns)


Reduction = Best | Pareto | Quantiles


def unbeaten(goals: NDArray[Any]) -> NDArray[np.intp]:
    """Return the rows that no other row beats in every column, ordered by the columns.

    Less is better. Of equal rows, the first is returned; rows with unknown numbers are not.
    """
    order = np.lexsort(goals.T[::-1])
    order = order[~np.isnan(goals[order]).any(axis=1)]
    left, front = goals[order], []
    while len(order):  # the first of sorted rows is beaten by none of them
        front.append(order[0])
        better = (left < left[0]).any(axis=1)
        order, left = order[better], left[better]
    return np.array(front, np.intp)


def _count(field: str) -> str:
    return f"count of {field}"


def _numbers(rows: Rows, name: str, places: NDArray[np.intp]) -> NDArray[np.float64]:
    return np.asarray(rows[name].picked(places).values, float)


def _usable(rows: Rows, fields: Sequence[str], feasible: bool) -> NDArray[np.intp]:
    """Return the rows that are valid, feasible if that matters, and have these numbers."""
    usable = np.asarray(rows["valid"].values, bool)
    if feasible and "feasible" in rows:
        usable = usable & np.asarray(rows["feasible"].values, bool)
    for name in fields:
        usable = usable & ~np.isnan(rows[name].values.astype(float))
    return np.flatnonzero(usable)


def _picked(rows: Rows, places: NDArray[np.intp]) -> Rows:
    return {name: column.picked(places) for name, column in rows.items()}


def joined(one: Rows, other: Rows) -> Rows:
    """Return the reductions of two blocks, one below the other."""
    return {
        name: Column(np.concatenate([column.values, other[name].values]), column.unit)
        for name, column in one.items()
    }
