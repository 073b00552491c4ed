"""Machines: the share of their datasheets that devices and links reach in training.

``python -m research.fits.training`` fits the constants of all machines and all software at once, to
the rows marked ``calibrate`` in ``measurements``. Machines appear with several frameworks, and
frameworks on several machines, so the fit can separate the two. Constants that the runs of a
machine cannot identify stay near those of other machines, and are marked as estimates.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mlsysim.core.catalog import Catalog
from mlsysim.core.types import Machine, Source
from mlsysim.registry.sources.repositories import BEKMAN_ACCELERATORS

__all__ = ["MACHINE_PRIOR", "STATES", "STATE_EFFICIENCY", "WITHOUT_RUNS", "Machines", "machine_for"]

_PRIOR = Source(
    title="Population of machines",
    locator="not fitted",
    checked="2026-11-22",
    note="averages of the machines below; memory streams at 0.8 of the datasheet, and attention's "
    "backward pass at 0.75 of the forward pass's rate (FlashAttention-2, section 4.1: 63 to "
    "73 percent of the A100's peak; FlashAttention-3, section 4.1: about 550 to 740 TFLOP/s)",
)
_FIT = Source(
    title="Fitted by research/fits/training.py",
    locator="calibrate rows of research/measurements/training.csv",
    checked="2026-11-22",
    note="check rows are held out",
)
_KERNELS = Source(
    title="Stas Bekman, Machine Learning Engineering Open Book, Accelerators",
    url=BEKMAN_ACCELERATORS,
    locator="Maximum Achievable Matmul FLOPS comparison table",
    checked="2026-11-22",
    note="0.86 of the best product of any shape: the mean of that ratio for A100, H100, B200 and "
    "B300 in training (0.89, 0.86, 0.74, 0.95)",
)
_SLOWEST = Source(
    title="The slowest measured machine",
    locator="H100_HBM2e; 8-bit and 4-bit products of B200",
    checked="2026-11-23",
    note="a device without runs is not assumed to reach more than a measured one",
)
STATES = Source(
    title="Fitted by research/fits/states.py",
    locator="calibrate rows of research/measurements/training.csv whose model has linear attention",
    checked="2026-11-22",
    note="one value for all machines; separate fits for H100, B200, GB200, B300 and GB300 give "
    "0.012 to 0.025; check rows are held out",
)
STATE_EFFICIENCY = 0.0157
"""Share of the 16-bit peak rate that scans of states reach, on any machine."""
MACHINE_PRIOR: dict[str, float] = {
    "gemm_efficiency": 0.75,
    "gemm_efficiency_fp8": 0.65,
    "gemm_efficiency_fp4": 0.55,
    "state_efficiency": STATE_EFFICIENCY,
    "memory_efficiency": 0.8,
    "attention_efficiency": 0.5,
    "attention_half": 500.0,
    "attention_backward": 0.75,
    "link_efficiency": 0.77,
    "nic_efficiency": 0.85,
}
"""Averages of the machines with runs, toward which a fit is pulled."""

_REST: dict[str, Any] = {
    name: value
    for name, value in MACHINE_PRIOR.items()
    if not name.startswith(("gemm", "attention_efficiency"))
}
"""The averages of all other constants than the rates of products and attention."""


def _machine(
    name: str,
    told: Mapping[str, float] | None = None,
    population: Mapping[str, float] | None = None,
) -> Machine:
    """Return a machine from fitted constants, completed with those of the population."""
    told, population = told or {}, population or {}
    return Machine(
        name=name,
        source=_PRIOR,
        field_sources=dict.fromkeys([*told, *population], _FIT) | {"state_efficiency": STATES},
        estimated=frozenset(MACHINE_PRIOR) - frozenset(told),
        **{**MACHINE_PRIOR, **population, **told},
    )


def _from_kernels(name: str, best: float, best_fp8: float | None = None) -> Machine:
    """Return a machine without runs, with products scaled from the best measured ones."""
    told = {"gemm_efficiency": round(0.86 * best, 3)}
    if best_fp8 is not None:
        told["gemm_efficiency_fp8"] = round(0.86 * best_fp8, 3)
    return Machine(
        name=name,
        source=_PRIOR,
        field_sources=dict.fromkeys(told, _KERNELS) | {"state_efficiency": STATES},
        estimated=frozenset(MACHINE_PRIOR),
        **{**MACHINE_PRIOR, **told},
    )


class Machines(Catalog):
    """Constants per device. Estimated 16-bit products are at most those of a measured sibling."""

    A100 = _machine(
        "A100",
        told={"gemm_efficiency": 0.772, "attention_efficiency": 0.674, "nic_efficiency": 0.836},
        population={"attention_half": 465.0, "link_efficiency": 0.769},
    )
    """Selene, Azure and other clusters of A100 with 40 and 80 GB."""

    H100 = _machine(
        "H100",
        told={
            "gemm_efficiency": 0.69,
            "gemm_efficiency_fp8": 0.771,
            "attention_efficiency": 0.381,
            "nic_efficiency": 0.827,
        },
        population={"attention_half": 709.0, "link_efficiency": 0.776},
    )
    """H100 SXM with 80 GB, 700 W."""

    H100_HBM2e = _machine(
        "H100 with HBM2e, 500 W",
        told={
            "gemm_efficiency": 0.564,
            "gemm_efficiency_fp8": 0.776,
            "attention_efficiency": 0.336,
        },
        population={"attention_half": 535.0, "link_efficiency": 0.762, "nic_efficiency": 0.943},
    )
    """H100 SXM with 96 GB of slower memory and less power, as in torchtitan's runs."""

    H200 = _machine(
        "H200",
        told={"gemm_efficiency_fp8": 0.663, "attention_efficiency": 0.496},
        population={
            "gemm_efficiency": H100.gemm_efficiency,
            "attention_half": 522.0,
            "link_efficiency": 0.766,
            "nic_efficiency": 0.856,
        },
    )
    """H200 SXM."""

    B200 = _machine(
        "B200",
        told={
            "gemm_efficiency": 0.577,
            "gemm_efficiency_fp8": 0.616,
            "gemm_efficiency_fp4": 0.52,
            "attention_efficiency": 0.54,
            "attention_half": 700.0,
        },
        population={"link_efficiency": 0.748, "nic_efficiency": 0.813},
    )
    """B200 and GB200."""

    B200_Limited = _machine(
        "B200, power limited",
        told={},
        population={
            "gemm_efficiency": B200.gemm_efficiency,
            "gemm_efficiency_fp8": 0.515,
            "attention_efficiency": 0.418,
            "attention_half": 515.0,
            "link_efficiency": 0.768,
            "nic_efficiency": 0.85,
        },
    )
    """B200 with a power limit."""

    B300 = _machine(
        "B300",
        told={
            "gemm_efficiency_fp8": 0.702,
            "gemm_efficiency_fp4": 0.525,
            "attention_efficiency": 0.577,
        },
        population={
            "gemm_efficiency": 0.747,
            "attention_half": 450.0,
            "link_efficiency": 0.76,
            "nic_efficiency": 0.834,
        },
    )
    """B300 and GB300."""

    MI300X = _machine(
        "MI300X",
        told={"attention_efficiency": 0.171},
        population={
            "gemm_efficiency_fp8": 0.619,
            "attention_half": 643.0,
            "link_efficiency": 0.768,
            "nic_efficiency": 0.85,
        },
    )
    """AMD Instinct MI300X."""

    TPUv5p = _machine("TPU v5p")
    """Google TPU v5p."""

    TPUv6e = _machine(
        "TPU v6e",
        told={"gemm_efficiency": 0.679, "attention_efficiency": 0.424},
        population={"attention_half": 515.0, "link_efficiency": 0.763, "nic_efficiency": 0.85},
    )
    """Google TPU v6e, Trillium."""

    TPUv7x = _machine(
        "TPU7x",
        told={"gemm_efficiency": 0.727, "attention_efficiency": 0.542},
        population={
            "gemm_efficiency_fp8": 0.688,
            "attention_half": 520.0,
            "link_efficiency": 0.752,
            "nic_efficiency": 0.85,
        },
    )
    """Google TPU7x, Ironwood: one chip of two devices."""

    MI325X = _machine(
        "MI325X",
        told={"attention_efficiency": 0.334},
        population={
            "gemm_efficiency": 0.519,
            "gemm_efficiency_fp8": 0.622,
            "attention_half": 548.0,
            "link_efficiency": 0.77,
            "nic_efficiency": 0.85,
        },
    )
    """AMD Instinct MI325X. No run in 16 bits: 0.86 of its best measured
    product."""

    MI355X = _machine(
        "MI355X",
        told={"attention_efficiency": 0.449},
        population={
            "gemm_efficiency": 0.535,
            "gemm_efficiency_fp8": 0.662,
            "attention_half": 509.0,
            "link_efficiency": 0.77,
            "nic_efficiency": 0.85,
        },
    )
    """AMD Instinct MI350X and MI355X. No run in 16 bits: 0.86 of its best measured
    product, against the peak at 2,400 MHz."""

    Gaudi2 = _from_kernels("Gaudi 2", 0.969, 0.955)
    """Intel Gaudi 2: no runs, two products."""

    Gaudi3 = _from_kernels("Gaudi 3", 0.741, 0.769)
    """Intel Gaudi 3: no runs, two products."""

    Uncalibrated = Machine(
        name="Uncalibrated",
        source=_SLOWEST,
        estimated=frozenset(MACHINE_PRIOR),
        gemm_efficiency=H100_HBM2e.gemm_efficiency,
        gemm_efficiency_fp8=B200.gemm_efficiency_fp8,
        gemm_efficiency_fp4=B200.gemm_efficiency_fp4,
        attention_efficiency=H100_HBM2e.attention_efficiency,
        **_REST,
    )
    """For devices without a published run in the tables."""


