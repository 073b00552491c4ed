"""In words: whose constants a predicted power stands on."""

from __future__ import annotations

from mlsysim.core.types import Accelerator
from mlsysim.registry.calibration.power import power_calibration_for

__all__ = ["power_basis"]


def power_basis(accelerator: Accelerator) -> str:
    """Name the constants, and say if nobody measured the power of this very device."""
    found = power_calibration_for(accelerator)
    if found.device and found.device in accelerator.name:
        return found.name
    return f"{found.name} (no measurement to compare with)"
