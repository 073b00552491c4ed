"""Which constants of a calibration are fitted, on which runs, and within which bounds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from mlsysim.core.types import Generation
from mlsysim.validation.aliases import find_accelerator
from mlsysim.validation.rows import Row

# Physically possible values, in the units of the registry: (least, most).
BOUNDS = {
    "gemm_efficiency": (0.4, 0.9),
    "gemm_efficiency_fp8": (0.3, 0.9),
    "gemm_efficiency_fp4": (0.2, 0.9),
    "attention_efficiency": (0.1, 0.75),
    "link_efficiency": (0.4, 0.95),
    "nic_efficiency": (0.4, 0.95),
    "score_bytes": (6.0, 30.0),
    "hidden_bytes": (8.0, 120.0),
    "cast_bytes": (0.5, 12.0),
    "loss_bytes": (10.0, 100.0),
    "collective_overhead": (1.0, 1000.0),
    "layer_launch": (0.05, 3.0),
    "expert_launch": (0.05, 6.0),
    "expert_efficiency": (0.2, 1.0),
    "routing_bytes": (2.0, 80.0),
    "bias_bytes": (5.0, 300.0),
    "exchange_overlap": (0.02, 0.98),
    "tensor_overlap": (0.02, 0.98),
    "step_overhead": (0.1, 50.0),
    "launch_exposed": (0.01, 0.5),
    "gather_overlap": (0.02, 1.0),
    "gradient_overlap": (0.02, 1.0),
}
SCALES = {
    "collective_overhead": 1e-6,
    "layer_launch": 1e-3,
    "expert_launch": 1e-3,
    "step_overhead": 1e-3,
}
"""SI units of the registry's, for constants that are times."""
SWITCHED = {"layer_launch", "expert_launch", "exchange_overlap"}
"""Constants that a recipe can switch off: its runs have zero of them."""


@dataclass(frozen=True)
class Fit:
    """One calibration: the runs that it is fitted on, and the constants that they can tell."""

    groups: tuple[str, ...]
    free: dict[str, float]
    """Constants to fit, with the values to start from."""
    fixed: dict[str, float] = field(default_factory=dict)
    experts: tuple[str, ...] = ()
    """Runs of models with experts that are not fitted, for their band."""
    accepts: Callable[[Row], bool] = lambda row: True
    table: str = "training"
    """The table of `measurements` that holds the runs."""


def _generation(name: Generation) -> Callable[[Row], bool]:
    def accepts(row: Row) -> bool:
        device = find_accelerator(row.text("hardware"))
        return device is not None and device.generation == name

    return accepts


SELENE = ("megatron21_table1", "megatron21_table2_ptdp", "korthikanti_table5")
FITS = {
    "A100_Megatron": Fit(
        (*SELENE, "vtrain_multi", "vtrain_single"),
        {
            "gemm_efficiency": 0.75,
            "link_efficiency": 0.7,
            "nic_efficiency": 0.8,
            "score_bytes": 14.0,
            "hidden_bytes": 20.0,
            "loss_bytes": 60.0,
            "collective_overhead": 100.0,
            "layer_launch": 1.0,
            "launch_exposed": 0.1,
            "step_overhead": 1.0,
        },
    ),
    "A100_FSDP": Fit(
        ("mosaic_a100",),
        {
            "gemm_efficiency": 0.75,
            "attention_efficiency": 0.35,
            "hidden_bytes": 40.0,
            "gather_overlap": 0.3,
        },
    ),
    "H100_FSDP": Fit(
        ("mosaic_h100", "mosaic_h100_fp8"),
        {
            "gemm_efficiency": 0.7,
            "gemm_efficiency_fp8": 0.7,
            "attention_efficiency": 0.2,
            "hidden_bytes": 60.0,
            "gather_overlap": 0.3,
        },
    ),
    "H100_Megatron": Fit(
        ("mcore_h100_weak",),
        {"gemm_efficiency": 0.8, "attention_efficiency": 0.2, "hidden_bytes": 30.0},
        # These runs overlap as Blackwell's do, and are too few to tell how much.
        fixed={"tensor_overlap": 0.65},
    ),
    "H100_FP8": Fit(
        ("megatron_bridge_dense",),
        {"gemm_efficiency_fp8": 0.7, "attention_efficiency": 0.5, "hidden_bytes": 20.0},
        experts=("megatron_bridge_moe",),
        accepts=_generation("hopper"),
    ),
    "B200_Megatron": Fit(
        ("simumax_b200_steptime",),
        {
            "gemm_efficiency": 0.5,
            "attention_efficiency": 0.4,
            "hidden_bytes": 20.0,
            "collective_overhead": 100.0,
            "expert_efficiency": 0.8,
        },
        table="memory",
    ),
    # Runs of models with and without experts share their constants.
    "Blackwell": Fit(
        ("megatron_bridge_dense", "megatron_bridge_moe"),
        {
            "gemm_efficiency": 0.7,
            "gemm_efficiency_fp8": 0.75,
            "gemm_efficiency_fp4": 0.6,
            "attention_efficiency": 0.3,
            "hidden_bytes": 20.0,
            "tensor_overlap": 0.7,
            "expert_efficiency": 0.8,
            "expert_launch": 2.0,
            "routing_bytes": 10.0,
            "bias_bytes": 100.0,
            "exchange_overlap": 0.7,
        },
        accepts=_generation("blackwell"),
    ),
}
TRANSFERRED = "A100_Megatron"
"""The one calibration that several families of runs share, so that one can be left out."""
FAMILIES = {
    "Selene A100": SELENE,
    "vTrain multi-node A100": ("vtrain_multi",),
    "vTrain single-node A100": ("vtrain_single",),
}
