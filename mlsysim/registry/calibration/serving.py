"""Calibrations of serving: constants of engines, fitted to published runs.

Each row is one device generation and one serving engine. ``python -m tools.calibrate_serving``
fits the constants to the rows marked ``calibrate`` in ``measurements/serving.csv`` and
``serving_2.csv`` and prints them. Constants that a row's runs cannot determine come from the common
set, and are marked as estimates. The two rows of libraries describe single passes, and are fitted
by ``python -m tools.calibrate_passes`` to ``measurements/passes.csv``.
"""

import re
from collections.abc import Mapping

from mlsysim.core.catalog import Catalog
from mlsysim.core.types import Accelerator, ServingCalibration, Source
from mlsysim.registry.calibration.kernels import ProductCalibrations
from mlsysim.registry.calibration.serving_constants import (
    ALTERNATING,
    GROWING,
    PASSES,
    engine_row,
)
from mlsysim.registry.calibration.serving_rows import (
    AMPERE_LLAMACPP,
    APPLE_LLAMACPP,
    BLACKWELL_SGLANG_POOLS,
    BLACKWELL_TENSORRT_POOLS,
    GAUDI2_DEEPSPEED,
    GEFORCE_LLAMACPP,
    GEFORCE_VLLM,
    HOPPER_LLAMACPP,
    HOPPER_SGLANG_POOLS,
    HOPPER_TENSORRT_POOLS,
    MI250_LLAMACPP,
    MI250_VLLM,
    SPARK_LLAMACPP,
)

__all__ = [
    "ServingCalibrations",
    "pass_calibration_for",
    "plain_engine",
    "serving_calibration_for",
]

_OPEN_RUNS = Source(
    title="Fitted by tools/calibrate_open_loop.py",
    checked="2026-11-22",
    note="measurements/serving_2.csv; check rows are held out",
)
_LIBRARY = {
    "admission_steps": (
        0.0,
        Source(title="Counting", checked="2026-11-20", note="a library runs without a server"),
    )
}
# No 16-bit pass is published, so this uses the times of matrix products.
_PRODUCTS = ProductCalibrations.H100_bf16


