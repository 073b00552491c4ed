"""Calibrations of serving: constants of engines, fitted to published runs.

Each row is one device generation and one serving engine. ``python -m research.fits.serving``
fits the constants to the rows marked ``calibrate`` in ``research/measurements/serving.csv`` and
``serving_2.csv`` and prints them. Constants that a row's runs cannot determine come from the common
set, and are marked as estimates. The two rows of libraries describe single passes, and are fitted
by ``python -m research.fits.passes`` to ``research/measurements/passes.csv``.
"""

import re
from collections.abc import Mapping

from mlsysim.core.catalog import Catalog
from mlsysim.core.types import Accelerator, ServingCalibration, Source
from mlsysim.registry.calibration import serving_2026
from mlsysim.registry.calibration.kernels import ProductCalibrations
from mlsysim.registry.calibration.serving_2024 import (
    AMPERE_DEEPSPEED,
    AMPERE_TENSORRT,
    AMPERE_VLLM,
    HOPPER_TENSORRT,
    HOPPER_VLLM,
)
from mlsysim.registry.calibration.serving_2025 import (
    BLACKWELL_VLLM_0_11,
    HOPPER_VLLM_0_11,
    HOPPER_VLLM_0_12,
)
from mlsysim.registry.calibration.serving_constants import (
    GROWING,
    PASSES,
    engine_row,
)
from mlsysim.registry.calibration.serving_rows import (
    AMPERE_LLAMACPP,
    APPLE_LLAMACPP,
    ARC_LLAMACPP,
    BLACKWELL_SGLANG_POOLS,
    BLACKWELL_TENSORRT_POOLS,
    BLACKWELL_ULTRA_SGLANG,
    CPU_LLAMACPP,
    GAUDI2_DEEPSPEED,
    GEFORCE_LLAMACPP,
    GEFORCE_VLLM,
    GTX_LLAMACPP,
    HOPPER_LLAMACPP,
    HOPPER_SGLANG_POOLS,
    HOPPER_TENSORRT_POOLS,
    MI250_LLAMACPP,
    MI250_VLLM,
    PONTE_VECCHIO_LLAMACPP,
    PONTE_VECCHIO_VLLM,
    RADEON_LLAMACPP,
    SPARK_LLAMACPP,
)

__all__ = [
    "ServingCalibrations",
    "pass_calibration_for",
    "plain_engine",
    "serving_calibration_for",
]

_OPEN_RUNS = Source(
    title="Fitted by research/fits/open_loop.py",
    checked="2026-11-23",
    note="research/measurements/serving_2.csv; check rows are held out",
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

    Hopper_TensorRT = serving_2026.HOPPER_TENSORRT
    Hopper_vLLM = serving_2026.HOPPER_VLLM
    Hopper_vLLM_Open = engine_row(
        "Hopper, vLLM in 16 bits, open loop",
        "vLLM 0.15.1",
        "open-loop runs of vLLM on H100",
        GROWING,
        _OPEN_RUNS,
        kv_efficiency=0.95,
        layer_overhead=62.7,
        memory_efficiency=0.95,
        sequence_overhead=5.88,
        admission_steps=2.64,
        itl_band_low=0.925,
        itl_band_high=1.074,
        ttft_band_low=0.927,
        ttft_band_high=1.390,
    )
    """H100: Llama 2 7B and 70B, Llama 3.1 8B, Qwen 7B and 14B, Mixtral 8x7B, in 16 bits. Requests
    arrive at a constant rate, and most prompts are in the prefix cache."""
    Hopper_SGLang = serving_2026.HOPPER_SGLANG
    Blackwell_TensorRT = serving_2026.BLACKWELL_TENSORRT
    Blackwell_vLLM = serving_2026.BLACKWELL_VLLM
    Blackwell_SGLang = serving_2026.BLACKWELL_SGLANG
    Blackwell_Ultra_SGLang = BLACKWELL_ULTRA_SGLANG
    Hopper_vLLM_0_11 = HOPPER_VLLM_0_11
    Hopper_vLLM_0_12 = HOPPER_VLLM_0_12
    Blackwell_vLLM_0_11 = BLACKWELL_VLLM_0_11
    Hopper_TensorRT_Pools = HOPPER_TENSORRT_POOLS
    Hopper_SGLang_Pools = HOPPER_SGLANG_POOLS
    Blackwell_TensorRT_Pools = BLACKWELL_TENSORRT_POOLS
    Blackwell_SGLang_Pools = BLACKWELL_SGLANG_POOLS
    Ampere_vLLM = AMPERE_VLLM
    Ampere_TensorRT = AMPERE_TENSORRT
    Ampere_DeepSpeed = AMPERE_DEEPSPEED
    Hopper_vLLM_2024 = HOPPER_VLLM
    Hopper_TensorRT_2024 = HOPPER_TENSORRT
    Gaudi2_DeepSpeed = GAUDI2_DEEPSPEED
    Ampere_LlamaCpp = AMPERE_LLAMACPP
    Hopper_LlamaCpp = HOPPER_LLAMACPP
    GTX_LlamaCpp = GTX_LLAMACPP
    GeForce_LlamaCpp = GEFORCE_LLAMACPP
    GeForce_vLLM = GEFORCE_VLLM
    Apple_LlamaCpp = APPLE_LLAMACPP
    Arc_LlamaCpp = ARC_LLAMACPP
    """One run of Ollama on a laptop with Lunar Lake, which may have used the processor instead of
    the graphics. Too few runs for a band."""
    Spark_LlamaCpp = SPARK_LLAMACPP
    Radeon_LlamaCpp = RADEON_LLAMACPP
    CPU_LlamaCpp = CPU_LLAMACPP
    Ponte_Vecchio_LlamaCpp = PONTE_VECCHIO_LLAMACPP
    Ponte_Vecchio_vLLM = PONTE_VECCHIO_VLLM
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
        itl_band_low=0.865,
        itl_band_high=2.186,
        ttft_band_low=0.929,
        ttft_band_high=3.736,
        throughput_band_low=0.608,
        throughput_band_high=1.178,
    )
    """For devices without a published run in the table: the common constants. The bands are those
    of all engines with runs, predicted with these constants instead of their own."""


