"""Where the inputs of the forward pass's kernels come from."""

from __future__ import annotations

from mlsysim.solvers.base import Plan
from mlsysim.solvers.kernels.forward_pass import fixed_shape_pass, transformer_pass
from mlsysim.solvers.kernels.operator_pass import operator_pass

__all__ = ["FIXED_SHAPE", "OPERATORS", "TEXTBOOK"]

_SHAPE = ("layers", "hidden_dim", "heads", "kv_heads", "head_dim", "ffn_dim", "mlp_matrices")
_EXPERTS = ("experts", "experts_per_token", "expert_ffn_dim", "shared_ffn_dim", "moe_layers")
_FITTED = (
    "attention_efficiency",
    "memory_efficiency",
    "hidden_bytes",
    "ffn_bytes",
    "prompt_overhead",
    "pass_band_low",
    "pass_band_high",
)
_POWER = ("constant_share", "compute_share", "memory_share")
_DEVICE: dict[str, str | tuple[str, ...]] = {
    "peak_rate": "hardware.compute.{precision}",
    "bandwidth": "hardware.memory.bandwidth",
    "design_power": "hardware.tdp",
    **{name: f"power_calibration.{name}" for name in _POWER},
    "idle_share": "power_draw.idle_share",
    "memory_capacity": "hardware.memory.capacity",
    "batch_size": "batch_size",
    "parameters": "model.parameters",
}
_ONE_SHARE: dict[str, str | tuple[str, ...]] = {
    "efficiency": ("efficiency", "textbook.value"),
    "bytes_per_element": "precision.bytes_per_element",
}
_TRANSFORMER: dict[str, str | tuple[str, ...]] = {
    **{name: f"model.{name}" for name in (*_SHAPE, *_EXPERTS, "vocab_size", "attended_fraction")},
    "seq_len": ("seq_len", "model.seq_len"),
    "flops_per_mac": "conventions.flops_per_mac",
    **_DEVICE,
}

FIXED_SHAPE = Plan(
    fixed_shape_pass,
    {
        "flops_per_sample": "model.flops_per_sample",
        "dense_parameters": "model.dense_parameters",
        "gathered_parameters": "model.gathered_parameters",
        "activations": "model.activations_per_sample",
        **_DEVICE,
        **_ONE_SHARE,
    },
)
TEXTBOOK = Plan(transformer_pass, {**_TRANSFORMER, **_ONE_SHARE})
OPERATORS = Plan(
    operator_pass,
    {
        **_TRANSFORMER,
        **{name: f"calibration.{name}" for name in _FITTED},
        "wide_peak_rate": "hardware.compute.{wide_precision}",
        "activation_bytes": "precision.training_bytes",
        "weight_bytes": "precision.bytes_per_element",
        "kv_bytes": "precision.bytes_per_element",
        "scale_bytes": "calibration.scale_{precision}",
        "gemm_efficiency": "calibration.gemm_{precision}",
        "wide_gemm_efficiency": "calibration.gemm_{wide_precision}",
    },
)
