"""Rates as datasheets print them."""

from mlsysim.core.types import Compute
from mlsysim.core.units import Q_

__all__ = ["rates"]


def rates(**tera: float) -> Compute:
    """Return dense peak rates, in TFLOP/s, and in TOPS for integer formats."""
    return Compute(
        **{
            precision: Q_(value, "TOPS" if precision.startswith("int") else "TFLOP/s")
            for precision, value in tera.items()
        }
    )
