"""Calibrations: constants of operators, fitted on published runs."""

from __future__ import annotations

from mlsysim.core.catalog import Catalog
from mlsysim.core.types import Accelerator, Calibration, Source
from mlsysim.core.units import Q_

__all__ = ["Calibrations", "calibration_for"]

_FIT = Source(title="fit pending")


def _row(name: str, stack: str, **constants: float) -> Calibration:
    given = {
        "gemm_efficiency": 0.75,
        "gemm_efficiency_fp8": 0.7,
        "gemm_efficiency_fp4": 0.6,
        "memory_efficiency": 0.8,
        "attention_efficiency": 0.3,
        "elementwise_backward": 1.5,
        "link_efficiency": 0.77,
        "nic_efficiency": 0.9,
        "gather_overlap": 0.3,
        "gradient_overlap": 0.8,
        "gradient_scatters": 2.0,
    } | {k: v for k, v in constants.items() if not k.endswith(("_bytes", "overhead", "launch"))}
    sizes = {
        "score_bytes": 14.0,
        "hidden_bytes": 30.0,
        "ffn_bytes": 4.0,
        "cast_bytes": 2.0,
        "loss_bytes": 30.0,
        "optimizer_bytes": 30.0,
    } | {k: v for k, v in constants.items() if k.endswith("_bytes")}
    times = {"gemm_overhead": 0.0, "layer_launch": 1e-3, "step_overhead": 1e-3} | {
        k: v for k, v in constants.items() if k.endswith(("overhead", "launch"))
    }
    return Calibration(
        name=name,
        stack=stack,
        source=_FIT,
        **given,  # type: ignore[arg-type]
        **{k: Q_(v, "byte") for k, v in sizes.items()},  # type: ignore[arg-type]
        **{k: Q_(v, "s") for k, v in times.items()},  # type: ignore[arg-type]
    )


class Calibrations(Catalog):
    """Constants per device generation and software."""

    A100_Megatron = _row("A100, Megatron", "Megatron-LM")
    A100_FSDP = _row("A100, FSDP", "FSDP")
    H100_Megatron = _row("H100, Megatron", "Megatron-Core")
    H100_FSDP = _row("H100, FSDP", "FSDP")
    Blackwell_Megatron = _row("Blackwell, Megatron", "Megatron-Core")
    Uncalibrated = _row("Uncalibrated", "any")


def calibration_for(accelerator: Accelerator, *, fused: bool, sharded: bool) -> Calibration:
    """Return the constants fitted for a device and the software that fits the arguments."""
    name = accelerator.name
    if "A100" in name:
        return Calibrations.A100_FSDP if fused else Calibrations.A100_Megatron
    if "H100" in name or "H200" in name:
        return Calibrations.H100_FSDP if sharded else Calibrations.H100_Megatron
    if "B200" in name or "B300" in name:
        return Calibrations.Blackwell_Megatron
    return Calibrations.Uncalibrated
