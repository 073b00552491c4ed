"""One axis of a sweep: its values as given, and as the model uses them."""

from __future__ import annotations

import math
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mlsysim.core.errors import ConfigError
from mlsysim.core.fields import Record
from mlsysim.core.inputs import Varying
from mlsysim.core.units import Q_, is_quantity, si_factor, unit
from mlsysim.solvers.arguments import Amount, Argument, Number, is_axis

_SEQUENCES = (list, tuple, range)
_PLAIN = (int, float)
_DATES = "mM"
"""NumPy's kinds of times and dates."""


class Axis:
    """The values of one argument.

    Attributes
    ----------
    picks : list
        What the solver receives for the values: each name or object once, one placeholder for all
        numbers, and `None`.
    codes : ndarray
        Index into `picks` for each value.
    numbers : ndarray
        Numeric values in SI units, as the model uses them; NaN if the value is `None`.
    """

    def __init__(self, name: str, values: Any, kind: Argument) -> None:
        self.name = name
        self._kind = kind
        self._given = _flat(name, values)
        self.codes: NDArray[np.intp] = np.zeros(len(self._given), np.intp)
        self.picks: list[Any]
        if isinstance(kind, Number) and kind.numeric:
            self.numbers = self._as_numbers(kind)
            unknown = np.isnan(self.numbers)
            self.picks = [Varying(name)] * (not unknown.all()) + [None] * bool(unknown.any())
            self.codes[unknown] = len(self.picks) - 1
        else:
            self._collect()
            for pick in self.picks:
                kind.admit(name, pick)

    def __len__(self) -> int:
        return len(self._given)

    @property
    def chooses(self) -> bool:
        """Whether plans and constants may depend on the value."""
        return len(self.picks) > 1 or not isinstance(self.picks[0], Varying)

    def value(self, position: int) -> Any:
        """Return one value in the form that `solve` takes."""
        value = self._given[position]
        if hasattr(value, "magnitude") and hasattr(value.magnitude, "item"):
            return Q_(value.magnitude.item(), value.units)
        # As Python objects, they would be integers that count nanoseconds.
        dated = getattr(getattr(value, "dtype", None), "kind", "") in _DATES
        return value.item() if isinstance(value, np.generic) and not dated else value

    def within(self, places: slice) -> Axis:
        """Return the axis of a range of the values, shown as in the whole axis."""
        part = object.__new__(Axis)
        values, unit = self.shown
        present, codes = np.unique(self.codes[places], return_inverse=True)
        part.__dict__.update(
            self.__dict__,
            _given=self._given[places],
            codes=codes,
            picks=[self.picks[pick] for pick in present],
            shown=(values[places], unit),
        )
        if "numbers" in self.__dict__:
            part.numbers = self.numbers[places]
        return part

    @cached_property
    def shown(self) -> tuple[NDArray[Any], str]:
        """The values as shown in a table, and their unit."""
        given = self._given
        if isinstance(given, np.ndarray):
            return given, ""
        if not hasattr(given, "magnitude") and all(type(value) in _PLAIN for value in given):
            plain = np.asarray(given)
            return (plain if plain.dtype.kind in "iuf" else plain.astype(float)), ""
        if not (isinstance(self._kind, Number) and self._kind.numeric):
            return _objects(
                [getattr(v, "name", v) if isinstance(v, Record) else v for v in given]
            ), ""
        if isinstance(self._kind, Amount):  # quantities may differ in unit; they share this one
            return self.numbers / si_factor(self._kind.unit), f"{unit(self._kind.unit):~P}"
        return self.numbers, ""

    def _as_numbers(self, kind: Number) -> NDArray[np.float64]:
        """Return the values as floats, or raise the error of `solve`."""
        given = self._given
        if isinstance(given, _SEQUENCES):
            if not all(type(value) in _PLAIN for value in given):
                return self._one_by_one(kind)
            try:
                given = np.array(given, float)
            except OverflowError:
                return self._one_by_one(kind)
        with np.errstate(invalid="ignore", over="ignore"):
            numbers, good = kind.admit_array(given)
        if not good.all():
            kind.admit(self.name, self.value(int(np.flatnonzero(~good)[0])))
        return np.asarray(numbers)

    def _one_by_one(self, kind: Number) -> NDArray[np.float64]:
        admitted = [kind.admit(self.name, value) for value in self._given]
        return np.array([math.nan if value is None else value for value in admitted], float)

    def _collect(self) -> None:
        """Find the distinct values. Objects are distinct if they are not the same object."""
        if isinstance(self._given, np.ndarray):
            different, self.codes = np.unique(self._given, return_inverse=True)
            self.picks = different.tolist()
            return
        given = [self.value(position) for position in range(len(self))]
        known: dict[Any, int] = {}
        keys = [
            (type(v), v) if v is None or isinstance(v, (str, bool, int, float)) else id(v)
            for v in given
        ]
        self.codes = np.array([known.setdefault(key, len(known)) for key in keys], np.intp)
        firsts = dict(zip(reversed(keys), reversed(given), strict=True))
        self.picks = [firsts[key] for key in known]


def _flat(name: str, values: Any) -> Any:
    """Return a copy of the values: a sequence, or a flat array or quantity of numbers."""
    if is_quantity(values) and not isinstance(values, Q_):
        raise ConfigError(
            f"{name} belongs to another unit registry: make it with mlsysim.Q_", argument=name
        )
    plain = getattr(values, "magnitude", values)
    if np.ma.is_masked(plain):
        raise ConfigError(f"{name} has masked values: leave them out", argument=name)
    if isinstance(values, range):
        nested = False
    elif isinstance(values, _SEQUENCES):
        nested = any(map(is_axis, values))
        values = tuple(values)
    else:
        array = np.array(plain)
        nested = array.ndim != 1
        units = getattr(values, "units", None)
        if array.dtype.kind in _DATES:
            raise ConfigError(
                f"{name} holds dates or times of NumPy: give numbers, or a quantity such as "
                'Q_([1, 2], "day")',
                argument=name,
            )
        if array.dtype.kind not in "iuf" and not nested:
            values = [value if units is None else Q_(value, units) for value in array.tolist()]
        else:
            values = array if units is None else Q_(array, units)
    if nested or len(values) == 0:
        raise ConfigError(f"{name} must be a flat axis of at least one value", argument=name)
    return values


def _objects(values: list[Any]) -> NDArray[Any]:
    column = np.empty(len(values), object)
    column[:] = values
    return column
