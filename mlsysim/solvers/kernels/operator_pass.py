"""Kernel of a transformer's forward pass from its operators: formulas composed, nothing else."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from mlsysim.core import formulas as f
from mlsysim.core.numeric import Value, maximum, where
from mlsysim.solvers.kernels._power import flops_share, pass_power
from mlsysim.solvers.kernels._serving_pass import head, prompt_layer, rates
from mlsysim.solvers.kernels._token_work import token_work

__all__ = ["operator_pass"]


def operator_pass(**inputs: Value) -> dict[str, Any]:
    """Forward pass of a transformer over whole sequences on one device, operator by operator.

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
    seq_len : [token]
        Tokens in each sequence.
    batch_size : [sample]
        Sequences in the batch.
    flops_per_mac : [flop]
        Operations of one multiply-accumulate.
    peak_rate, wide_peak_rate : [flop/s]
        Dense peak rates of the device, in the format of the products and of attention and logits.
    bandwidth : [byte/s]
        Memory bandwidth.
    design_power : [W]
        Design power of the device.
    constant_share, compute_share, memory_share, idle_share : [1]
        Shares of it: constant power, arithmetic at the peak rate, traffic at the full bandwidth,
        and an idle device.
    memory_capacity : [byte]
        Memory of the device.
    activation_bytes, weight_bytes, kv_bytes, scale_bytes : [byte]
        Bytes of one activation, stored weight, stored key or value, and of scale per weight.
    gemm_efficiency, wide_gemm_efficiency, attention_efficiency, memory_efficiency : [1]
        Shares of the datasheet's rates that operators reach.
    hidden_bytes, ffn_bytes : [byte]
        Traffic of element-wise operators per element of the two widths.
    prompt_overhead : [s]
        Fixed time per layer.
    pass_band_low, pass_band_high : [1]
        Measured over predicted time at the edges of the band.
    """
    i = SimpleNamespace(**inputs, tp_size=1)
    r = rates(i)
    parts = prompt_layer(i, r, i.batch_size)
    logits = head(i, r, parts.tokens)
    layer = f.serving_layer_time(
        parts.products.time, parts.attention, parts.elementwise, 0, i.prompt_overhead
    )
    latency = f.layers_pass_time(layer, i.layers, logits.time)

    # The same operators, by what they wait for
    arithmetic = f.layers_pass_time(
        f.time_sum(parts.products.compute, parts.attention), i.layers, logits.compute
    )
    traffic = f.layers_pass_time(
        f.time_sum(parts.products.memory, parts.elementwise), i.layers, logits.memory
    )
    overhead = f.repeated_time(i.layers, i.prompt_overhead)
    slower = where(arithmetic >= traffic, "compute", "memory")

    matrix, score, logit = token_work(i)
    flops = f.forward_flops(parts.tokens, matrix, score, logit)
    moved = f.streamed_size(traffic, r.memory)
    wide_flops = f.forward_flops(parts.tokens, 0, score, logit)
    mfu = flops_share(i, flops, wide_flops, latency, devices=1)
    memory = f.serving_memory(
        f.tensor_size(i.parameters, r.weight_bytes),
        f.kv_cache_size(i.layers, i.kv_heads, i.head_dim, parts.tokens, i.kv_bytes),
    )
    return {
        "latency": latency,
        "latency_low": f.band_edge(latency, i.pass_band_low),
        "latency_high": f.band_edge(latency, i.pass_band_high),
        "throughput": f.sample_rate(i.batch_size, latency),
        "bottleneck": where(overhead > maximum(arithmetic, traffic), "overhead", slower),
        "compute_time": arithmetic,
        "memory_time": traffic,
        "overhead_time": overhead,
        "flops": flops,
        "bytes_moved": moved,
        "arithmetic_intensity": f.arithmetic_intensity(flops, moved),
        "ridge_point": f.ridge_point(r.product, r.memory),
        "mfu": mfu,
        **pass_power(i, latency, mfu, moved),
        "memory": memory,
        "memory_capacity": i.memory_capacity,
        "feasible": memory <= i.memory_capacity,
    }
