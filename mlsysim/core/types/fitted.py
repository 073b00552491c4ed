"""Constants that were fitted to runs, and error bands for similar runs."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any, Self

from mlsysim.core.errors import ConfigError, shown
from mlsysim.core.fields import Record, number, record, require
from mlsysim.core.numeric import Value
from mlsysim.core.types.precision import PRECISIONS
from mlsysim.core.types.source import Entry

__all__ = ["STATE_EFFICIENCY", "Banded", "Rates", "check_bands", "traffic_in"]

STATE_EFFICIENCY = 0.0157
"""Share of the 16-bit peak rate that scans of states reach, on any machine."""


def check_bands(row: Record) -> None:
    """Reject a band with only one edge, or one that does not contain the prediction itself."""
    for item in fields(row):
        if not item.name.endswith("band_low"):
            continue
        other = item.name.removesuffix("low") + "high"
        low, high = getattr(row, item.name), getattr(row, other)
        if (low is None) != (high is None) or (low is not None and low > high):
            raise ConfigError(
                f"{type(row).__name__}.{item.name} = {low} and {other} = {high} are not a band: "
                "give both with the lower edge first, or neither",
                argument=item.name,
            )
        if low is not None and not low <= 1 <= high:
            wrong = item.name if low > 1 else other
            raise ConfigError(
                f"{type(row).__name__}.{wrong} = {getattr(row, wrong):g} leaves 1, the prediction "
                f"itself, outside the band of {low:g} to {high:g} times it: give a low edge of at "
                "most 1 and a high edge of at least 1, or change the constants",
                argument=wrong,
            )


def traffic_in(precision: str, bytes_of_16_bits: Value) -> Value:
    """Memory traffic of activations in a number format, from the constants for 16 bits."""
    factor = max(PRECISIONS[precision].bits, 16) / 16
    return bytes_of_16_bits if factor == 1 else factor * bytes_of_16_bits


@record
class Rates(Entry):
    """The share of the datasheet's dense peak rates that matrix products reach.

    Machines and serving engines declare what is known of these constants before any run.
    """

    gemm_efficiency: float = number(most=1)
    """Share of the peak rate that large matrix products reach in 16 bits."""
    gemm_efficiency_fp8: float = number(most=1)
    """The same in 8 bits."""
    gemm_efficiency_fp4: float = number(most=1)
    """The same in 4 bits."""
    state_efficiency: float = number(most=1)
    """Share of the 16-bit peak rate that the scans of linear attention and state-space layers reach
    over a whole sequence."""

    def gemm(self, precision: str) -> Value:
        """Share of the peak rate that large matrix products reach in a number format."""
        bits = PRECISIONS[precision].bits
        narrow = {8: self.gemm_efficiency_fp8, 4: self.gemm_efficiency_fp4}
        return narrow.get(bits, self.gemm_efficiency)


@record
class Banded(Entry):
    """Constants with bands of measured over predicted values, if runs are known.

    Attributes
    ----------
    formats : tuple of str
        Number formats of the runs. There is no band for other formats.
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

    def in_format(self, precision: str) -> Self:
        """Return the constants, without bands if none of the runs used the format."""
        return self if precision in self.formats else self.without_bands()

    def without_bands(self) -> Self:
        """Return the constants without bands, for a prediction that no run supports."""
        edges: dict[str, Any] = {
            f.name: None for f in fields(self) if f.name.endswith(("band_low", "band_high"))
        }
        return replace(self, **edges)