class ServingCalibrations(Catalog):
    """Constants per device generation and serving engine."""

    Hopper_TensorRT = engine_row(
        "Hopper, TensorRT-LLM",
        "TensorRT-LLM 1.0 to 1.2",
        "TensorRT-LLM on H100 and H200",
        gemm_efficiency=0.777,
        gemm_efficiency_fp8=0.604,
        attention_efficiency=0.375,
        memory_efficiency=0.95,
        kv_efficiency=0.95,
        layer_overhead=59.9,
        all_reduce_overhead=3.73,
        prompt_overhead=257.0,
        sequence_overhead=5.77,
        admission_steps=4.79,
        expert_memory=1.0,
        expert_overhead=0.197,
        attention_overhead=1.76,
        itl_band_low=0.797,
        itl_band_high=1.133,
        ttft_band_low=0.694,
        ttft_band_high=2.009,
        throughput_band_low=0.931,
        throughput_band_high=1.170,
        new_itl_band_low=0.756,
        new_itl_band_high=1.181,
        new_ttft_band_low=0.678,
        new_ttft_band_high=2.009,
        new_throughput_band_low=0.813,
        new_throughput_band_high=1.290,
        models=(
            "DeepSeek-V3",
            "Llama 3 70B",
            "Llama 3 8B",
            "Llama 3.1 405B",
            "Qwen3 235B-A22B",
            "Qwen3 32B",
        ),
        formats=("fp16", "bf16", "fp8"),
    )
    """H100 and H200: Llama 8B, 70B and 405B, Qwen 32B, in 8 and 16 bits."""
    Hopper_vLLM = engine_row(
        "Hopper, vLLM",
        "vLLM, April 2026",
        "vLLM on H100 and H200",
        GROWING,
        gemm_efficiency=0.85,
        gemm_efficiency_fp8=0.661,
        attention_efficiency=0.186,
        memory_efficiency=0.797,
        kv_efficiency=0.616,
        layer_overhead=51.4,
        all_reduce_overhead=6.46,
        prompt_overhead=111.0,
        admission_steps=1.71,
        expert_efficiency=0.353,
        expert_memory=0.617,
        expert_overhead=0.602,
        unpacking=0.998,
        itl_band_low=0.753,
        itl_band_high=1.175,
        ttft_band_low=0.758,
        ttft_band_high=1.616,
        new_itl_band_low=0.618,
        new_itl_band_high=1.293,
        new_ttft_band_low=0.631,
        new_ttft_band_high=1.616,
        models=("Kimi K2.5", "Llama 3 70B", "MiniMax-M2.5", "Qwen3 235B-A22B"),
        formats=("fp16", "bf16", "fp8"),
    )
    """H100 and H200: Llama 70B in 8 bits. Keys and values in 8 bits are read at half the
    bandwidth."""
    Hopper_vLLM_Open = engine_row(
        "Hopper, vLLM in 16 bits, open loop",
        "vLLM 0.15.1",
        "open-loop runs of vLLM on H100",
        GROWING,
        _OPEN_RUNS,
        kv_efficiency=0.95,
        layer_overhead=75.0,
        memory_efficiency=0.95,
        sequence_overhead=6.62,
        admission_steps=2.88,
    )
    """H100: Llama 2 7B and 70B, Llama 3.1 8B, Qwen 7B and 14B, Mixtral 8x7B, in 16 bits. Requests
    arrive at a constant rate, and nearly all of each prompt is in the prefix cache."""
    Hopper_SGLang = engine_row(
        "Hopper, SGLang",
        "SGLang 0.5",
        "SGLang on H100 and H200",
        ALTERNATING,
        gemm_efficiency=0.85,
        gemm_efficiency_fp8=0.437,
        attention_efficiency=0.447,
        memory_efficiency=0.95,
        kv_efficiency=0.555,
        layer_overhead=49.4,
        prompt_overhead=105.0,
        sequence_overhead=15.6,
        admission_steps=5.0,
        expert_efficiency=0.276,
        expert_overhead=0.835,
        attention_overhead=0.759,
        itl_band_low=0.845,
        itl_band_high=1.121,
        ttft_band_low=0.859,
        ttft_band_high=4.448,
        new_itl_band_low=0.784,
        new_itl_band_high=1.134,
        new_ttft_band_low=0.727,
        new_ttft_band_high=4.384,
        models=(
            "DeepSeek-V3",
            "GLM-5",
            "Llama 3 8B",
            "Qwen3 235B-A22B",
            "Qwen3 32B",
            "Qwen3.5 397B-A17B",
        ),
        formats=("fp16", "bf16", "fp8"),
    )
    """H100 and H200: Qwen 32B in 16 bits, Llama 8B in 8. The number of steps before admission is at
    the fit's upper bound: these runs have hundreds of clients, and waits that the model does not
    explain."""
    Blackwell_TensorRT = engine_row(
        "Blackwell, TensorRT-LLM",
        "TensorRT-LLM 1.0 to 1.3",
        "TensorRT-LLM on B200 and GB200",
        gemm_efficiency_fp8=0.603,
        gemm_efficiency_fp4=0.521,
        attention_efficiency=0.603,
        memory_efficiency=0.932,
        kv_efficiency=0.687,
        layer_overhead=51.5,
        all_reduce_overhead=3.8,
        prompt_overhead=323.0,
        admission_steps=2.42,
        expert_efficiency=0.183,
        expert_memory=1.0,
        expert_overhead=1.5,
        expert_overhead_fp4=0.493,
        attention_overhead=0.702,
        itl_band_low=0.824,
        itl_band_high=1.124,
        ttft_band_low=0.730,
        ttft_band_high=1.913,
        throughput_band_low=0.840,
        throughput_band_high=1.102,
        new_itl_band_low=0.801,
        new_itl_band_high=1.302,
        new_ttft_band_low=0.604,
        new_ttft_band_high=2.254,
        new_throughput_band_low=0.685,
        new_throughput_band_high=1.090,
        models=("DeepSeek-V3", "Llama 3 70B", "Llama 3.1 405B", "Qwen3 32B"),
        formats=("fp8", "fp4"),
    )
    """B200 and GB200: Llama 70B and 405B, Qwen 32B, in 4 and 8 bits."""
    Blackwell_vLLM = engine_row(
        "Blackwell, vLLM",
        "vLLM, April 2026",
        "vLLM on B200",
        GROWING,
        gemm_efficiency=0.513,
        gemm_efficiency_fp8=0.51,
        gemm_efficiency_fp4=0.46,
        attention_efficiency=0.176,
        memory_efficiency=0.95,
        kv_efficiency=0.949,
        layer_overhead=54.0,
        all_reduce_overhead=8.99,
        prompt_overhead=104.0,
        sequence_overhead=16.3,
        admission_steps=4.02,
        expert_efficiency=0.336,
        expert_efficiency_fp4=0.425,
        expert_memory=1.0,
        expert_overhead=0.724,
        expert_overhead_fp4=0.29,
        attention_overhead=0.317,
        exchange_overhead=8.92,
        itl_band_low=0.821,
        itl_band_high=1.105,
        ttft_band_low=0.724,
        ttft_band_high=1.599,
        throughput_band_low=0.935,
        throughput_band_high=1.234,
        new_itl_band_low=0.800,
        new_itl_band_high=1.105,
        new_ttft_band_low=0.656,
        new_ttft_band_high=1.599,
        new_throughput_band_low=0.935,
        new_throughput_band_high=1.305,
        models=("Kimi K2.5", "Llama 3 70B", "MiniMax-M2.5"),
        formats=("fp16", "bf16", "fp8", "fp4"),
    )
    """B200: Llama 70B in 4 and 8 bits."""
    Blackwell_SGLang = engine_row(
        "Blackwell, SGLang",
        "SGLang, 2025 to 2026",
        "SGLang on B200 and B300",
        ALTERNATING,
        gemm_efficiency=0.687,
        gemm_efficiency_fp8=0.334,
        gemm_efficiency_fp4=0.406,
        attention_efficiency=0.173,
        memory_efficiency=0.95,
        layer_overhead=32.7,
        all_reduce_overhead=3.56,
        prompt_overhead=445.0,
        admission_steps=5.0,
        expert_efficiency=0.288,
        expert_memory=1.0,
        expert_overhead=0.748,
        expert_overhead_fp4=0.487,
        attention_overhead=1.74,
        itl_band_low=0.712,
        itl_band_high=1.196,
        ttft_band_low=0.777,
        ttft_band_high=8.693,
        throughput_band_low=0.844,
        throughput_band_high=1.440,
        new_itl_band_low=0.710,
        new_itl_band_high=1.196,
        new_ttft_band_low=0.740,
        new_ttft_band_high=8.693,
        new_throughput_band_low=0.844,
        new_throughput_band_high=1.466,
        models=("DeepSeek-V3", "GLM-5", "Qwen3.5 397B-A17B"),
        formats=("fp16", "bf16", "fp8", "fp4"),
    )
    Hopper_TensorRT_Pools = HOPPER_TENSORRT_POOLS
    Hopper_SGLang_Pools = HOPPER_SGLANG_POOLS
    Blackwell_TensorRT_Pools = BLACKWELL_TENSORRT_POOLS
    Blackwell_SGLang_Pools = BLACKWELL_SGLANG_POOLS
    Ampere_vLLM = engine_row(
        "Ampere, vLLM of 2024",
        "vLLM, 2024",
        "vLLM on A100",
        GROWING,
        gemm_efficiency=0.314,
        memory_efficiency=0.95,
        kv_efficiency=0.621,
        layer_overhead=130.0,
        all_reduce_overhead=6.33,
        prompt_overhead=171.0,
        sequence_overhead=23.8,
        expert_efficiency=0.848,
        expert_memory=1.0,
        expert_overhead=0.371,
        itl_band_low=0.875,
        itl_band_high=1.142,
        ttft_band_low=0.875,
        ttft_band_high=1.142,
        new_itl_band_low=0.791,
        new_itl_band_high=1.153,
        new_ttft_band_low=0.791,
        new_ttft_band_high=1.153,
        models=(
            "Llama 2 70B",
            "Llama 2 7B",
            "Llama 3 8B",
            "Mistral 7B",
            "Mixtral 8x7B",
            "Qwen2 7B",
        ),
        formats=("fp16", "bf16"),
    )
    Ampere_TensorRT = engine_row(
        "Ampere, TensorRT-LLM of 2024",
        "TensorRT-LLM, 2024",
        "TensorRT-LLM on A100",
        gemm_efficiency=0.414,
        memory_efficiency=0.874,
        kv_efficiency=0.606,
        layer_overhead=101.0,
        all_reduce_overhead=5.79,
        prompt_overhead=97.6,
        expert_memory=1.0,
        itl_band_low=0.865,
        itl_band_high=1.205,
        ttft_band_low=0.865,
        ttft_band_high=1.205,
        new_itl_band_low=0.828,
        new_itl_band_high=1.205,
        new_ttft_band_low=0.828,
        new_ttft_band_high=1.205,
        models=(
            "Llama 2 70B",
            "Llama 2 7B",
            "Llama 3 70B",
            "Llama 3 8B",
            "Mistral 7B",
            "Mixtral 8x7B",
            "Qwen2 7B",
        ),
        formats=("fp16", "bf16"),
    )
    Ampere_DeepSpeed = engine_row(
        "Ampere, DeepSpeed-MII",
        "DeepSpeed-MII, 2024",
        "DeepSpeed-MII on A100",
        GROWING,
        gemm_efficiency=0.219,
        memory_efficiency=0.95,
        kv_efficiency=0.759,
        layer_overhead=259.0,
        prompt_overhead=225.0,
        expert_efficiency=1.0,
        expert_memory=1.0,
        itl_band_low=0.729,
        itl_band_high=1.280,
        ttft_band_low=0.729,
        ttft_band_high=1.280,
        new_itl_band_low=0.532,
        new_itl_band_high=1.280,
        new_ttft_band_low=0.532,
        new_ttft_band_high=1.280,
        models=("Llama 2 70B", "Llama 2 7B", "Llama 3 8B", "Mistral 7B", "Mixtral 8x7B"),
        formats=("fp16", "bf16"),
    )
    Hopper_vLLM_2024 = engine_row(
        "Hopper, vLLM of 2024",
        "vLLM, 2024",
        "vLLM of 2024 on H100 and GH200",
        GROWING,
        gemm_efficiency=0.511,
        memory_efficiency=0.95,
        kv_efficiency=0.807,
        layer_overhead=115.0,
        all_reduce_overhead=7.44,
        prompt_overhead=76.2,
        sequence_overhead=71.2,
        itl_band_low=0.864,
        itl_band_high=1.122,
        ttft_band_low=0.864,
        ttft_band_high=1.122,
        new_itl_band_low=0.840,
        new_itl_band_high=1.122,
        new_ttft_band_low=0.840,
        new_ttft_band_high=1.122,
        models=(
            "GPT-J 6B",
            "LLaMA 7B",
            "Llama 2 70B",
            "Llama 2 7B",
            "Llama 3 70B",
            "Llama 3 8B",
            "Mistral 7B",
            "Qwen2 7B",
        ),
        formats=("fp16", "bf16"),
    )
    Hopper_TensorRT_2024 = engine_row(
        "Hopper, TensorRT-LLM of 2024",
        "TensorRT-LLM, 2024",
        "TensorRT-LLM of 2024 on H100 and GH200",
        gemm_efficiency=0.441,
        memory_efficiency=0.881,
        kv_efficiency=0.858,
        layer_overhead=71.7,
        all_reduce_overhead=9.83,
        prompt_overhead=81.5,
        sequence_overhead=12.9,
        expert_memory=1.0,
        itl_band_low=0.877,
        itl_band_high=1.158,
        ttft_band_low=0.877,
        ttft_band_high=1.158,
        new_itl_band_low=0.811,
        new_itl_band_high=1.158,
        new_ttft_band_low=0.811,
        new_ttft_band_high=1.158,
        models=(
            "Llama 2 70B",
            "Llama 2 7B",
            "Llama 3 70B",
            "Llama 3 8B",
            "Mistral 7B",
            "Mixtral 8x7B",
            "Qwen2 7B",
        ),
        formats=("fp16", "bf16"),
    )
    Gaudi2_DeepSpeed = GAUDI2_DEEPSPEED
    Ampere_LlamaCpp = AMPERE_LLAMACPP
    Hopper_LlamaCpp = HOPPER_LLAMACPP
    GeForce_LlamaCpp = GEFORCE_LLAMACPP
    GeForce_vLLM = GEFORCE_VLLM
    Apple_LlamaCpp = APPLE_LLAMACPP
    Spark_LlamaCpp = SPARK_LLAMACPP
    MI250_LlamaCpp = MI250_LLAMACPP
    MI250_vLLM = MI250_VLLM
    Ampere = engine_row(
        "Ampere",
        "gpt-fast, FasterTransformer",
        "gpt-fast and FasterTransformer on A100",
        _LIBRARY,
        gemm_efficiency=0.7,
        memory_efficiency=0.815,
        layer_overhead=59.6,
        unpacking=0.653,
        models=("GPT 13B (test-13b)", "Llama 2 70B", "Llama 2 7B"),
        formats=("fp16", "bf16"),
    )
    """A100, one sequence at a time: Llama 2 7B and 70B, a GPT of 13B. Too few runs for a band."""
    Ampere_Library = engine_row(
        "Ampere, called as a library",
        "TensorRT, TensorRT-LLM 0.9",
        "passes on A100",
        _LIBRARY,
        PASSES,
        gemm_efficiency=0.85,
        memory_efficiency=0.701,
        attention_efficiency=0.429,
        prompt_overhead=49.5,
        pass_band_low=0.883,
        pass_band_high=1.288,
    )
    """A100, single passes: BERT Base and Large, GPT-J 6B, Mistral 7B, Llama 7B in 16 bits. The
    efficiency of products is at the fit's upper bound."""
    Hopper_Library = engine_row(
        "Hopper, called as a library",
        "TensorRT-LLM 0.9",
        "passes on H100 and H200",
        _LIBRARY | {"gemm_efficiency": (_PRODUCTS.efficiency, _PRODUCTS.source)},
        PASSES,
        gemm_efficiency_fp8=0.719,
        attention_efficiency=0.413,
        prompt_overhead=114.0,
    )
    """H100 and H200, single passes: GPT-J 6B, Mistral 7B, Llama 7B in 8 bits. Too few
    for a band."""
    Uncalibrated = engine_row(
        "Uncalibrated",
        "any",
        "all engines",
        itl_band_low=0.828,
        itl_band_high=2.381,
        ttft_band_low=0.929,
        ttft_band_high=4.425,
        throughput_band_low=0.702,
        throughput_band_high=1.168,
    )
    """For devices without a published run in the table: the common constants. The bands are those
    of all engines with runs, predicted with these constants instead of their own."""


