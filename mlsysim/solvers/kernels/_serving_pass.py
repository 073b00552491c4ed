"""One inference pass, from its operators: its time and its memory traffic."""

from __future__ import annotations

from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

from mlsysim.core import formulas as f
from mlsysim.core.numeric import Value, where

__all__: list[str] = []  # parts of a kernel, no kernel of their own


@dataclass(frozen=True)
class Rates:
    """Rates that operators reach, and the bytes of a stored weight."""

    product: Value
    head: Value
    memory: Value
    weight_bytes: Value


@dataclass(frozen=True)
class ServerRates(Rates):
    """With those of decode steps and of links."""

    cache: Value
    link: Value


def rates(i: SimpleNamespace) -> Rates:
    """Turn datasheet rates into those that one device reaches in a prefill."""
    return Rates(**_reached(i))


def server_rates(i: SimpleNamespace) -> ServerRates:
    """Turn datasheet rates into those that a server reaches."""
    return ServerRates(
        **_reached(i),
        cache=f.reached_bandwidth(i.bandwidth, i.kv_efficiency),
        link=f.reached_bandwidth(i.link_bandwidth, i.link_efficiency),
    )


def _reached(i: SimpleNamespace) -> dict[str, Value]:
    return {
        "product": f.reached_rate(i.peak_rate, i.gemm_efficiency),
        "head": f.reached_rate(i.wide_peak_rate, i.wide_gemm_efficiency),
        "memory": f.reached_bandwidth(i.bandwidth, i.memory_efficiency),
        "weight_bytes": f.stored_weight_bytes(i.weight_bytes, i.scale_bytes),
    }


@dataclass(frozen=True)
class Work:
    """Time of products, and what it is made of."""

    time: Value
    compute: Value
    memory: Value


def _joined(formula: Any, *parts: Work) -> Work:
    """Apply a formula of times to times, arithmetic and memory traffic alike."""
    return Work(
        formula(*[part.time for part in parts]),
        formula(*[part.compute for part in parts]),
        formula(*[part.memory for part in parts]),
    )


def _product(
    i: SimpleNamespace, r: Rates, rows: Value, inner: Value, columns: Value, matrices: Value = 1
) -> Work:
    """Return one product of the layers, in the format of the weights."""
    compute = f.product_compute_time(rows, inner, columns, r.product, i.flops_per_mac)
    memory = f.product_memory_time(
        rows, inner, columns, matrices, r.memory, r.weight_bytes, i.activation_bytes
    )
    return Work(f.roofline_time(compute, memory), compute, memory)


def _block(i: SimpleNamespace, r: Rates, rows: Value, width: Value, matrices: Value = 1) -> Work:
    """Return the products of a feed-forward block, in and out."""
    into = f.sharded_width(f.ffn_input_width(width, i.mlp_matrices), i.tp_size)
    out_of = f.sharded_width(width, i.tp_size)
    return _joined(
        f.time_sum,
        _product(i, r, rows, i.hidden_dim, into, matrices),
        _product(i, r, rows, out_of, i.hidden_dim, matrices),
    )


def _products(i: SimpleNamespace, r: Rates, tokens: Value) -> Work:
    """Return the products of a mean layer."""
    qkv = f.sharded_width(f.qkv_width(i.heads, i.kv_heads, i.head_dim), i.tp_size)
    context = f.sharded_width(f.attention_width(i.heads, i.head_dim), i.tp_size)
    routed = f.rows_per_device(tokens, i.experts_per_token, i.tp_size, i.tp_size)
    visited = f.experts_visited(i.experts, i.experts_per_token, tokens)
    experts = _joined(
        f.time_sum,
        _block(i, r, routed, i.expert_ffn_dim, visited),
        _block(i, r, tokens, i.shared_ffn_dim),
    )
    feed_forward = _joined(
        lambda dense, expert: f.mixed_layer_value(dense, expert, i.layers, i.moe_layers),
        _block(i, r, tokens, i.ffn_dim),
        experts,
    )
    return _joined(
        f.layer_products_time,
        _product(i, r, tokens, i.hidden_dim, qkv),
        _product(i, r, tokens, context, i.hidden_dim),
        feed_forward,
    )


def head(i: SimpleNamespace, r: Rates, rows: Value) -> Work:
    """Return the output projection of some tokens; its weights stay in 16 bits."""
    columns = f.sharded_width(i.vocab_size, i.tp_size)
    wide = i.activation_bytes
    compute = f.product_compute_time(rows, i.hidden_dim, columns, r.head, i.flops_per_mac)
    memory = f.product_memory_time(rows, i.hidden_dim, columns, 1, r.memory, wide, wide)
    return Work(f.roofline_time(compute, memory), compute, memory)


