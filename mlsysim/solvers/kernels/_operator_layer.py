"""Time of one transformer layer on one microbatch, from its operators."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from types import SimpleNamespace

from mlsysim.core import formulas as f
from mlsysim.core.numeric import Value, where

__all__ = ["Layer", "Products", "Rates", "attention_time", "head", "layer", "rates"]


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


@dataclass(frozen=True)
class Products:
    """Time of matrix products, and the time in which they would only stream."""

    time: Value
    memory: Value


def _joined(formula: Callable[..., Value], *parts: Products) -> Products:
    return Products(
        formula(*[part.time for part in parts]), formula(*[part.memory for part in parts])
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
) -> Products:
    each = i.bytes_per_element
    time = f.gemm_time(
        rows,
        inner,
        columns,
        matrices,
        r.product if rate is None else rate,
        r.memory,
        each,
        i.flops_per_mac,
        i.gemm_overhead,
    )
    return Products(
        time, f.product_memory_time(rows, inner, columns, matrices, r.memory, each, each)
    )


def _block(
    i: SimpleNamespace,
    r: Rates,
    rows: Value,
    width: Value,
    matrices: Value = 1,
    *,
    shards: Value = None,
    rate: Value = None,
) -> Products:
    """Return the products of a feed-forward block, in and out."""
    shards = i.tp_size if shards is None else shards
    into = f.sharded_width(f.ffn_input_width(width, i.mlp_matrices), shards)
    out_of = f.sharded_width(width, shards)
    return _joined(
        f.time_sum,
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


@dataclass(frozen=True)
class Layer:
    """A mean layer on one microbatch."""

    time: Value
    """Its passes on the device."""
    streamed: Value
    """The part of them that only streams."""
    products: Value
    """The time in which its products would stream, forward."""


def layer(i: SimpleNamespace, r: Rates, tokens: Value, sequences: Value) -> Layer:
    """Return the times of a layer."""
    qkv = f.sharded_width(f.qkv_width(i.heads, i.kv_heads, i.head_dim), i.tp_size)
    context = f.sharded_width(f.attention_width(i.heads, i.head_dim), i.tp_size)
    projections = _joined(
        f.time_sum,
        _product(i, r, tokens, i.hidden_dim, qkv),
        _product(i, r, tokens, context, i.hidden_dim),
    )
    sharers = f.expert_tp_size(f.expert_group_size(i.tp_size, i.ep_size), i.ep_size)
    routed = f.rows_per_device(tokens, i.experts_per_token, i.tp_size, sharers)
    experts = _joined(
        f.time_sum,
        _block(
            i,
            r,
            routed,
            i.expert_ffn_dim,
            f.local_experts(i.experts, i.ep_size),
            shards=sharers,
            rate=f.reached_rate(r.product, i.expert_efficiency),
        ),
        _block(i, r, tokens, i.shared_ffn_dim),
    )
    ffn = _joined(
        lambda dense, expert: f.mixed_layer_value(dense, expert, i.layers, i.moe_layers),
        _block(i, r, tokens, i.ffn_dim),
        experts,
    )
    products = _joined(f.time_sum, projections, ffn)
    attention = attention_time(i, tokens)
    score = f.memory_time(
        f.score_traffic(sequences, i.heads, i.seq_len, i.tp_size, i.written_scores, i.score_bytes),
        r.memory,
    )
    routing = f.memory_time(
        f.routing_traffic(
            routed,
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
        products.time,
        attention,
        score,
        streamed,
        i.attention_backward,
        i.elementwise_backward,
        i.matrix_share,
        score_share,
    )
    return Layer(
        time,
        f.layer_stream_time(score, streamed, i.elementwise_backward, i.matrix_share, score_share),
        products.memory,
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


def head(i: SimpleNamespace, r: Rates, tokens: Value) -> Products:
    """Return the output projection and the loss, forward and backward."""
    columns = f.sharded_width(i.vocab_size, i.tp_size)
    product = _product(i, r, tokens, i.hidden_dim, columns, rate=r.wide)
    loss = f.memory_time(f.loss_traffic(tokens, i.vocab_size, i.tp_size, i.loss_bytes), r.memory)
    return Products(f.head_time(product.time, loss), f.head_time(product.memory, loss))
