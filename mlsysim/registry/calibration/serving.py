"""Which constants describe an engine on a device."""

import re
from collections.abc import Mapping

from mlsysim.core.types import Accelerator, ServingCalibration
from mlsysim.registry.catalogs import ServingCalibrations

__all__ = [
    "ServingCalibrations",
    "pass_calibration_for",
    "plain_engine",
    "serving_calibration_for",
]

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
_SERVING: Mapping[_Kind, str] = {
    "ampere": "Ampere",
    "hopper": "Hopper_TensorRT",
    "blackwell": "Blackwell_TensorRT",
    "gaudi2": "Gaudi2_DeepSpeed",
    "gtx": "GTX_LlamaCpp",
    "geforce": "GeForce_LlamaCpp",
    "apple": "Apple_LlamaCpp",
    "spark": "Spark_LlamaCpp",
    "radeon": "Radeon_LlamaCpp",
    "cpu": "CPU_LlamaCpp",
}
_PASS: Mapping[_Kind, str] = {
    "ampere": "Ampere_Library",
    "hopper": "Hopper_Library",
}
_ENGINES: Mapping[tuple[_Kind, str, bool], str] = {
    ("b300", "sglang", False): "Blackwell_Ultra_SGLang",
    ("hopper", "vllm", False): "Hopper_vLLM",
    ("hopper", "sglang", False): "Hopper_SGLang",
    ("blackwell", "vllm", False): "Blackwell_vLLM",
    ("blackwell", "sglang", False): "Blackwell_SGLang",
    ("hopper", "pools tensorrt", False): "Hopper_TensorRT_Pools",
    ("hopper", "pools sglang", False): "Hopper_SGLang_Pools",
    ("blackwell", "pools tensorrt", False): "Blackwell_TensorRT_Pools",
    ("blackwell", "pools sglang", False): "Blackwell_SGLang_Pools",
    ("ampere", "vllm", True): "Ampere_vLLM",
    ("ampere", "tensorrt", True): "Ampere_TensorRT",
    ("ampere", "deepspeed", True): "Ampere_DeepSpeed",
    ("hopper", "vllm", True): "Hopper_vLLM_2024",
    ("hopper", "tensorrt", True): "Hopper_TensorRT_2024",
    ("ampere", "llamacpp", True): "Ampere_LlamaCpp",
    ("hopper", "llamacpp", True): "Hopper_LlamaCpp",
    ("cdna2", "vllm", True): "MI250_vLLM",
    ("cdna2", "llamacpp", True): "MI250_LlamaCpp",
    ("geforce", "vllm", False): "GeForce_vLLM",
    ("turing", "llamacpp", False): "GeForce_LlamaCpp",
    ("arc", "llamacpp", False): "Arc_LlamaCpp",
    ("xe_hpc", "llamacpp", True): "Ponte_Vecchio_LlamaCpp",
    ("xe_hpc", "vllm", True): "Ponte_Vecchio_vLLM",
}
_RELEASES: Mapping[tuple[_Kind, str], str] = {
    ("hopper", "vllm 0.11"): "Hopper_vLLM_0_11",
    ("hopper", "vllm 0.12"): "Hopper_vLLM_0_12",
    ("blackwell", "vllm 0.11"): "Blackwell_vLLM_0_11",
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
            return _row(row)
    for (device, name, old), row in _ENGINES.items():
        known = old == (year <= 2024) or name == "llamacpp"
        if device is not None and device in kinds and plain.startswith(name) and known:
            return _row(row)
    row = next((_SERVING[kind] for kind in kinds if kind in _SERVING), "Uncalibrated")
    return _row(row)


def pass_calibration_for(accelerator: Accelerator) -> ServingCalibration:
    """Return the constants of a single forward pass: those of a library if known."""
    row = _PASS.get(accelerator.generation)
    return serving_calibration_for(accelerator) if row is None else _row(row)


def _row(name: str) -> ServingCalibration:
    row: ServingCalibration = getattr(ServingCalibrations, name)
    return row
