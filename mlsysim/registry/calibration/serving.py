"""Calibrations of serving: constants of engines, fitted to published runs.

Each row is one device generation and one serving engine. ``python -m tools.calibrate_serving``
fits the constants to the rows marked ``calibrate`` in ``measurements/serving.csv`` and prints them;
a test fits two of the rows again and compares. Constants that a row's runs cannot determine come
from the common set below, and are marked as estimates. The two rows of libraries describe single
passes, and are fitted by ``python -m tools.calibrate_passes`` to ``measurements/passes.csv``.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from mlsysim.core.catalog import Catalog
from mlsysim.core.fields import units_of
from mlsysim.core.types import Accelerator, Generation, ServingCalibration, Source
from mlsysim.core.units import Q_
from mlsysim.registry.calibration.kernels import ProductCalibrations
from mlsysim.registry.calibration.machines import STATES

__all__ = ["ServingCalibrations", "pass_calibration_for", "serving_calibration_for"]

_COMMON = Source(
    title="Common constants",
    locator="not fitted",
    checked="2026-11-20",
    note="round values in the range of the fitted ones, where the fits start",
)
_COUNTED = Source(
    title="Counting of reads and writes in 16 bits",
    checked="2026-11-20",
    note="per element of the residual stream: two norms that read and write the stream and their "
    "result, rotation of queries, copy of attention's output; per element of the inner width: gate "
    "and input read, their product written",
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
    locator="section 4.5: memory is taken as tokens are made, so requests share what they hold on "
    "average, half of the output",
    checked="2026-11-20",
)
_RUNS = Source(
    title="Fitted by tools/calibrate_serving.py",
    checked="2026-11-20",
    note="measurements/serving.csv; check rows were not seen",
)
_OPEN_RUNS = Source(
    title="Fitted by tools/calibrate_open_loop.py",
    checked="2026-11-22",
    note="measurements/serving_2.csv; check rows were not seen",
)
_PASSES = Source(
    title="Fitted by tools/calibrate_passes.py",
    checked="2026-11-20",
    note="measurements/passes.csv; check rows were not seen",
)
# Layer, collective, prompt and sequence times in microseconds. Steps before admission: half of the
# running step, and one that is launched ahead.
_CONSTANTS: dict[str, float] = {
    "gemm_efficiency": 0.7,
    "gemm_efficiency_fp8": 0.6,
    "gemm_efficiency_fp4": 0.5,
    "state_efficiency": 0.0156,
    "attention_efficiency": 0.4,
    "memory_efficiency": 0.88,
    "kv_efficiency": 0.7,
    "link_efficiency": 0.77,
    "layer_overhead": 50.0,
    "all_reduce_overhead": 4.0,
    "prompt_overhead": 100.0,
    "sequence_overhead": 8.0,
    "admission_steps": 1.5,
    "hidden_bytes": 24.0,
    "ffn_bytes": 3.0,
    "pass_tokens": 8192,
    "kv_share": 0.9,
    "reserved_output": 1.0,
}
_STATED = {
    "state_efficiency": STATES,
    "hidden_bytes": _COUNTED,
    "ffn_bytes": _COUNTED,
    "pass_tokens": _DEFAULTS,
    "kv_share": _DEFAULTS,
    "reserved_output": _DEFAULTS,
}


def _row(
    name: str,
    engine: str,
    runs: str,
    stated: dict[str, tuple[float, Source]] | None = None,
    fit: Source | None = None,
    **fitted: float,
) -> ServingCalibration:
    """Complete fitted constants with the common ones, and record the source of each."""
    given = {field: value for field, (value, _) in (stated or {}).items()}
    sources = _STATED | {field: source for field, (_, source) in (stated or {}).items()}
    units = {field: unit for field, unit, plain in units_of(ServingCalibration) if not plain}
    constants: dict[str, Any] = {
        field: Q_(value, units[field]) if field in units else value
        for field, value in (_CONSTANTS | given | fitted).items()
    }
    fit = replace(fit or _RUNS, locator=f"calibrate rows of {runs}")
    return ServingCalibration(
        name=name,
        engine=engine,
        source=_COMMON,
        field_sources=sources | dict.fromkeys(fitted, fit),
        estimated=frozenset(_CONSTANTS) - frozenset(sources) - frozenset(fitted),
        **constants,
    )


_GROWING = {"reserved_output": (0.5, _PAGED)}
_LIBRARY = {
    "admission_steps": (
        0.0,
        Source(title="Counting", checked="2026-11-20", note="a library is called without a server"),
    )
}
# No pass was published in 16 bits, so this uses the times of matrix products.
_PRODUCTS = ProductCalibrations.H100_bf16


class ServingCalibrations(Catalog):
    """Constants per device generation and serving engine."""

    Hopper_TensorRT = _row(
        "Hopper, TensorRT-LLM",
        "TensorRT-LLM 1.0 to 1.2",
        "TensorRT-LLM on H100 and H200",
        gemm_efficiency=0.85,
        gemm_efficiency_fp8=0.68,
        memory_efficiency=0.911,
        kv_efficiency=0.9,
        layer_overhead=51.6,
        all_reduce_overhead=4.18,
        attention_efficiency=0.368,
        prompt_overhead=342.0,
        sequence_overhead=4.25,
        admission_steps=4.41,
        itl_band_low=0.862,
        itl_band_high=1.098,
        ttft_band_low=0.732,
        ttft_band_high=2.404,
    )
    """H100 and H200: Llama 8B, 70B and 405B, Qwen 32B, in 8 and 16 bits."""
    Hopper_vLLM = _row(
        "Hopper, vLLM",
        "vLLM, April 2026",
        "vLLM on H100 and H200",
        _GROWING,
        gemm_efficiency_fp8=0.611,
        memory_efficiency=0.93,
        kv_efficiency=0.449,
        layer_overhead=64.0,
        all_reduce_overhead=4.08,
        attention_efficiency=0.467,
        prompt_overhead=96.9,
        sequence_overhead=8.53,
        admission_steps=1.51,
        itl_band_low=0.955,
        itl_band_high=1.089,
        ttft_band_low=0.894,
        ttft_band_high=1.113,
    )
    """H100 and H200: Llama 70B in 8 bits. Keys and values in 8 bits are read at half speed."""
    Hopper_vLLM_Open = _row(
        "Hopper, vLLM in 16 bits, open loop",
        "vLLM 0.15.1",
        "open-loop runs of vLLM on H100",
        _GROWING,
        _OPEN_RUNS,
        kv_efficiency=0.9,
        layer_overhead=60.7,
        memory_efficiency=0.868,
        sequence_overhead=6.68,
        admission_steps=2.9,
    )
    """H100: Llama 2 7B and 70B, Llama 3.1 8B, Qwen 7B and 14B, Mixtral 8x7B, in 16 bits. Requests
    arrive at a constant rate, and nearly all of each prompt is in the cache."""
    Hopper_SGLang = _row(
        "Hopper, SGLang",
        "SGLang 0.5",
        "SGLang on H100 and H200",
        _GROWING,
        gemm_efficiency=0.85,
        gemm_efficiency_fp8=0.416,
        memory_efficiency=0.93,
        kv_efficiency=0.572,
        layer_overhead=47.8,
        all_reduce_overhead=3.97,
        attention_efficiency=0.454,
        prompt_overhead=99.4,
        sequence_overhead=17.0,
        admission_steps=5.0,
        itl_band_low=0.826,
        itl_band_high=1.126,
        ttft_band_low=0.838,
        ttft_band_high=5.207,
    )
    """H100 and H200: Qwen 32B in 16 bits, Llama 8B in 8. The steps before admission are at the
    fit's upper bound: these runs have hundreds of clients, and waits that the model does not
    explain."""
    Blackwell_TensorRT = _row(
        "Blackwell, TensorRT-LLM",
        "TensorRT-LLM 1.0 to 1.3",
        "TensorRT-LLM on B200 and GB200",
        gemm_efficiency_fp8=0.601,
        gemm_efficiency_fp4=0.472,
        memory_efficiency=0.93,
        kv_efficiency=0.721,
        layer_overhead=53.8,
        all_reduce_overhead=3.56,
        attention_efficiency=0.493,
        prompt_overhead=235.0,
        sequence_overhead=7.4,
        admission_steps=2.33,
        itl_band_low=0.891,
        itl_band_high=1.118,
        ttft_band_low=0.788,
        ttft_band_high=2.328,
    )
    """B200 and GB200: Llama 70B and 405B, Qwen 32B, in 4 and 8 bits."""
    Blackwell_vLLM = _row(
        "Blackwell, vLLM",
        "vLLM, April 2026",
        "vLLM on B200",
        _GROWING,
        gemm_efficiency_fp8=0.611,
        gemm_efficiency_fp4=0.586,
        memory_efficiency=0.884,
        kv_efficiency=0.771,
        layer_overhead=60.5,
        all_reduce_overhead=4.02,
        attention_efficiency=0.205,
        prompt_overhead=403.0,
        sequence_overhead=8.76,
        admission_steps=1.57,
        itl_band_low=0.936,
        itl_band_high=1.090,
        ttft_band_low=0.807,
        ttft_band_high=1.301,
    )
    """B200: Llama 70B in 4 and 8 bits."""
    Ampere = _row(
        "Ampere",
        "gpt-fast, FasterTransformer",
        "gpt-fast and FasterTransformer on A100",
        _LIBRARY,
        gemm_efficiency=0.698,
        memory_efficiency=0.848,
        layer_overhead=86.5,
        all_reduce_overhead=4.15,
    )
    """A100, one sequence at a time: Llama 2 7B and 70B, a GPT of 13B. Too few runs for a band."""
    Ampere_Library = _row(
        "Ampere, called as a library",
        "TensorRT, TensorRT-LLM 0.9",
        "passes on A100",
        _LIBRARY,
        _PASSES,
        gemm_efficiency=0.85,
        memory_efficiency=0.701,
        attention_efficiency=0.429,
        prompt_overhead=49.5,
        pass_band_low=0.883,
        pass_band_high=1.288,
    )
    """A100, single passes: BERT Base and Large, GPT-J 6B, Mistral 7B, Llama 7B in 16 bits. The
    efficiency of products is at the fit's upper bound."""
    Hopper_Library = _row(
        "Hopper, called as a library",
        "TensorRT-LLM 0.9",
        "passes on H100 and H200",
        _LIBRARY | {"gemm_efficiency": (_PRODUCTS.efficiency, _PRODUCTS.source)},
        _PASSES,
        gemm_efficiency_fp8=0.719,
        attention_efficiency=0.413,
        prompt_overhead=114.0,
    )
    """H100 and H200, single passes: GPT-J 6B, Mistral 7B, Llama 7B in 8 bits. Too few
    for a band."""
    Uncalibrated = _row("Uncalibrated", "any", "none")
    """For devices without a published run in our table: no band, and a rough guess."""


_SERVING: Mapping[Generation | None, ServingCalibration] = {
    "ampere": ServingCalibrations.Ampere,
    "hopper": ServingCalibrations.Hopper_TensorRT,
    "blackwell": ServingCalibrations.Blackwell_TensorRT,
}
_PASS: Mapping[Generation | None, ServingCalibration] = {
    "ampere": ServingCalibrations.Ampere_Library,
    "hopper": ServingCalibrations.Hopper_Library,
}


def serving_calibration_for(accelerator: Accelerator) -> ServingCalibration:
    """Return the constants of a device's generation: TensorRT-LLM's for NVIDIA's newer ones."""
    return _SERVING.get(accelerator.generation, ServingCalibrations.Uncalibrated)


def pass_calibration_for(accelerator: Accelerator) -> ServingCalibration:
    """Return the constants of a single forward pass: a library's if they are known."""
    return _PASS.get(accelerator.generation) or serving_calibration_for(accelerator)
