"""Frameworks: what releases of training software do on any machine.

``python -m tools.calibrate`` fits the constants together with those of the machines. What the runs
of a release cannot tell stays near what other releases do, and is marked as an estimate.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
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
    name: str,
    release: str,
    *,
    given: Mapping[str, float] | None = None,
    told: Mapping[str, float] | None = None,
    population: Mapping[str, float] | None = None,
) -> Software:
    """Return a release from what its runs tell, and what they leave near the population's.

    Those `given` stand whatever else is said, and no run told them.
    """
    given, told, population = given or {}, told or {}, population or {}
    units = {field: unit for field, unit, plain in units_of(Software) if not plain}
    constants: dict[str, Any] = {
        field: Q_(value, units[field]) if field in units else value
        for field, value in {**FRAMEWORK_PRIOR, **population, **told, **given}.items()
    }
    return Software(
        name=name,
        release=release,
        source=_PRIOR,
        field_sources=dict.fromkeys([*told, *population], _FIT) | dict.fromkeys(given, _SET),
        estimated=frozenset(FRAMEWORK_PRIOR) - frozenset(told),
        **constants,
    )


class Frameworks(Catalog):
    """Constants per release."""

    Megatron_2021 = _release(
        "Megatron-LM 2021-2023",
        "Megatron-LM and Megatron-DeepSpeed, unfused attention",
        given={"tensor_overlap": 0.0, "plain_overlap": 0.0},
        told={
            "gemm_speed": 0.952,
            "hidden_bytes": 19.0,
            "score_bytes": 13.0,
            "collective_overhead": 141.0,
            "layer_launch": 0.951,
        },
        population={
            "attention_speed": 0.9,
            "cast_bytes": 3.0,
            "loss_bytes": 37.1,
            "launch_exposed": 0.113,
            "expert_launch": 2.5,
            "expert_efficiency": 0.8,
            "routing_bytes": 8.7,
            "bias_bytes": 158.0,
            "gather_overlap": 0.5,
            "gradient_overlap": 0.8,
            "step_overhead": 2.92,
        },
    )
    """Narayanan 2021 and Korthikanti 2022 on Selene; vTrain's runs on 2 to 512 A100. Nothing hid a
    tensor group's collectives then."""

    FSDP_2023 = _release(
        "FSDP 2023",
        "PyTorch FSDP in MosaicML's llm-foundry, Triton attention",
        told={
            "gemm_speed": 0.951,
            "attention_speed": 0.608,
            "hidden_bytes": 35.2,
            "cast_bytes": 4.58,
            "loss_bytes": 35.6,
        },
        population={
            "score_bytes": 12.2,
            "collective_overhead": 50.0,
            "layer_launch": 0.526,
            "launch_exposed": 0.102,
            "expert_launch": 2.5,
            "expert_efficiency": 0.8,
            "routing_bytes": 8.7,
            "bias_bytes": 158.0,
            "tensor_overlap": 0.5,
            "gather_overlap": 0.404,
            "gradient_overlap": 0.8,
            "step_overhead": 2.22,
        },
    )
    """MPT models on A100 and H100."""

    Megatron_Core = _release(
        "Megatron-Core 2024-2026",
        "Megatron-Core, NeMo and Megatron-Bridge with Transformer Engine, kernels launched one by "
        "one",
        told={
            "gemm_speed": 0.962,
            "attention_speed": 0.99,
            "cast_bytes": 3.65,
            "expert_launch": 2.97,
            "expert_efficiency": 0.802,
            "bias_bytes": 152.0,
            "tensor_overlap": 0.475,
            "step_overhead": 13.7,
        },
        population={
            "hidden_bytes": 15.6,
            "score_bytes": 12.2,
            "loss_bytes": 29.4,
            "collective_overhead": 83.1,
            "layer_launch": 0.541,
            "launch_exposed": 0.107,
            "routing_bytes": 8.87,
            "gather_overlap": 0.518,
            "gradient_overlap": 0.72,
        },
    )
    """NVIDIA's runs, MLPerf's among them."""

    Megatron_Core_Graphs = replace(
        Megatron_Core,
        name="Megatron-Core 2026, the step as a graph",
        release="Megatron-Bridge with Transformer Engine: the whole step launched as one CUDA "
        "graph, exchanges with experts under other work",
        layer_launch=Q_(0, "ms"),
        expert_launch=Q_(0, "ms"),
        copies_per_node=1.0,
        exchange_overlap=0.828,
        field_sources={
            **Megatron_Core.field_sources,
            **dict.fromkeys(("layer_launch", "expert_launch", "copies_per_node"), _SET),
            "exchange_overlap": _FIT,
        },
    )
    """What Megatron-Bridge's recipes switch on since 26.06."""

    Megatron_LM_2025 = _release(
        "Megatron-LM 2025, untuned",
        "Megatron-LM with Transformer Engine, no recipe tuned for the machine",
        told={"gemm_speed": 0.785, "attention_speed": 0.778},
        population={
            "hidden_bytes": 22.4,
            "cast_bytes": 3.0,
            "score_bytes": 12.2,
            "loss_bytes": 36.2,
            "collective_overhead": 77.3,
            "layer_launch": 0.564,
            "launch_exposed": 0.109,
            "expert_launch": 2.63,
            "expert_efficiency": 0.728,
            "routing_bytes": 8.96,
            "bias_bytes": 158.0,
            "tensor_overlap": 0.442,
            "gather_overlap": 0.5,
            "gradient_overlap": 0.781,
            "step_overhead": 2.56,
        },
    )
    """Cuts of Llama 3 and DeepSeek on one server of eight B200."""

    FSDP2 = _release(
        "FSDP2 2024-2025, eager",
        "PyTorch FSDP2 without a compiler, as in torchtitan",
        told={"gemm_speed": 0.916},
        population={
            "attention_speed": 0.724,
            "hidden_bytes": 21.8,
            "cast_bytes": 3.0,
            "score_bytes": 12.2,
            "loss_bytes": 31.1,
            "collective_overhead": 50.0,
            "layer_launch": 0.504,
            "launch_exposed": 0.1,
            "expert_launch": 2.5,
            "expert_efficiency": 0.8,
            "routing_bytes": 8.7,
            "bias_bytes": 158.0,
            "tensor_overlap": 0.5,
            "gather_overlap": 0.407,
            "gradient_overlap": 0.8,
            "step_overhead": 2.05,
        },
    )
    """torchtitan and fms-fsdp on A100, H100, H200 and B200."""

    FSDP2_Compiled = _release(
        "FSDP2 2024-2025, compiled",
        "PyTorch FSDP2 with torch.compile, as in torchtitan",
        told={
            "gemm_speed": 0.894,
            "attention_speed": 0.798,
            "cast_bytes": 12.0,
            "gather_overlap": 0.635,
        },
        population={
            "hidden_bytes": 28.1,
            "score_bytes": 12.2,
            "loss_bytes": 34.8,
            "collective_overhead": 50.4,
            "layer_launch": 0.515,
            "launch_exposed": 0.101,
            "expert_launch": 2.5,
            "expert_efficiency": 0.8,
            "routing_bytes": 8.7,
            "bias_bytes": 158.0,
            "tensor_overlap": 0.502,
            "gradient_overlap": 0.8,
            "step_overhead": 2.21,
        },
    )
    """The same where the recipe names the compiler."""

    FSDP2_Rowwise = _release(
        "FSDP2 2025, compiled, row-wise FP8",
        "PyTorch FSDP2 with torch.compile; eight bits with one scale per row, as in torchao",
        told={"attention_speed": 0.405},
        population={
            "gemm_speed": 0.936,
            "hidden_bytes": 22.5,
            "cast_bytes": 4.28,
            "score_bytes": 12.2,
            "loss_bytes": 31.1,
            "collective_overhead": 50.7,
            "layer_launch": 0.507,
            "launch_exposed": 0.101,
            "expert_launch": 2.5,
            "expert_efficiency": 0.8,
            "routing_bytes": 8.7,
            "bias_bytes": 158.0,
            "tensor_overlap": 0.473,
            "gather_overlap": 0.417,
            "gradient_overlap": 0.8,
            "step_overhead": 2.09,
        },
    )
    """Scales per row cost more than one per tensor."""

    AutoModel = _release(
        "NeMo AutoModel 2025",
        "PyTorch FSDP2 under NVIDIA's NeMo AutoModel",
        told={},
        population={
            "gemm_speed": 0.888,
            "attention_speed": 0.83,
            "hidden_bytes": 30.8,
            "cast_bytes": 3.0,
            "score_bytes": 12.2,
            "loss_bytes": 29.1,
            "collective_overhead": 55.0,
            "layer_launch": 0.506,
            "launch_exposed": 0.0978,
            "expert_launch": 2.39,
            "expert_efficiency": 0.92,
            "routing_bytes": 8.22,
            "bias_bytes": 132.0,
            "tensor_overlap": 0.464,
            "gather_overlap": 0.428,
            "gradient_overlap": 0.8,
            "step_overhead": 2.01,
        },
    )
    """Models with experts and dense ones on H100."""

    MaxText = _release(
        "MaxText 2025-2026",
        "MaxText on XLA",
        told={"gemm_speed": 0.865, "attention_speed": 0.808, "gather_overlap": 0.314},
        population={
            "hidden_bytes": 25.4,
            "cast_bytes": 3.11,
            "score_bytes": 12.2,
            "loss_bytes": 31.8,
            "collective_overhead": 50.0,
            "layer_launch": 0.502,
            "launch_exposed": 0.101,
            "expert_launch": 2.52,
            "expert_efficiency": 0.683,
            "routing_bytes": 9.51,
            "bias_bytes": 176.0,
            "tensor_overlap": 0.5,
            "gradient_overlap": 0.8,
            "step_overhead": 2.02,
        },
    )
    """Google's recipes for TPU."""
