"""Arguments of solvers: the values each one accepts, and the error for any other value.

The signature of a solver's `solve` states the kind of each argument, as in
``tp_size: Annotated[int, Whole()]``. The same declaration validates a number in `solve` and an
array in `sweep`, so both reject the same values with the same message. Commands, configurations and
the planner use it too. Arguments of several functions are declared once (`solvers.signatures`).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from difflib import get_close_matches
from inspect import Parameter
from types import NoneType
from typing import Any, ClassVar, Self

from mlsysim.core.errors import ConfigError, article, shown
from mlsysim.core.inputs import Varying
from mlsysim.core.types import FILE_FORMATS, PRECISIONS, find_precision
from mlsysim.core.units import has_dimension, is_quantity, real_number, si_factor, strip, told

_MOST = 10**15
_SMALLEST, _LARGEST = 1e-30, 1e30
"""Limits on other numbers, in SI base units, so that no product of several overflows."""


def is_array(value: Any) -> bool:
    """Return whether a value is an array of several numbers."""
    if not hasattr(value, "dtype"):
        return False
    axes = getattr(value, "ndim", 0)
    return isinstance(axes, int) and axes > 0


def is_axis(value: Any) -> bool:
    """Return whether an argument holds several values."""
    return isinstance(value, (list, tuple, range)) or is_array(value)


def _as_float(value: Any) -> float:
    try:
        return float(value)
    except OverflowError:  # a whole number beyond the largest float
        return math.inf


@dataclass(frozen=True)
class Argument:
    """Base of the kinds. In a sweep, the values of `numeric` ones become arrays.

    An argument of several functions states its `default` here, and an argument of one function in
    that function's signature.
    """

    optional: bool = False
    default: Any = Parameter.empty

    numeric = False
    unit: ClassVar[str] = ""

    def of(self, types: tuple[type, ...]) -> Self:
        """Return the kind for an argument of these types."""
        return replace(self, optional=NoneType in types)

    def admit(self, name: str, value: Any) -> Any:
        """Validate a value and return it in the form that the solver uses.

        Raises
        ------
        ConfigError
            If the value is not acceptable. The message names the argument, the limit and what to
            do.
        """
        if value is None:
            if self.optional:
                return None
            raise ConfigError(f"{name} is None: give a value", argument=name)
        return self._admit(name, value)

    def _admit(self, name: str, value: Any) -> Any:
        raise NotImplementedError


@dataclass(frozen=True)
class Noun(Argument):
    """A catalog entry or a similar object, of the argument's own types unless `kinds` is given."""

    kinds: tuple[type, ...] = ()
    hint: str = ""

    def of(self, types: tuple[type, ...]) -> Self:
        """Return the kind for an argument of these types."""
        stated = self.kinds or tuple(kind for kind in types if kind is not NoneType)
        return replace(super().of(types), kinds=stated)

    def _admit(self, name: str, value: Any) -> Any:
        if not isinstance(value, self.kinds):
            types = " or ".join(kind.__name__ for kind in self.kinds)
            raise ConfigError(
                f"{name} = {shown(value)} is not {article(types)} {types}; pass one such as "
                f"{self.hint}",
                argument=name,
            )
        return value


@dataclass(frozen=True)
class Number(Argument):
    """Base of the numeric kinds: a number from `least` to `most`; some also accept `zero`."""

    numeric = True
    least: ClassVar[float] = _SMALLEST
    most: ClassVar[float] = _LARGEST
    zero = False
    range: ClassVar[str] = ""
    """What to give, in words."""

    @property
    def wanted(self) -> str:
        """What to give, in words."""
        return self.range

    @property
    def _factor(self) -> float:
        """Factor from a number without a unit to SI base units; NaN if it must have a unit."""
        return 1.0

    def _admit(self, name: str, value: Any) -> Any:
        if isinstance(value, Varying):
            return value
        number = self._single(name, value)
        size = _as_float(number)
        if not is_quantity(value):
            size *= self._factor
        elif has_dimension(self.unit):
            number = value  # with its unit, in an error
        if not self._accepts(size):
            raise self._refusal(name, number, size)
        return self._convert(size)

    def _single(self, name: str, value: Any) -> Any:
        """Return one number, without its unit."""
        if type(value) is int or type(value) is float:
            return value
        if is_array(getattr(value, "magnitude", value)):
            raise ConfigError(f"{name} is an array: give {self.wanted}", argument=name)
        amount = strip(value, self.unit, name, self.wanted) if is_quantity(value) else value
        number = real_number(amount)
        if number is None:
            raise ConfigError(
                f"{name} = {shown(value)} must be a number: give {self.wanted}", argument=name
            )
        return number

    def admit_array(self, values: Any) -> tuple[Any, Any]:
        """Validate an array of numbers, or a quantity that holds one.

        Returns
        -------
        numbers, good : array
            The numbers as `admit` returns them, as floats, and a mask of those that it accepts.
            Numbers that cannot be converted are NaN, which is never accepted.
        """
        if hasattr(values, "units"):
            try:
                numbers = strip(values, self.unit, "")
            except ConfigError:
                numbers = values.magnitude * math.nan
        else:
            numbers = values.astype(float) * self._factor
        return numbers, self._accepts(numbers)

    def _accepts(self, value: Any) -> Any:
        """Return whether a number is in range, for each number of an array."""
        inside = (value >= self.least) & (value <= self.most)
        return inside | (value == 0) if self.zero else inside

    def _convert(self, value: float) -> Any:
        return value

    def _refusal(self, name: str, value: Any, size: float) -> ConfigError:
        """Return the error for a value, which has this size in SI base units."""
        beyond = 0 < size < _SMALLEST or _LARGEST < size < math.inf
        limits = f"; in SI units, numbers are from {_SMALLEST:g} to {_LARGEST:g}" if beyond else ""
        return ConfigError(
            f"{name} = {told(value)} is out of range: give {self.wanted}{limits}", argument=name
        )


