"""Calibrations: constants of operators, fitted to published runs.

Each row is one device generation and one era of software. ``python -m tools.calibrate`` fits the
constants to the rows marked ``calibrate`` in ``measurements`` and prints them; a test fits four of
the rows again and compares. Constants that a row's runs cannot determine come from
the common set below, and are marked as estimates.
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
    "passes in element-wise operators, ten 16-bit reads and writes per parameter in the update; "
    "the host's times are those of the A100's fit below, and what experts add is Blackwell's",
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
    "collective_overhead": 0.0,
    "layer_launch": 0.903,
    "expert_launch": 2.52,
    "expert_efficiency": 0.805,
    "routing_bytes": 8.68,
    "bias_bytes": 158.0,
    "launch_exposed": 0.171,
    "exchange_overlap": 0.0,
    "tensor_overlap": 0.0,
    "copies_per_node": 0.0,
    "plain_overlap": 0.0,
    "step_overhead": 0.996,
}


_SET = Source(
    title="Set for this row",
    locator="not fitted",
    checked="2026-11-20",
    note="the note below the row says why",
)


def _row(
    name: str, stack: str, runs: str, given: dict[str, float] | None = None, **fitted: float
) -> Calibration:
    """Complete fitted constants with the common ones, and record the source of each.

    Those `given` take precedence over all others, and were not fitted.
    """
    given = given or {}
    told = [field for field in fitted if field not in given]
    units = {field: unit for field, unit, plain in units_of(Calibration) if not plain}
    constants: dict[str, Any] = {
        field: Q_(value, units[field]) if field in units else value
        for field, value in (_CONSTANTS | fitted | given).items()
    }
    fit = Source(
        title="Fitted by tools/calibrate.py",
        locator=f"calibrate rows of {runs}",
        checked="2026-11-20",
        note="measurements; check rows were not seen",
    )
    return Calibration(
        name=name,
        stack=stack,
        source=_COMMON,
        field_sources=dict.fromkeys(told, fit) | dict.fromkeys(given, _SET),
        estimated=frozenset(_CONSTANTS) - frozenset(told),
        **constants,
    )


# One fit: the releases' recipes differ in the features that they use, but the machine is the same.
_BLACKWELL = {
    "gemm_efficiency": 0.778,
    "gemm_efficiency_fp8": 0.749,
    "gemm_efficiency_fp4": 0.569,
    "attention_efficiency": 0.259,
    "hidden_bytes": 20.9,
    "tensor_overlap": 0.63,
    "expert_efficiency": 0.805,
    "expert_launch": 2.52,
    "routing_bytes": 8.68,
    "bias_bytes": 158.0,
    "node_band_low": 0.825,
    "node_band_high": 1.204,
    "fleet_band_low": 0.825,
    "fleet_band_high": 1.204,
    "expert_band_low": 0.82,
    "expert_band_high": 1.282,
}


class Calibrations(Catalog):
    """Constants per device generation and software."""

    A100_Megatron = _row(
        "A100, Megatron-LM 2021-2023",
        "Megatron-LM and Megatron-DeepSpeed, unfused attention",
        "megatron21_table1, megatron21_table2_ptdp, korthikanti_table5, "
        "vtrain_multi, vtrain_single",
        gemm_efficiency=0.708,
        link_efficiency=0.746,
        nic_efficiency=0.83,
        score_bytes=12.2,
        hidden_bytes=8.0,
        loss_bytes=59.9,
        collective_overhead=185.0,
        layer_launch=0.903,
        launch_exposed=0.171,
        step_overhead=0.996,
        node_band_low=0.862,
        node_band_high=1.102,
        fleet_band_low=0.935,
        fleet_band_high=1.194,
    )
    """Narayanan 2021 and Korthikanti 2022 on Selene; vTrain's runs on 2 to 512 A100. An all-reduce
    costs more than its ring, because all hosts of a group have to reach it."""

    A100_FSDP = _row(
        "A100, FSDP 2023",
        "PyTorch FSDP in MosaicML's llm-foundry, fused attention",
        "mosaic_a100",
        gemm_efficiency=0.826,
        attention_efficiency=0.313,
        hidden_bytes=89.0,
        gather_overlap=0.222,
        node_band_low=0.947,
        node_band_high=1.099,
        fleet_band_low=0.946,
        fleet_band_high=1.1,
    )
    """MPT models of 125 million to 70 billion parameters on 8 to 128 A100. The residual stream
    passes in 32 bits."""

    H100_FSDP = _row(
        "H100, FSDP 2023",
        "PyTorch FSDP in MosaicML's llm-foundry, fused attention",
        "mosaic_h100, mosaic_h100_fp8",
        gemm_efficiency=0.734,
        gemm_efficiency_fp8=0.712,
        attention_efficiency=0.175,
        hidden_bytes=101.0,
        gather_overlap=0.227,
        node_band_low=0.944,
        node_band_high=1.032,
        fleet_band_low=0.949,
        fleet_band_high=1.025,
    )
    """MPT models on 8 to 512 H100. Attention kernels were still Ampere's."""

    H100_Megatron = _row(
        "H100, Megatron-Core 2024",
        "Megatron-Core, fused attention, bf16",
        "mcore_h100_weak",
        # They overlap collectives like Blackwell's runs, but are too few to fit how much.
        given={"tensor_overlap": 0.65},
        gemm_efficiency=0.717,
        attention_efficiency=0.162,
        hidden_bytes=31.0,
        node_band_low=0.918,
        node_band_high=1.117,
        fleet_band_low=0.918,
        fleet_band_high=1.117,
    )
    """Weak scaling from 48 to 6,144 H100. The overlap of tensor collectives is that of Blackwell's
    fit, rounded: five runs are too few to fit it. The band is rough: it comes from these five runs,
    each predicted from the other four."""

    H100_FP8 = _row(
        "H100, Megatron-Bridge 2025, FP8",
        "Megatron-Bridge with Transformer Engine",
        "megatron_bridge_dense on H100",
        gemm_efficiency_fp8=0.706,
        attention_efficiency=0.75,
        hidden_bytes=12.9,
        node_band_low=0.951,
        node_band_high=1.042,
        fleet_band_low=0.951,
        fleet_band_high=1.042,
        expert_band_low=0.921,
        expert_band_high=1.631,
    )
    """Llama 3 on 8 to 1,024 H100. Expert constants are not fitted here; the common ones come from
    Blackwell's runs."""

    B200_Megatron = _row(
        "B200, Megatron-LM 2025, bf16",
        "Megatron-LM with Transformer Engine, no recipe tuned for the machine",
        "simumax_b200_steptime",
        gemm_efficiency=0.442,
        attention_efficiency=0.386,
        hidden_bytes=19.6,
        collective_overhead=281.0,
        expert_efficiency=0.379,
        node_band_low=0.888,
        node_band_high=1.109,
        fleet_band_low=0.888,
        fleet_band_high=1.109,
        expert_band_low=0.899,
        expert_band_high=1.153,
    )
    """Cuts of Llama 3 and DeepSeek on one server of eight."""

    Blackwell = _row(
        "Blackwell, Megatron-Bridge 2025-2026",
        "Megatron-Bridge with Transformer Engine, kernels launched one by one",
        "megatron_bridge_dense and megatron_bridge_moe on Blackwell",
        given={},
        **_BLACKWELL,
    )
    """Llama 3 and models with experts on 8 to 256 GPUs, of servers of eight and racks of 72."""

    Blackwell_Graphs = _row(
        "Blackwell, Megatron-Bridge, the step as a graph",
        "Megatron-Bridge with Transformer Engine: the whole step launched as one CUDA graph, "
        "exchanges with experts under other work",
        "megatron_bridge_dense and megatron_bridge_moe on Blackwell",
        given={"layer_launch": 0.0, "expert_launch": 0.0, "copies_per_node": 1.0},
        **_BLACKWELL | {"exchange_overlap": 0.881},
    )
    """The same constants, for the features that recipes use since 26.06."""

    Uncalibrated = _row("Uncalibrated", "any", "none")
    """For devices without a published run in our tables: no band, and a rough guess."""


def calibration_for(
    accelerator: Accelerator, *, fused: bool, sharded: bool, narrow: bool
) -> Calibration:
    """Return the constants fitted for a device and for the software that the arguments imply.

    Parameters
    ----------
    accelerator
        The device, known by its generation.
    fused
        Whether attention is one kernel, as in the runs with FSDP on A100.
    sharded
        Whether weights or gradients are sharded over the replicas, as FSDP does.
    narrow
        Whether products run in eight bits or fewer.
    """
    if accelerator.generation == "ampere":
        return Calibrations.A100_FSDP if fused and sharded else Calibrations.A100_Megatron
    if accelerator.generation == "hopper":
        if sharded and not narrow:
            return Calibrations.H100_FSDP
        return Calibrations.H100_FP8 if narrow else Calibrations.H100_Megatron
    if accelerator.generation == "blackwell":
        return Calibrations.Blackwell
    return Calibrations.Uncalibrated
