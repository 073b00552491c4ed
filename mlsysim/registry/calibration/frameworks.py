"""Frameworks: constants of training software, by release, for any machine.

``python -m research.fits.training`` fits the constants together with those of the machines.
Constants that the runs of a release cannot identify stay near those of others, and are marked as
estimates.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from mlsysim.core.catalog import Catalog
from mlsysim.core.fields import units_of
from mlsysim.core.types import Software, Source
from mlsysim.core.units import Q_

__all__ = ["FRAMEWORK_PRIOR", "Frameworks", "Options", "options_of"]

_PRIOR = Source(
    title="Population of frameworks",
    locator="not fitted",
    checked="2026-11-22",
    note="averages of the releases below; 1.5 for the backward pass of element-wise operators "
    "relative to forward, and 30 bytes per parameter in the update",
)
_FIT = Source(
    title="Fitted by research/fits/training.py",
    locator="calibrate rows of research/measurements/training.csv",
    checked="2026-11-22",
    note="check rows are held out",
)
_SET = Source(
    title="Set for this row",
    locator="not fitted",
    checked="2026-11-22",
    note="see the note of the row",
)
_HAI_LLM = Source(
    title="DeepSeek-AI (2024), DeepSeek-V3 Technical Report",
    url="https://arxiv.org/abs/2412.19437",
    locator="sections 3.2 and 3.3",
    checked="2026-11-23",
    note="DualPipe overlaps the exchanges; tokens are dispatched in FP8 and sent to each node "
    "once; RMSNorm, SwiGLU and MLA up-projections are recomputed",
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
"""Defaults for constants that the runs of a release do not identify."""


def _release(
    name: str,
    release: str,
    *,
    given: Mapping[str, float] | None = None,
    told: Mapping[str, float] | None = None,
    population: Mapping[str, float] | None = None,
) -> Software:
    """Return a release from fitted constants, completed with those of the population.

    Constants in `given` override all others and were not fitted.
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