@dataclass(frozen=True)
class Whole(Number):
    """A count: a whole number from `minimum` to `maximum`, all exact as floats."""

    minimum: int = 1
    maximum: float = _MOST
    unit: str = "1"  # type: ignore[misc]

    def _accepts(self, value: Any) -> Any:
        return (value >= self.minimum) & (value <= self.maximum) & (value == value // 1)

    def _convert(self, value: float) -> int:
        return int(value)

    @property
    def wanted(self) -> str:
        """What to give, in words."""
        if self.maximum < _MOST:
            return f"a whole number from {self.minimum} to {self.maximum}"
        return f"a whole number of {self.minimum} or more"

    def _refusal(self, name: str, value: Any, size: float) -> ConfigError:
        if _MOST < size < math.inf:
            return ConfigError(
                f"{name} = {value:.3g} is too many: give at most 1e15", argument=name
            )
        return super()._refusal(name, value, size)


@dataclass(frozen=True)
class Stage(Whole):
    """One of a few numbers that constants may depend on, such as a ZeRO stage.

    A sweep treats each value separately, like a name.
    """

    numeric = False


@dataclass(frozen=True)
class Share(Number):
    """A share above zero and at most one."""

    most = 1
    range = "a number above 0 and at most 1"


@dataclass(frozen=True)
class Portion(Share):
    """A share that may be zero."""

    zero = True
    range = "a number from 0 to 1"


@dataclass(frozen=True)
class Factor(Number):
    """A finite factor of one or more."""

    least = 1
    range = "a finite number of 1 or more"


@dataclass(frozen=True)
class Ratio(Number):
    """A finite number of zero or more, such as a coefficient of variation."""

    zero = True
    range = "a finite number of 0 or more"


@dataclass(frozen=True)
class Amount(Number):
    """A quantity, which the solver receives in SI base units.

    With `plain`, a plain number is taken in `unit`. This is for arguments whose name contains the
    unit (`duration_days`) or that have only one unit in use (`unit_price`). All others reject a
    number without a unit.
    """

    unit: str = ""  # type: ignore[misc]
    plain: bool = False
    zero: bool = False

    @property
    def _factor(self) -> float:
        return si_factor(self.unit) if self.plain else math.nan

    def _single(self, name: str, value: Any) -> Any:
        if not self.plain and not is_quantity(value):
            raise ConfigError(
                f"{name} = {shown(value)} has no unit: give {self.wanted}", argument=name
            )
        return super()._single(name, value)

    @property
    def wanted(self) -> str:
        """What to give, in words."""
        sign = "zero or more" if self.zero else "above zero"
        number = f"a number of {self.unit}, or a quantity" if self.plain else "a quantity"
        return f'{number} such as Q_(1, "{self.unit}"), finite and {sign}'


@dataclass(frozen=True)
class Switch(Argument):
    """True or false."""

    def _admit(self, name: str, value: Any) -> Any:
        of_numpy = getattr(getattr(value, "dtype", None), "kind", "") == "b"
        if not isinstance(value, bool) and not (of_numpy and value.ndim == 0):
            raise ConfigError(f"{name} = {shown(value)} must be True or False", argument=name)
        return bool(value)


@dataclass(frozen=True)
class Choice(Argument):
    """One of a few named options."""

    options: Mapping[str, Any] | None = None

    @classmethod
    def among(cls, names: Iterable[str], *, optional: bool = False) -> Self:
        """Return the kind of one of these names."""
        return cls(options={name: name for name in names}, optional=optional)

    def _admit(self, name: str, value: Any) -> Any:
        options = self.options or {}
        # A foreign value may refuse to be compared.
        if any(type(value) is type(option) and value == option for option in options.values()):
            return value
        if isinstance(value, str) and "+" in value:
            # Parts may be joined in any order.
            parts = sorted(value.split("+"))
            value = next((name for name in options if sorted(name.split("+")) == parts), value)
        if not isinstance(value, str) or value not in options:
            near = get_close_matches(str(shown(value)).strip("'\"").lower(), options, n=1)
            hint = f'; did you mean "{near[0]}"?' if near else ""
            raise ConfigError(
                f"{name} = {shown(value)} is unknown: choose one of {', '.join(options)}{hint}",
                argument=name,
            )
        return options[value]


@dataclass(frozen=True)
class PrecisionName(Argument):
    """The name of a number format; with `files`, also of one that GGUF files store weights in."""

    files: bool = False

    @property
    def names(self) -> tuple[str, ...]:
        """Formats to choose from."""
        return (*PRECISIONS, *FILE_FORMATS) if self.files else tuple(PRECISIONS)

    def _admit(self, name: str, value: Any) -> Any:
        return find_precision(value, argument=name, files=self.files)
