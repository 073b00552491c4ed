"""Which constants describe training on a device, what frameworks can do, and which plans ran."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass, replace

from mlsysim.core.types import Accelerator, Calibration, Machine, Software
from mlsysim.core.types.calibration import UNSEEN_BAND
from mlsysim.registry.catalogs import Calibrations, Frameworks, Machines

__all__ = [
    "MEASURED",
    "MEASURED_CHOICES",
    "MEASURED_FORMATS",
    "Calibrations",
    "Frameworks",
    "Machines",
    "Options",
    "calibration_for",
    "calibration_of",
    "machine_for",
    "options_of",
    "without_runs",
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
    return Calibration(
        source=widest.source,
        machine=machine,
        software=software,
        basis="unseen",
        unseen_band=widest.unseen_band if machine is Machines.Uncalibrated else UNSEEN_BAND,
    )


@dataclass(frozen=True)
class Options:
    """What a framework can switch on, among which a search chooses."""

    schedules: tuple[str, ...] = ("1f1b", "gpipe")
    exchange_overlap: float | None = None
    """Share of the exchanges with experts that overlaps with other microbatches; `None` if the
    framework's constants already include it, or it has no such overlap."""
    sends_by_node: bool = False
    """Whether tokens can be sent to each node once, if that is not the default."""
    dispatch_precision: str | None = None
    """Narrowest format of tokens on the way to experts; `None` if only the stream's."""
    recomputes: tuple[str, ...] = ()
    """Modules that can be recomputed without the whole layer."""


_MODULES = ("norms", "swiglu", "mla_up")


@functools.cache
def _options() -> Mapping[str, Options]:
    """Return the options of frameworks by release."""
    return {
        # docs.nvidia.com/megatron-core/developer-guide/0.16.0/user-guide/features/moe.html: the
        # flex dispatcher (0.12), recompute-modules (0.13), and
        # overlap-moe-expert-parallel-comm (0.14).
        Frameworks.Megatron_Core.release: Options(
            exchange_overlap=Frameworks.Megatron_Core_Graphs.exchange_overlap,
            sends_by_node=True,
            recomputes=_MODULES,
        ),
        Frameworks.Megatron_Core_Graphs.release: Options(recomputes=_MODULES),
        Frameworks.HAI_LLM.release: Options(
            schedules=("1f1b", "dualpipe"), dispatch_precision="fp8", recomputes=_MODULES
        ),
    }


def options_of(software: Software) -> Options:
    """Return what a framework can switch on; only common schedules if that is not known."""
    return _options().get(software.release, Options())
