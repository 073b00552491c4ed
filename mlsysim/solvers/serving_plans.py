"""Where the inputs of the serving kernels come from, and which sizes make no sense."""

from __future__ import annotations

from mlsysim.core.errors import ParallelismError
from mlsysim.solvers.base import Plan, Rule
from mlsysim.solvers.kernels.serving import serve
from mlsysim.solvers.kernels.serving_operators import serve_operators

__all__ = ["DEVICE", "NODE", "RULES", "TEXTBOOK_DEVICE", "TEXTBOOK_NODE"]

_SHAPE = ("layers", "hidden_dim", "heads", "kv_heads", "head_dim", "ffn_dim", "mlp_matrices")
_EXPERTS = ("experts", "experts_per_token", "expert_ffn_dim", "shared_ffn_dim", "moe_layers")
_FITTED = (
    "attention_efficiency",
    "memory_efficiency",
    "kv_efficiency",
    "link_efficiency",
    "layer_overhead",
    "all_reduce_overhead",
    "prompt_overhead",
    "sequence_overhead",
    "request_overhead",
    "pass_tokens",
    "kv_share",
    "reserved_output",
    "itl_band_low",
    "itl_band_high",
    "ttft_band_low",
    "ttft_band_high",
)
_POWER = ("constant_share", "compute_share", "memory_share")
_ORIGINS: dict[str, str | tuple[str, ...]] = {
    **{name: f"model.{name}" for name in (*_SHAPE, *_EXPERTS)},
    **{name: f"model.{name}" for name in ("vocab_size", "attended_fraction")},
    **{name: name for name in ("batch_size", "seq_len", "output_len", "tp_size")},
    "parameters": "model.parameters",
    **{name: f"power_calibration.{name}" for name in _POWER},
    "idle_share": "power_draw.idle_share",
    "weight_bytes": ("weight_precision.bytes_per_element", "precision.bytes_per_element"),
    "kv_bytes": ("kv_precision.bytes_per_element", "precision.bytes_per_element"),
    "flops_per_mac": "conventions.flops_per_mac",
    "forward_all_reduces": "conventions.forward_all_reduces",
}
_TEXTBOOK: dict[str, str | tuple[str, ...]] = {
    **_ORIGINS,
    "efficiency": "efficiency",
    "bytes_per_element": "precision.bytes_per_element",
}
_OPERATORS: dict[str, str | tuple[str, ...]] = {
    **_ORIGINS,
    **{name: f"calibration.{name}" for name in _FITTED},
    **{name: f"power_calibration.{name}" for name in ("energy_band_low", "energy_band_high")},
    "waves": ("waves", "endless"),
    "arrivals": "arrivals",
    "activation_bytes": "precision.training_bytes",
    "gemm_efficiency": "calibration.gemm_{precision}",
    "wide_gemm_efficiency": "calibration.gemm_{wide_precision}",
    "hidden_bytes": "calibration.hidden_{precision}",
    "ffn_bytes": "calibration.ffn_{precision}",
    "scale_bytes": "calibration.scale_{stored_precision}",
}


def _on(device: str) -> dict[str, str | tuple[str, ...]]:
    return {
        "peak_rate": f"{device}.compute.{{precision}}",
        "bandwidth": f"{device}.memory.bandwidth",
        "memory_capacity": f"{device}.memory.capacity",
        "design_power": f"{device}.tdp",
    }


_ONE = {"devices": "one"}
_ALL = {"devices": "hardware.accelerators_per_node"}
# A device alone talks to nobody: any link gives the same zero.
_ALONE = "hardware.memory.bandwidth"
_WITHIN = "hardware.scale_up.bandwidth"
_WIDE = "compute.{wide_precision}"
TEXTBOOK_DEVICE = Plan(
    serve,
    {**_TEXTBOOK, **_on("hardware"), "link_bandwidth": _ALONE, "link_latency": "alone"},
    _ONE,
)
TEXTBOOK_NODE = Plan(
    serve,
    {
        **_TEXTBOOK,
        **_on("hardware.accelerator"),
        "link_bandwidth": _WITHIN,
        "link_latency": "hardware.scale_up.latency",
    },
    _ALL,
)
DEVICE = Plan(
    serve_operators,
    {
        **_OPERATORS,
        **_on("hardware"),
        "wide_peak_rate": f"hardware.{_WIDE}",
        "link_bandwidth": _ALONE,
    },
    _ONE,
)
NODE = Plan(
    serve_operators,
    {
        **_OPERATORS,
        **_on("hardware.accelerator"),
        "wide_peak_rate": f"hardware.accelerator.{_WIDE}",
        "link_bandwidth": _WITHIN,
    },
    _ALL,
)


RULES = (
    Rule(
        "tp_size",
        lambda i: i["tp_size"] <= i["devices"],
        lambda i: (
            f"tp_size = {i['tp_size']} is more than the {i['devices']} device(s) that the "
            f"hardware has: choose at most {i['devices']}, or pass a node that has more, such as "
            "Systems.Nodes.DGX_H100"
        ),
        ParallelismError,
    ),
    Rule(
        "tp_size",
        lambda i: i["heads"] % i["tp_size"] == 0,
        lambda i: (
            f"tp_size = {i['tp_size']} does not divide the model's {i['heads']} attention heads: "
            "choose a divisor of the number of heads"
        ),
        ParallelismError,
    ),
)
