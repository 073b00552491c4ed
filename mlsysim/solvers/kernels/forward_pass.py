"""Kernels of a forward pass on one device: formulas composed, and nothing else."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from mlsysim.core.formulas import (
    arithmetic_intensity,
    batch_flops,
    compute_time,
    device_energy,
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
from mlsysim.solvers.kernels._token_work import parameters_met, token_work

__all__ = ["fixed_shape_pass", "transformer_pass"]


def _roofline(
    flops: Value,
    bytes_moved: Value,
    memory: Value,
    *,
    batch_size: Value,
    peak_rate: Value,
    bandwidth: Value,
    efficiency: Value,
    power: Value,
    memory_capacity: Value,
) -> dict[str, Any]:
    """Shared end of both kernels: from operations and bytes to times."""
    arithmetic = compute_time(flops, peak_rate, efficiency)
    traffic = memory_time(bytes_moved, bandwidth)
    latency = roofline_time(arithmetic, traffic)
    return {
        "latency": latency,
        "throughput": sample_rate(batch_size, latency),
        "bottleneck": where(arithmetic >= traffic, "compute", "memory"),
        "compute_time": arithmetic,
        "memory_time": traffic,
        "flops": flops,
        "bytes_moved": bytes_moved,
        "arithmetic_intensity": arithmetic_intensity(flops, bytes_moved),
        "ridge_point": ridge_point(reached_rate(peak_rate, efficiency), bandwidth),
        "mfu": flops_utilization(flops, latency, peak_rate, devices=1),
        "energy": device_energy(power, latency),
        "memory": memory,
        "memory_capacity": memory_capacity,
        "feasible": memory <= memory_capacity,
    }


def fixed_shape_pass(
    flops_per_sample: Value,
    parameters: Value,
    dense_parameters: Value,
    gathered_parameters: Value,
    activations: Value,
    bytes_per_element: Value,
    batch_size: Value,
    **device: Value,
) -> dict[str, Any]:
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
    power : [W]
        Design power of the device.
    memory_capacity : [byte]
        Memory of the device.
    """
    return _roofline(
        batch_flops(batch_size, flops_per_sample),
        fixed_shape_traffic(
            dense_parameters, gathered_parameters, activations, batch_size, bytes_per_element
        ),
        tensor_size(parameters, bytes_per_element),
        batch_size=batch_size,
        **device,
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
    power : [W]
        Design power of the device.
    memory_capacity : [byte]
        Memory of the device.
    """
    i = SimpleNamespace(**inputs)
    tokens = token_count(i.batch_size, i.seq_len)
    flops = forward_flops(tokens, *token_work(i))
    kv_cache = kv_cache_size(i.layers, i.kv_heads, i.head_dim, tokens, i.bytes_per_element)
    return _roofline(
        flops,
        transformer_pass_traffic(
            tensor_size(parameters_met(i, tokens), i.bytes_per_element), kv_cache
        ),
        transformer_pass_traffic(tensor_size(i.parameters, i.bytes_per_element), kv_cache),
        batch_size=i.batch_size,
        peak_rate=i.peak_rate,
        bandwidth=i.bandwidth,
        efficiency=i.efficiency,
        power=i.power,
        memory_capacity=i.memory_capacity,
    )
