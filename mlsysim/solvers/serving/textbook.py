"""The textbook model of serving: a static batch, and one roofline per pass."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from mlsysim.core import formulas as f
from mlsysim.core.numeric import Value, maximum, where, zero_like
from mlsysim.solvers.serving.inputs import ServingInputs
from mlsysim.solvers.serving.memory import (
    cache_parts,
    cache_size,
    device_cache,
    textbook_memory,
)
from mlsysim.solvers.serving.power import served_power, token_times
from mlsysim.solvers.tower import tower_flops, tower_of, tower_traffic
from mlsysim.solvers.work import (
    by_blocks,
    decode_score_flops,
    group_bandwidth,
    stored_weights,
    sum_of,
    token_flops,
    weights_read,
)


def serve_textbook(i: ServingInputs) -> dict[str, Any]:
    """Prefill a batch of prompts at once, then decode token by token."""
    model, per_mac = i.model, i.conventions.flops_per_mac
    prompt = token_flops(model, i.seq_len, per_mac)

    # Memory at the last token: all weights, whether visited or not
    context, memory = i.seq_len + i.output_len, textbook_memory(i)
    needed, stage = memory.fullest(i.batch_size, context)

    # Prefill: all prompts at once
    prompt_tokens = i.batch_size * i.seq_len
    flops = f.prefill_flops(prompt_tokens, i.batch_size, prompt.matrix, prompt.score, prompt.logit)
    moved = device_cache(i, i.batch_size, i.seq_len)
    if tower := tower_of(i):
        images = i.batch_size * i.images
        flops = flops + tower_flops(tower, images)
        moved = moved + tower_traffic(tower, images, i.precision.training_bytes) / i.tp_size
    reading = _pass(i, flops, moved, i.seq_len)

    # Decode: one token for each sequence, at the mean context
    mean_context = f.mean_context(i.seq_len, i.output_len)
    score = decode_score_flops(model, mean_context, per_mac)
    step = _pass(
        i,
        f.decode_flops(i.batch_size, prompt.matrix, score, prompt.logit),
        _read(i, mean_context),
        1,
    )
    prefill, decode = reading.time, step.time
    decodes = maximum(i.output_len - 1, 0)
    cycle = decodes * decode + prefill
    request_rate = f.continuous_batching_rate(i.batch_size, i.output_len, decode, prefill)
    hfu = f.flops_utilization(decodes * step.flops + reading.flops, cycle, i.peak_rate, i.tp_size)
    return {
        "ttft": prefill,
        "itl": decode,
        "latency": f.request_time(prefill, decode, i.output_len),
        "prefill_latency": prefill,
        "decode_latency": decode,
        "ttft_bottleneck": reading.bottleneck,
        "itl_bottleneck": step.bottleneck,
        "decode_throughput": i.batch_size / decode,
        "request_throughput": request_rate,
        "output_throughput": i.output_len * request_rate,
        **served_power(i, i.batch_size, cycle, hfu, decodes * step.traffic + reading.traffic),
        **token_times(
            i,
            i.tp_size / request_rate,
            prefill / i.batch_size,
            zero_like(prefill),
            decode,
            i.batch_size,
        ),
        "running_batch_size": i.batch_size,
        "running_limit": where(i.batch_size >= 1, "clients", "memory"),
        "replica_devices": i.tp_size,
        "model_weights_size": stored_weights(model, i.weight_precision),
        "kv_cache_size": cache_size(i, i.batch_size, context),
        "total_memory_required": needed,
        "fullest_stage": stage,
        "memory_capacity": memory.capacity,
        "memory_utilization": needed / memory.capacity,
        "max_batch_size": memory.fits(memory.reserved(1, context)),
        "max_seq_len": memory.longest(),
        "feasible": needed <= memory.capacity,
    }


def _read(i: ServingInputs, context: Value) -> Value:
    """Return the bytes of cache that one device reads to decode a token of each sequence."""
    parts = cache_parts(i, i.model.attentions, i.batch_size, context)
    return sum_of([f.kv_per_device(part.read, i.tp_size, part.heads) for part in parts])


@dataclass(frozen=True)
class _Pass:
    """A pass: its time, its total operations, the traffic of a device, and its bottleneck."""

    time: Value
    flops: Value
    traffic: Value
    bottleneck: Any


def _pass(i: ServingInputs, flops: Value, own_traffic: Value, tokens_each: Value) -> _Pass:
    """Return a pass with a number of tokens per sequence.

    `own_traffic` is the traffic of one device besides its weights.
    """
    arithmetic = f.compute_time(flops / i.tp_size, i.peak_rate, i.efficiency)
    read = weights_read(i.model, i.weight_precision, i.batch_size * tokens_each)
    traffic = read / i.tp_size + own_traffic
    memory = f.memory_time(traffic, i.device.memory.bandwidth)
    return _Pass(
        time=f.roofline_time(arithmetic, memory) + _all_reduces(i, tokens_each),
        flops=flops,
        traffic=traffic,
        bottleneck=where(arithmetic >= memory, "compute", "memory"),
    )


def _all_reduces(i: ServingInputs, tokens_each: Value) -> Value:
    """Return the tensor-parallel communication of a pass."""
    if i.links is None:
        return 0
    size = f.hidden_state_size(
        tokens_each, i.batch_size, i.model.hidden_dim, i.precision.bytes_per_element
    )
    bandwidth = group_bandwidth(i.links, i.links.bandwidth, i.tp_size)
    all_reduce = f.ring_all_reduce_time(size, i.tp_size, bandwidth, i.links.latency)
    each = by_blocks(i.model, i.conventions.forward_all_reduces)
    return f.layer_all_reduce_time(all_reduce, each, i.model.layers, 1)
