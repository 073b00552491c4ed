"""Kernel of serving a language model: formulas composed, and nothing else."""

from __future__ import annotations

from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

from mlsysim.core.formulas import (
    attention_score_flops,
    batch_cycle_flops,
    batch_cycle_time,
    batch_cycle_traffic,
    compute_time,
    continuous_batching_rate,
    decode_flops,
    device_flops,
    flops_utilization,
    hidden_state_size,
    kv_cache_size,
    kv_per_device,
    largest_batch,
    layer_all_reduce_time,
    longest_context,
    mean_context,
    memory_share,
    memory_time,
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
from mlsysim.solvers.kernels._token_work import parameters_met, token_work

__all__ = ["serve"]


@dataclass(frozen=True)
class _Pass:
    """A pass: its whole time, all its operations, a device's traffic, and what it waits for."""

    time: Value
    flops: Value
    traffic: Value
    bottleneck: Any


def serve(**inputs: Value) -> dict[str, Any]:
    """A batch of prompts read at once, then decoded token by token.

    Parameters
    ----------
    layers, hidden_dim, heads, kv_heads, head_dim, ffn_dim, mlp_matrices, vocab_size : [1]
        Shape of the model.
    attended_fraction : [1]
        Share of the prompt that a prompt token attends to.
    experts, experts_per_token, expert_ffn_dim, shared_ffn_dim, moe_layers : [1]
        Shape of its experts; one expert, visited by all, where it has none.
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
    seq_len, output_len : [token]
        Tokens of each prompt, and tokens generated for each.
    tp_size : [1]
        Devices that share each layer.
    efficiency : [1]
        Share of the peak rate that arithmetic reaches.
    bytes_per_element, weight_bytes, kv_bytes : [byte]
        Bytes of one activation, stored weight, and stored key or value.
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
    i = SimpleNamespace(**inputs)
    matrix, prompt_score, logit = token_work(i)

    def pass_of(flops: Value, kv_cache: Value, tokens_each: Value) -> _Pass:
        arithmetic = compute_time(device_flops(flops, i.tp_size, 1), i.peak_rate, i.efficiency)
        met = parameters_met(i, token_count(i.batch_size, tokens_each))
        moved = serving_memory(
            tensor_slice(tensor_size(met, i.weight_bytes), i.tp_size),
            kv_per_device(kv_cache, i.tp_size, i.kv_heads),
        )
        traffic = memory_time(moved, i.bandwidth)
        all_reduce = ring_all_reduce_time(
            hidden_state_size(tokens_each, i.batch_size, i.hidden_dim, i.bytes_per_element),
            i.tp_size,
            i.link_bandwidth,
            i.link_latency,
        )
        communication = layer_all_reduce_time(all_reduce, i.forward_all_reduces, i.layers, 1)
        whole = pass_time(roofline_time(arithmetic, traffic), communication)
        return _Pass(whole, flops, moved, where(arithmetic >= traffic, "compute", "memory"))

    def kv_of(tokens: Value) -> Value:
        return kv_cache_size(i.layers, i.kv_heads, i.head_dim, tokens, i.kv_bytes)

    # Memory, when the last token is made: all weights, visited or not
    weights = tensor_size(i.parameters, i.weight_bytes)
    own_weights = tensor_slice(weights, i.tp_size)
    context = total_context(i.seq_len, i.output_len)
    kv_cache = kv_of(token_count(i.batch_size, context))
    memory = serving_memory(own_weights, kv_per_device(kv_cache, i.tp_size, i.kv_heads))
    kv_per_sequence = kv_per_device(kv_of(context), i.tp_size, i.kv_heads)
    kv_per_token = kv_per_device(kv_of(1), i.tp_size, i.kv_heads)

    # Prefill: all prompts at once
    prompt_tokens = token_count(i.batch_size, i.seq_len)
    reading = pass_of(
        prefill_flops(prompt_tokens, i.batch_size, matrix, prompt_score, logit),
        kv_of(prompt_tokens),
        i.seq_len,
    )

    # Decode: one token for each sequence, at the context that is there on average
    middle = mean_context(i.seq_len, i.output_len)
    score = attention_score_flops(i.layers, i.heads, i.head_dim, middle, 1, i.flops_per_mac)
    step = pass_of(
        decode_flops(i.batch_size, matrix, score, logit),
        kv_of(token_count(i.batch_size, middle)),
        1,
    )
    prefill, decode = reading.time, step.time
    request_rate = continuous_batching_rate(i.batch_size, i.output_len, decode, prefill)
    cycle = batch_cycle_time(i.output_len, decode, prefill)
    drawn = served_power(
        i,
        i.batch_size,
        cycle,
        flops_utilization(
            batch_cycle_flops(i.output_len, step.flops, reading.flops),
            cycle,
            i.peak_rate,
            i.tp_size,
        ),
        batch_cycle_traffic(
            i.output_len, step.traffic, i.batch_size, i.batch_size, reading.traffic
        ),
    )
    fits = memory <= i.memory_capacity
    return {
        "ttft": prefill,
        "itl": decode,
        "latency": request_time(prefill, decode, i.output_len),
        "prefill_latency": prefill,
        "decode_latency": decode,
        "ttft_bottleneck": reading.bottleneck,
        "itl_bottleneck": step.bottleneck,
        "decode_throughput": sample_rate(i.batch_size, decode),
        "request_throughput": request_rate,
        "output_throughput": token_rate(request_rate, i.output_len),
        **drawn,
        "running_batch_size": i.batch_size,
        "model_weights_size": weights,
        "kv_cache_size": kv_cache,
        "total_memory_required": memory,
        "memory_capacity": i.memory_capacity,
        "memory_utilization": memory_share(memory, i.memory_capacity),
        "max_batch_size": largest_batch(i.memory_capacity, own_weights, kv_per_sequence),
        "max_seq_len": longest_context(i.memory_capacity, own_weights, kv_per_token, i.batch_size),
        "feasible": fits,
    }
