"""Which constants describe the power of a device."""

from collections.abc import Mapping
from dataclasses import replace
from functools import cache

from mlsysim.core.types import Accelerator, Band, Generation, PowerCalibration
from mlsysim.registry.catalogs import PowerCalibrations

__all__ = ["PowerCalibrations", "power_calibration_for"]

_MEASURED = frozenset(
    {
        "STMicroelectronics STM32L4R5",
        "STMicroelectronics STM32U575",
        "STMicroelectronics STM32H7A3",
        "Syntiant NDP120 at 30.7 MHz",
        "Syntiant NDP120 at 98.7 MHz",
    }
)
"""Microcontrollers with measured energy."""
_GENERATIONS: Mapping[Generation | None, str] = {
    "ampere": "Ampere",
    "hopper": "Hopper",
    "blackwell": "Blackwell",
}


def power_calibration_for(accelerator: Accelerator) -> PowerCalibration:
    """Return the constants of a device's generation, without a band if it was not measured."""
    if accelerator.name in _MEASURED:
        return PowerCalibrations.Microcontroller
    if accelerator.name == PowerCalibrations.Blackwell_Ultra.measured_on:
        return PowerCalibrations.Blackwell_Ultra
    generation = _GENERATIONS.get(accelerator.generation)
    if generation is None:
        return PowerCalibrations.Uncalibrated
    row: PowerCalibration = getattr(PowerCalibrations, generation)
    return row if accelerator.name == row.measured_on else _borrowed(row)


@cache
def _borrowed(row: PowerCalibration) -> PowerCalibration:
    """Return the constants for an unmeasured device of a measured generation."""
    return replace(
        row,
        name=f"{row.name} (no measurement to compare with)",
        power_band=Band(),
        energy_band=Band(),
    )
