"""The configurations of a sweep: axes, broadcast against each other or read side by side."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mlsysim.core.errors import ConfigError
from mlsysim.core.table import Column
from mlsysim.core.units import dress, strip
from mlsysim.solvers.amounts import Amount
from mlsysim.solvers.arguments import Argument, is_array
from mlsysim.solvers.base import Plan, Solver

__all__ = ["Grid"]

_AXIS_TYPES = (list, tuple, range, np.ndarray)
_PLAIN = (int, float)


class Grid:
    """The configurations of a sweep, as axes that are broadcast against each other."""

    def __init__(self, cls: type[Solver[Any]], arguments: Mapping[str, Any], how: str) -> None:
        self.cls = cls
        axes = {n: v for n, v in arguments.items() if _is_axis(v)}
        self._fixed = {n: v for n, v in arguments.items() if n not in axes}
        self._axes = {n: _axis(n, v, cls.parameters[n]) for n, v in axes.items()}
        lengths = {n: len(v) for n, v in self._axes.items()}
        if how == "zip" and len(set(lengths.values())) > 1:
            raise ConfigError(f'how="zip" needs axes of equal length, got {lengths}')
        self.shape: tuple[int, ...] = tuple(lengths.values())
        index = [np.arange(size) for size in self.shape]
        if how == "zip":
            self.shape = self.shape[:1]
            index = [np.arange(size) for size in lengths.values()]
        else:
            index = list(np.ix_(*index)) if index else []
        self._index = dict(zip(lengths, index, strict=True))
        self._rows: NDArray[Any] | None = None
        self._admitted: NDArray[np.bool_]
        self.plan: Plan

    def picked(self, rows: NDArray[Any]) -> Grid:
        """Return the same configurations, of which the table holds some rows only."""
        part = object.__new__(Grid)
        part.__dict__.update(self.__dict__)
        part._rows = rows if self._rows is None else self._rows[rows]
        return part

    def arguments(self, row: int) -> dict[str, Any]:
        """Return the arguments of one row."""
        number = row if self._rows is None else int(self._rows[row])
        spots = np.unravel_index(number, self.shape) if self.shape else ()
        chosen = dict(self._fixed)
        for axis, (name, values) in enumerate(self._axes.items()):
            spot = spots[axis if len(self.shape) > 1 or len(self._axes) == 1 else 0]
            value = values[int(spot)]
            chosen[name] = _plain(value) if isinstance(value, np.generic) else value
        return chosen

    def kernel_inputs(self, invalid: str) -> dict[str, Any]:
        """Return every input of the kernel, as a number or an array.

        Names and objects that contradict each other, such as a precision that one of several
        devices lacks, are refused or passed over as `invalid` says; a value that is wrong in
        itself is always refused.
        """
        numeric = {n: self._spread(n) for n, v in self._axes.items() if not isinstance(v, list)}
        named = {n: v for n, v in self._axes.items() if n not in numeric}
        cases: list[dict[str, Any] | None] = []
        faults: list[ConfigError] = []
        for choice in itertools.product(*(range(len(v)) for v in named.values())):
            picks = {n: named[n][i] for n, i in zip(named, choice, strict=True)}
            given = {**self._fixed, **numeric, **picks}
            self.cls.each(given)
            try:
                arguments = self.cls.admit(given)
            except ConfigError as fault:
                if invalid == "raise":
                    raise
                faults.append(fault)
                cases.append(None)
                continue
            plan = self.cls.plan(arguments)
            if any(cases) and plan.kernel is not self.plan.kernel:
                raise ConfigError(
                    "model: a sweep takes models of one kind; sweep transformers and models of "
                    "fixed shape apart",
                    argument="model",
                )
            self.plan = plan
            cases.append(self.cls.inputs(arguments))
        case = np.zeros((), dtype=int)
        for name, values in named.items():
            case = case * len(values) + self._index[name]
        good = [found for found in cases if found is not None]
        if not good:
            raise faults[0]
        self._admitted = np.array([found is not None for found in cases])[case]
        # What is passed over takes any numbers: its row is marked, and they are never shown.
        filled = [good[0] if found is None else found for found in cases]
        return {name: _gathered([c[name] for c in filled], case) for name in good[0]}

    def _spread(self, name: str) -> Any:
        """Lay a numeric axis along its dimension of the grid, as float64.

        Fixed-width integers wrap around in silence, from 32 bits on within a realistic model.
        """
        axis = self._axes[name]
        return (axis if _is_quantity(axis) else axis.astype(float))[self._index[name]]

    def valid(self, inputs: Mapping[str, Any], invalid: str) -> NDArray[np.bool_]:
        """Evaluate the solver's rules, and refuse what breaks them if so asked."""
        valid = np.broadcast_to(self._admitted, self.shape).copy()
        for rule in self.cls.rules:
            holds = np.broadcast_to(rule.holds(inputs), self.shape)
            if invalid == "raise" and not holds.all():
                first = tuple(np.argwhere(~holds)[0]) if self.shape else ()
                case = {n: _plain(np.broadcast_to(v, self.shape)[first]) for n, v in inputs.items()}
                fault = rule.fault(case)
                fault.message += (
                    f' ({int((~holds).sum())} of {holds.size} configurations; invalid="mark" or '
                    '"drop" goes on without them)'
                )
                raise fault
            valid &= holds
        return valid.ravel()

    def columns(self) -> dict[str, Column]:
        """Return the axes as columns."""
        found = {}
        for name, values in self._axes.items():
            plain: Any = np.array(_labels(values), object) if isinstance(values, list) else values
            unit = f"{plain.units:~P}" if _is_quantity(plain) else ""
            plain = plain.magnitude if unit else plain
            spread = np.broadcast_to(plain[self._index[name]], self.shape)
            found[name] = Column(spread.reshape(-1), unit)
        return found