_Kind = str | None
_MAKERS = {"NVIDIA GeForce": "geforce", "Apple M": "apple", "NVIDIA DGX Spark": "spark"}
"""Kinds of devices without a generation, by the beginning of their names."""
_SERVING: Mapping[_Kind, ServingCalibration] = {
    "ampere": ServingCalibrations.Ampere,
    "hopper": ServingCalibrations.Hopper_TensorRT,
    "blackwell": ServingCalibrations.Blackwell_TensorRT,
    "gaudi2": ServingCalibrations.Gaudi2_DeepSpeed,
    "geforce": ServingCalibrations.GeForce_LlamaCpp,
    "apple": ServingCalibrations.Apple_LlamaCpp,
    "spark": ServingCalibrations.Spark_LlamaCpp,
}
_PASS: Mapping[_Kind, ServingCalibration] = {
    "ampere": ServingCalibrations.Ampere_Library,
    "hopper": ServingCalibrations.Hopper_Library,
}
_ENGINES: Mapping[tuple[_Kind, str, bool], ServingCalibration] = {
    ("hopper", "vllm", False): ServingCalibrations.Hopper_vLLM,
    ("hopper", "sglang", False): ServingCalibrations.Hopper_SGLang,
    ("blackwell", "vllm", False): ServingCalibrations.Blackwell_vLLM,
    ("blackwell", "sglang", False): ServingCalibrations.Blackwell_SGLang,
    ("hopper", "pools tensorrt", False): ServingCalibrations.Hopper_TensorRT_Pools,
    ("hopper", "pools sglang", False): ServingCalibrations.Hopper_SGLang_Pools,
    ("blackwell", "pools tensorrt", False): ServingCalibrations.Blackwell_TensorRT_Pools,
    ("blackwell", "pools sglang", False): ServingCalibrations.Blackwell_SGLang_Pools,
    ("ampere", "vllm", True): ServingCalibrations.Ampere_vLLM,
    ("ampere", "tensorrt", True): ServingCalibrations.Ampere_TensorRT,
    ("ampere", "deepspeed", True): ServingCalibrations.Ampere_DeepSpeed,
    ("hopper", "vllm", True): ServingCalibrations.Hopper_vLLM_2024,
    ("hopper", "tensorrt", True): ServingCalibrations.Hopper_TensorRT_2024,
    ("ampere", "llamacpp", True): ServingCalibrations.Ampere_LlamaCpp,
    ("hopper", "llamacpp", True): ServingCalibrations.Hopper_LlamaCpp,
    ("cdna2", "vllm", True): ServingCalibrations.MI250_vLLM,
    ("cdna2", "llamacpp", True): ServingCalibrations.MI250_LlamaCpp,
    ("geforce", "vllm", False): ServingCalibrations.GeForce_vLLM,
}
_NAMES = {"trtllm": "tensorrt", "ollama": "llamacpp", "lmstudio": "llamacpp"}


