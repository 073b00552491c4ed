"""Tables of plans, best first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from mlsysim.core.table import Column, Table


class PlanTable(Table):
    """Columns that are arrays, with a row for each plan, best first."""

    def __init__(self, columns: Mapping[str, Column], *shared: Mapping[str, Any]) -> None:
        super().__init__(columns)
        self._shared = shared

    def _rebuilt(self, columns: Mapping[str, Column]) -> Self:
        return type(self)(columns, *self._shared)

    def take(self, indices: Sequence[int] | Any) -> Self:
        """Return the rows at `indices`, in that order."""
        rows = np.asarray(indices, dtype=int)
        return self._rebuilt({name: item.picked(rows) for name, item in self._columns.items()})


def numbers(table: Table, name: str) -> NDArray[np.float64]:
    """Return a column of numbers without its unit."""
    column = table[name]
    return np.asarray(getattr(column, "magnitude", column), float)