_DEVICES: Mapping[str, Machine] = {
    "AMD Instinct MI300X": Machines.MI300X,
    "AMD Instinct MI325X": Machines.MI325X,
    "AMD Instinct MI350X": Machines.MI355X,
    "AMD Instinct MI355X": Machines.MI355X,
    "Intel Gaudi 2": Machines.Gaudi2,
    "Intel Gaudi 3": Machines.Gaudi3,
    "Google TPU v5p": Machines.TPUv5p,
    "Google TPU v6e (Trillium)": Machines.TPUv6e,
    "Google TPU7x (Ironwood)": Machines.TPUv7x,
    "NVIDIA H100 SXM5 96GB HBM2e": Machines.H100_HBM2e,
    "NVIDIA H200 SXM 141GB": Machines.H200,
    "NVIDIA B200 SXM 180GB (power limited)": Machines.B200_Limited,
    "NVIDIA B300 SXM 270GB": Machines.B300,
    "NVIDIA GB300 279GB (one GPU)": Machines.B300,
}
_GENERATIONS: Mapping[str | None, Machine] = {
    "ampere": Machines.A100,
    "hopper": Machines.H100,
    "blackwell": Machines.B200,
}


WITHOUT_RUNS = (
    Machines.Uncalibrated,
    Machines.Gaudi2,
    Machines.Gaudi3,
)
"""Machines without measured runs."""


def machine_for(generation: str | None, name: str) -> Machine:
    """Return the constants of a device by its name, or otherwise of its generation."""
    return _DEVICES.get(name) or _GENERATIONS.get(generation, Machines.Uncalibrated)
