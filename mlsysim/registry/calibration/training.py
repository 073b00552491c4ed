"""Calibrations: constants of operators, fitted on published runs.

Each row is one device generation and one era of software. ``python -m tools.calibrate`` fits the
constants on the rows marked ``calibrate`` in ``docs/data/training.csv`` and prints them; a test
fits two of the rows again and compares. Constants that a row's runs cannot tell come from the
common set below, and are marked as estimates.
"""

from typing import Any

from mlsysim.core.catalog import Catalog
from mlsysim.core.fields import units_of
from mlsysim.core.types import Accelerator, Calibration, Source
from mlsysim.core.units import Q_

__all__ = ["Calibrations", "calibration_for"]

_COMMON = Source(
    title="Common constants",
    locator="not fitted",
    checked="2026-11-20",
    note="round values: memory streams at 0.8 of the datasheet, a backward pass of 1.5 forward "
    "passes in element-wise operators, ten 16-bit reads and writes per parameter in the update",
)
# Sizes in bytes, launch and step times in milliseconds, the overhead in microseconds.
_CONSTANTS: dict[str, float] = {
    "gemm_efficiency": 0.75,
    "gemm_efficiency_fp8": 0.7,
    "gemm_efficiency_fp4": 0.6,
    "gemm_overhead": 0.0,
    "memory_efficiency": 0.8,
    "attention_efficiency": 0.3,
    "score_bytes": 14.5,
    "hidden_bytes": 20.0,
    "ffn_bytes": 4.0,
    "cast_bytes": 2.0,
    "elementwise_backward": 1.5,
    "loss_bytes": 30.0,
    "optimizer_bytes": 30.0,
    "link_efficiency": 0.77,
    "nic_efficiency": 0.9,
    "gather_overlap": 0.2,
    "gradient_overlap": 0.8,
    "gradient_scatters": 2.0,
    "layer_launch": 0.948,
    "expert_launch": 2.0,
    "expert_efficiency": 0.8,
    "routing_bytes": 12.0,
    "launch_exposed": 0.188,
    "step_overhead": 1.03,
}


def _row(name: str, stack: str, runs: str, **fitted: float) -> Calibration:
    """Complete the constants that were fitted with the common ones, and say which is which."""
    units = {field: unit for field, unit, plain in units_of(Calibration) if not plain}
    constants: dict[str, Any] = {
        field: Q_(value, units[field]) if field in units else value
        for field, value in (_CONSTANTS | fitted).items()
    }
    fit = Source(
        title="Fitted by tools/calibrate.py",
        locator=f"calibrate rows of {runs}",
        checked="2026-11-20",
        note="docs/data/training.csv; check rows were not seen",
    )
    return Calibration(
        name=name,
        stack=stack,
        source=_COMMON,
        field_sources=dict.fromkeys(fitted, fit),
        estimated=frozenset(_CONSTANTS) - frozenset(fitted),
        **constants,
    )


