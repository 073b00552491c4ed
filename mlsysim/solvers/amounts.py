"""Arguments that have a unit: durations, prices, rates."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from mlsysim.core.errors import ConfigError, shown
from mlsysim.core.units import is_quantity, si_factor, strip, told
from mlsysim.solvers.arguments import Number, Share, Varying, is_array

__all__ = ["Amount", "Factor", "Portion"]


@dataclass(frozen=True)
class Amount(Number):
    """A quantity; the solver gets it in SI base units.

    A plain number is taken as so many of `unit` where `plain` says so: where the argument's name
    states the unit (`duration_days`), or where there is but one in use (`unit_price`). Elsewhere
    a number without a unit is refused.
    """

    unit: str = ""
    plain: bool = False
    zero: bool = False

    def _admit(self, name: str, value: Any) -> Any:
        if isinstance(value, Varying):
            return value
        if is_quantity(value):
            return self._stripped(name, value)
        if not self.plain:
            raise ConfigError(
                f"{name} = {shown(value)} has no unit: give {self.wanted}", argument=name
            )
        return super()._admit(name, value) * si_factor(self.unit)

    def _stripped(self, name: str, value: Any) -> float:
        if is_array(value.magnitude):
            raise ConfigError(f"{name} is an array: give {self.wanted}", argument=name)
        try:
            number = float(strip(value, self.unit, name))
        except ConfigError as fault:
            raise ConfigError(f"{fault.message}: give {self.wanted}", argument=name) from None
        if not self._accepts(number):
            raise ConfigError(
                f"{name} = {told(value)} is out of range: give {self.wanted}", argument=name
            )
        return number

    def _as_floats(self, values: Any) -> Any:
        if hasattr(values, "units"):
            try:
                return strip(values, self.unit, "")
            except ConfigError:
                return values.magnitude * math.nan
        return values.astype(float) * (si_factor(self.unit) if self.plain else math.nan)

    def _accepts(self, value: Any) -> Any:
        return ((value >= 0) if self.zero else (value > 0)) & (value < math.inf)

    @property
    def wanted(self) -> str:
        """What to give, in words."""
        sign = "zero or more" if self.zero else "above zero"
        number = f"a number of {self.unit}, or a quantity" if self.plain else "a quantity"
        return f'{number} such as Q_(1, "{self.unit}"), finite and {sign}'


@dataclass(frozen=True)
class Portion(Share):
    """A share that may be zero."""

    def _accepts(self, value: Any) -> Any:
        return (value >= 0) & (value <= 1)

    @property
    def wanted(self) -> str:
        """What to give, in words."""
        return "a number from 0 to 1"


@dataclass(frozen=True)
class Factor(Number):
    """A finite factor of one or more."""

    def _accepts(self, value: Any) -> Any:
        return (value >= 1) & (value < math.inf)

    @property
    def wanted(self) -> str:
        """What to give, in words."""
        return "a finite number of 1 or more"
