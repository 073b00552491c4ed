"""Serving from its operators: requests batched continuously, with a calibration's constants."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from mlsysim.core import formulas as f
from mlsysim.core.numeric import Value, first_known, maximum, minimum, where
from mlsysim.core.types.attention import Attention, AttentionKind, LinearAttention
from mlsysim.solvers.inference import inference_device, inference_layer
from mlsysim.solvers.layer import Device, attention_time, head
from mlsysim.solvers.power import flops_share
from mlsysim.solvers.serving.cache import cache_read, cache_size, longest, own_cache
from mlsysim.solvers.serving.inputs import ServingInputs
from mlsysim.solvers.serving.power import served_power
from mlsysim.solvers.tower import tower_flops, tower_of, tower_pass
from mlsysim.solvers.work import (
    attentions,
    by_blocks,
    decode_score_flops,
    group_bandwidth,
    inner_width,
    mean_over_attention,
    stored_weights,
    token_flops,
)

__all__ = ["serve_operators"]


def serve_operators(i: ServingInputs) -> dict[str, Any]:
    """Serve requests by continuous batching, timed operator by operator."""
    c, model = i.calibration, i.model
    d = inference_device(i, model, i.weight_precision, i.precision.training_bytes)

    # Memory, and the sequences that fit at once. Of what weights and workspace leave, the engine
    # keeps a share free, so a byte of keys and values takes a little more than a byte.
    chip = i.device.memory
    capacity = first_known(chip.reported, chip.capacity)
    weights = stored_weights(model, i.weight_precision)
    held = weights / i.tp_size + _workspace(i)
    context = i.seq_len + i.output_len
    memory = held + own_cache(i, i.batch_size, context) / c.kv_share
    reserved = own_cache(i, 1, i.seq_len + c.reserved_output * i.output_len) / c.kv_share
    running = maximum(1, minimum(i.batch_size, f.largest_batch(capacity, held, reserved)))

    # One prompt and one decode step, each alone on the device
    alone = _prefill(i, d, 1)
    mean_context = f.mean_context(i.seq_len, i.output_len)
    step = _decode(i, d, running, mean_context)
    decode = step.time

    # Both together
    together = f.arrivals_together(running, i.output_len, i.arrivals)
    ended = f.arrivals_together(running, i.output_len, 1)
    prompts = f.prompts_per_pass(c.pass_tokens, i.seq_len, ended)
    reading = _prefill(i, d, prompts)
    prefill = reading.time / prompts
    prefills = running * prefill
    most = f.prompts_per_pass(c.pass_tokens, i.seq_len, running)
    first = f.burst_prefill_time(prefill, running, most)
    # Requests for one token never decode: each waits until all others are prefilled.
    later = where(i.output_len > 1, f.burst_prefill_time(prefill, together, prompts), prefills)
    read = f.mean_over_waves(first, later, i.waves)
    interference = where(
        i.output_len > 1, f.interference_time(prefill, running, read, i.output_len), 0 * prefill
    )
    itl = decode + interference
    admission = f.admission_wait(decode, running, c.admission_steps, i.output_len)
    once = admission + prefills
    decodes = maximum(i.output_len - 1, 0)
    cycle = decodes * decode + once
    wait = f.place_wait(i.batch_size, running, cycle, i.waves)
    ttft = admission + read + wait
    request_rate = f.continuous_batching_rate(running, i.output_len, decode, once)
    energy = _power(
        i,
        running,
        mean_context,
        cycle,
        decodes * step.traffic + running / prompts * reading.traffic,
    )
    return {
        "ttft": ttft,
        "ttft_low": c.ttft_band_low * ttft,
        "ttft_high": c.ttft_band_high * ttft,
        "itl": itl,
        "itl_low": c.itl_band_low * itl,
        "itl_high": c.itl_band_high * itl,
        "latency": f.request_time(ttft, itl, i.output_len),
        "prefill_latency": alone.time,
        "decode_latency": decode,
        "ttft_bottleneck": alone.bottleneck,
        "itl_bottleneck": step.bottleneck,
        "decode_throughput": running / decode,
        "request_throughput": request_rate,
        "output_throughput": i.output_len * request_rate,
        **energy,
        "energy_per_token_low": i.power_calibration.energy_band_low * energy["energy_per_token"],
        "energy_per_token_high": i.power_calibration.energy_band_high * energy["energy_per_token"],
        "running_batch_size": running,
        "model_weights_size": weights,
        "kv_cache_size": cache_size(i, i.batch_size, context),
        "total_memory_required": memory,
        "memory_capacity": capacity,
        "memory_utilization": memory / capacity,
        "max_batch_size": f.largest_batch(capacity, held, own_cache(i, 1, context) / c.kv_share),
        "max_seq_len": longest(i, capacity, held, c.kv_share),
        "feasible": memory <= capacity,
    }


def _workspace(i: ServingInputs) -> Value:
    """Return the memory that one device keeps for the activations of the largest pass."""
    inside, widest = 0, 0
    for _, a in attentions(i.model):
        inside = maximum(inside, _attention_width(a))
    for group in i.model.groups:
        block = group.feed_forward
        if block is not None:
            width = where(group.count > 0, block.matrices * inner_width(block), 0)
            widest = maximum(widest, width)
    return f.pass_workspace(
        i.calibration.pass_tokens,
        i.model.hidden_dim,
        inside,
        widest,
        i.tp_size,
        i.precision.training_bytes,
    )


def _attention_width(a: AttentionKind) -> Value:
    """Return the width of all tensors inside of attention, of all heads together."""
    if isinstance(a, LinearAttention):
        return a.in_width + a.width
    width = 2 * a.head_dim * (a.heads + a.kv_heads)
    return where(a.gates > 0, width + a.gate_width, width) if isinstance(a, Attention) else width


@dataclass(frozen=True)
class _Pass:
    """A pass through the model."""

    time: Value
    traffic: Value
    """Bytes that a device moves through its memory."""
    bottleneck: Any
    """What limits its products and its attention."""


def _all_reduces(i: ServingInputs, tokens: Value) -> Value:
    """Return the tensor-parallel communication of a layer."""
    if i.links is None:
        return 0
    c = i.calibration
    size = f.hidden_state_size(tokens, 1, i.model.hidden_dim, i.precision.training_bytes)
    bandwidth = group_bandwidth(i.links, c.link_efficiency * i.links.bandwidth, i.tp_size)
    each = f.one_shot_all_reduce_time(size, i.tp_size, bandwidth, c.all_reduce_overhead)
    return by_blocks(i.model, i.conventions.forward_all_reduces * each)


def _prefill(i: ServingInputs, d: Device, prompts: Value) -> _Pass:
    """Return the pass that prefills a number of prompts together."""
    model, layers = i.model, i.model.layers
    tokens = prompts * i.seq_len
    layer = inference_layer(d, model, tokens, i.seq_len, i.tp_size)
    logits = head(d, model, prompts, i.tp_size)
    layer_time = (
        layer.products.time
        + layer.attention
        + layer.elementwise
        + _all_reduces(i, tokens)
        + by_blocks(model, i.calibration.prompt_overhead)
    )
    arithmetic = layer.products.compute + layer.attention
    # The product that makes keys and values also writes them to the cache, at no extra time.
    streamed = layers * (layer.products.memory + layer.elementwise) + logits.memory
    time = layers * layer_time + logits.time
    if tower := tower_of(i):
        vision = tower_pass(d, tower, prompts * i.images, i.tp_size)
        time, streamed = time + vision.time, streamed + vision.memory
    return _Pass(
        time=time,
        traffic=d.memory * streamed,
        bottleneck=where(arithmetic >= layer.products.memory, "compute", "memory"),
    )


def _decode(i: ServingInputs, d: Device, sequences: Value, context: Value) -> _Pass:
    """Return the pass that gives each sequence a token, at an average context length."""
    c, model, layers = i.calibration, i.model, i.model.layers
    layer = inference_layer(d, model, sequences, context, i.tp_size, decode=True)
    logits = head(d, model, sequences, i.tp_size)
    cache_bandwidth = c.kv_efficiency * i.device.memory.bandwidth

    def reading(a: AttentionKind) -> Value:
        return f.memory_time(cache_read(i, a, sequences, context), cache_bandwidth)

    def attending(a: AttentionKind) -> Value:
        arithmetic = attention_time(d, model, a, sequences, context, 1, i.tp_size, decode=True)
        return f.roofline_time(arithmetic, reading(a))

    cache = mean_over_attention(model, reading)
    layer_time = (
        layer.products.time
        + mean_over_attention(model, attending)
        + layer.elementwise
        + _all_reduces(i, sequences)
        + by_blocks(model, c.layer_overhead)
    )
    on_device = layers * layer_time + logits.time
    streamed = layers * (layer.products.memory + layer.elementwise) + logits.memory
    arithmetic = layer.products.compute + layer.attention
    return _Pass(
        time=on_device + sequences * c.sequence_overhead,
        traffic=d.memory * streamed + layers * cache_bandwidth * cache,
        bottleneck=where(arithmetic >= layer.products.memory + cache, "compute", "memory"),
    )


def _power(
    i: ServingInputs, sequences: Value, context: Value, cycle: Value, traffic: Value
) -> dict[str, Value]:
    """Return power and energy from the work and the time of one batch, including prompts."""
    c = i.conventions.flops_per_mac
    prompt = token_flops(i.model, i.seq_len, c)
    score = decode_score_flops(i.model, context, c)
    tokens, decodes = sequences * i.seq_len, maximum(i.output_len - 1, 0)

    tower = tower_of(i)

    def flops(matrix: Value) -> Value:
        step = f.decode_flops(sequences, matrix, score, prompt.logit)
        reading = f.prefill_flops(tokens, sequences, matrix, prompt.score, prompt.logit)
        if tower is not None:
            reading = reading + tower_flops(tower, sequences * i.images)
        return decodes * step + reading

    hfu = flops_share(i, flops(prompt.matrix), flops(0 * prompt.matrix), cycle, i.tp_size)
    return served_power(i, sequences, cycle, hfu, traffic)
