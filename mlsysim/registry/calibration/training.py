"""Which calibration describes a device, and which plans were measured."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import replace

from mlsysim.core.types import Accelerator, Calibration, Machine, Software
from mlsysim.core.types.calibration import UNSEEN_BAND
from mlsysim.registry.calibration.machines import machine_for
from mlsysim.registry.catalogs import Calibrations, Frameworks, Machines

__all__ = [
    "MEASURED",
    "MEASURED_CHOICES",
    "MEASURED_FORMATS",
    "Calibrations",
    "calibration_for",
    "calibration_of",
]

MEASURED: Mapping[str, tuple[float, float]] = {
    "seq_len": (512, 1_048_576),
    "devices": (1, 16_384),
    "tp_size": (1, 16),
    "pp_size": (1, 64),
    "cp_size": (1, 32),
    "ep_size": (1, 64),
    "virtual_stages": (1, 12),
}
"""The smallest and the largest value of each in any measured run."""
MEASURED_CHOICES: Mapping[str, tuple[str, ...]] = {
    "schedule": ("1f1b",),
    "optimizer": ("adamw",),
    "cp_kind": ("ring",),
}
"""Values of named levers in the measured runs."""
MEASURED_FORMATS = ("fp16", "bf16", "fp8", "fp4")
"""Number formats of the measured runs."""


def calibration_for(accelerator: Accelerator) -> Calibration:
    """Return the constants of a device, with the software that it usually runs.

    Only the device matters, because other plans run on the same machine and software. The band is
    that of a system without measured runs.
    """
    return _usual(accelerator.generation, accelerator.name)


@functools.lru_cache(maxsize=256)
def _usual(generation: str | None, name: str) -> Calibration:
    tpu = (generation or "").startswith("tpu")
    software = Frameworks.MaxText if tpu else Frameworks.Megatron_Core
    return replace(calibration_of(machine_for(generation, name), software), basis="unseen")


def calibration_of(machine: Machine, software: Software) -> Calibration:
    """Return the row of a machine and its software, or a new one without its own band."""
    return _known().get((machine.name, software.name)) or _new(machine, software)


@functools.cache
def _known() -> Mapping[tuple[str, str], Calibration]:
    rows = (row for row in Calibrations if isinstance(row, Calibration))
    return {(row.machine.name, row.software.name): row for row in rows}


def _new(machine: Machine, software: Software) -> Calibration:
    """Return a calibration that has only the band of unmeasured systems.

    That of a device without runs is wider.
    """
    widest = Calibrations.Uncalibrated
    low: float | None
    high: float | None
    low, high = UNSEEN_BAND
    if machine is Machines.Uncalibrated:
        low, high = widest.unseen_band_low, widest.unseen_band_high
    return Calibration(
        source=widest.source,
        machine=machine,
        software=software,
        basis="unseen",
        unseen_band_low=low,
        unseen_band_high=high,
    )
