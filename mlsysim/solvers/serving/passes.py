"""Prefill and decode passes of an engine, timed operator by operator."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from typing import Any

from mlsysim.core import formulas as f
from mlsysim.core.numeric import Value, is_zero, maximum, minimum, where, zero_like
from mlsysim.core.types.attention import AttentionKind
from mlsysim.solvers.inference import inference_device, inference_layer
from mlsysim.solvers.layer import Device, Forward, attention_time, head
from mlsysim.solvers.serving.adapters import adapter_work
from mlsysim.solvers.serving.experts import expert_work, padding_flops
from mlsysim.solvers.serving.inputs import ServingInputs
from mlsysim.solvers.serving.links import (
    batch_parts,
    communication,
    context_exchange,
    hidden_exchange,
    stage_hops,
)
from mlsysim.solvers.serving.memory import cache_read, device_prompt, pass_budget
from mlsysim.solvers.tower import tower_of, tower_pass
from mlsysim.solvers.work import by_blocks, mean_over_attention


@dataclass(frozen=True)
class Pass:
    """A pass through the model."""

    time: Value
    traffic: Value
    """Bytes that a device moves through its memory."""
    bottleneck: Any
    """What limits the matrix products and attention."""
    shared: Value
    """Time saved if the tokens of this pass join those of another."""
    shared_traffic: Value
    """Bytes that then do not move: those of the weights for which the pass would have waited."""
    padding: Value
    """Operations of a device on rows of zeros."""


def device_rates(i: ServingInputs) -> Device:
    """Return the rates that a device of the engine reaches."""
    return inference_device(i, i.model, i.weight_precision, i.precision.training_bytes)


def new_tokens(i: ServingInputs) -> Value:
    """Return the tokens of a prompt that are in no cache: at least the last one."""
    return maximum(1, (1 - i.known_share) * i.seq_len)


def _layer(
    i: ServingInputs, d: Device, tokens: Value, every: Value, context: Value, decode: bool = False
) -> Forward:
    """Return the operators of a mean layer; the ranks of a stage together have `every` token."""
    work = partial(expert_work, i, d, tokens=every)
    return inference_layer(d, i.model, tokens, context, i.tp_size, work, decode)


def _fixed(i: ServingInputs, layer: Value, more: Value = 1) -> Value:
    """Return the fixed time of a mean layer, given that of a layer of two plain blocks.

    Experts and further parts of attention add their shares of it `more` times.
    """
    c, share = i.calibration, i.model.routed_layers / i.model.layers
    parts = mean_over_attention(i.model, lambda a: a.extra_parts)
    added = share * i.expert_overhead + parts * c.attention_overhead
    return by_blocks(i.model, layer) + more * added * layer


def prefill_pass(i: ServingInputs, d: Device, prompts: Value) -> Pass:
    """Return the prefill of several prompts together, on all ranks."""
    c, layers = i.calibration, i.model.layers
    new = new_tokens(i)
    rank_prompts = maximum(1, prompts / i.attention_dp)
    # Prompts longer than the token budget take several passes.
    chunks = maximum(1, rank_prompts * new / pass_budget(i))
    tokens, every = rank_prompts * new / chunks, maximum(prompts, 1) * new / chunks
    if not is_zero(c.padded_ranks):
        every = where(c.padded_ranks > 0, tokens * i.attention_dp, every)
    # Tokens after a cached prefix attend to it, and on average to half of the new tokens.
    context = i.seq_len + where(i.known_share > 0, i.seq_len - new, 0)
    parts = batch_parts(i, tokens)
    if not is_zero(i.overlap_batches):
        chunks, tokens, every = parts * chunks, tokens / parts, every / parts
    layer = _layer(i, d, tokens, every, context)
    logits = head(d, i.model, rank_prompts, i.tp_size)
    adapters = adapter_work(i, d, tokens, rank_prompts)
    fixed = _fixed(i, c.prompt_overhead, c.prompt_parts)
    computation = layer.products.time + layer.attention + layer.elementwise + adapters.time
    layer_time = computation + communication(i, tokens, every) + fixed
    if not is_zero(i.overlap_batches):
        hidden = hidden_exchange(i, d, tokens, every, parts, computation + fixed)
        layer_time = layer_time - hidden
    arithmetic = layer.products.compute + layer.attention
    # The product that computes keys and values also writes them to the cache, at no extra time.
    moved = layer.products.traffic + d.memory * (layer.elementwise + adapters.streamed)
    moved = chunks * layers * moved + logits.traffic
    time = chunks * layers * layer_time + logits.time + stage_hops(i, tokens)
    if tower := tower_of(i):
        vision = tower_pass(d, tower, rank_prompts * i.images, i.tp_size)
        time, moved = time + vision.time, moved + vision.traffic
    return Pass(
        time=time,
        traffic=moved,
        bottleneck=where(arithmetic >= layer.products.memory, "compute", "memory"),
        shared=0,
        shared_traffic=0,
        padding=chunks * padding_flops(i, every),
    )


def decode_pass(i: ServingInputs, d: Device, sequences: Value, context: Value) -> Pass:
    """Return a decode pass, which yields a token per sequence, at an average context length.

    Ranks decode different sequences, and stages work on different groups of them at a time. With
    drafts, a pass verifies several tokens of each sequence and yields `accepted` of them.
    """
    rank_sequences = maximum(1, sequences / i.copies)
    every = maximum(1, sequences / i.pp_size) * i.step_tokens
    if is_zero(i.overlap_batches):
        return _decode(i, d, rank_sequences, every, context, 1)
    parts = batch_parts(i, rank_sequences)
    part = _decode(i, d, rank_sequences / parts, every / parts, context, parts)
    # A prompt of one token joins only one of the parts.
    joined = minimum(parts, new_tokens(i))
    return Pass(
        parts * part.time,
        parts * part.traffic,
        part.bottleneck,
        joined * part.shared,
        joined * part.shared_traffic,
        parts * part.padding,
    )


def _decode(
    i: ServingInputs, d: Device, rank_sequences: Value, every: Value, context: Value, parts: Value
) -> Pass:
    """Return the decode pass of one of several parts of a batch.

    A rank has `rank_sequences` of the part, and all ranks of a stage have `every` token.
    """
    c, model, layers = i.calibration, i.model, i.model.layers
    tokens = rank_sequences * i.step_tokens
    layer = _layer(i, d, tokens, every, context, decode=True)
    logits = head(d, model, tokens, i.tp_size)
    cache_bandwidth = c.kv_efficiency * i.device.memory.bandwidth

    def reading(a: AttentionKind) -> Value:
        return f.memory_time(cache_read(i, a, rank_sequences, context), cache_bandwidth)

    def attending(a: AttentionKind) -> Value:
        arithmetic = attention_time(d, model, a, tokens, context, 1, i.tp_size, decode=True)
        return f.roofline_time(arithmetic, reading(a))

    cache = mean_over_attention(model, reading)
    fixed = _fixed(i, c.layer_overhead)
    attention = mean_over_attention(model, attending)
    exchange_time = communication(i, tokens, every) + context_exchange(i, tokens)
    layer_time = layer.products.time + attention + layer.elementwise + exchange_time + fixed
    adapters = adapter_work(i, d, tokens, rank_sequences)
    if not is_zero(i.overlap_batches):
        computation = layer.products.time + attention + layer.elementwise + adapters.time + fixed
        layer_time = layer_time - hidden_exchange(i, d, tokens, every, parts, computation)
    # A draft costs a layer and the output projection, for one token of each sequence at a time.
    drafts = i.draft_tokens * (layer_time + logits.time)
    device_time = layers * (layer_time + adapters.time) + logits.time + drafts
    moved = layer.products.traffic + d.memory * (layer.elementwise + adapters.streamed)
    moved = layers * moved + logits.traffic
    arithmetic = layer.products.compute + layer.attention
    waiting = maximum(zero_like(layer.products.time), layer.products.time - layer.products.compute)
    host_time = c.sequence_overhead + i.draft_tokens * c.draft_overhead
    return Pass(
        time=device_time + stage_hops(i, tokens) + rank_sequences * i.pp_size * host_time,
        traffic=moved + layers * cache_bandwidth * cache,
        bottleneck=where(arithmetic >= layer.products.memory + cache, "compute", "memory"),
        shared=layers * (waiting + fixed),
        shared_traffic=layers * layer.products.traffic * waiting / layer.products.memory,
        padding=padding_flops(i, every),
    )


def attending_time(i: ServingInputs, d: Device, prompts: Value, prefill: Value) -> Value:
    """Return the part of a prompt's prefill in which new tokens attend to cached ones."""
    if is_zero(i.known_share):
        return zero_like(prefill)
    none = zero_like(i.cached_share)
    fresh = i.but(seq_len=new_tokens(i), cached_share=none, loaded_share=none)
    time = prefill_pass(fresh, d, prompts).time / (prompts * i.pp_size)
    return where(i.known_share > 0, maximum(prefill - time, zero_like(prefill)), zero_like(prefill))


def load_crossover(i: ServingInputs, d: Device) -> Value:
    """Return the length above which loading a prefix is faster than prefill; NaN without a link."""
    if i.host_link is None:
        return math.nan * i.seq_len
    c, layers = i.calibration, i.model.layers
    tokens = pass_budget(i)
    every = tokens * i.attention_dp
    parts = batch_parts(i, tokens)
    if not is_zero(i.overlap_batches):
        tokens, every = tokens / parts, every / parts
    layer = _layer(i, d, tokens, every, i.seq_len)
    fixed = _fixed(i, c.prompt_overhead, c.prompt_parts)
    computation = layer.products.time + layer.attention + layer.elementwise + fixed
    exchanged = communication(i, tokens, every)
    exchanged = exchanged - hidden_exchange(i, d, tokens, every, parts, computation)
    token = layers * (layer.products.time + layer.elementwise + fixed + exchanged) / tokens
    pair = layers * layer.attention / (tokens * i.seq_len)
    load = device_prompt(i) / i.seq_len / i.host_bandwidth
    length = f.load_crossover(i.host_latency, load, token, pair)
    return where(length < math.inf, length, math.nan * length)
