"""Ranked plans: a table with rows that can be solved again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from mlsysim.core.calls import checked_by_numpy, expects
from mlsysim.core.table import Column, Table
from mlsysim.planner.training.space import EXCHANGE, LEVERS
from mlsysim.solvers import DistributedResult, DistributedSolver

__all__ = ["Plans", "front"]


class Plans(Table):
    """Feasible configurations, best first: the levers, the goal, and parts of the result."""

    def __init__(
        self, columns: Mapping[str, Column], fixed: Mapping[str, Any], fleets: Mapping[str, Any]
    ) -> None:
        super().__init__(columns)
        self._fixed = dict(fixed)
        self._fleets = dict(fleets)

    def configuration(self, index: int) -> dict[str, Any]:
        """Return the arguments of `DistributedSolver` for one row.

        Raises
        ------
        ConfigError
            If there is no such row.
        """
        row = self.row(index)
        searched = {name: row[name] for name in ("batch_size", *LEVERS)}
        for name in EXCHANGE:
            if name in row:
                searched[name] = None if row[name] == "" else row[name]
        if searched.get("expert_nodes") is not None:
            searched["expert_nodes"] = int(searched["expert_nodes"])
        return {**self._fixed, "fleet": self._fleets[row["fleet"]], **searched}

    def result(self, index: int) -> DistributedResult:
        """Solve one row, for its reasons and its derivation.

        Raises
        ------
        ConfigError
            If there is no such row.
        """
        return DistributedSolver.solve(**self.configuration(index))

    def where(self, mask: Any) -> Plans:
        """Return the rows for which `mask`, one True or False per row, is true."""
        return self.take(np.flatnonzero(np.asarray(mask)))

    def take(self, indices: Sequence[int] | Any) -> Plans:
        """Return the rows at `indices`, in that order."""
        rows = np.asarray(indices, dtype=int)
        return self._rebuilt({n: Column(c.values[rows], c.unit) for n, c in self._columns.items()})

    def _rebuilt(self, columns: Mapping[str, Column]) -> Plans:
        return Plans(columns, self._fixed, self._fleets)


@expects(plans=Table, first=str, second=str)
@checked_by_numpy
def front(plans: Plans, first: str, second: str) -> Plans:
    """Return the Pareto front: plans that no other plan beats in both columns, smallest first.

    Parameters
    ----------
    plans
        The plans.
    first, second
        Columns of numbers. Less is better.
    """
    x, y = (np.asarray(getattr(plans[n], "magnitude", plans[n]), float) for n in (first, second))
    order = np.lexsort((y, x))
    before = np.minimum.accumulate(np.concatenate([[np.inf], y[order][:-1]]))
    return plans.take(order[y[order] < before])
