"""Which machine describes a device."""

from __future__ import annotations

from collections.abc import Mapping

from mlsysim.core.types import Machine
from mlsysim.registry.catalogs import Machines

__all__ = ["Machines", "machine_for", "without_runs"]

_DEVICES: Mapping[str, str] = {
    "AMD Instinct MI300X": "MI300X",
    "AMD Instinct MI325X": "MI325X",
    "AMD Instinct MI350X": "MI355X",
    "AMD Instinct MI355X": "MI355X",
    "Intel Gaudi 2": "Gaudi2",
    "Intel Gaudi 3": "Gaudi3",
    "Google TPU v5p": "TPUv5p",
    "Google TPU v6e (Trillium)": "TPUv6e",
    "Google TPU7x (Ironwood)": "TPUv7x",
    "NVIDIA H100 SXM5 96GB HBM2e": "H100_HBM2e",
    "NVIDIA H200 SXM 141GB": "H200",
    "NVIDIA B200 SXM 180GB (power limited)": "B200_Limited",
    "NVIDIA B300 SXM 270GB": "B300",
    "NVIDIA GB300 279GB (one GPU)": "B300",
}
_GENERATIONS: Mapping[str | None, str] = {
    "ampere": "A100",
    "hopper": "H100",
    "blackwell": "B200",
}


def machine_for(generation: str | None, name: str) -> Machine:
    """Return the constants of a device by its name, or otherwise of its generation."""
    key = _DEVICES.get(name) or _GENERATIONS.get(generation, "Uncalibrated")
    row: Machine = getattr(Machines, key)
    return row


def without_runs(machine: Machine) -> bool:
    """Return whether no run of a machine was measured."""
    return machine in (Machines.Uncalibrated, Machines.Gaudi2, Machines.Gaudi3)
