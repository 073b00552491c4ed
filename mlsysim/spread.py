"""Columns of a grid that are expanded to all its rows when they are read."""

from __future__ import annotations

import math
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mlsysim.core.table import Column


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
