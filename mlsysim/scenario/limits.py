"""Limits on fields of a result."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Any

from mlsysim.core.errors import ConfigError, UnknownEntryError, shown
from mlsysim.core.fields import Record, record, units_of
from mlsysim.core.units import Quantity, real_number, strip, told
from mlsysim.scenario.accounts import MACRO_METRICS
from mlsysim.scenario.tasks import TASKS

__all__ = ["METRICS", "Limit", "metrics_of"]


def metrics_of(result: type[Any]) -> dict[str, str]:
    """Return the fields of a result that can have a limit, with their units."""
    return {name: unit for name, unit, _ in units_of(result)}


METRICS: dict[str, str] = {
    **{
        name: unit
        for task in TASKS.values()
        for name, unit in metrics_of(task.solver.result).items()
    },
    **MACRO_METRICS,
}
"""Every metric that a scenario can limit, with its unit."""


@record
class Limit(Record):
    """A bound on a metric, from above, from below, or both.

    Attributes
    ----------
    metric : str
        A numeric field of a solver's result, such as ``"latency"``; or, for the macro level,
        of `SustainabilitySolver` or `EconomicsSolver`, such as ``"carbon_footprint"``.
    at_most, at_least : Quantity, float or None
        The bounds, of the metric's dimension. At least one is given.

    Examples
    --------
    >>> from mlsysim import Limit, Q_
    >>> print(Limit(metric="latency", at_most=Q_(200, "ms")))
    latency at most 200 ms
    """

    metric: str
    at_most: Quantity | float | None = None
    at_least: Quantity | float | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.metric, str) or self.metric not in METRICS:
            raise UnknownEntryError.build(self.metric, "metric", METRICS)
        low, high = (self._bound(name) for name in ("at_least", "at_most"))
        if low is None and high is None:
            raise ConfigError(f"{self.metric} has no bound: give at_most or at_least")
        if low is not None and high is not None and low > high:
            raise ConfigError(
                f"{self.metric}: at_least = {told(self.at_least)} is above at_most = "
                f"{told(self.at_most)}",
                argument="at_least",
            )

    def _bound(self, name: str) -> float | None:
        value = getattr(self, name)
        if value is None:
            return None
        plain = real_number(strip(value, METRICS[self.metric], f"{self.metric} {name}"))
        if plain is None:
            raise ConfigError(
                f"{self.metric} {name} = {shown(value)} is not a number", argument=name
            )
        if not 0 <= plain <= sys.float_info.max:
            raise ConfigError(
                f"{self.metric} {name} = {told(value)} is out of range: give a finite value of "
                "zero or more",
                argument=name,
            )
        return float(plain)

    def bounds(self) -> Iterable[tuple[str, Any]]:
        """Yield ``("at_most", value)`` and ``("at_least", value)``, if they are given."""
        for name in ("at_most", "at_least"):
            if getattr(self, name) is not None:
                yield name, getattr(self, name)

    def allows(self, value: Any) -> bool:
        """Return whether a value of the metric meets the limit; an unknown value does not."""
        if value is None:
            return False
        number = strip(value, METRICS[self.metric], self.metric)
        low, high = self._bound("at_least"), self._bound("at_most")
        return (low is None or number >= low) and (high is None or number <= high)

    def __str__(self) -> str:
        bounds = (f"{name.replace('_', ' ')} {value}" for name, value in self.bounds())
        return f"{self.metric} {' and '.join(bounds)}"
