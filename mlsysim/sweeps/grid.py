"""The configurations of a sweep: axes, broadcast against each other or read side by side.

A solver validates its arguments once for each combination of names, objects and stages that occurs,
which we call a case. The cases of one model and one structure are stacked into one form of its
inputs. Every number in this form belongs to an axis, or varies only along the axes that determine
it.
"""

from __future__ import annotations

import itertools
import math
import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from mlsysim.core.errors import ConfigError
from mlsysim.core.forms import structure
from mlsysim.core.inputs import Inputs, Varying
from mlsysim.core.units import Q_, format_number
from mlsysim.solvers.arguments import Argument, is_axis
from mlsysim.solvers.base import Model, Solver
from mlsysim.sweeps.axes import Axis
from mlsysim.sweeps.slices import Chosen, holding

# Bytes per case: about a hundred numbers.
_CASE = 3000
_CONTAINER = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")
# Smaller sweeps are not checked.
_SMALL = 64e6

_Kind: TypeAlias = tuple[Model[Any], Any]
"""Cases with the same model and structure of inputs are computed together."""


@dataclass(frozen=True)
class _Case:
    """The validated inputs of a combination, in plain form, and the model for them."""

    model: Model[Any]
    inputs: Inputs

    @property
    def kind(self) -> _Kind:
        """The model and the structure of the inputs."""
        return self.model, structure(self.inputs)


@dataclass(frozen=True)
class _Layout:
    """For each axis, the position of every row's value; positions broadcast to the shape."""

    shape: tuple[int, ...]
    index: Mapping[str, NDArray[np.intp]]
    case: NDArray[np.intp]

    def along(self, axis: int, positions: NDArray[np.intp]) -> _Layout:
        """Return the layout with only some positions of an axis."""

        def take(values: NDArray[np.intp]) -> NDArray[np.intp]:
            return values if values.shape[axis] == 1 else np.take(values, positions, axis)

        shape = (*self.shape[:axis], len(positions), *self.shape[axis + 1 :])
        index = {name: take(values) for name, values in self.index.items()}
        return _Layout(shape, index, take(self.case))

    def picked(self, rows: NDArray[np.intp]) -> _Layout:
        """Return the flat layout of some rows."""
        spots = np.unravel_index(rows, self.shape)

        def pick(positions: NDArray[np.intp]) -> NDArray[np.intp]:
            return np.broadcast_to(positions, self.shape)[spots]

        index = {name: pick(positions) for name, positions in self.index.items()}
        return _Layout((len(rows),), index, pick(self.case))

    def of(self, cases: NDArray[np.bool_]) -> tuple[_Layout, NDArray[np.intp]]:
        """Return the layout of the rows of some cases, and these rows.

        If the rows are all combinations of some positions of each axis, the axes are kept.
        """
        mask = cases[self.case]
        rows = np.flatnonzero(np.broadcast_to(mask, self.shape))
        layout, box = self, 1
        for axis, length in enumerate(mask.shape):
            others = tuple(other for other in range(mask.ndim) if other != axis)
            positions = np.flatnonzero(mask.any(axis=others))
            box *= len(positions)
            if len(positions) < length:
                layout = layout.along(axis, positions)
        return (layout if box == mask.sum() else self.picked(rows)), rows


@dataclass(frozen=True)
class Part:
    """Rows that one model computes together, and whether each of them is valid."""

    model: Model[Any]
    inputs: Inputs
    shape: tuple[int, ...]
    rows: NDArray[np.intp] | slice
    valid: NDArray[np.bool_]


def _axis(name: str, values: Any, kind: Argument) -> Axis:
    """Return an axis; the error for a value that is always wrong says that it is one of several."""
    try:
        return Axis(name, values, kind)
    except ConfigError as fault:
        raise type(fault)(
            f"{fault.message} (one of {len(values)} values of this axis; leave it out: `invalid` "
            "is for values that only some configurations exclude)",
            argument=vars(fault)["argument"],
        ) from None