class Calibrations(Catalog):
    """Constants per device generation and software."""

    A100_Megatron = _row(
        "A100, Megatron-LM 2021-2023",
        "Megatron-LM and Megatron-DeepSpeed, unfused attention",
        "megatron21_table1, megatron21_table2_ptdp, korthikanti_table5, "
        "vtrain_multi, vtrain_single",
        gemm_efficiency=0.743,
        link_efficiency=0.624,
        nic_efficiency=0.784,
        score_bytes=14.5,
        hidden_bytes=12.6,
        loss_bytes=42.1,
        layer_launch=0.948,
        launch_exposed=0.188,
        step_overhead=1.03,
        node_band_low=0.896,
        node_band_high=1.195,
        fleet_band_low=0.934,
        fleet_band_high=1.179,
    )
    """Narayanan 2021 and Korthikanti 2022 on Selene; vTrain's runs on 2 to 512 A100."""

    A100_FSDP = _row(
        "A100, FSDP 2023",
        "PyTorch FSDP in MosaicML's llm-foundry, fused attention",
        "mosaic_a100",
        gemm_efficiency=0.826,
        attention_efficiency=0.313,
        hidden_bytes=88.1,
        gather_overlap=0.224,
        node_band_low=0.949,
        node_band_high=1.094,
        fleet_band_low=0.948,
        fleet_band_high=1.096,
    )
    """MPT models of 125 million to 70 billion parameters on 8 to 128 A100. The residual stream
    passes in 32 bits."""

    H100_FSDP = _row(
        "H100, FSDP 2023",
        "PyTorch FSDP in MosaicML's llm-foundry, fused attention",
        "mosaic_h100, mosaic_h100_fp8",
        gemm_efficiency=0.733,
        gemm_efficiency_fp8=0.709,
        attention_efficiency=0.175,
        hidden_bytes=99.0,
        gather_overlap=0.233,
        node_band_low=0.946,
        node_band_high=1.024,
        fleet_band_low=0.955,
        fleet_band_high=1.024,
    )
    """MPT models on 8 to 512 H100. Attention kernels were still Ampere's."""

    H100_Megatron = _row(
        "H100, Megatron-Core 2024",
        "Megatron-Core, fused attention, bf16",
        "mcore_h100_weak",
        gemm_efficiency=0.877,
        attention_efficiency=0.138,
        hidden_bytes=31.6,
        node_band_low=0.902,
        node_band_high=1.246,
        fleet_band_low=0.902,
        fleet_band_high=1.246,
    )
    """Weak scaling from 48 to 6,144 H100. The band is a rough one: it comes from five runs, each
    predicted from the other four."""

    H100_FP8 = _row(
        "H100, Megatron-Bridge 2025, FP8",
        "Megatron-Bridge with Transformer Engine",
        "megatron_bridge_dense and megatron_bridge_moe on H100",
        routing_bytes=4.0,
        expert_launch=2.34,
        expert_efficiency=0.337,
        gemm_efficiency_fp8=0.708,
        attention_efficiency=0.75,
        hidden_bytes=12.3,
        node_band_low=0.972,
        node_band_high=1.027,
        fleet_band_low=0.972,
        fleet_band_high=1.027,
        expert_band_low=0.715,
        expert_band_high=1.496,
    )
    """Llama 3 on 8 to 1,024 H100. The attention constant sits at the bound of what is
    plausible."""

    Blackwell_Graphs = _row(
        "Blackwell, Megatron-Bridge since 26.06",
        "Megatron-Bridge with Transformer Engine, experts launched as graphs",
        "megatron_bridge_dense and _moe on Blackwell, containers since 26.06",
        routing_bytes=4.0,
        expert_launch=0.185,
        expert_efficiency=1.0,
        gemm_efficiency_fp8=0.873,
        gemm_efficiency_fp4=0.9,
        attention_efficiency=0.217,
        hidden_bytes=20.7,
        node_band_low=0.848,
        node_band_high=1.155,
        fleet_band_low=0.848,
        fleet_band_high=1.155,
        expert_band_low=0.753,
        expert_band_high=1.827,
    )
    """As above, with the experts' kernels launched together: ten runs of models with experts."""

    Blackwell_FP8 = _row(
        "Blackwell, Megatron-Bridge 2025",
        "Megatron-Bridge with Transformer Engine",
        "megatron_bridge_dense and _moe on Blackwell, containers before 26.06",
        routing_bytes=4.0,
        expert_launch=2.34,
        expert_efficiency=0.398,
        gemm_efficiency_fp8=0.873,
        gemm_efficiency_fp4=0.9,
        attention_efficiency=0.217,
        hidden_bytes=20.7,
        node_band_low=0.848,
        node_band_high=1.155,
        fleet_band_low=0.848,
        fleet_band_high=1.155,
        expert_band_low=0.708,
        expert_band_high=1.424,
    )
    """Llama 3 on 8 to 1,024 GPUs of NVL72 racks."""

    Uncalibrated = _row("Uncalibrated", "any", "none")
    """For devices that no published run in our tables describes: no band, and a wide guess."""


def calibration_for(
    accelerator: Accelerator, *, fused: bool, sharded: bool, narrow: bool
) -> Calibration:
    """Return the constants fitted for a device and for the software that the arguments tell of.

    Parameters
    ----------
    accelerator
        The device, known by its name.
    fused
        Whether attention is one kernel, as in the runs with FSDP on A100.
    sharded
        Whether weights or gradients are sharded over the replicas, as FSDP does.
    narrow
        Whether products run in eight bits or fewer.
    """
    name = accelerator.name
    if "A100" in name:
        return Calibrations.A100_FSDP if fused and sharded else Calibrations.A100_Megatron
    if "H100" in name or "H200" in name or "H800" in name:
        if sharded and not narrow:
            return Calibrations.H100_FSDP
        return Calibrations.H100_FP8 if narrow else Calibrations.H100_Megatron
    if "B200" in name or "B300" in name:
        return Calibrations.Blackwell_FP8
    return Calibrations.Uncalibrated
