"""Kernel of serving from operators: formulas composed, and nothing else."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from mlsysim.core import formulas as f
from mlsysim.core.numeric import Value, where
from mlsysim.solvers.kernels._power import flops_share, served_power
from mlsysim.solvers.kernels._serving_pass import decode_pass, prefill_pass, server_rates
from mlsysim.solvers.kernels._serving_work import batch_flops

__all__ = ["serve_operators"]


def serve_operators(**inputs: Value) -> dict[str, Any]:
    """Requests served by continuous batching, timed operator by operator.

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
    peak_rate, wide_peak_rate : [flop/s]
        Dense peak rates of a device, in the format of the products and of attention.
    bandwidth : [byte/s]
        Memory bandwidth of a device.
    memory_capacity : [byte]
        Memory of a device.
    link_bandwidth : [byte/s]
        Bandwidth of a device to its peers, one direction.
    batch_size : [1]
        Requests in flight.
    seq_len, output_len : [token]
        Tokens of each prompt, and tokens generated for each.
    waves : [1]
        Requests that each client sends, one after the other.
    arrivals : [1]
        Requests that clients send together once the first wave is over.
    tp_size : [1]
        Devices that share each layer.
    activation_bytes, weight_bytes, kv_bytes, scale_bytes : [byte]
        Bytes of one activation, stored weight, stored key or value, and of scale per weight.
    flops_per_mac : [flop]
        Operations of one multiply-accumulate.
    forward_all_reduces : [1]
        All-reduces of tensor parallelism per layer.
    gemm_efficiency, wide_gemm_efficiency, attention_efficiency : [1]
        Shares of the peak rates that products and attention reach.
    memory_efficiency, kv_efficiency, link_efficiency : [1]
        Shares of the bandwidths that weights, keys and values, and all-reduces reach.
    layer_overhead, all_reduce_overhead, prompt_overhead : [s]
        Fixed times per layer of a decode step, per all-reduce, and per layer of a prefill pass.
    sequence_overhead, request_overhead : [s]
        Fixed times per sequence and decode step, and per request.
    hidden_bytes, ffn_bytes : [byte]
        Traffic of element-wise operators per element of the two widths.
    pass_tokens : [token]
        Prompt tokens that one pass takes in.
    kv_share, reserved_output : [1]
        How the engine shares out memory.
    itl_band_low, itl_band_high, ttft_band_low, ttft_band_high : [1]
        Measured over predicted times at the edges of the band.
    design_power : [W]
        Design power of a device.
    energy_band_low, energy_band_high : [1]
        Measured over predicted energy per token at the edges of the band.
    constant_share, compute_share, memory_share, idle_share : [1]
        Shares of it: constant power, arithmetic at the peak rate, traffic at the full bandwidth,
        and an idle device.
    """
    i = SimpleNamespace(**inputs)

    def kv_of(tokens: Value, layers: Value = i.layers) -> Value:
        whole = f.kv_cache_size(layers, i.kv_heads, i.head_dim, tokens, i.kv_bytes)
        return f.kv_per_device(whole, i.tp_size, i.kv_heads)

    r = server_rates(i)

    # Memory, and the sequences that it lets run at once
    weights = f.tensor_size(i.parameters, r.weight_bytes)
    own_weights = f.tensor_slice(weights, i.tp_size)
    context = f.total_context(i.seq_len, i.output_len)
    memory = f.serving_memory(own_weights, kv_of(f.token_count(i.batch_size, context)))
    reserved = kv_of(f.reserved_context(i.seq_len, i.output_len, i.reserved_output))
    budget = f.kv_budget(i.memory_capacity, own_weights, i.kv_share)
    running = f.running_sequences(i.batch_size, f.largest_batch(budget, own_weights, reserved))

    # One prompt, and one decode step, each with the device to itself
    alone = prefill_pass(i, r, 1)
    middle = f.mean_context(i.seq_len, i.output_len)
    cache = kv_of(f.token_count(running, middle), 1)
    step = decode_pass(i, r, running, middle, cache)
    decode = step.time

    # Both at once. Without an output nothing ends, so all requests arrive together.
    waves = where(i.output_len > 0, i.waves, 1)
    together = f.arrivals_together(running, i.output_len, i.arrivals)
    ended = f.arrivals_together(running, i.output_len, 1)
    prompts = f.prompts_per_pass(i.pass_tokens, i.seq_len, ended)
    reading = prefill_pass(i, r, prompts)
    prefill = f.per_prompt_time(reading.time, prompts)
    prefills = f.repeated_time(running, prefill)
    most = f.prompts_per_pass(i.pass_tokens, i.seq_len, running)
    first = f.burst_prefill_time(prefill, running, most)
    # Requests of one token never decode: each waits until all others have been read once.
    later = where(i.output_len > 1, f.burst_prefill_time(prefill, together, prompts), prefills)
    read = f.mean_over_waves(first, later, waves)
    interference = where(
        i.output_len > 1, f.interference_time(prefill, running, read, i.output_len), 0
    )
    itl = f.time_sum(decode, interference)
    once = f.time_sum(i.request_overhead, prefills)
    cycle = f.batch_cycle_time(i.output_len, decode, once)
    ttft = f.time_sum(
        f.time_sum(i.request_overhead, read), f.place_wait(i.batch_size, running, cycle, waves)
    )
    request_rate = f.continuous_batching_rate(running, i.output_len, decode, once)
    drawn = served_power(
        i,
        running,
        cycle,
        flops_share(i, *batch_flops(i, running, middle), cycle, i.tp_size),
        f.batch_cycle_traffic(i.output_len, step.traffic, running, prompts, reading.traffic),
    )
    return {
        "ttft": ttft,
        "ttft_low": f.band_edge(ttft, i.ttft_band_low),
        "ttft_high": f.band_edge(ttft, i.ttft_band_high),
        "itl": itl,
        "itl_low": f.band_edge(itl, i.itl_band_low),
        "itl_high": f.band_edge(itl, i.itl_band_high),
        "latency": f.request_time(ttft, itl, i.output_len),
        "prefill_latency": alone.time,
        "decode_latency": decode,
        "ttft_bottleneck": alone.bottleneck,
        "itl_bottleneck": step.bottleneck,
        "decode_throughput": f.sample_rate(running, decode),
        "request_throughput": request_rate,
        "output_throughput": f.token_rate(request_rate, i.output_len),
        **drawn,
        "energy_per_token_low": f.energy_band_edge(drawn["energy_per_token"], i.energy_band_low),
        "energy_per_token_high": f.energy_band_edge(drawn["energy_per_token"], i.energy_band_high),
        "running_batch_size": running,
        "model_weights_size": weights,
        "kv_cache_size": f.kv_cache_size(
            i.layers, i.kv_heads, i.head_dim, f.token_count(i.batch_size, context), i.kv_bytes
        ),
        "total_memory_required": memory,
        "memory_capacity": i.memory_capacity,
        "memory_utilization": f.memory_share(memory, i.memory_capacity),
        "max_batch_size": f.largest_batch(i.memory_capacity, own_weights, kv_of(context)),
        "max_seq_len": f.longest_context(i.memory_capacity, own_weights, kv_of(1), i.batch_size),
        "feasible": memory <= i.memory_capacity,
    }
