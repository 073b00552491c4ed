"""Frameworks: what releases of training software do on any machine.

``python -m tools.calibrate`` fits the constants together with those of the machines. What the runs
of a release cannot tell stays near what other releases do, and is marked as an estimate.
"""

from __future__ import annotations

from typing import Any

from mlsysim.core.catalog import Catalog
from mlsysim.core.fields import units_of
from mlsysim.core.types import Software, Source
from mlsysim.core.units import Q_

__all__ = ["FRAMEWORK_PRIOR", "Frameworks"]

_PRIOR = Source(
    title="Population of frameworks",
    locator="not fitted",
    checked="2026-11-22",
    note="what the releases below do between them; a backward pass of 1.5 forward passes in "
    "element-wise operators, and 30 bytes per parameter in the update",
)
_FIT = Source(
    title="Fitted by tools/calibrate.py",
    locator="calibrate rows of measurements/training.csv",
    checked="2026-11-22",
    note="check rows were not seen",
)
_SET = Source(
    title="Set for this row",
    locator="not fitted",
    checked="2026-11-22",
    note="the note below the row says why",
)
# Sizes in bytes, launch and step times in milliseconds, overheads in microseconds.
FRAMEWORK_PRIOR: dict[str, float] = {
    "gemm_speed": 1.0,
    "attention_speed": 1.0,
    "gemm_overhead": 0.0,
    "hidden_bytes": 20.0,
    "ffn_bytes": 4.0,
    "score_bytes": 12.2,
    "cast_bytes": 2.0,
    "elementwise_backward": 1.5,
    "loss_bytes": 30.0,
    "optimizer_bytes": 30.0,
    "gather_overlap": 0.5,
    "gradient_overlap": 0.8,
    "plain_overlap": 0.8,
    "gradient_scatters": 2.0,
    "collective_overhead": 20.0,
    "layer_launch": 0.5,
    "expert_launch": 2.5,
    "expert_efficiency": 0.8,
    "routing_bytes": 8.7,
    "bias_bytes": 158.0,
    "launch_exposed": 0.1,
    "exchange_overlap": 0.0,
    "tensor_overlap": 0.5,
    "copies_per_node": 0.0,
    "step_overhead": 1.0,
}
"""What a release does that no run tells of."""


def _release(
    name: str, release: str, given: dict[str, float] | None = None, **fitted: float
) -> Software:
    """Complete the constants that were fitted with those of the population.

    Those `given` stand whatever else is said, and no run told them.
    """
    given = given or {}
    units = {field: unit for field, unit, plain in units_of(Software) if not plain}
    constants: dict[str, Any] = {
        field: Q_(value, units[field]) if field in units else value
        for field, value in (FRAMEWORK_PRIOR | fitted | given).items()
    }
    return Software(
        name=name,
        release=release,
        source=_PRIOR,
        field_sources=dict.fromkeys(fitted, _FIT) | dict.fromkeys(given, _SET),
        estimated=frozenset(FRAMEWORK_PRIOR) - (frozenset(fitted) - frozenset(given)),
        **constants,
    )


class Frameworks(Catalog):
    """Constants per release."""

    Megatron_2021 = _release(
        "Megatron-LM 2021-2023",
        "Megatron-LM and Megatron-DeepSpeed, unfused attention",
        given={"tensor_overlap": 0.0},
    )
    """Nothing hid a tensor group's collectives then. Narayanan 2021 and Korthikanti 2022 on Selene; vTrain's runs on 2 to 512 A100."""

    FSDP_2023 = _release("FSDP 2023", "PyTorch FSDP in MosaicML's llm-foundry, Triton attention")
    """MPT models on A100 and H100."""

    Megatron_Core = _release(
        "Megatron-Core 2024-2026",
        "Megatron-Core, NeMo and Megatron-Bridge with Transformer Engine, kernels launched one by "
        "one",
    )
    """NVIDIA's runs, MLPerf's among them."""

    Megatron_Core_Graphs = _release(
        "Megatron-Core 2026, the step as a graph",
        "Megatron-Bridge with Transformer Engine: the whole step launched as one CUDA graph, "
        "exchanges with experts under other work",
        given={"layer_launch": 0.0, "expert_launch": 0.0, "copies_per_node": 1.0},
    )
    """What Megatron-Bridge's recipes switch on since 26.06."""

    Megatron_LM_2025 = _release(
        "Megatron-LM 2025, untuned",
        "Megatron-LM with Transformer Engine, no recipe tuned for the machine",
    )
    """Cuts of Llama 3 and DeepSeek on one server of eight B200."""

    FSDP2 = _release("FSDP2 2024-2025, eager", "PyTorch FSDP2 without a compiler, as in torchtitan")
    """torchtitan and fms-fsdp on A100, H100, H200 and B200."""

    FSDP2_Compiled = _release(
        "FSDP2 2024-2025, compiled", "PyTorch FSDP2 with torch.compile, as in torchtitan"
    )
    """The same where the recipe names the compiler."""

    FSDP2_Rowwise = _release(
        "FSDP2 2025, compiled, row-wise FP8",
        "PyTorch FSDP2 with torch.compile; eight bits with one scale per row, as in torchao",
    )
    """Scales per row cost more than one per tensor."""

    AutoModel = _release("NeMo AutoModel 2025", "PyTorch FSDP2 under NVIDIA's NeMo AutoModel")
    """Models with experts and dense ones on H100."""

    MaxText = _release("MaxText 2025-2026", "MaxText on XLA")
    """Google's recipes for TPU."""