class Frameworks(Catalog):
    """Constants per release."""

    Megatron_2021 = _release(
        "Megatron-LM 2021-2023",
        "Megatron-LM and Megatron-DeepSpeed, unfused attention",
        given={"tensor_overlap": 0.0, "plain_overlap": 0.0},
        told={
            "gemm_speed": 0.945,
            "hidden_bytes": 17.6,
            "score_bytes": 12.7,
            "loss_bytes": 64.3,
            "collective_overhead": 154.0,
            "layer_launch": 0.918,
            "launch_exposed": 0.141,
            "step_overhead": 3.23,
        },
        population={
            "attention_speed": 0.9,
            "cast_bytes": 3.0,
            "expert_launch": 2.5,
            "expert_efficiency": 0.8,
            "routing_bytes": 8.7,
            "bias_bytes": 158.0,
            "gather_overlap": 0.5,
            "gradient_overlap": 0.8,
        },
    )
    """Narayanan 2021 and Korthikanti 2022 on Selene; vTrain's runs on 2 to 512 A100. These releases
    did not overlap a tensor group's collectives."""

    FSDP_2023 = _release(
        "FSDP 2023",
        "PyTorch FSDP in MosaicML's llm-foundry, Triton attention",
        told={
            "gemm_speed": 0.985,
            "attention_speed": 0.567,
            "hidden_bytes": 50.4,
            "cast_bytes": 4.14,
            "loss_bytes": 35.7,
            "gather_overlap": 0.354,
        },
        population={
            "score_bytes": 12.2,
            "collective_overhead": 50.0,
            "layer_launch": 0.544,
            "launch_exposed": 0.104,
            "expert_launch": 2.5,
            "expert_efficiency": 0.8,
            "routing_bytes": 8.7,
            "bias_bytes": 158.0,
            "tensor_overlap": 0.5,
            "gradient_overlap": 0.8,
            "step_overhead": 2.56,
        },
    )
    """MPT models on A100 and H100."""

    Megatron_Core = _release(
        "Megatron-Core 2024-2026",
        "Megatron-Core, NeMo and Megatron-Bridge with Transformer Engine, kernels launched one by "
        "one",
        told={
            "gemm_speed": 0.991,
            "attention_speed": 0.939,
            "cast_bytes": 4.07,
            "collective_overhead": 312.0,
            "layer_launch": 0.569,
            "expert_launch": 2.97,
            "expert_efficiency": 0.79,
            "bias_bytes": 146.0,
            "tensor_overlap": 0.511,
            "gradient_overlap": 0.682,
            "step_overhead": 17.0,
        },
        population={
            "hidden_bytes": 13.9,
            "score_bytes": 12.2,
            "loss_bytes": 27.5,
            "launch_exposed": 0.111,
            "routing_bytes": 9.24,
            "gather_overlap": 0.541,
        },
    )
    """NVIDIA's runs, including those of MLPerf."""

    Megatron_Core_Graphs = replace(
        Megatron_Core,
        name="Megatron-Core 2026, the step as a graph",
        release="Megatron-Bridge with Transformer Engine: the whole step launched as one CUDA "
        "graph, with overlapped expert exchanges",
        layer_launch=Q_(0, "ms"),
        expert_launch=Q_(0, "ms"),
        copies_per_node=1.0,
        exchange_overlap=0.877,
        field_sources={
            **Megatron_Core.field_sources,
            **dict.fromkeys(("layer_launch", "expert_launch", "copies_per_node"), _SET),
            "exchange_overlap": _FIT,
        },
    )
    """Features that Megatron-Bridge's recipes switch on since 26.06."""

    HAI_LLM = replace(
        Megatron_Core,
        name="HAI-LLM 2024",
        release="DeepSeek's HAI-LLM, as its report on DeepSeek-V3 describes it",
        copies_per_node=1.0,
        exchange_overlap=0.877,
        field_sources={"copies_per_node": _HAI_LLM},
        estimated=frozenset(FRAMEWORK_PRIOR),
    )
    """No step time is published, so nothing is fitted: constants of Megatron-Core, with the overlap
    of exchanges in its recipes. Tokens are sent to each node once."""

    Megatron_LM_2025 = _release(
        "Megatron-LM 2025, untuned",
        "Megatron-LM with Transformer Engine, no recipe tuned for the machine",
        told={
            "gemm_speed": 0.774,
            "attention_speed": 0.79,
            "collective_overhead": 490.0,
            "expert_efficiency": 0.635,
        },
        population={
            "hidden_bytes": 22.3,
            "cast_bytes": 3.0,
            "score_bytes": 12.2,
            "loss_bytes": 43.4,
            "layer_launch": 0.569,
            "launch_exposed": 0.114,
            "expert_launch": 2.82,
            "routing_bytes": 9.29,
            "bias_bytes": 158.0,
            "tensor_overlap": 0.393,
            "gather_overlap": 0.5,
            "gradient_overlap": 0.773,
            "step_overhead": 3.28,
        },
    )
    """Shortened Llama 3 and DeepSeek models on one server of eight B200."""

    FSDP2 = _release(
        "FSDP2 2024-2025, eager",
        "PyTorch FSDP2 without a compiler, as in torchtitan",
        told={"gemm_speed": 0.904, "attention_speed": 0.633, "gather_overlap": 0.389},
        population={
            "hidden_bytes": 22.6,
            "cast_bytes": 3.0,
            "score_bytes": 12.2,
            "loss_bytes": 31.8,
            "collective_overhead": 50.0,
            "layer_launch": 0.505,
            "launch_exposed": 0.1,
            "expert_launch": 2.5,
            "expert_efficiency": 0.8,
            "routing_bytes": 8.7,
            "bias_bytes": 158.0,
            "tensor_overlap": 0.5,
            "gradient_overlap": 0.8,
            "step_overhead": 2.07,
        },
    )
    """torchtitan and fms-fsdp on A100, H100, H200 and B200."""

    FSDP2_Compiled = _release(
        "FSDP2 2024-2025, compiled",
        "PyTorch FSDP2 with torch.compile, as in torchtitan",
        told={
            "gemm_speed": 0.86,
            "attention_speed": 0.779,
            "cast_bytes": 12.0,
            "gather_overlap": 0.783,
        },
        population={
            "hidden_bytes": 32.7,
            "score_bytes": 12.2,
            "loss_bytes": 37.1,
            "collective_overhead": 50.7,
            "layer_launch": 0.526,
            "launch_exposed": 0.102,
            "expert_launch": 2.5,
            "expert_efficiency": 0.8,
            "routing_bytes": 8.7,
            "bias_bytes": 158.0,
            "tensor_overlap": 0.51,
            "gradient_overlap": 0.8,
            "step_overhead": 2.39,
        },
    )
    """The same, for recipes that name the compiler."""

    FSDP2_Rowwise = _release(
        "FSDP2 2025, compiled, row-wise FP8",
        "PyTorch FSDP2 with torch.compile; 8 bits with one scale per row, as in torchao",
        told={"attention_speed": 0.42},
        population={
            "gemm_speed": 0.932,
            "hidden_bytes": 23.5,
            "cast_bytes": 5.52,
            "score_bytes": 12.2,
            "loss_bytes": 31.2,
            "collective_overhead": 51.5,
            "layer_launch": 0.506,
            "launch_exposed": 0.101,
            "expert_launch": 2.5,
            "expert_efficiency": 0.8,
            "routing_bytes": 8.7,
            "bias_bytes": 158.0,
            "tensor_overlap": 0.448,
            "gather_overlap": 0.423,
            "gradient_overlap": 0.8,
            "step_overhead": 2.07,
        },
    )
    """Scales per row cost more than one per tensor."""

    AutoModel = _release(
        "NeMo AutoModel 2025",
        "PyTorch FSDP2 under NVIDIA's NeMo AutoModel",
        given={"copies_per_node": 1.0},
        told={"bias_bytes": 67.7, "gather_overlap": 0.457},
        population={
            "gemm_speed": 0.857,
            "attention_speed": 0.803,
            "hidden_bytes": 41.5,
            "cast_bytes": 3.0,
            "score_bytes": 12.2,
            "loss_bytes": 28.3,
            "collective_overhead": 56.2,
            "layer_launch": 0.509,
            "launch_exposed": 0.0987,
            "expert_launch": 2.42,
            "expert_efficiency": 0.854,
            "routing_bytes": 8.58,
            "tensor_overlap": 0.459,
            "gradient_overlap": 0.8,
            "step_overhead": 2.03,
        },
    )
    """Models with experts and dense ones on H100. Tokens are exchanged with DeepEP, which sends a
    token to each node once."""

    MaxText = _release(
        "MaxText 2025-2026",
        "MaxText on XLA",
        told={
            "gemm_speed": 0.859,
            "attention_speed": 0.827,
            "expert_efficiency": 0.636,
            "bias_bytes": 267.0,
            "gather_overlap": 0.291,
        },
        population={
            "hidden_bytes": 25.3,
            "cast_bytes": 3.11,
            "score_bytes": 12.2,
            "loss_bytes": 31.7,
            "collective_overhead": 50.0,
            "layer_launch": 0.501,
            "launch_exposed": 0.101,
            "expert_launch": 2.52,
            "routing_bytes": 9.96,
            "tensor_overlap": 0.5,
            "gradient_overlap": 0.8,
            "step_overhead": 2.01,
        },
    )
    """Google's recipes for TPU."""


_MODULES = ("norms", "swiglu", "mla_up")
_OPTIONS: Mapping[str, Options] = {
    # docs.nvidia.com/megatron-core/developer-guide/0.16.0/user-guide/features/moe.html: the flex
    # dispatcher (0.12), recompute-modules (0.13), and overlap-moe-expert-parallel-comm (0.14).
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
    return _OPTIONS.get(software.release, Options())
