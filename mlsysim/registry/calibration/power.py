"""Calibrations of power: energy of operations and bytes, fitted to published measurements.

``python -m research.fits.power`` fits the constants to the rows marked ``calibrate`` in
``research/measurements/energy.csv`` and ``energy_2.csv``, and prints them.
"""

from collections.abc import Mapping
from dataclasses import replace
from functools import cache

from mlsysim.core.catalog import Catalog
from mlsysim.core.types import Accelerator, Generation, PowerCalibration, Source
from mlsysim.registry.hardware import Hardware

__all__ = ["PowerCalibrations", "power_calibration_for"]


def _fitted(rows: int, runs: str) -> Source:
    return Source(
        title="Fitted by research/fits/power.py",
        locator=f"{rows} calibrate rows: {runs}",
        checked="2026-11-23",
        note="research/measurements/energy.csv and energy_2.csv, power at the measured rate; check "
        "rows are held out",
    )


_ROUND = Source(
    title="Common constants",
    locator="not fitted",
    checked="2026-11-20",
    note="round values between those of the measured generations",
)


class PowerCalibrations(Catalog):
    """Constants per device generation."""

    Ampere = PowerCalibration(
        name="Ampere",
        measured_on=Hardware.A100_40GB.name,
        source=_fitted(9, "Llama 3.1 8B and 70B on A100, vLLM of 2024"),
        constant_share=0.1,
        compute_share=1.88,
        memory_share=0.833,
    )
    """A100: 2.4 pJ per operation in 16 bits. The constant share is at its bound, the idle share."""
    Hopper = PowerCalibration(
        name="Hopper",
        measured_on=Hardware.H100.name,
        source=_fitted(
            131, "16 models of 8 to 405 billion parameters on H100, vLLM of 2024 and 2025"
        ),
        constant_share=0.434,
        compute_share=1.24,
        memory_share=0.397,
        power_band_low=0.826,
        power_band_high=1.254,
        energy_band_low=0.805,
        energy_band_high=1.238,
    )
    """H100: 0.9 pJ per operation in 16 bits, 83 pJ per byte, 304 W before any work."""
    Blackwell = PowerCalibration(
        name="Blackwell",
        measured_on=Hardware.B200.name,
        source=_fitted(
            148, "14 models of 8 to 1,000 billion parameters on B200, engines of 2025 and 2026"
        ),
        constant_share=0.417,
        compute_share=1.86,
        memory_share=0.702,
        power_band_low=0.873,
        power_band_high=1.187,
        energy_band_low=0.812,
        energy_band_high=1.238,
    )
    """B200: 0.8 pJ per operation in 16 bits, 93 pJ per byte, 414 W before any work."""
    Blackwell_Ultra = PowerCalibration(
        name="Blackwell_Ultra",
        measured_on=Hardware.B300.name,
        source=_fitted(22, "Kimi K2.5, MiniMax-M2.5, Qwen3.5 397B-A17B on B300, engines of 2026"),
        constant_share=0.277,
        compute_share=3.9,
        memory_share=0.63,
        power_band_low=0.825,
        power_band_high=1.123,
        energy_band_low=0.814,
        energy_band_high=1.088,
    )
    """B300, in 4 bits."""
    Microcontroller = PowerCalibration(
        name="Microcontroller",
        source=Source(
            title="MLPerf Tiny v1.2, results",
            url="https://github.com/mlcommons/tiny_results_v1.2",
            locator="final_report_v1.2.xlsx: energy over latency",
            checked="2026-11-22",
            note="the registry takes the mean power in these runs as the design power; it hardly "
            "depends on the network",
        ),
        constant_share=1.0,
        compute_share=0,
        memory_share=0,
        energy_band_low=0.876,
        energy_band_high=1.168,
    )
    """Devices with a single measured power, which they draw all the time."""
    Uncalibrated = PowerCalibration(
        name="Uncalibrated",
        source=_ROUND,
        estimated=frozenset({"constant_share", "compute_share", "memory_share"}),
        constant_share=0.2,
        compute_share=2.0,
        memory_share=0.8,
    )
    """For devices without a measurement in the table: an estimate."""


_MEASURED = frozenset(
    device.name
    for device in (
        Hardware.STM32L4R5,
        Hardware.STM32U575,
        Hardware.STM32H7A3,
        Hardware.NDP120_30MHz,
        Hardware.NDP120_98MHz,
    )
)
_GENERATIONS: Mapping[Generation | None, PowerCalibration] = {
    "ampere": PowerCalibrations.Ampere,
    "hopper": PowerCalibrations.Hopper,
    "blackwell": PowerCalibrations.Blackwell,
}


def power_calibration_for(accelerator: Accelerator) -> PowerCalibration:
    """Return the constants of a device's generation, without a band if it was not measured."""
    if accelerator.name in _MEASURED:
        return PowerCalibrations.Microcontroller
    if accelerator.name == PowerCalibrations.Blackwell_Ultra.measured_on:
        return PowerCalibrations.Blackwell_Ultra
    found = _GENERATIONS.get(accelerator.generation)
    if found is None:
        return PowerCalibrations.Uncalibrated
    return found if accelerator.name == found.measured_on else _borrowed(found)


@cache
def _borrowed(found: PowerCalibration) -> PowerCalibration:
    """Return the constants for an unmeasured device of a measured generation."""
    return replace(
        found,
        name=f"{found.name} (no measurement to compare with)",
        power_band_low=None,
        power_band_high=None,
        energy_band_low=None,
        energy_band_high=None,
    )
