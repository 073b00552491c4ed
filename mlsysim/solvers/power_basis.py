"""In words: whose constants a predicted power stands on."""

from __future__ import annotations

from mlsysim.core.types import Accelerator, PowerCalibration

__all__ = ["power_basis"]


def power_basis(calibration: PowerCalibration, accelerator: Accelerator) -> str:
    """Name the constants, and say if nobody measured the power of this very device."""
    if calibration.measured_on and calibration.measured_on in accelerator.name:
        return calibration.name
    return f"{calibration.name} (no measurement to compare with)"
