"""Kernel of serving a language model: formulas composed, and nothing else."""

from __future__ import annotations

from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

from mlsysim.core.formulas import (
    attention_parameters,
    attention_score_flops,
    batch_cycle_flops,
    batch_cycle_time,
    batch_cycle_traffic,
    compute_time,
    continuous_batching_rate,
    decode_flops,
    device_flops,
    hidden_state_size,
    kv_cache_size,
    kv_per_device,
    largest_batch,
    layer_all_reduce_time,
    logit_flops,
    longest_context,
    matrix_flops,
    mean_context,
    memory_share,
    memory_time,
    mlp_parameters,
    pass_time,
    prefill_flops,
    request_time,
    ring_all_reduce_time,
    roofline_time,
    sample_rate,
    serving_memory,
    tensor_size,
    tensor_slice,
    token_count,
    token_rate,
    total_context,
)
from mlsysim.core.numeric import Value, where
from mlsysim.solvers.kernels._power import served_power

__all__ = ["serve"]


@dataclass(frozen=True)
class _Pass:
    """A pass: its whole time, all its operations, a device's traffic, and what it waits for."""

    time: Value
    flops: Value
    traffic: Value
    bottleneck: Any


def serve(
    layers: Value,
    hidden_dim: Value,
    heads: Value,
    kv_heads: Value,
    head_dim: Value,
    ffn_dim: Value,
    mlp_matrices: Value,
    vocab_size: Value,
    attended_fraction: Value,
    parameters: Value,
    peak_rate: Value,
    bandwidth: Value,
    memory_capacity: Value,
    link_bandwidth: Value,
    link_latency: Value,
    batch_size: Value,
    seq_len: Value,
    output_len: Value,
    tp_size: Value,
    efficiency: Value,
    bytes_per_element: Value,
    weight_bytes: Value,
    kv_bytes: Value,
    flops_per_mac: Value,
    forward_all_reduces: Value,
    **power: Value,
) -> dict[str, Any]:
    """A batch of prompts read at once, then decoded token by token.

    Parameters
    ----------
    layers : [1]
        Layers.
    hidden_dim : [1]
        Width of the residual stream.
    heads : [1]
        Attention heads.
    kv_heads : [1]
        Key and value heads.
    head_dim : [1]
        Width of one head.
    ffn_dim : [1]
        Inner width of the feed-forward block.
    mlp_matrices : [1]
        Matrices in the feed-forward block.
    vocab_size : [1]
        Size of the vocabulary.
    attended_fraction : [1]
        Share of the prompt that a prompt token attends to.
    parameters : [param]
        Parameters of the model.
    peak_rate : [flop/s]
        Dense peak rate of a device.
    bandwidth : [byte/s]
        Memory bandwidth of a device.
    memory_capacity : [byte]
        Memory of a device.
    link_bandwidth : [byte/s]
        Bandwidth of a device to its peers, one direction.
    link_latency : [s]
        Latency between peers.
    batch_size : [1]
        Sequences in flight.
    seq_len : [token]
        Tokens of each prompt.
    output_len : [token]
        Tokens generated for each prompt.
    tp_size : [1]
        Devices that share each layer.
    efficiency : [1]
        Share of the peak rate that arithmetic reaches.
    bytes_per_element : [byte]
        Bytes of one activation.
    weight_bytes : [byte]
        Bytes of one stored weight.
    kv_bytes : [byte]
        Bytes of one stored key or value.
    flops_per_mac : [flop]
        Operations of one multiply-accumulate.
    forward_all_reduces : [1]
        All-reduces of tensor parallelism per layer in a forward pass.
    design_power : [W]
        Design power of a device.
    constant_share, compute_share, memory_share, idle_share : [1]
        Shares of it: constant power, arithmetic at the peak rate, traffic at the full bandwidth,
        and an idle device.
    """
    matrix = matrix_flops(
        layers,
        attention_parameters(hidden_dim, heads, kv_heads, head_dim),
        mlp_parameters(hidden_dim, ffn_dim, mlp_matrices),
        flops_per_mac,
    )
    logit = logit_flops(vocab_size, hidden_dim, flops_per_mac)

    def pass_of(flops: Value, kv_cache: Value, tokens_each: Value) -> _Pass:
        arithmetic = compute_time(device_flops(flops, tp_size, 1), peak_rate, efficiency)
        moved = serving_memory(own_weights, kv_per_device(kv_cache, tp_size, kv_heads))
        traffic = memory_time(moved, bandwidth)
        all_reduce = ring_all_reduce_time(
            hidden_state_size(tokens_each, batch_size, hidden_dim, bytes_per_element),
            tp_size,
            link_bandwidth,
            link_latency,
        )
        communication = layer_all_reduce_time(all_reduce, forward_all_reduces, layers, 1)
        whole = pass_time(roofline_time(arithmetic, traffic), communication)
        return _Pass(whole, flops, moved, where(arithmetic >= traffic, "compute", "memory"))

    def kv_of(tokens: Value) -> Value:
        return kv_cache_size(layers, kv_heads, head_dim, tokens, kv_bytes)

    # Memory, when the last token is made
    weights = tensor_size(parameters, weight_bytes)
    own_weights = tensor_slice(weights, tp_size)
    context = total_context(seq_len, output_len)
    kv_cache = kv_of(token_count(batch_size, context))
    memory = serving_memory(own_weights, kv_per_device(kv_cache, tp_size, kv_heads))
    kv_per_sequence = kv_per_device(kv_of(context), tp_size, kv_heads)
    kv_per_token = kv_per_device(kv_of(1), tp_size, kv_heads)

    # Prefill: all prompts at once
    prompt_tokens = token_count(batch_size, seq_len)
    prompt_score = attention_score_flops(
        layers, heads, head_dim, seq_len, attended_fraction, flops_per_mac
    )
    reading = pass_of(
        prefill_flops(prompt_tokens, batch_size, matrix, prompt_score, logit),
        kv_of(prompt_tokens),
        seq_len,
    )

    # Decode: one token for each sequence, at the context that is there on average
    middle = mean_context(seq_len, output_len)
    score = attention_score_flops(layers, heads, head_dim, middle, 1, flops_per_mac)
    step = pass_of(
        decode_flops(batch_size, matrix, score, logit),
        kv_of(token_count(batch_size, middle)),
        1,
    )
    prefill, decode = reading.time, step.time
    request_rate = continuous_batching_rate(batch_size, output_len, decode, prefill)
    device = SimpleNamespace(
        peak_rate=peak_rate, bandwidth=bandwidth, tp_size=tp_size, output_len=output_len, **power
    )
    drawn = served_power(
        device,
        batch_size,
        batch_cycle_time(output_len, decode, prefill),
        batch_cycle_flops(output_len, step.flops, reading.flops),
        batch_cycle_traffic(output_len, step.traffic, batch_size, batch_size, reading.traffic),
    )
    fits = memory <= memory_capacity
    return {
        "ttft": prefill,
        "itl": decode,
        "latency": request_time(prefill, decode, output_len),
        "prefill_latency": prefill,
        "decode_latency": decode,
        "ttft_bottleneck": reading.bottleneck,
        "itl_bottleneck": step.bottleneck,
        "decode_throughput": sample_rate(batch_size, decode),
        "request_throughput": request_rate,
        "output_throughput": token_rate(request_rate, output_len),
        **drawn,
        "running_batch_size": batch_size,
        "model_weights_size": weights,
        "kv_cache_size": kv_cache,
        "total_memory_required": memory,
        "memory_capacity": memory_capacity,
        "memory_utilization": memory_share(memory, memory_capacity),
        "max_batch_size": largest_batch(memory_capacity, own_weights, kv_per_sequence),
        "max_seq_len": longest_context(memory_capacity, own_weights, kv_per_token, batch_size),
        "feasible": fits,
    }
