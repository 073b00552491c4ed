"""Records: frozen dataclasses that check the units and ranges of their fields.

`@record` declares both catalog entries (an accelerator, a grid) and results. A field declared with
`quantity("GB/s")` accepts only quantities of that dimension, and one with `number()` only plain
numbers; by default both reject zero, negative numbers and NaN.
"""

from __future__ import annotations

import dataclasses
import math
import sys
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Generic, Self, TypeVar, dataclass_transform, overload

from mlsysim.core.errors import ConfigError, UnknownEntryError, shown
from mlsysim.core.files import printable
from mlsysim.core.units import Q_, dress, fixed, is_quantity, real_number, strip, told

T = TypeVar("T")

_COUNTABLE = 1e15


def quantity(unit: str, *, default: Any = dataclasses.MISSING, zero: bool = False) -> Any:
    """Declare a field that holds a quantity of the dimension of `unit`.

    Parameters
    ----------
    unit
        The unit in results. The dimension of values is checked.
    default
        Default value; `None` makes the field optional.
    zero
        Whether zero is allowed.
    """
    metadata = {"unit": unit, "plain": False, "zero": zero}
    return dataclasses.field(default=default, metadata=metadata)


def number(
    *,
    default: Any = dataclasses.MISSING,
    zero: bool = False,
    whole: bool = False,
    least: float = 0,
    most: float = math.inf,
    unit: str = "",
    optional: bool = False,
) -> Any:
    """Declare a field that holds a plain number from `least` to `most`: a count, ratio or share.

    Whole numbers are limited to the range that floats represent exactly. A field may be `None` if
    that is its default or if it is `optional`.
    """
    metadata = {
        "unit": unit,
        "plain": True,
        "zero": zero,
        "whole": whole,
        "least": least,
        "most": min(most, _COUNTABLE) if whole else most,
        "optional": optional,
    }
    return dataclasses.field(default=default, metadata=metadata)


@dataclasses.dataclass(frozen=True)
class Prior:
    """What is known about a constant before any run is measured, in the unit of its field."""

    usual: float
    """Its value where no run determines it."""
    low: float
    high: float
    """Physical limits: a fit does not leave them."""
    expected: float
    """The value toward which a fit pulls it."""
    spread: float | None
    """How much it differs between machines or engines: standard deviation of the logarithm. `None`
    if that is not known."""
    scales: str
    """The component of a time that it scales, if it is the only constant that does."""


def constant(
    unit: str = "",
    *,
    usual: float,
    low: float = 0,
    high: float = math.inf,
    expected: float | None = None,
    spread: float | None = None,
    scales: str = "",
    plain: bool = False,
    default: Any = dataclasses.MISSING,
    **limits: Any,
) -> Any:
    """Declare a field that holds a fitted constant, with all that is known about it beforehand.

    It is a quantity if it has a unit and is not `plain`. `Prior` describes the arguments from
    `usual` to `scales`, and `quantity` and `number` describe the others.
    """
    declared = quantity(unit, **limits) if unit and not plain else number(unit=unit, **limits)
    prior = Prior(usual, low, high, usual if expected is None else expected, spread, scales)
    return dataclasses.field(default=default, metadata={**declared.metadata, "prior": prior})


def priors(cls: type[Any]) -> dict[str, Prior]:
    """Return what a record class declares about its constants, by field."""
    return {
        item.name: item.metadata["prior"]
        for item in dataclasses.fields(cls)
        if "prior" in item.metadata
    }


class derived(Generic[T]):  # noqa: N801 - used like `property`
    """A number computed from other kinds of fields: switches as 1 or 0, counts of matrices.

    Models and derivations treat it as a field. It is computed once. `functools.cached_property`
    would spend as long on its lock as most of these take.
    """

    def __init__(self, function: Callable[[Any], T]) -> None:
        self.function = function
        self.__doc__ = function.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    @overload
    def __get__(self, record: None, owner: type) -> Self: ...
    @overload
    def __get__(self, record: object, owner: type) -> T: ...
    def __get__(self, record: object | None, owner: type) -> Self | T:
        if record is None:
            return self
        value = record.__dict__[self._name] = self.function(record)
        return value


@dataclass_transform(
    kw_only_default=True,
    frozen_default=True,
    field_specifiers=(quantity, number, constant, dataclasses.field),
)
def record(cls: type[T]) -> type[T]:
    """Make a class a frozen, keyword-only dataclass.

    Equality and hash come from the base classes, because generating them for every class would take
    a third of the package's import time.
    """
    return dataclasses.dataclass(frozen=True, kw_only=True, repr=False, eq=False)(cls)


def units_of(cls: type[Any]) -> Iterator[tuple[str, str, bool]]:
    """Yield (field, unit, plain) for every numeric field of a record class."""
    for item in dataclasses.fields(cls):
        if "unit" in item.metadata:
            yield item.name, item.metadata["unit"], item.metadata["plain"]


def field_of(owner: Any, name: str) -> Any:
    """Return a field by name, or an item of a tuple field (`stack[2]`); `None` if absent."""
    name, _, spot = name.partition("[")
    value = getattr(owner, name, None)
    if not spot:
        return value
    place = spot.removesuffix("]")
    if not isinstance(value, tuple) or not place.isdecimal() or int(place) >= len(value):
        return None
    return value[int(place)]


def field_unit(cls: type[Any], name: str) -> str:
    """Return the declared unit of field `name` of a record class."""
    return next(unit for field, unit, _ in units_of(cls) if field == name)


