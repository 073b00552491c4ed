"""Constants for the power that a device draws for its work."""

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
        Name of the measured device, as in its row; empty if no power was measured.
    constant_share : float
        Power of an idle device that a program occupies, with high clocks.
    compute_share : float
        Power that arithmetic at the dense peak rate would add: the energy of an operation times
        that rate. If the sum exceeds the design power, the board limits the clock before the peak
        is reached.
    memory_share : float
        Power that memory traffic at the full bandwidth would add: the energy of a byte times that
        bandwidth, including on-chip transport.
    power_band_low, power_band_high : float or None
        Measured over predicted power of a device whose rate of tokens is known, at the 10th and
        90th percentile of runs with held-out models. `None` if no run is known.
    energy_band_low, energy_band_high : float or None
        Measured over predicted energy per served token, at the 10th and 90th percentile of runs
        with held-out models; on a microcontroller, energy per pass. `None` if no run is known.
    """

    measured_on: str = ""
    constant_share: float = number(most=1)
    compute_share: float = number(zero=True)
    memory_share: float = number(zero=True)
    power_band_low: float | None = number(default=None)
    power_band_high: float | None = number(default=None)
    energy_band_low: float | None = number(default=None)
    energy_band_high: float | None = number(default=None)

    def __post_init__(self) -> None:
        super().__post_init__()
        check_bands(self)
