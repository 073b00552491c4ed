"""Where the inputs of the training kernels come from, and which sizes make no sense."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mlsysim.core.errors import ParallelismError
from mlsysim.solvers.base import Plan, Rule
from mlsysim.solvers.kernels.operator_step import operator_step
from mlsysim.solvers.kernels.training_step import training_step

__all__ = ["OPERATORS", "RULES", "TEXTBOOK"]

_SHAPE = ("layers", "hidden_dim", "heads", "kv_heads", "head_dim", "ffn_dim", "mlp_matrices")
_EXPERTS = ("experts", "experts_per_token", "expert_ffn_dim", "shared_ffn_dim", "moe_layers")
_GIVEN = (
    "batch_size",
    "tp_size",
    "pp_size",
    "cp_size",
    "ep_size",
    "zero_stage",
    "microbatch_count",
    "virtual_stages",
    "sequence_parallel",
    "gradient_compression",
)
# What replicas send while they compute: a lever of the caller's, or as the calibration has it.
_OVERLAPS = ("gather_overlap", "gradient_overlap", "plain_overlap")
_COUNTED = ("flops_per_mac", "mask_bytes", "statistic_bytes", "moment_bytes", "master_bytes")
_KEPT = ("dropout", "kept_attention_width", "embedding_tables")
_RECOMPUTE = ("matrix_share", "score_share", "kept_scores", "all_reduces_per_layer")
_POWER = ("constant_share", "compute_share", "memory_share")
_ORIGINS: dict[str, str | tuple[str, ...]] = {
    **{name: f"model.{name}" for name in (*_SHAPE, *_EXPERTS, *_KEPT)},
    **{name: f"model.{name}" for name in ("vocab_size", "attended_fraction")},
    **{name: name for name in _GIVEN},
    **{name: f"conventions.{name}" for name in _COUNTED},
    **{name: f"recompute.{name}" for name in _RECOMPUTE},
    "parameters": "model.parameters",
    "seq_len": ("seq_len", "model.seq_len"),
    "all_forward_first": "schedule.all_forward_first",
    "fused_attention": "attention.fused",
    "bytes_per_element": "precision.training_bytes",
    "gradient_bytes": ("gradient_precision.training_bytes", "precision.training_bytes"),
    **{name: f"power_calibration.{name}" for name in _POWER},
    "idle_share": "power_draw.idle_share",
    "design_power": "fleet.node.accelerator.tdp",
    "nodes": "fleet.count",
    "devices_per_node": "fleet.node.accelerators_per_node",
    "nics_per_node": "fleet.node.nics_per_node",
    "peak_rate": "fleet.node.accelerator.compute.{precision}",
    "memory_capacity": "fleet.node.accelerator.memory.capacity",
    "local_bandwidth": "fleet.node.scale_up.bandwidth",
    "local_latency": "fleet.node.scale_up.latency",
    "nic_bandwidth": "fleet.fabric.bandwidth",
    "nic_latency": "fleet.fabric.latency",
}
_CALIBRATED = (
    "attention_efficiency",
    "memory_efficiency",
    "link_efficiency",
    "nic_efficiency",
    "elementwise_backward",
    "loss_bytes",
    "optimizer_bytes",
    "gradient_scatters",
    "gemm_overhead",
    "collective_overhead",
    "layer_launch",
    "expert_launch",
    "expert_efficiency",
    "bias_bytes",
    "launch_exposed",
    "exchange_overlap",
    "tensor_overlap",
    "copies_per_node",
    "step_overhead",
    "node_band_low",
    "node_band_high",
    "fleet_band_low",
    "fleet_band_high",
    "expert_band_low",
    "expert_band_high",
)
_ACTIVATIONS = ("score", "hidden", "ffn", "routing")

TEXTBOOK = Plan(training_step, {**_ORIGINS, "efficiency": "efficiency"})
OPERATORS = Plan(
    operator_step,
    {
        **_ORIGINS,
        **{name: f"calibration.{name}" for name in _CALIBRATED},
        **{name: ("gradient_overlap", f"calibration.{name}") for name in _OVERLAPS},
        "wide_peak_rate": "fleet.node.accelerator.compute.{wide_precision}",
        "memory_bandwidth": "fleet.node.accelerator.memory.bandwidth",
        "gemm_efficiency": "calibration.gemm_{precision}",
        "wide_gemm_efficiency": "calibration.gemm_{wide_precision}",
        "cast_bytes": "calibration.cast_{precision}",
        "expert_biases": "model.expert_biases",
        **{f"{name}_bytes": f"calibration.{name}_{{precision}}" for name in _ACTIVATIONS},
        "written_scores": "attention.written_scores",
        "attention_backward": "attention.backward",
    },
)


def _devices(i: Mapping[str, Any]) -> Any:
    return i["nodes"] * i["devices_per_node"]


def _model_parallel(i: Mapping[str, Any]) -> Any:
    return i["tp_size"] * i["pp_size"] * i["cp_size"]


def _sizes(i: Mapping[str, Any]) -> str:
    names = ["tp_size", "pp_size"] + ["cp_size"] * (i["cp_size"] > 1)
    product = " x ".join(str(i[name]) for name in names)
    return f"{' x '.join(names)} = {product} = {_model_parallel(i)}"


RULES = (
    Rule(
        "tp_size",
        lambda i: _devices(i) % _model_parallel(i) == 0,
        lambda i: (
            f"{_sizes(i)} does not divide the fleet's {_devices(i)} devices: choose sizes whose "
            "product divides it"
        ),
        ParallelismError,
    ),
    Rule(
        "cp_size",
        lambda i: i["seq_len"] % i["cp_size"] == 0,
        lambda i: (
            f"cp_size = {i['cp_size']} does not divide the {i['seq_len']} tokens of a sequence: "
            "choose a divisor"
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
    Rule(
        "pp_size",
        # The embedding and the output may be chunks of their own in an interleaved pipeline.
        lambda i: i["layers"] + 2 * (i["virtual_stages"] > 1) >= i["pp_size"] * i["virtual_stages"],
        lambda i: (
            f"pp_size x virtual_stages = {i['pp_size']} x {i['virtual_stages']} is more than the "
            f"model's {i['layers']} layers: choose at most one chunk per layer"
        ),
        ParallelismError,
    ),
    Rule(
        "virtual_stages",
        lambda i: (i["virtual_stages"] == 1) | (i["pp_size"] > 1),
        lambda i: (
            f"virtual_stages = {i['virtual_stages']} needs a pipeline, but pp_size = 1: raise "
            "pp_size or leave virtual_stages at 1"
        ),
        ParallelismError,
    ),
    Rule(
        "schedule",
        lambda i: (i["virtual_stages"] == 1) | (i["all_forward_first"] == 0),
        lambda i: (
            f"schedule = 'gpipe' has no interleaved form, but virtual_stages = "
            f"{i['virtual_stages']}: choose schedule = '1f1b', or virtual_stages = 1"
        ),
        ParallelismError,
    ),
    Rule(
        "microbatch_count",
        lambda i: (i["virtual_stages"] == 1) | (i["microbatch_count"] % i["pp_size"] == 0),
        lambda i: (
            f"microbatch_count = {i['microbatch_count']} is not a multiple of pp_size = "
            f"{i['pp_size']}, which the interleaved schedule needs: choose a multiple, or "
            "virtual_stages = 1"
        ),
        ParallelismError,
    ),
    Rule(
        "ep_size",
        lambda i: i["experts"] % i["ep_size"] == 0,
        lambda i: (
            f"ep_size = {i['ep_size']} does not divide the model's {i['experts']} expert(s) a "
            "layer: choose a divisor of the number of experts (1 for a dense model)"
        ),
        ParallelismError,
    ),
    Rule(
        "ep_size",
        lambda i: (i["ep_size"] == 1) | (_devices(i) % (i["pp_size"] * i["ep_size"]) == 0),
        lambda i: (
            f"ep_size = {i['ep_size']} does not divide the {_devices(i) // i['pp_size']} devices "
            "of a pipeline stage: choose a divisor"
        ),
        ParallelismError,
    ),
)