def _elementwise(i: SimpleNamespace, r: Rates, tokens: Value) -> Value:
    inner = f.mean_ffn_dim(
        i.ffn_dim,
        i.expert_ffn_dim,
        i.shared_ffn_dim,
        i.experts_per_token,
        i.layers,
        i.moe_layers,
    )
    width = f.ffn_input_width(inner, i.mlp_matrices)
    return f.memory_time(
        f.inference_elementwise_traffic(
            tokens, i.hidden_dim, width, i.tp_size, i.hidden_bytes, i.ffn_bytes
        ),
        r.memory,
    )


def _all_reduces(i: SimpleNamespace, r: ServerRates, tokens: Value) -> Value:
    size = f.hidden_state_size(tokens, 1, i.hidden_dim, i.activation_bytes)
    each = f.one_shot_all_reduce_time(size, i.tp_size, r.link, i.all_reduce_overhead)
    return f.repeated_time(i.forward_all_reduces, each)


@dataclass(frozen=True)
class PromptLayer:
    """A layer that reads whole sequences, in parts; communication apart."""

    tokens: Value
    products: Work
    attention: Value
    elementwise: Value


def prompt_layer(i: SimpleNamespace, r: Rates, prompts: Value) -> PromptLayer:
    """Return the parts of a layer's time when prompts are read together."""
    tokens = f.token_count(prompts, i.seq_len)
    products = _products(i, r, tokens)
    score = f.layer_score_flops(
        tokens,
        i.seq_len,
        i.heads,
        i.head_dim,
        i.tp_size,
        i.attended_fraction,
        i.flops_per_mac,
    )
    attention = f.compute_time(score, i.wide_peak_rate, i.attention_efficiency)
    return PromptLayer(tokens, products, attention, _elementwise(i, r, tokens))


@dataclass(frozen=True)
class Pass:
    """A pass of a server."""

    time: Value
    traffic: Value
    """Bytes that a device moves through its memory."""
    bottleneck: Any
    """What its products wait for."""


def prefill_pass(i: SimpleNamespace, r: ServerRates, prompts: Value) -> Pass:
    """Return the pass in which prompts are read together."""
    parts = prompt_layer(i, r, prompts)
    logits = head(i, r, prompts)
    layer = f.serving_layer_time(
        parts.products.time,
        parts.attention,
        parts.elementwise,
        _all_reduces(i, r, parts.tokens),
        i.prompt_overhead,
    )
    arithmetic = f.time_sum(parts.products.compute, parts.attention)
    # The product that makes keys and values writes them: no other time goes to the cache.
    streamed = f.layers_pass_time(
        f.time_sum(parts.products.memory, parts.elementwise), i.layers, logits.memory
    )
    return Pass(
        f.layers_pass_time(layer, i.layers, logits.time),
        f.streamed_size(streamed, r.memory),
        where(arithmetic >= parts.products.memory, "compute", "memory"),
    )


def decode_pass(
    i: SimpleNamespace, r: ServerRates, sequences: Value, context: Value, layer_cache: Value
) -> Pass:
    """Return the pass in which each sequence gets a token."""
    products = _products(i, r, sequences)
    elementwise = _elementwise(i, r, sequences)
    logits = head(i, r, sequences)
    score = f.layer_score_flops(
        sequences, context, i.heads, i.head_dim, i.tp_size, 1, i.flops_per_mac
    )
    arithmetic = f.compute_time(score, i.wide_peak_rate, i.attention_efficiency)
    cache = f.memory_time(layer_cache, r.cache)
    layer = f.serving_layer_time(
        products.time,
        f.roofline_time(arithmetic, cache),
        elementwise,
        _all_reduces(i, r, sequences),
        i.layer_overhead,
    )
    device = f.layers_pass_time(layer, i.layers, logits.time)
    host = f.repeated_time(sequences, i.sequence_overhead)
    traffic = f.time_sum(products.memory, cache)
    return Pass(
        f.time_sum(device, host),
        f.serving_pass_traffic(
            f.time_sum(products.memory, elementwise),
            r.memory,
            cache,
            r.cache,
            i.layers,
            logits.memory,
        ),
        where(f.time_sum(products.compute, arithmetic) >= traffic, "compute", "memory"),
    )
