"""What is known of each constant before any run is seen, and which runs belong together."""

from __future__ import annotations

PRIORS: dict[str, dict[str, tuple[float, float, float, float]]] = {
    "machine": {
        "gemm_efficiency": (0.75, 0.1, 0.4, 0.92),
        "gemm_efficiency_fp8": (0.68, 0.12, 0.3, 0.92),
        "gemm_efficiency_fp4": (0.57, 0.15, 0.2, 0.92),
        "attention_efficiency": (0.5, 0.3, 0.1, 0.85),
        "attention_half": (500.0, 0.5, 50.0, 5000.0),
        "link_efficiency": (0.77, 0.08, 0.4, 0.97),
        "nic_efficiency": (0.85, 0.12, 0.3, 0.97),
    },
    "software": {
        "gemm_speed": (0.97, 0.1, 0.4, 1.0),
        "attention_speed": (0.9, 0.3, 0.2, 1.0),
        "hidden_bytes": (20.0, 0.7, 6.0, 150.0),
        "cast_bytes": (3.0, 0.7, 0.3, 12.0),
        "score_bytes": (12.2, 0.2, 6.0, 30.0),
        "loss_bytes": (30.0, 0.6, 8.0, 120.0),
        "collective_overhead": (50.0, 1.2, 1.0, 1000.0),
        "layer_launch": (0.5, 0.6, 0.02, 3.0),
        "launch_exposed": (0.1, 0.4, 0.005, 0.6),
        "expert_launch": (2.5, 0.5, 0.05, 8.0),
        "expert_efficiency": (0.8, 0.2, 0.2, 1.0),
        "routing_bytes": (8.7, 0.4, 2.0, 80.0),
        "bias_bytes": (158.0, 0.3, 5.0, 400.0),
        "exchange_overlap": (0.8, 0.2, 0.02, 0.99),
        "tensor_overlap": (0.5, 0.4, 0.02, 0.99),
        "gather_overlap": (0.5, 0.5, 0.02, 1.0),
        "gradient_overlap": (0.8, 0.2, 0.02, 1.0),
        "step_overhead": (2.0, 1.5, 0.05, 100.0),
    },
}
"""Per constant: what to expect, by how much machines or frameworks differ (standard deviation of
the logarithm), and the least and the most that is physically possible; in the registry's units."""
SCALES = {
    "collective_overhead": 1e-6,
    "layer_launch": 1e-3,
    "expert_launch": 1e-3,
    "step_overhead": 1e-3,
}
"""SI units of the registry's, for constants that are times."""
SWITCHED = {"layer_launch", "expert_launch", "exchange_overlap", "tensor_overlap"}
"""Constants that a recipe can switch off: its runs have zero of them."""
FORMATS = {"": 16, "_fp8": 8, "_fp4": 4}
"""Bits of the formats, by the ending of the products' constants."""
FAMILIES: dict[str, tuple[str, ...]] = {
    "Selene A100": ("megatron21_table1", "megatron21_table2_ptdp", "korthikanti_table5"),
    "vTrain multi-node A100": ("vtrain_multi",),
    "vTrain single-node A100": ("vtrain_single",),
    "MosaicML A100": ("mosaic_a100",),
    "MosaicML H100": ("mosaic_h100", "mosaic_h100_fp8"),
    "Megatron-Core H100": ("mcore_h100_weak",),
    "Megatron-Bridge dense": ("megatron_bridge_dense",),
    "Megatron-Bridge experts": ("megatron_bridge_moe",),
    "SimuMax B200": ("simumax_b200_steptime",),
    "NeMo 24.07": ("nemo_2407", "nemo_2407_finetune"),
    "NeMo long context": ("nemo_long",),
    "MLPerf GPT-3": ("mlperf41_gpt3",),
    "MLPerf 405B": ("mlperf50_405b",),
    "MLPerf 8B": ("mlperf51_8b",),
    "torchtitan A100": ("torchtitan_a100",),
    "torchtitan H100": ("torchtitan_h100", "torchtitan_h200"),
    "torchtitan B200": ("torchtitan_b200",),
    "torchtitan MI300X": ("torchtitan_mi300x",),
    "fms-fsdp": ("fms_fsdp",),
    "Automodel": ("automodel",),
    "TPU Ironwood": ("tpu_ironwood",),
    "TPU Trillium": ("tpu_trillium",),
    "TPU v5p": ("tpu_v5p",),
}
"""Runs that one team measured on one kind of machine."""


def told(group: str) -> bool:
    """Tell whether a group belongs to a family."""
    return any(group in groups for groups in FAMILIES.values())
