"""Numbers as a lab prints them."""

from __future__ import annotations

from mlsysim.core.units import Quantity

__all__ = ["gigabytes", "milliseconds", "percent", "seconds"]


def percent(share: float, digits: int = 1) -> str:
    """Print a share in percent."""
    return f"{100 * share:.{digits}f}%"


def milliseconds(time: Quantity) -> str:
    """Print a time in milliseconds."""
    return f"{time.to('ms').magnitude:,.0f} ms"


def seconds(time: Quantity) -> str:
    """Print a time in seconds."""
    return f"{time.to('s').magnitude:,.2f} s"


def gigabytes(size: Quantity) -> str:
    """Print a size in gigabytes."""
    value = size.to("GB").magnitude
    return f"{value:,.0f} GB" if value >= 100 else f"{value:.1f} GB"
