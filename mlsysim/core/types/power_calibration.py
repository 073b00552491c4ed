"""Constants that say what a device's work draws in power."""

from __future__ import annotations

from mlsysim.core.fields import number, record
from mlsysim.core.types.fitted import check_bands
from mlsysim.core.types.source import Entry

__all__ = ["PowerCalibration"]


@record
class PowerCalibration(Entry):
    """One set of constants per device generation, as shares of the design power.

    Attributes
    ----------
    measured_on : str
        Name of the device whose power was measured, as its row prints it; empty if none was.
    constant_share : float
        Power of a device that a program holds, clocks up, and that does nothing.
    compute_share : float
        Power that arithmetic at the dense peak rate would add: the energy of an operation times
        that rate. Above what is left, the board limits the clock before the peak is reached.
    memory_share : float
        Power that memory traffic at the full bandwidth would add: the energy of a byte times that
        bandwidth, on-chip transport included.
    energy_band_low, energy_band_high : float or None
        Measured over predicted energy per served token, at the tenth and the ninetieth percentile
        of runs of models that the constants were not fitted on. `None` where no run is known.
    """

    measured_on: str = ""
    constant_share: float = number(most=1)
    compute_share: float = number()
    memory_share: float = number()
    energy_band_low: float | None = number(default=None)
    energy_band_high: float | None = number(default=None)

    def __post_init__(self) -> None:
        super().__post_init__()
        check_bands(self)
