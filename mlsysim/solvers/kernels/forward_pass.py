"""Kernels of a forward pass on one device: formulas composed, and nothing else."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from mlsysim.core.formulas import (
    arithmetic_intensity,
    batch_flops,
    compute_time,
    fixed_shape_traffic,
    flops_utilization,
    forward_flops,
    kv_cache_size,
    memory_time,
    reached_rate,
    ridge_point,
    roofline_time,
    sample_rate,
    tensor_size,
    token_count,
    transformer_pass_traffic,
)
from mlsysim.core.numeric import Value, where
from mlsysim.solvers.kernels._power import pass_power
from mlsysim.solvers.kernels._token_work import parameters_met, token_work

__all__ = ["fixed_shape_pass", "transformer_pass"]


def _roofline(
    i: SimpleNamespace, flops: Value, bytes_moved: Value, memory: Value
) -> dict[str, Any]:
    """Shared end of both kernels: from operations and bytes to times."""
    arithmetic = compute_time(flops, i.peak_rate, i.efficiency)
    traffic = memory_time(bytes_moved, i.bandwidth)
    latency = roofline_time(arithmetic, traffic)
    mfu = flops_utilization(flops, latency, i.peak_rate, devices=1)
    return {
        "latency": latency,
        "throughput": sample_rate(i.batch_size, latency),
        "bottleneck": where(arithmetic >= traffic, "compute", "memory"),
        "compute_time": arithmetic,
        "memory_time": traffic,
        "flops": flops,
        "bytes_moved": bytes_moved,
        "arithmetic_intensity": arithmetic_intensity(flops, bytes_moved),
        "ridge_point": ridge_point(reached_rate(i.peak_rate, i.efficiency), i.bandwidth),
        "mfu": mfu,
        **pass_power(i, latency, mfu, bytes_moved),
        "memory": memory,
        "memory_capacity": i.memory_capacity,
        "feasible": memory <= i.memory_capacity,
    }


def fixed_shape_pass(**inputs: Value) -> dict[str, Any]:
    """Forward pass of a network of fixed shape on one device.

    Parameters
    ----------
    flops_per_sample : [flop]
        Operations of one sample.
    parameters : [param]
        Parameters stored.
    dense_parameters : [param]
        Parameters that every sample uses.
    gathered_parameters : [param]
        Parameters that one sample looks up.
    activations : [1]
        Elements that the layers write for one sample.
    bytes_per_element : [byte]
        Bytes of one element.
    batch_size : [sample]
        Samples in the batch.
    peak_rate : [flop/s]
        Dense peak rate of the device.
    bandwidth : [byte/s]
        Memory bandwidth.
    efficiency : [1]
        Share of the peak rate that is reached.
    design_power : [W]
        Design power of the device.
    constant_share, compute_share, memory_share, idle_share : [1]
        Shares of it: constant power, arithmetic at the peak rate, traffic at the full bandwidth,
        and an idle device.
    memory_capacity : [byte]
        Memory of the device.
    """
    i = SimpleNamespace(**inputs)
    return _roofline(
        i,
        batch_flops(i.batch_size, i.flops_per_sample),
        fixed_shape_traffic(
            i.dense_parameters,
            i.gathered_parameters,
            i.activations,
            i.batch_size,
            i.bytes_per_element,
        ),
        tensor_size(i.parameters, i.bytes_per_element),
    )


def transformer_pass(**inputs: Value) -> dict[str, Any]:
    """Forward pass of a transformer over whole sequences (a prefill) on one device.

    Parameters
    ----------
    layers, hidden_dim, heads, kv_heads, head_dim, ffn_dim, mlp_matrices, vocab_size : [1]
        Shape of the model.
    attended_fraction : [1]
        Share of the positions that a token attends to.
    experts, experts_per_token, expert_ffn_dim, shared_ffn_dim, moe_layers : [1]
        Shape of its experts; one expert, visited by all, where it has none.
    parameters : [param]
        Parameters stored.
    bytes_per_element : [byte]
        Bytes of one element.
    seq_len : [token]
        Tokens in each sequence.
    batch_size : [sample]
        Sequences in the batch.
    flops_per_mac : [flop]
        Operations of one multiply-accumulate.
    peak_rate : [flop/s]
        Dense peak rate of the device.
    bandwidth : [byte/s]
        Memory bandwidth.
    efficiency : [1]
        Share of the peak rate that is reached.
    design_power : [W]
        Design power of the device.
    constant_share, compute_share, memory_share, idle_share : [1]
        Shares of it: constant power, arithmetic at the peak rate, traffic at the full bandwidth,
        and an idle device.
    memory_capacity : [byte]
        Memory of the device.
    """
    i = SimpleNamespace(**inputs)
    tokens = token_count(i.batch_size, i.seq_len)
    flops = forward_flops(tokens, *token_work(i))
    kv_cache = kv_cache_size(i.layers, i.kv_heads, i.head_dim, tokens, i.bytes_per_element)
    return _roofline(
        i,
        flops,
        transformer_pass_traffic(
            tensor_size(parameters_met(i, tokens), i.bytes_per_element), kv_cache
        ),
        transformer_pass_traffic(tensor_size(i.parameters, i.bytes_per_element), kv_cache),
    )