class Grid:
    """The configurations of a sweep."""

    def __init__(self, cls: type[Solver[Any, Any]], arguments: Mapping[str, Any], how: str) -> None:
        self.cls = cls
        self.how = how
        lengths = {name: len(value) for name, value in arguments.items() if is_axis(value)}
        if how == "zip" and len(set(lengths.values())) > 1:
            raise ConfigError(f'how="zip" needs axes of equal length, got {lengths}')
        shape = tuple(lengths.values())
        self.shape = shape[:1] if how == "zip" else shape
        axes: dict[str, Axis] = {}
        for name, kind in cls.parameters.items():  # `solve` checks them in this order
            if name in lengths:
                axes[name] = _axis(name, arguments[name], kind)
            else:
                kind.admit(name, arguments[name])
        self._fixed = {name: arguments[name] for name in cls.parameters if name not in axes}
        self._axes = {name: axes[name] for name in lengths}
        self._rows: NDArray[Any] | None = None

    @property
    def size(self) -> int:
        """Number of configurations."""
        return math.prod(self.shape)

    @property
    def lengths(self) -> dict[str, int]:
        """Number of values of each axis."""
        return {name: len(axis) for name, axis in self._axes.items()}

    def within(self, box: tuple[slice, ...]) -> Grid:
        """Return the grid of the configurations in a range of each axis of the shape."""
        part: Grid = object.__new__(Grid)
        ranges = box * len(self._axes) if self.how == "zip" else box
        axes = zip(self._axes.items(), ranges, strict=True)
        part.__dict__.update(
            cls=self.cls,
            shape=tuple(
                len(range(length)[places]) for length, places in zip(self.shape, box, strict=True)
            ),
            how=self.how,
            _fixed=self._fixed,
            _axes={name: axis.within(places) for (name, axis), places in axes},
            _rows=None,
        )
        return part

    @cached_property
    def index(self) -> dict[str, NDArray[np.intp]]:
        """For each axis, the position of every row's value."""
        places = [np.arange(len(axis)) for axis in self._axes.values()]
        if self.how == "product" and places:
            places = list(np.ix_(*places))
        return dict(zip(self._axes, places, strict=True))

    @cached_property
    def _arranged(self) -> tuple[_Layout, list[_Case | None]]:
        """The layout of the rows, and the combinations of names that occur in them."""
        count, combinations, case = self._zipped() if self.how == "zip" else self._crossed()
        named = {name: len(axis) for name, axis in self._choosing().items()}
        check_room(named, count, _CASE, "combinations of names")
        cases = [self._case(picks) for picks in combinations]
        return _Layout(self.shape, self.index, case), cases

    def picked(self, rows: NDArray[Any]) -> Grid:
        """Return the same configurations for a table that holds only some of the rows."""
        part = object.__new__(Grid)
        part.__dict__.update(self.__dict__)
        part._rows = rows if self._rows is None else self._rows[rows]
        return part

    def arguments(self, row: int) -> dict[str, Any]:
        """Return the arguments of one row."""
        number = row if self._rows is None else int(self._rows[row])
        spot = np.unravel_index(number, self.shape)
        chosen = dict(self._fixed)
        for name, axis in self._axes.items():
            position = np.broadcast_to(self.index[name], self.shape)[spot]
            chosen[name] = axis.value(int(position))
        return chosen

    def _crossed(self) -> tuple[int, Iterable[tuple[Any, ...]], NDArray[np.intp]]:
        """Return the number of combinations of picks, the combinations, and the one of each row."""
        axes = self._choosing()
        case = np.zeros((1,) * len(self.shape), np.intp)
        for name, axis in axes.items():
            case = case * len(axis.picks) + axis.codes[self.index[name]]
        picks = [axis.picks for axis in axes.values()]
        return math.prod(map(len, picks)), itertools.product(*picks), case

    def _zipped(self) -> tuple[int, Iterable[tuple[Any, ...]], NDArray[np.intp]]:
        """Return the same, but only for combinations that occur."""
        combinations: list[tuple[Any, ...]] = [()]
        case = np.zeros(self.shape, np.intp)
        for axis in self._choosing().values():
            count = len(axis.picks)
            if count == 1:
                combinations = [(*before, axis.picks[0]) for before in combinations]
                continue
            pairs, case = np.unique(case * count + axis.codes, return_inverse=True)
            combinations = [
                (*combinations[pair // count], axis.picks[pair % count]) for pair in pairs.tolist()
            ]
        return len(combinations), combinations, case

    def _choosing(self) -> dict[str, Axis]:
        return {name: axis for name, axis in self._axes.items() if axis.chooses}

    def _case(self, picks: tuple[Any, ...]) -> _Case | None:
        """Validate a combination; `None` if the solver rejects it."""
        stand_ins = {name: axis.picks[0] for name, axis in self._axes.items()}
        chosen = dict(zip(self._choosing(), picks, strict=True))
        try:
            inputs = self.cls.admit(self._fixed | stand_ins | chosen)
        except ConfigError:
            return None
        return _Case(self.cls.model(inputs), inputs.plain())

    def parts(self) -> list[Part]:
        """Return all rows that have a model, grouped by what is computed together."""
        kinds: dict[_Kind, list[int]] = {}
        layout, cases = self._arranged
        for place, case in enumerate(cases):
            if case is not None:
                kinds.setdefault(case.kind, []).append(place)
        if len(kinds) == 1:
            (places,) = kinds.values()
            return [self._part(places, layout, slice(None))]
        parts = []
        for places in kinds.values():
            chosen = np.zeros(len(cases), bool)
            chosen[places] = True
            parts.append(self._part(places, *layout.of(chosen)))
        return parts

    def _part(self, places: list[int], layout: _Layout, rows: NDArray[np.intp] | slice) -> Part:
        _, every = self._arranged
        valid_cases = {place: case for place in places if (case := every[place]) is not None}
        first = valid_cases[places[0]]
        # Rejected cases take the numbers of another case. Their rows are marked and show no
        # numbers.
        cases = [valid_cases.get(place, first) for place in range(len(every))]
        inputs = type(first.inputs).stacked(
            [case.inputs for case in cases], lambda values: self._joined(values, layout)
        )
        good = np.array([place in valid_cases for place in range(len(cases))])
        valid = np.broadcast_to(good[layout.case], layout.shape).reshape(-1)
        rules = [rule.holds for rule in self.cls.rules]
        return Part(
            first.model, inputs, layout.shape, rows, valid & holding(rules, inputs, layout.shape)
        )

    def _joined(self, values: list[Any], layout: _Layout) -> Any:
        """Join one number over all cases: a number, an array, or a table by case."""
        names = {value.name for value in values if isinstance(value, Varying)}
        if not names:
            first = values[0]
            if all(value == first or (math.isnan(value) and math.isnan(first)) for value in values):
                return first
            return _spread(np.array(values), layout)
        numbers = {name: self._axes[name].numbers[layout.index[name]] for name in names}
        if all(isinstance(value, Varying) for value in values) and len(names) == 1:
            return numbers.popitem()[1]
        plain = np.array([math.nan if isinstance(v, Varying) else v for v in values])
        joined = plain[layout.case]
        for name, axis_numbers in numbers.items():
            takes = np.array([isinstance(v, Varying) and v.name == name for v in values])
            joined = np.where(takes[layout.case], axis_numbers, joined)
        return joined

    def refuse(self, valid: NDArray[np.bool_]) -> None:
        """Raise the error that `solve` raises for the first invalid row."""
        missing, first = self.size - int(valid.sum()), int(valid.argmin())
        try:
            self.cls.solve(**self.arguments(first))
        except ConfigError as fault:
            fault.message += (
                f' ({missing} of {self.size} configurations; invalid="mark" or "drop" continues '
                "without them)"
            )
            raise
        raise RuntimeError(f"solve accepts row {first}, which sweep rejects")

    def numbers(self, name: str) -> NDArray[np.float64]:
        """Return the numbers of an axis, row by row, in SI."""
        return np.broadcast_to(self._axes[name].numbers[self.index[name]], self.shape).reshape(-1)

    def shown(self) -> dict[str, tuple[NDArray[Any], str]]:
        """Return the values of the axes as a table shows them, and their units."""
        return {name: axis.shown for name, axis in self._axes.items()}


def _spread(values: NDArray[Any], layout: _Layout) -> Any:
    """Arrange the values of the cases along the axes that determine them."""
    if len(layout.shape) == 1:
        return Chosen(values, layout.case)  # rows are many, and cases few
    table = values[layout.case]
    for axis, length in enumerate(table.shape):
        first = np.take(table, [0], axis)
        if length > 1 and np.array_equal(
            np.broadcast_to(first, table.shape), table, equal_nan=True
        ):
            table = first
    return table


def check_room(
    lengths: Mapping[str, int],
    count: int,
    bytes_of_each: float,
    things: str = "rows",
    way_out: str = "",
) -> None:
    """Reject a sweep that is too large for the memory, before allocating any."""
    need = count * bytes_of_each
    if need < _SMALL or need <= (free := free_memory()):
        return
    longest = max(lengths, key=lengths.__getitem__)
    one = count > lengths[longest] or sum(length > 1 for length in lengths.values()) == 1
    raise ConfigError(
        f"the sweep has {count:,} {things}, which need at least {format_number(Q_(need, 'byte'))} "
        f"of memory, but only {format_number(Q_(free, 'byte'))} are free, enough for "
        f"{int(free / bytes_of_each):,}: {way_out}cut {longest if one else 'all axes'} into "
        f"{math.ceil(need / free):,} parts or more, and sweep each part",
        argument=longest,
    )


def free_memory() -> float:
    """Return the bytes that this process may still allocate, or infinity if that is not known."""
    limits = [math.inf]
    available = re.search(r"MemAvailable: +([0-9]+) kB", _text("/proc/meminfo"))
    if available:
        limits.append(1024 * int(available[1]))
    elif hasattr(os, "sysconf") and {"SC_PAGE_SIZE", "SC_PHYS_PAGES"} <= set(os.sysconf_names):
        limits.append(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    limits += [int(limit) for limit in map(_text, _CONTAINER) if limit.strip().isdigit()]
    return min(limits)


def _text(path: str) -> str:
    try:
        return Path(path).read_text(encoding="ascii")
    except OSError:
        return ""
