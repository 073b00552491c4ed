"""Constants that were fitted on runs, and bands that hold for runs like those."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any, Self

from mlsysim.core.errors import ConfigError, shown
from mlsysim.core.fields import Record, record, require
from mlsysim.core.types.precision import PRECISIONS
from mlsysim.core.types.source import Entry, Source

__all__ = ["NARROW", "Fitted", "check_bands"]

NARROW = {8: "_fp8", 4: "_fp4"}
"""Bits of the formats whose products have a share of the peak rate of their own."""


def check_bands(row: Record) -> None:
    """Refuse a band without one of its edges, or whose lower edge is above the upper one.

    Raises
    ------
    ConfigError
        If a band of the row is no interval.
    """
    for item in fields(row):
        if not item.name.endswith("_band_low"):
            continue
        other = item.name.removesuffix("low") + "high"
        low, high = getattr(row, item.name), getattr(row, other)
        if (low is None) != (high is None) or (low is not None and low > high):
            raise ConfigError(
                f"{type(row).__name__}.{item.name} = {low} and {other} = {high} are not a band: "
                "give both with the lower edge first, or neither",
                argument=item.name,
            )


@record
class Fitted(Entry):
    """Constants with bands.

    Attributes
    ----------
    formats : tuple of str
        Number formats that the runs computed in. In others there is no band.
    """

    formats: tuple[str, ...] = ("fp16", "bf16", "fp8", "fp4")

    def __post_init__(self) -> None:
        super().__post_init__()
        require(self, formats=tuple)
        unknown = [
            name for name in self.formats if not isinstance(name, str) or name not in PRECISIONS
        ]
        if unknown:
            raise ConfigError(
                f"{type(self).__name__}.formats has {shown(unknown[0])}, which is not a number "
                f"format: choose from {', '.join(PRECISIONS)}",
                argument="formats",
            )
        check_bands(self)

    def constant(self, name: str) -> tuple[str, float]:
        """Return the field that a name stands for, and what to multiply it by.

        Solvers name a number format, as in ``gemm_fp8``, where the constant depends on it.
        """
        return name, 1.0

    def si(self, field: str) -> float:
        """Return a constant as a plain number in SI base units; NaN where it is not known."""
        name, factor = self.constant(field)
        return factor * super().si(name)

    def source_of(self, path: str) -> Source:
        """Return the source of a constant: the runs that it was fitted on, or a guess."""
        return super().source_of(self.constant(path)[0])

    def is_estimated(self, path: str) -> bool:
        """Tell whether a constant is a guess that no run confirms."""
        return super().is_estimated(self.constant(path)[0])

    def in_format(self, precision: str) -> Self:
        """Return the constants; without bands, if none of their runs computed in a format."""
        return self if precision in self.formats else self.without_bands()

    def without_bands(self) -> Self:
        """Return the constants alone, for a prediction that no run stands behind."""
        edges: dict[str, Any] = {f.name: None for f in fields(self) if "_band_" in f.name}
        return replace(self, **edges)
