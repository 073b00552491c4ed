"""Calibrations: a machine with its software, and the error of their predictions.

``python -m research.fits.training`` fits machines and frameworks, cross-validates them by leaving
out one family of runs at a time, and prints the numbers in this file.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import replace

from mlsysim.core.catalog import Catalog
from mlsysim.core.types import Accelerator, Calibration, Machine, Software, Source
from mlsysim.core.types.calibration import UNSEEN_BAND
from mlsysim.registry.calibration.frameworks import Frameworks
from mlsysim.registry.calibration.machines import Machines, machine_for

__all__ = [
    "MEASURED",
    "MEASURED_CHOICES",
    "MEASURED_FORMATS",
    "Calibrations",
    "calibration_for",
    "calibration_of",
]

_NO_RUN = (0.685, 1.523)
"""The same for devices without measured runs. ``python -m research.fits.training --machines``
predicts each machine with the constants of the slowest other one, which gives the lower edge. The
upper edge comes from AMD's MI300X in 2024, because a new stack is more often slower than faster."""
_FIT = Source(
    title="Fitted by research/fits/training.py",
    locator="calibrate rows of research/measurements/training.csv",
    checked="2026-11-22",
    note="band of families: five-fold cross-validation; band of unseen systems: one family left "
    "out at a time",
)


def _on(
    machine: Machine, software: Software, family: tuple[float, float] | None = None
) -> Calibration:
    low, high = family or (None, None)
    unseen = _NO_RUN if machine is Machines.Uncalibrated else UNSEEN_BAND
    return Calibration(
        name=f"{machine.name}, {software.name}",
        source=_FIT,
        machine=machine,
        software=software,
        basis="family" if family else "unseen",
        family_band_low=low,
        family_band_high=high,
        unseen_band_low=unseen[0],
        unseen_band_high=unseen[1],
    )


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


class Calibrations(Catalog):
    """Machines with software, with a band if there are eight or more published runs."""

    A100_Megatron = _on(Machines.A100, Frameworks.Megatron_2021, (0.887, 1.119))
    A100_FSDP = _on(Machines.A100, Frameworks.FSDP_2023, (0.921, 1.087))
    H100_FSDP = _on(Machines.H100, Frameworks.FSDP_2023, (0.959, 1.067))
    H100_Megatron = _on(Machines.H100, Frameworks.Megatron_Core, (0.85, 1.126))
    H100_FSDP2 = _on(Machines.H100, Frameworks.FSDP2_Compiled)
    H100_HBM2e_FSDP2 = _on(Machines.H100_HBM2e, Frameworks.FSDP2_Compiled, (0.77, 1.279))
    H200_Megatron = _on(Machines.H200, Frameworks.Megatron_Core, (0.919, 1.549))
    H800_HAI_LLM = _on(Machines.H100, Frameworks.HAI_LLM)
    B200_Megatron = _on(Machines.B200, Frameworks.Megatron_Core, (0.879, 1.171))
    B200_Graphs = _on(Machines.B200, Frameworks.Megatron_Core_Graphs, (0.879, 1.171))
    B200_Untuned = _on(Machines.B200, Frameworks.Megatron_LM_2025, (0.945, 1.217))
    B300_Megatron = _on(Machines.B300, Frameworks.Megatron_Core, (0.891, 1.243))
    TPUv7x_MaxText = _on(Machines.TPUv7x, Frameworks.MaxText, (0.825, 1.26))
    Uncalibrated = _on(Machines.Uncalibrated, Frameworks.Megatron_Core)


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
    return _KNOWN.get((machine.name, software.name)) or _on(machine, software)


_KNOWN = {
    (row.machine.name, row.software.name): row
    for row in Calibrations
    if isinstance(row, Calibration)
}
