"""How constants are named and switched in the fit, and which runs belong together."""

from __future__ import annotations

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
LIMITED = ("H100_HBM2e", "B200_Limited")
"""Machines under a limit of power: how far it lowers their clocks is not published, so what their
products reach of the datasheet may lie far from what others do."""
LIMITED_SPREAD = 0.3
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
    "MLPerf LoRA": ("mlperf41_lora70b", "mlperf50_lora70b", "mlperf51_lora70b"),
    "Automodel": ("automodel", "automodel_lora"),
    "TPU Ironwood": ("tpu_ironwood",),
    "TPU Trillium": ("tpu_trillium",),
    "TPU v5p": ("tpu_v5p",),
}
"""Runs that one team measured on one kind of machine."""


def told(group: str) -> bool:
    """Tell whether a group belongs to a family."""
    return any(group in groups for groups in FAMILIES.values())
