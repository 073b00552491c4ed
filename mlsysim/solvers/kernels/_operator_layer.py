"""Time of one transformer layer on one microbatch, from its operators."""

from __future__ import annotations

from dataclasses import dataclass
from types import SimpleNamespace

from mlsysim.core import formulas as f
from mlsysim.core.numeric import Value, where

__all__ = ["Rates", "attention_time", "head", "layer", "layer_traffic", "rates"]


@dataclass(frozen=True)
class Rates:
    """Rates that operators and links reach."""

    product: Value
    wide: Value
    memory: Value
    local: Value
    remote: Value


def rates(i: SimpleNamespace) -> Rates:
    """Turn datasheet rates into reached ones."""
    share = f.nic_share(i.nic_bandwidth, i.nics_per_node, i.devices_per_node)
    return Rates(
        product=f.reached_rate(i.peak_rate, i.gemm_efficiency),
        wide=f.reached_rate(i.wide_peak_rate, i.wide_gemm_efficiency),
        memory=f.reached_bandwidth(i.memory_bandwidth, i.memory_efficiency),
        local=f.reached_bandwidth(i.local_bandwidth, i.link_efficiency),
        remote=f.reached_bandwidth(share, i.nic_efficiency),
    )


def _product(
    i: SimpleNamespace,
    r: Rates,
    rows: Value,
    inner: Value,
    columns: Value,
    matrices: Value = 1,
    *,
    rate: Value = None,
) -> Value:
    return f.gemm_time(
        rows,
        inner,
        columns,
        matrices,
        r.product if rate is None else rate,
        r.memory,
        i.bytes_per_element,
        i.flops_per_mac,
        i.gemm_overhead,
    )


def _block(
    i: SimpleNamespace,
    r: Rates,
    rows: Value,
    width: Value,
    matrices: Value = 1,
    *,
    rate: Value = None,
) -> Value:
    """Return the products of a feed-forward block, in and out."""
    into = f.sharded_width(f.ffn_input_width(width, i.mlp_matrices), i.tp_size)
    out_of = f.sharded_width(width, i.tp_size)
    return f.time_sum(
        _product(i, r, rows, i.hidden_dim, into, matrices, rate=rate),
        _product(i, r, rows, out_of, i.hidden_dim, matrices, rate=rate),
    )


def attention_time(i: SimpleNamespace, tokens: Value) -> Value:
    """Return the time of attention in a layer's forward pass, scores in memory apart."""
    return f.compute_time(
        f.layer_score_flops(
            tokens,
            i.seq_len,
            i.heads,
            i.head_dim,
            i.tp_size,
            where(i.fused_attention > 0, i.attended_fraction, 1),
            i.flops_per_mac,
        ),
        i.wide_peak_rate,
        where(i.fused_attention > 0, i.attention_efficiency, i.wide_gemm_efficiency),
    )


def layer(i: SimpleNamespace, r: Rates, tokens: Value, sequences: Value) -> tuple[Value, Value]:
    """Return the time of a layer's passes on the device, and the part that only streams."""
    qkv = f.sharded_width(f.qkv_width(i.heads, i.kv_heads, i.head_dim), i.tp_size)
    context = f.sharded_width(f.attention_width(i.heads, i.head_dim), i.tp_size)
    projections = f.time_sum(
        _product(i, r, tokens, i.hidden_dim, qkv),
        _product(i, r, tokens, context, i.hidden_dim),
    )
    routed = f.rows_per_device(tokens, i.experts_per_token)
    experts = f.time_sum(
        _block(
            i,
            r,
            routed,
            i.expert_ffn_dim,
            f.local_experts(i.experts, i.ep_size),
            rate=f.reached_rate(r.product, i.expert_efficiency),
        ),
        _block(i, r, tokens, i.shared_ffn_dim),
    )
    ffn = f.mixed_layer_value(_block(i, r, tokens, i.ffn_dim), experts, i.layers, i.moe_layers)
    attention = attention_time(i, tokens)
    score = f.memory_time(
        f.score_traffic(sequences, i.heads, i.seq_len, i.tp_size, i.written_scores, i.score_bytes),
        r.memory,
    )
    routing = f.memory_time(
        f.routing_traffic(
            tokens,
            i.experts_per_token,
            i.hidden_dim,
            i.layers,
            i.moe_layers,
            i.routing_bytes,
            i.cast_bytes,
            where(i.expert_biases > 0, i.bias_bytes, 0),
        ),
        r.memory,
    )
    elementwise = f.memory_time(
        f.elementwise_traffic(
            tokens,
            i.hidden_dim,
            f.ffn_input_width(_inner(i), i.mlp_matrices),
            i.tp_size,
            where(i.sequence_parallel > 0, i.tp_size, 1),
            i.hidden_bytes,
            i.ffn_bytes,
            i.cast_bytes,
        ),
        r.memory,
    )
    streamed = f.time_sum(elementwise, routing)
    score_share = where(i.fused_attention > 0, i.matrix_share, i.score_share)
    time = f.layer_time(
        f.time_sum(projections, ffn),
        attention,
        score,
        streamed,
        i.attention_backward,
        i.elementwise_backward,
        i.matrix_share,
        score_share,
    )
    return time, f.layer_stream_time(
        score, streamed, i.elementwise_backward, i.matrix_share, score_share
    )


def _inner(i: SimpleNamespace) -> Value:
    """Return the inner width of a mean layer's feed-forward block."""
    return f.mean_ffn_dim(
        i.ffn_dim,
        i.expert_ffn_dim,
        i.shared_ffn_dim,
        i.experts_per_token,
        i.layers,
        i.moe_layers,
    )


def layer_traffic(i: SimpleNamespace, parameters: Value, layers: Value, tokens: Value) -> Value:
    """Return the bytes that the products of one of a stage's layers move in a forward pass."""
    inner = _inner(i)
    return f.layer_product_traffic(
        tokens,
        i.hidden_dim,
        f.sharded_width(f.qkv_width(i.heads, i.kv_heads, i.head_dim), i.tp_size),
        f.sharded_width(f.attention_width(i.heads, i.head_dim), i.tp_size),
        f.sharded_width(f.ffn_input_width(inner, i.mlp_matrices), i.tp_size),
        f.sharded_width(inner, i.tp_size),
        f.parameter_share(parameters, layers),
        i.bytes_per_element,
    )


def head(i: SimpleNamespace, r: Rates, tokens: Value) -> Value:
    """Return the time of the output projection and the loss, forward and backward."""
    product = f.gemm_time(
        tokens,
        i.hidden_dim,
        f.sharded_width(i.vocab_size, i.tp_size),
        1,
        r.wide,
        r.memory,
        i.bytes_per_element,
        i.flops_per_mac,
        i.gemm_overhead,
    )
    loss = f.memory_time(f.loss_traffic(tokens, i.vocab_size, i.tp_size, i.loss_bytes), r.memory)
    return f.head_time(product, loss)
