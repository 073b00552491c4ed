"""Units: the one Pint registry of the package, with its own vocabulary.

This is the only module that imports Pint. Solvers convert quantities to plain SI numbers and
results to quantities here; formulas never see a unit.
"""

from __future__ import annotations

import math
import re
import sys
from contextlib import suppress
from functools import lru_cache
from importlib.resources import as_file, files
from typing import TYPE_CHECKING, Any, TypeAlias

import pint
from pint.delegates.formatter import Formatter
from pint.util import infer_base_unit

from mlsysim.core.errors import ConfigError, shown

__all__ = [
    "Q_",
    "Quantity",
    "base_unit",
    "dress",
    "fixed",
    "format_number",
    "is_quantity",
    "read_amount",
    "real_number",
    "si_factor",
    "strip",
    "told",
    "unit",
    "ureg",
]


class _Formatter(Formatter):
    """Prints ``3.4 TB/s`` for ``f"{q:.1f}"`` too: a number format does not change the unit."""

    def get_formatter(self, spec: str) -> Any:
        # Pint takes the layout only from the given format, but the default's layout must apply.
        plain = not any(flag in spec for flag in "~DPHLC")
        return super().get_formatter(self.default_format if plain else spec)


def _load_registry() -> pint.UnitRegistry[Any]:
    with as_file(files("mlsysim.core") / "units.txt") as vocabulary:
        registry: pint.UnitRegistry[Any] = pint.UnitRegistry(vocabulary)
    # Pint caches only simple units. Rows repeat the same compound units.
    registry.parse_units_as_container = lru_cache(registry.parse_units_as_container)  # type: ignore[method-assign]
    registry.formatter = _Formatter(registry)
    registry.formatter.default_format = "~P"
    # A number format alone, as in f"{q:.1f}", keeps the short unit symbols.
    registry.separate_format_defaults = True
    return registry


ureg = _load_registry()
"""The unit registry: `ureg.GB`, `ureg("3.35 TB/s")`."""

# Quantities that cross a process boundary become quantities of this registry.
pint.set_application_registry(ureg)  # type: ignore[no-untyped-call]

if TYPE_CHECKING:
    Quantity: TypeAlias = pint.Quantity[Any]
else:  # `isinstance` needs the plain class
    Quantity = pint.Quantity
"""A number with a unit: the type of every physical field."""

Q_ = ureg.Quantity
"""Create a quantity: `Q_(80, "GB")` or `Q_("80 GB")`."""


class _FixedQuantity(Q_):  # type: ignore[misc, valid-type]
    """A quantity that cannot be changed in place; arithmetic returns ordinary quantities."""

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        # Pint gives results of arithmetic the class of the operand.
        return Q_(*args, **kwargs)

    def _refuse(self, *args: Any, **kwargs: Any) -> None:
        raise AttributeError(
            f"{self} is part of a record and cannot be changed in place: convert it with to()"
        )

    ito = ito_base_units = ito_root_units = ito_reduced_units = ito_preferred = _refuse

    def __deepcopy__(self, memo: Any) -> Any:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return fixed, (Q_(self),)


def fixed(value: Any) -> Any:
    """Return a quantity that cannot be changed in place, for records that are shared."""
    if isinstance(value, _FixedQuantity):
        return value
    magnitude = value.magnitude
    if getattr(magnitude, "ndim", None) == 0:  # NumPy scalars, and arrays without axes
        magnitude = magnitude.item()
    elif hasattr(magnitude, "flags"):
        magnitude = magnitude.copy()
        magnitude.flags.writeable = False
    own = Q_(magnitude, value.units)
    own.__class__ = _FixedQuantity
    return own


@lru_cache(maxsize=256)
def unit(name: str) -> Any:
    """Parse a unit name once; the empty string and ``"1"`` mean dimensionless."""
    return ureg.Unit("" if name == "1" else name)


@lru_cache(maxsize=256)
def si_factor(name: str) -> float:
    """Factor from `name` to the SI base unit of its dimension."""
    return float(ureg.Quantity(1.0, unit(name)).to_base_units().magnitude)


@lru_cache(maxsize=256)
def _measure(units: Any) -> tuple[float, Any]:
    """Return the factor to SI base units and the dimension of a unit."""
    base = ureg.Quantity(1.0, units).to_base_units()
    # An exact 1 keeps whole numbers whole.
    factor = float(base.magnitude)
    return 1 if factor == 1.0 else factor, units.dimensionality


@lru_cache(maxsize=256)
def _dimension(name: str) -> Any:
    return unit(name).dimensionality


def has_dimension(name: str) -> bool:
    """Return whether a unit has a dimension, unlike a count."""
    return bool(_dimension(name))


