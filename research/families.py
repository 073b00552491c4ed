"""Families of runs: those to which the constants of training were fitted."""

from __future__ import annotations

from collections.abc import Mapping

FAMILIES: Mapping[str, tuple[str, ...]] = {
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
"""Runs measured by one team on one kind of machine."""


def family_of(group: str) -> str | None:
    """Return the family of a group of runs, or `None` if no constant was fitted to them."""
    return next((name for name, groups in FAMILIES.items() if group in groups), None)
