"""Sources and common values of the serving constants, and the function that builds a row."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from mlsysim.core.fields import units_of
from mlsysim.core.types import ServingCalibration, Source
from mlsysim.core.units import Q_
from mlsysim.registry.calibration.machines import STATE_EFFICIENCY, STATES

__all__ = [
    "ALTERNATING",
    "APART",
    "COMMON",
    "GROWING",
    "PASSES",
    "TOGETHER",
    "VECTORS",
    "engine_row",
]

_COMMON = Source(
    title="Common constants",
    locator="not fitted",
    checked="2026-11-20",
    note="round values in the range of the fitted ones; the fits start from them",
)
_COUNTED = Source(
    title="Counting of reads and writes in 16 bits",
    checked="2026-11-20",
    note="per element of the residual stream: two norms read and write the stream and their "
    "result, queries are rotated, and attention's output is copied; per element of the inner "
    "width: gate and input are read, and their product is written",
)
_DEFAULTS = Source(
    title="TensorRT-LLM documentation, Performance Tuning Guide, Useful Runtime Options",
    url="https://nvidia.github.io/TensorRT-LLM/performance/performance-tuning-guide/useful-runtime-flags.html",
    locator="max_num_tokens; free_gpu_memory_fraction 0.9; GUARANTEED_NO_EVICT",
    checked="2026-11-20",
)
_PAGED = Source(
    title="Kwon et al. (2023), Efficient Memory Management for Large Language Model Serving with "
    "PagedAttention",
    url="https://arxiv.org/abs/2309.06180",
    locator="section 4.5: memory is allocated as tokens are generated, so a request holds half of "
    "its output on average",
    checked="2026-11-20",
)
_RUNS = Source(
    title="Fitted by research/fits/serving.py",
    checked="2026-11-20",
    note="research/measurements/serving.csv; check rows are held out",
)
PASSES = Source(
    title="Fitted by research/fits/passes.py",
    checked="2026-11-20",
    note="research/measurements/passes.csv; check rows are held out",
)
# Layer, collective, prompt and sequence times in microseconds. Steps before admission: half of the
# running step, and one that is launched ahead.
COMMON: Mapping[str, float] = {
    "gemm_efficiency": 0.7,
    "gemm_efficiency_fp8": 0.6,
    "gemm_efficiency_fp4": 0.5,
    "attention_efficiency": 0.4,
    "state_efficiency": STATE_EFFICIENCY,
    "memory_efficiency": 0.88,
    "kv_efficiency": 0.7,
    "link_efficiency": 0.77,
    "layer_overhead": 50.0,
    "all_reduce_overhead": 4.0,
    "prompt_overhead": 100.0,
    "prompt_parts": 1.0,
    "sequence_overhead": 8.0,
    "draft_overhead": 0.0,
    "admission_steps": 1.5,
    "request_overhead": 1.0,
    "compile_time": 0.0,
    "expert_efficiency": 0.5,
    "expert_efficiency_fp4": 0.5,
    "expert_memory": 1.0,
    "expert_tile": 64.0,
    "expert_overhead": 0.6,
    "expert_overhead_fp4": 0.6,
    "attention_overhead": 0.6,
    "unpacking": 0.8,
    "exchange_overhead": 20.0,
    "mixing": 1.0,
    "hidden_bytes": 24.0,
    "ffn_bytes": 3.0,
    "pass_tokens": 8192,
    "kv_share": 0.9,
    "reserved_output": 1.0,
}
_STATED = {
    "hidden_bytes": _COUNTED,
    "ffn_bytes": _COUNTED,
    "state_efficiency": STATES,
    "pass_tokens": _DEFAULTS,
    "kv_share": _DEFAULTS,
    "reserved_output": _DEFAULTS,
}


def engine_row(
    name: str,
    engine: str,
    runs: str,
    stated: dict[str, tuple[float, Source]] | None = None,
    fit: Source | None = None,
    models: tuple[str, ...] = (),
    formats: tuple[str, ...] = ("fp16", "bf16", "fp8", "fp4"),
    parent: ServingCalibration | None = None,
    **fitted: float,
) -> ServingCalibration:
    """Complete fitted constants with those of a parent, or the common ones, and their sources.

    A parent is the engine, device or release to which an engine with few runs is most similar.
    """
    given = {field: value for field, (value, _) in (stated or {}).items()}
    sources = _STATED | {field: source for field, (_, source) in (stated or {}).items()}
    units = {field: unit for field, unit, plain in units_of(ServingCalibration) if not plain}
    inherited: dict[str, Any] = {}
    if parent is not None:
        inherited = {field: getattr(parent, field) for field in COMMON}
        sources = {
            field: parent.source_of(field) for field in COMMON if not parent.is_estimated(field)
        } | sources
    constants: dict[str, Any] = inherited | {
        field: Q_(value, units[field]) if field in units else value
        for field, value in (({} if parent else {**COMMON}) | given | fitted).items()
    }
    fit = replace(fit or _RUNS, locator=f"calibrate rows of {runs}")
    return ServingCalibration(
        name=name,
        engine=engine,
        models=models,
        formats=formats,
        source=_COMMON,
        field_sources=sources | dict.fromkeys(fitted, fit),
        estimated=frozenset(COMMON) - frozenset(sources) - frozenset(fitted),
        **constants,
    )


_DRAFTS = Source(
    title="Fitted by research/fits/drafts.py",
    locator="calibrate rows with multi-token prediction",
    checked="2026-11-22",
    note="research/measurements/serving_2.csv, with published acceptance lengths; SGLang handles "
    "accepted tokens on the host, one sequence after another, while the device waits",
)
APART = {
    "prompt_parts": (
        1.0,
        Source(
            title="Common constants",
            checked="2026-11-23",
            note="runs with a pool for prefill do not show that parts of a layer add more to it",
        ),
    )
}
"""Pools of Blackwell, which inherit other constants from a single pool."""
GROWING = {"reserved_output": (0.5, _PAGED)}
ALTERNATING = GROWING | {
    "draft_overhead": (136.0, _DRAFTS),
    "mixing": (
        0.0,
        Source(
            title="SGLang documentation, Server Arguments",
            url="https://docs.sglang.ai/advanced_features/server_arguments.html",
            locator="--enable-mixed-chunk, off by default",
            checked="2026-11-22",
        ),
    ),
}
VECTORS = {
    "expert_tile": (
        1.0,
        Source(
            title="llama.cpp, quantized products of a matrix and few vectors",
            url="https://github.com/ggml-org/llama.cpp/blob/000f462/ggml/src/ggml-cuda/mmvq.cu",
            locator="mul_mat_vec_q",
            checked="2026-11-22",
            note="a step of one request multiplies vectors, without tiles of rows",
        ),
    )
}
TOGETHER = {
    "expert_waiting": (
        1.0,
        Source(
            title="Counting",
            checked="2026-11-22",
            note="all devices sum their results after each layer's experts",
        ),
    ),
    "padded_ranks": (
        1.0,
        Source(
            title="vLLM, vllm/v1/worker/dp_utils.py of 2025",
            url="https://github.com/vllm-project/vllm",
            locator="coordinate_batch_across_dp: all ranks run the same number of tokens",
            checked="2026-11-22",
        ),
    ),
}
"""Devices that take each step together."""