@lru_cache(maxsize=256)
def base_unit(name: str) -> Any:
    """Return the SI base unit of a unit's dimension.

    Counts have none, because units such as "param" would remain in every product.
    """
    return ureg.Quantity(1.0, unit(name if has_dimension(name) else "")).to_base_units().units


def is_quantity(value: Any) -> bool:
    """Return whether a value is a quantity, of this registry or of another one."""
    return isinstance(value, pint.Quantity)


def real_number(value: Any) -> int | float | None:
    """Return a whole or floating-point number as a Python number, and `None` for other values.

    Decimals and fractions do not mix with floats, and booleans are not numbers.
    """
    kind = getattr(getattr(value, "dtype", None), "kind", None)
    if kind is not None:
        if kind not in "iuf" or value.ndim:
            return None
        value = int(value) if kind in "iu" else float(value)
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    return value


def strip(value: Any, expected: str, argument: str, wanted: str = "") -> Any:
    """Convert a quantity to a plain number in SI base units.

    Parameters
    ----------
    value
        A quantity, or a plain number if `expected` is dimensionless.
    expected
        A unit of the dimension expected, such as ``"GB/s"``.
    argument
        Name of the argument, for the error.
    wanted
        What to give, for the error; empty if any quantity of the dimension is accepted.

    Raises
    ------
    ConfigError
        If `value` has another dimension, or has no unit although one is needed.
    """
    if not isinstance(value, pint.Quantity):
        if _dimension(expected):
            example = shown(value) if real_number(value) is not None else "1"
            raise ConfigError(
                f"{argument} needs a unit: got {shown(value)}; pass a quantity such as "
                f'Q_({example}, "{expected}")',
                argument=argument,
            )
        return value
    if not isinstance(value, Q_):
        raise ConfigError(
            f"{argument} = {shown(value)} belongs to another unit registry: create it with "
            "mlsysim.Q_",
            argument=argument,
        )
    hint = f"give {wanted}" if wanted else f'expected a quantity such as Q_(1, "{expected}")'
    factor, dimension = _measure(value.units)
    if dimension != _dimension(expected):
        raise ConfigError(
            f"{argument} = {told(value)} has the wrong dimension: {hint}",
            argument=argument,
        )
    magnitude = value.magnitude
    if getattr(getattr(magnitude, "dtype", None), "kind", "") in ("i", "u", "f"):
        magnitude = magnitude.astype(float)  # narrow numbers overflow, or lose digits
    elif not getattr(magnitude, "ndim", 0):
        magnitude = real_number(magnitude)
        if magnitude is None:
            raise ConfigError(
                f"{argument} = {told(value)} holds no real number: {hint}", argument=argument
            )
        if isinstance(magnitude, int) and abs(magnitude) > sys.float_info.max:
            return math.inf if magnitude > 0 else -math.inf
    return magnitude * factor


_AMOUNT = re.compile(r"([-+]?[0-9]+(?:\.[0-9]+)?(?:[eE][-+]?[0-9]{1,3})?)\s*(\S.*)?")
# A product of names with small powers. Anything else would be arithmetic.
_UNIT = re.compile(r"(1|[A-Za-zµμ%]+)(\*\*-?[1-3])?([*/][A-Za-zµμ%]+(\*\*-?[1-3])?){0,4}")
_LARGEST = 1e30


def read_amount(text: str, expected: str, name: str) -> Any:
    """Read a number and a unit, without evaluating anything.

    Parameters
    ----------
    text
        The text, such as ``"3.35 TB/s"``.
    expected
        A unit of the expected dimension.
    name
        Name of the amount, for the error.

    Raises
    ------
    ConfigError
        If the text is not an amount, or has another dimension.
    """
    example = f'write a number and a unit, as in "5 {expected}"' if expected else "write a number"
    match = _AMOUNT.fullmatch(text.strip()) if len(text) <= 100 else None
    if match is None:
        raise ConfigError(f"{name} = {shown(text)} is not an amount: {example}", argument=name)
    number, symbol = float(match[1]), re.sub(r"\s*([*/])\s*", r"\1", match[2] or "")
    if abs(number) > _LARGEST:
        raise ConfigError(
            f"{name} = {shown(text)} is out of range: use a larger unit", argument=name
        )
    if symbol and not (_UNIT.fullmatch(symbol) and len(symbol) <= 60):
        raise ConfigError(
            f"{name} = {shown(text)}: {shown(symbol)} is not a unit; {example}", argument=name
        )
    whole = re.fullmatch(r"[-+]?[0-9]+", match[1])
    try:
        amount = Q_(int(number) if whole else number, unit(symbol))
    except Exception as fault:  # Pint raises several kinds of errors for unknown names
        raise ConfigError(
            f"{name} = {shown(text)}: the unit {shown(symbol)} is unknown; {example}", argument=name
        ) from fault
    try:
        strip(amount, expected, name)
    except ConfigError as fault:
        # The original message suggests Python code, and this is text.
        raise ConfigError(
            f"{name} = {shown(text)} has the wrong dimension: {example}", argument=name
        ) from fault
    return amount


