"""Constants that say what a device's work draws in power."""

from __future__ import annotations

from mlsysim.core.fields import number, record
from mlsysim.core.types.source import Entry

__all__ = ["PowerCalibration"]


@record
class PowerCalibration(Entry):
    """One set of constants per device generation, as shares of the design power.

    Attributes
    ----------
    measured_on : str
        Part of the name of the device whose power was measured; empty if none was.
    constant_share : float
        Power of a device that a program holds, clocks up, and that does nothing.
    compute_share : float
        Power that arithmetic at the dense peak rate would add: the energy of an operation times
        that rate. Above what is left, the board limits the clock before the peak is reached.
    memory_share : float
        Power that memory traffic at the full bandwidth would add: the energy of a byte times that
        bandwidth, on-chip transport included.
    """

    measured_on: str = ""
    constant_share: float = number()
    compute_share: float = number()
    memory_share: float = number()