_Kind = str | None
_MAKERS = {
    "NVIDIA GeForce GTX": "gtx",
    "NVIDIA GeForce": "geforce",
    "Apple M": "apple",
    "Intel Arc": "arc",
    "NVIDIA DGX Spark": "spark",
    "NVIDIA RTX 5880": "geforce",
    "AMD Radeon": "radeon",
    "AMD Ryzen": "cpu",
    "NVIDIA B300": "b300",
}
"""Kinds of devices that have no generation, or constants other than those of their generation, by
the beginning of their names."""
_SERVING: Mapping[_Kind, ServingCalibration] = {
    "ampere": ServingCalibrations.Ampere,
    "hopper": ServingCalibrations.Hopper_TensorRT,
    "blackwell": ServingCalibrations.Blackwell_TensorRT,
    "gaudi2": ServingCalibrations.Gaudi2_DeepSpeed,
    "gtx": ServingCalibrations.GTX_LlamaCpp,
    "geforce": ServingCalibrations.GeForce_LlamaCpp,
    "apple": ServingCalibrations.Apple_LlamaCpp,
    "spark": ServingCalibrations.Spark_LlamaCpp,
    "radeon": ServingCalibrations.Radeon_LlamaCpp,
    "cpu": ServingCalibrations.CPU_LlamaCpp,
}
_PASS: Mapping[_Kind, ServingCalibration] = {
    "ampere": ServingCalibrations.Ampere_Library,
    "hopper": ServingCalibrations.Hopper_Library,
}
_ENGINES: Mapping[tuple[_Kind, str, bool], ServingCalibration] = {
    ("b300", "sglang", False): ServingCalibrations.Blackwell_Ultra_SGLang,
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
    ("turing", "llamacpp", False): ServingCalibrations.GeForce_LlamaCpp,
    ("arc", "llamacpp", False): ServingCalibrations.Arc_LlamaCpp,
    ("xe_hpc", "llamacpp", True): ServingCalibrations.Ponte_Vecchio_LlamaCpp,
    ("xe_hpc", "vllm", True): ServingCalibrations.Ponte_Vecchio_vLLM,
}
_RELEASES: Mapping[tuple[_Kind, str], ServingCalibration] = {
    ("hopper", "vllm 0.11"): ServingCalibrations.Hopper_vLLM_0_11,
    ("hopper", "vllm 0.12"): ServingCalibrations.Hopper_vLLM_0_12,
    ("blackwell", "vllm 0.11"): ServingCalibrations.Blackwell_vLLM_0_11,
}
"""Releases of an engine that have constants of their own, by the beginning of their version."""
_NAMES = {"trtllm": "tensorrt", "ollama": "llamacpp", "lmstudio": "llamacpp"}


def plain_engine(engine: str) -> str:
    """Return the name of an engine in letters alone, such as ``"vllm"``, and one name for each."""
    plain = re.sub("[^a-z]", "", engine.lower())
    return next((name for start, name in _NAMES.items() if plain.startswith(start)), plain)


def serving_calibration_for(
    accelerator: Accelerator,
    engine: str = "",
    year: int = 2026,
    pools: bool = False,
    version: str = "",
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
        Whether prefills and decodes have devices of their own, which has constants of its own.
    version
        Release of the engine, such as ``"0.12.0"``: a few have constants of their own.
    """
    named = next(
        (maker for name, maker in _MAKERS.items() if accelerator.name.startswith(name)), None
    )
    kinds: tuple[_Kind, ...] = (named, accelerator.generation)
    plain = plain_engine(engine)
    plain = "pools " + (plain or "tensorrt") if pools else plain
    for (device, release), row in _RELEASES.items():
        if device in kinds and f"{plain} {version}".startswith(release):
            return row
    for (device, name, old), row in _ENGINES.items():
        known = old == (year <= 2024) or name == "llamacpp"
        if device is not None and device in kinds and plain.startswith(name) and known:
            return row
    found = [_SERVING[kind] for kind in kinds if kind in _SERVING]
    return found[0] if found else ServingCalibrations.Uncalibrated


def pass_calibration_for(accelerator: Accelerator) -> ServingCalibration:
    """Return the constants of a single forward pass: those of a library if known."""
    return _PASS.get(accelerator.generation) or serving_calibration_for(accelerator)