def told(value: Any) -> str:
    """Write a number or quantity for an error message, with its unit if it can be printed."""
    with suppress(Exception):
        if is_quantity(value) and len(text := str(value)) <= 80:
            return text
    return shown(value)


def dress(value: Any, name: str) -> Any:
    """Convert a plain SI number to a quantity in the unit `name`."""
    factor = si_factor(name)
    return Q_(value if factor == 1.0 else value / factor, unit(name))


# Units for large quantities, and the SI magnitude from which they apply.
_READ_IN = {
    "s": ((2 * 365.25 * 86_400, "year"), (2 * 86_400, "day"), (7_200, "h")),
    "J": ((3.6e6, "Wh"),),
    "J/s": ((0, "W"),),
    "kg": ((1_000, "tonne"),),
    "m**3": ((0, "L"),),
    "USD": ((0, "USD"),),
    "kg/J": ((0, "g/kWh"),),
    "m**3/J": ((0, "L/kWh"),),
    "USD/J": ((0, "USD/kWh"),),
    "USD/s": ((0, "USD/h"),),
}
# Plain rates take no prefix: gigaseconds would be hard to read.
_RATES = ((0.01, "1/s"), (0.01 / 3_600, "1/h"), (0.01 / 86_400, "1/day"), (0, "1/year"))
_WITHOUT_PREFIX = ("minute", "h", "day", "year", "L", "USD", "g/kWh", "L/kWh", "USD/kWh", "USD/h")


@lru_cache(maxsize=256)
def _choices(units: Any) -> tuple[tuple[float, str], ...] | None:
    """Return the units in which a quantity is easiest to read; `None` for the unit that it has."""
    if any(units == unit(name) for name in (*_WITHOUT_PREFIX, "USD/Mtoken")):
        return None
    dimension = units.dimensionality
    if dimension == _dimension("1/s") and len(list(Q_(1, units).unit_items())) == 1:
        return _RATES  # neither samples nor tokens
    return next((_READ_IN[name] for name in _READ_IN if _dimension(name) == dimension), ())


@lru_cache(maxsize=256)
def _without_prefix(units: Any) -> tuple[float, Any]:
    """Return a unit without its prefixes, and the factor to it."""
    bare = unit(str(ureg.Unit(infer_base_unit(units, ureg))))
    return _measure(units)[0] / _measure(bare)[0], bare


@lru_cache(maxsize=1024)
def _with_prefix(units: Any, decade: int) -> tuple[float, Any]:
    """Return a unit with the prefix for a power of ten of the bare unit, and the factor to it."""
    compact = Q_(10.0**decade, _without_prefix(units)[1]).to_compact().units
    return _measure(units)[0] / _measure(compact)[0], compact


@lru_cache(maxsize=256)
def _symbol(units: Any) -> str:
    return f"{units:~P}"


def _readable(number: float, units: Any) -> tuple[float, Any]:
    """Convert a number to the unit and prefix that are easiest to read."""
    factor, dimension = _measure(units)
    choices = _choices(units)
    if not number or choices is None or (not dimension and abs(number) < 1e6):
        return number, units
    size = abs(number * factor)
    name = next((name for least, name in choices if size >= least), None)
    if name is not None:
        number, units = number * (factor / si_factor(name)), unit(name)
        if choices is _RATES or _choices(units) is None:
            return number, units
    decade = math.floor(math.log10(abs(number) * _without_prefix(units)[0]))
    factor, units = _with_prefix(units, decade)
    return number * factor, units


def format_number(value: Any, digits: int = 4) -> str:
    """Print a number or quantity with a few digits, separators and a suitable prefix.

    A year is printed with `str`.
    """
    if value is None:
        return "not known"
    if isinstance(value, pint.Quantity):
        magnitude = value.magnitude
        if not math.isfinite(magnitude):
            return "not known" if math.isnan(magnitude) else "infinite"
        magnitude, units = _readable(magnitude, value.units)
        name, number = _symbol(units), format_number(magnitude, digits)
        return f"{number}{name[1:]}" if name.startswith("1/") else f"{number} {name}".rstrip()
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return str(value)
    if math.isnan(value):
        return "not known"
    if abs(value) >= 1e15 or (value != int(value) and abs(value) < 10**digits):
        return f"{value:,.{digits}g}"
    return f"{value:,.0f}"  # a whole number, or one with more digits than requested