def _is_quantity(value: Any) -> bool:
    return hasattr(value, "magnitude")


def _is_axis(value: Any) -> bool:
    several = _is_quantity(value) and np.ndim(value.magnitude) > 0
    return several or isinstance(value, _AXIS_TYPES) or is_array(value)


def _axis(name: str, values: Any, kind: Argument) -> Any:
    """Return an axis of objects as a list, of numbers as an array, of quantities as one of these.

    Raises
    ------
    ConfigError
        If the axis is empty or nested, or holds quantities of another dimension.
    """
    axis: Any
    if not kind.numeric:
        axis = [_plain(v) if isinstance(v, np.generic) else v for v in values]
    elif isinstance(kind, Amount) and any(map(_is_quantity, values)):
        # Quantities in a list may differ in unit; they share the argument's.
        axis = dress(np.array([strip(value, kind.unit, name) for value in values]), kind.unit)
    else:
        axis = _numbers(name, values, kind)
    flat = isinstance(axis, list) or getattr(axis, "magnitude", axis).ndim == 1
    if not flat or len(axis) == 0:
        raise ConfigError(f"{name} must be a flat axis of at least one value", argument=name)
    return axis


def _numbers(name: str, values: Any, kind: Argument) -> NDArray[Any]:
    """Return plain numbers as an array; values of a list are refused in the words of `solve`."""
    if _is_quantity(values):
        if not values.dimensionless:
            kind.admit(name, values[0])  # refuses, and says what to give
        values = values.to("").magnitude
    if np.ma.is_masked(values):
        raise ConfigError(f"{name} has masked values: leave them out", argument=name)
    if isinstance(values, (list, tuple)) and not all(type(value) in _PLAIN for value in values):
        if any(np.ndim(value) for value in values if not _is_quantity(value)):
            raise ConfigError(f"{name} must be a flat axis of numbers", argument=name)
        admitted = [kind.admit(name, value) for value in values]
        if None in admitted:
            raise ConfigError(
                f"{name} has None among its values: give numbers, or leave {name} out",
                argument=name,
            )
        values = values if isinstance(kind, Amount) else admitted
    axis = np.asarray(values)
    if axis.dtype.kind not in "iuf":
        for value in values if axis.ndim == 1 else ():
            kind.admit(name, value)  # says more about the value at fault
        raise ConfigError(f"{name} must hold numbers, not {axis.dtype}", argument=name)
    return axis


def _plain(value: Any) -> Any:
    """Return a NumPy scalar as Python's; a whole float as a whole number."""
    number = value.item()
    return int(number) if isinstance(number, float) and number.is_integer() else number


def _gathered(values: list[Any], case: NDArray[Any]) -> Any:
    """Join one kernel input over all cases of the named axes."""
    if isinstance(values[0], np.ndarray) or all(value == values[0] for value in values):
        return values[0]
    return np.array(values)[case]


def _labels(values: list[Any]) -> list[Any]:
    return [getattr(value, "name", value) for value in values]
