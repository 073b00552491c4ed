"""Checks: one metric against one limit. Levels: the checks of one kind."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from mlsysim.core.fields import Record, record
from mlsysim.core.units import Quantity, format_number

__all__ = ["FAIL", "PASS", "UNKNOWN", "Check", "Level", "worst"]

PASS, FAIL, UNKNOWN = "pass", "fail", "unknown"


def worst(statuses: Iterable[str | None]) -> str | None:
    """Return the status of several checks: one fail fails all, and an unknown one does not pass."""
    found = set(statuses)
    return next((status for status in (FAIL, UNKNOWN, PASS) if status in found), None)


@record
class Check(Record):
    """One metric and its limit.

    Attributes
    ----------
    level : str
        ``"feasibility"``, ``"performance"`` or ``"macro"``.
    metric : str
        The field of the result.
    status : str or None
        ``"pass"``, ``"fail"``, or ``"unknown"`` if the value is not known or the system could not
        run; `None` if there is no limit and the value is only for information.
    value : Quantity, float or None
        The solver's value.
    bound : str
        ``"at_most"`` or ``"at_least"``; empty if there is no numeric limit.
    limit : Quantity, float or None
        The limit.
    reason : str
        The reason for the status.
    """

    level: str
    metric: str
    status: str | None
    value: Quantity | float | None = None
    bound: str = ""
    limit: Quantity | float | None = None
    reason: str = ""

    @property
    def ratio(self) -> float | None:
        """The value divided by its limit; `None` if either is not known, or the limit is zero."""
        if self.value is None or self.limit is None:
            return None
        value, limit = (_magnitude(part, self.limit) for part in (self.value, self.limit))
        return value / limit if limit else None

    @property
    def like_limit(self) -> Any:
        """The value in the unit of its limit, if there is one."""
        both = hasattr(self.value, "units") and hasattr(self.limit, "units")
        return self.value.to(self.limit.units) if both else self.value  # type: ignore[union-attr]

    @property
    def value_text(self) -> str:
        """The value in words, in the unit of its limit."""
        if self.value is None or self.limit is None:
            return format_number(self.value)
        return _exactly(self.like_limit)

    @property
    def limit_text(self) -> str:
        """The limit in words."""
        return f"{self.bound.replace('_', ' ')} {_exactly(self.limit)}" if self.bound else ""

    def __repr__(self) -> str:
        return f"<Check {self.metric}: {self.status}>"


def _magnitude(value: Any, like: Any) -> float:
    if hasattr(value, "units"):
        return float(value.to(like.units if hasattr(like, "units") else "").magnitude)
    return float(value)


def _exactly(limit: Any) -> str:
    """Print an amount in its own unit, so that a value compares with its limit at a glance."""
    if not hasattr(limit, "units"):
        return format_number(limit)
    return f"{format_number(limit.magnitude)} {limit.units:~P}".rstrip()


@record
class Level(Record):
    """The checks of one kind, and figures without a limit.

    Attributes
    ----------
    name : str
        ``"feasibility"``, ``"performance"`` or ``"macro"``.
    checks : tuple of Check
        The checks of limits.
    figures : tuple of Check
        Values for information; they have no status.
    """

    name: str
    checks: tuple[Check, ...] = ()
    figures: tuple[Check, ...] = ()

    @property
    def status(self) -> str | None:
        """The worst status of its checks; `None` if there are no limits."""
        return worst(check.status for check in self.checks)