def plain_engine(engine: str) -> str:
    """Return the name of an engine in letters alone, such as ``"vllm"``, and one name for each."""
    plain = re.sub("[^a-z]", "", engine.lower())
    return next((name for start, name in _NAMES.items() if plain.startswith(start)), plain)


def serving_calibration_for(
    accelerator: Accelerator, engine: str = "", year: int = 2026, pools: bool = False
) -> ServingCalibration:
    """Return the constants of an engine on a device, or those of the device's generation.

    Without an engine, these are TensorRT-LLM's for NVIDIA's newer generations, and llama.cpp's for
    consumer devices.

    Parameters
    ----------
    accelerator
        The device.
    engine
        Name of the engine, such as ``"vLLM"``.
    year
        Year of the engine; releases up to 2024 have their own constants.
    pools
        Whether prefill and decode run on separate devices, which have their own constants.
    """
    kind: _Kind = accelerator.generation or next(
        (maker for name, maker in _MAKERS.items() if accelerator.name.startswith(name)), None
    )
    plain = plain_engine(engine)
    plain = "pools " + (plain or "tensorrt") if pools else plain
    for (device, name, old), row in _ENGINES.items():
        known = old == (year <= 2024) or name == "llamacpp"
        if device == kind and plain.startswith(name) and known:
            return row
    return _SERVING.get(kind, ServingCalibrations.Uncalibrated)


def pass_calibration_for(accelerator: Accelerator) -> ServingCalibration:
    """Return the constants of a single forward pass: those of a library if known."""
    return _PASS.get(accelerator.generation) or serving_calibration_for(accelerator)
