"""Findings of a fit to one cluster: factors, rows, contradictions, and the next run."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from mlsysim.core.fields import Record, number, record
from mlsysim.core.files import printable

__all__ = ["Conflict", "FittedFactor", "NextRun", "RefusedRow", "UsedRow"]

_OPEN = 0.9
"""Share of the prior's spread above which the runs do not identify a constant."""
_FAR = 2.0
"""Standard deviations of the prior beyond which a factor is surprising."""


@record
class FittedFactor(Record):
    """The fitted factor of a constant.

    Attributes
    ----------
    name : str
        The constant, a field of `Machine` or of `Software`.
    factor : float
        Its value divided by that of the base.
    uncertainty : float
        Standard deviation of the factor's logarithm, given the runs.
    prior : float
        The same without any runs.
    """

    name: str
    factor: float = number()
    uncertainty: float = number(zero=True)
    prior: float = number()

    @property
    def identified(self) -> bool:
        """Whether the runs identify the constant."""
        return self.uncertainty <= _OPEN * self.prior

    @property
    def deviations(self) -> float:
        """How far the factor is from 1, in standard deviations of published constants."""
        return math.log(self.factor) / self.prior

    @property
    def surprising(self) -> bool:
        """Whether it is farther from the published constant than those of 95% of systems."""
        return abs(self.deviations) > _FAR


@record
class UsedRow(Record):
    """A run to which the constants were fitted.

    Attributes
    ----------
    id : str
        Identifier of the row.
    measured : float
        Time of a step, in seconds.
    before, after : float
        Prediction with the base's constants, and with the fitted ones.
    """

    id: str
    measured: float = number()
    before: float = number()
    after: float = number()


@record
class RefusedRow(Record):
    """A row that was left out.

    Attributes
    ----------
    id : str
        Identifier of the row.
    reason : str
        Why it was left out, and what to change.
    """

    id: str
    reason: str


@record
class Conflict(Record):
    """Two runs that contradict each other; it is unclear which of them is wrong.

    Attributes
    ----------
    fast, slow : str
        Identifiers of the rows.
    ratio : float
        Ratio of the slow run's time to the fast run's, divided by the ratio that the base predicts.
    """

    fast: str
    slow: str
    ratio: float = number(least=1)

    def __str__(self) -> str:
        fast, slow = printable(self.fast), printable(self.slow)
        return (
            f"{fast} and {slow} contradict each other: {slow} took {self.ratio:.3g} times as "
            f"long, compared with {fast}, as the constants imply. It is unclear which of them is "
            "wrong, so both were used: measure both again, or a third plan."
        )


@record
class NextRun(Record):
    """The single run that would narrow the band most.

    Attributes
    ----------
    like : str
        Identifier of the row from which it differs.
    changes : Mapping[str, object]
        Arguments of `DistributedSolver.solve` that differ; ``nodes`` is the count of the fleet.
    band_low, band_high : float
        The band after this measurement.
    """

    like: str
    changes: Mapping[str, Any]
    band_low: float = number()
    band_high: float = number()

    def __str__(self) -> str:
        changes = ", ".join(f"{name} = {value}" for name, value in self.changes.items())
        return f"like {printable(self.like)}, with {changes}"