def whole_fields(cls: type[Any]) -> frozenset[str]:
    """Return the fields of a record class that hold whole numbers."""
    return frozenset(item.name for item in dataclasses.fields(cls) if item.metadata.get("whole"))


class ReadOnlyMapping(Mapping[str, Any]):
    """A mapping that cannot be changed and can be pickled."""

    def __init__(self, items: Mapping[str, Any]) -> None:
        self._items = dict(items)

    def __getitem__(self, key: str) -> Any:
        return self._items[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._items)

    def __len__(self) -> int:
        return len(self._items)

    def __or__(self, other: Mapping[str, Any]) -> dict[str, Any]:
        return {**self, **other}

    def __repr__(self) -> str:
        return repr(self._items)


_FIXED = {bool, float, int, str}


def read_only(value: Any) -> Any:
    """Return the read-only form of a quantity, or of a container and its contents."""
    if value is None or type(value) in _FIXED or isinstance(value, Record):
        return value
    if isinstance(value, Q_):
        return fixed(value)
    if getattr(value, "ndim", None) == 0:  # a NumPy array, which could be modified
        return value.item()
    if isinstance(value, Mapping) and not dataclasses.is_dataclass(
        value
    ):  # a result is both a record and a mapping
        return ReadOnlyMapping({key: read_only(item) for key, item in value.items()})
    if type(value) in (list, tuple):
        return tuple(read_only(item) for item in value)
    return frozenset(value) if isinstance(value, set) else value


def plain_data(value: Any) -> Any:
    """Convert a record's read-only containers to dictionaries and lists, at every level."""
    if isinstance(value, Mapping):
        return {key: plain_data(item) for key, item in value.items()}
    return [plain_data(item) for item in value] if isinstance(value, tuple) else value


@record
class Record:
    """Base class of catalog entries: checks its numeric fields, and caches their SI values.

    A record is read-only at every level, because registry rows are shared, and because `explain`
    computes a result again from the records that were passed to `solve`.
    """

    def __post_init__(self) -> None:
        si: dict[str, float] = {}
        for item in self.__dataclass_fields__.values():
            value = getattr(self, item.name)
            if "unit" not in item.metadata:
                if item.type == "str":
                    require(self, **{item.name: str})
                self._keep(item.name, read_only(value))
                continue
            if value is None and (item.default is None or item.metadata.get("optional")):
                si[item.name] = math.nan
                continue
            label = f"{type(self).__name__}.{item.name}"
            si[item.name] = si_number(value, label, item.name, item.metadata)
            number = si[item.name]
            if not item.metadata["plain"]:
                # Counts have no dimension and may be given without a unit.
                number = fixed(
                    value if is_quantity(value) else dress(number, item.metadata["unit"])
                )
            self._keep(item.name, number)
        self._keep("_si", si)

    def __getstate__(self) -> dict[str, Any]:
        # Without cached values, so that equal records have equal pickles.
        names = {*self.__dataclass_fields__, "_si"}
        return {name: value for name, value in self.__dict__.items() if name in names}

    def _keep(self, name: str, value: Any) -> None:
        """Set an attribute while the record is created."""
        object.__setattr__(self, name, value)

    def si(self, field: str) -> float:
        """Return a numeric field as a plain number in SI base units; NaN if it is not known.

        Raises
        ------
        UnknownEntryError
            If there is no numeric field of that name.
        """
        known: dict[str, float] = self._si  # type: ignore[attr-defined]
        try:
            return known[field]
        except (KeyError, TypeError):
            raise UnknownEntryError.build(
                field, f"numeric field of {type(self).__name__}", known
            ) from None

    def _values(self) -> tuple[Any, ...]:
        return tuple(getattr(self, item.name) for item in dataclasses.fields(self) if item.compare)

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self._values() == other._values()

    def __hash__(self) -> int:
        return hash((type(self), *(value for value in self._values() if not _mutable(value))))

    def __repr__(self) -> str:
        label = getattr(self, "name", None)
        return f"<{type(self).__name__}{f' {printable(label)}' if label else ''}>"


def si_number(value: Any, label: str, argument: str, declared: Mapping[str, Any]) -> float:
    """Return a number in SI base units, or refuse one that a field's declaration excludes."""
    plain = real_number(strip(value, declared["unit"], label))
    if plain is None:
        raise ConfigError(f"{label} = {shown(value)} is not a number", argument=argument)
    if isinstance(plain, int) and abs(plain) > sys.float_info.max:
        plain = math.inf if plain > 0 else -math.inf
    sign = "of zero or more" if declared["zero"] else "above zero"
    least, most = declared.get("least", 0), declared.get("most", math.inf)
    if not (plain > 0 or (plain == 0 and declared["zero"])) or plain == math.inf:
        fault = f"is out of range: give a finite value {sign}"
    elif plain < least:
        fault = f"is out of range: give {least} or more"
    elif plain > most:
        fault = f"is out of range: give at most {most:g}"
    elif declared.get("whole") and plain != int(plain):
        fault = "must be a whole number"
    else:
        return plain
    raise ConfigError(f"{label} = {told(value)} {fault}", argument=argument)


def require(owner: Record, **kinds: type) -> None:
    """Reject fields of the wrong class, which annotations alone do not check.

    Raises
    ------
    ConfigError
        If a field of `owner` is not an instance of its class.
    """
    for name, kind in kinds.items():
        value = getattr(owner, name)
        if not isinstance(value, kind):
            raise ConfigError(
                f"{type(owner).__name__}.{name} must be a {kind.__name__}, got {shown(value)}",
                argument=name,
            )


def _mutable(value: Any) -> bool:
    return isinstance(value, Mapping)
