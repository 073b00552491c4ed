"""Serving with continuous batching, timed operator by operator with a calibration's constants."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from mlsysim.core import formulas as f
from mlsysim.core.numeric import (
    Value,
    first_known,
    floor,
    is_known,
    is_zero,
    maximum,
    minimum,
    when,
    where,
    zero_like,
)
from mlsysim.core.types.attention import (
    AttentionKind,
)
from mlsysim.solvers.inference import (
    ExpertPlan,
    inference_device,
    inference_layer,
    padding_flops,
)
from mlsysim.solvers.layer import Device, attention_time, head
from mlsysim.solvers.power import flops_share, rate_within_peak, within_peak
from mlsysim.solvers.serving.adapters import (
    adapter_parameters,
    adapter_work,
    batch_adapters,
    most_sequences,
    resident_bytes,
)
from mlsysim.solvers.serving.cache import cache_read, cache_size, longest, own_blocks
from mlsysim.solvers.serving.host import crossover, loading_time
from mlsysim.solvers.serving.inputs import ServingInputs
from mlsysim.solvers.serving.links import communication, context_exchange, stage_hops
from mlsysim.solvers.serving.overlap import batch_parts, hidden_exchange
from mlsysim.solvers.serving.power import served_power, token_times
from mlsysim.solvers.serving.stages import most_layers, stage_weights
from mlsysim.solvers.tower import tower_flops, tower_of, tower_pass
from mlsysim.solvers.work import (
    by_blocks,
    decode_score_flops,
    expert_bytes,
    expert_parameters,
    mean_over_attention,
    stored_weights,
    token_flops,
)

__all__ = [
    "Memory",
    "Pass",
    "aligned_prompts",
    "decode_pass",
    "gathered_tokens",
    "new_tokens",
    "pass_budget",
    "preempted_share",
    "prefill_pass",
    "prompts_together",
    "refills_together",
    "serve_operators",
    "serve_steps",
    "server_memory",
]


def serve_operators(i: ServingInputs) -> dict[str, Any]:
    """Serve requests by continuous batching, timed operator by operator."""
    return serve_steps(i)[0]


def serve_steps(i: ServingInputs) -> tuple[dict[str, Any], Pass]:
    """Return the answer of `serve_operators`, and the decode pass behind it."""
    c, model = i.calibration, i.model
    d = inference_device(i, model, i.weight_precision, i.precision.training_bytes)

    # Memory, and the sequences that fit at once. The engine keeps a share of the memory that
    # weights and workspace leave free, so a byte of keys and values takes a little more than a
    # byte.
    context = i.seq_len + i.output_len
    needed = server_memory(i, i.batch_size, context)
    capacity, held, memory = needed.capacity, needed.held, needed.memory
    weights = needed.weights
    aside = first_known(i.reserved_output, c.reserved_output)
    reserved = own_blocks(i, 1, i.seq_len + aside * i.output_len) / c.kv_share
    fitting = minimum(
        first_known(i.max_sequences, i.batch_size), f.largest_batch(capacity, held, reserved)
    )
    if not is_zero(i.adapter_rank):
        fitting = minimum(fitting, i.copies * most_sequences(i))
    admitted = maximum(1, minimum(i.batch_size, fitting))
    growth = _growth(i, capacity - held, admitted, own_blocks(i, 1, context) / c.kv_share)
    running = growth.running

    # One prompt and one decode step, each running by itself
    alone = prefill_pass(i, d, 1)
    mean_context = f.mean_context(i.seq_len, i.output_len)
    step = decode_pass(i, d, running, mean_context)
    decode = step.time / i.accepted

    # Both combined
    new = new_tokens(i)
    budget = pass_budget(i) * i.attention_dp
    together = f.arrivals_together(running, i.output_len, i.arrivals, gathered_tokens(i))
    prompts = prompts_together(i, running, i.output_len)
    reading = prefill_pass(i, d, prompts)
    # Stages read different prompts at once.
    prefill = reading.time / (prompts * i.pp_size)
    prefills = running * prefill
    most = f.prompts_per_pass(budget, new, running)
    first = f.burst_prefill_time(prefill, running, most)
    # Requests for one token never decode: each one waits until all others are prefilled.
    later = where(i.output_len > 1, f.burst_prefill_time(prefill, together, prompts), prefills)
    read = f.mean_over_waves(first, later, i.waves)
    # The first wave also waits for kernels that its first full pass has to compile.
    compiling = when(running * new >= budget, c.compile_time)
    compiled = f.mean_over_waves(compiling, zero_like(compiling), i.waves)
    decodes = maximum(i.output_len - 1, 0)
    # A chunk of a prompt that shares a pass with a decode step saves the work common to both.
    passes = running * maximum(1 / prompts, new / budget)
    others = 1 - 1 / running
    # That work is part of the chunk, so that it is no more than the chunk takes.
    common = minimum(step.shared, prefills / passes)
    saved = others * c.mixing * f.shared_pass_time(common, passes, decodes / i.accepted)
    unmoved = others * c.mixing * minimum(passes, decodes / i.accepted) * step.shared_traffic
    # Between two tokens it saves no more than the prefill of other prompts takes there, so that no
    # token is faster than a decode step. The rest shortens the time to first token.
    sooner = maximum(saved - maximum(prefills - read, zero_like(saved)), zero_like(saved))
    # What is read again delays all decodes, as prompts do.
    again = where(i.output_len > 1, prefills * growth.charged / new, zero_like(prefill))
    steps = c.admission_steps + f.gathering_steps(c.poll_steps, c.hold_steps, running, i.output_len)
    # Requests wait for whole steps, which yield several tokens each with drafts.
    admission = f.admission_wait(step.time, running, steps, i.output_len)
    # Between the steps for which a request waits, prompts of others are prefilled as well.
    waited = admission / decode
    interference = where(
        i.output_len > 1,
        f.interference_time(prefill, running, read, i.output_len, waited)
        - (saved - sooner) / (maximum(decodes, 1) + waited),
        zero_like(prefill),
    )
    itl = decode + interference + again / maximum(decodes, 1)
    # The last stage processes a prompt after all others.
    filling = (1 - 1 / i.pp_size) * alone.time
    once = admission + prefills + again - saved + filling + c.request_overhead
    loading = zero_like(once)
    if not (is_zero(i.loaded_share) and is_zero(i.adapter_rank)):
        # A link loads one prompt at a time: no faster than all prompts of its rank, one by one.
        alone_on_link = loading_time(i)
        needed = running / i.attention_dp * alone_on_link - (decodes * decode + once)
        loading = maximum(alone_on_link, needed)
        once = once + loading
    cycle = decodes * decode + once
    wait = f.place_wait(i.batch_size, running, cycle, i.waves)
    between = waited * interference
    reached = admission + between + read - sooner + wait + filling
    ttft = reached + c.request_overhead + loading + compiled
    request_rate = f.continuous_batching_rate(running, i.output_len, decode, once)
    device_time = i.replica_devices / request_rate
    split = token_times(
        i, device_time, prefill, _attending(i, d, prompts, prefill), decode, running
    )
    fastest = f.memory_time(step.traffic, i.device.memory.bandwidth) / i.accepted
    decoding, reads = decodes / i.accepted, (1 + growth.charged / new) * running / prompts
    energy = _power(
        i,
        running,
        mean_context,
        cycle,
        decoding * step.traffic + reads * reading.traffic - unmoved,
        decoding * step.padding + reads * reading.padding,
        growth.charged,
    )
    used = maximum(energy["hfu"], energy["mbu"])
    most = rate_within_peak(c.throughput_band_high, used)
    answer = {
        "ttft": ttft,
        "ttft_low": c.ttft_band_low * ttft,
        "ttft_high": c.ttft_band_high * ttft,
        "itl": itl,
        "itl_low": within_peak(c.itl_band_low, fastest / itl) * itl,
        "itl_high": c.itl_band_high * itl,
        "latency": f.request_time(ttft, itl, i.output_len),
        "prefill_latency": alone.time,
        "decode_latency": decode,
        "ttft_bottleneck": alone.bottleneck,
        "itl_bottleneck": step.bottleneck,
        "decode_throughput": running / decode,
        "request_throughput": request_rate,
        "output_throughput": i.output_len * request_rate,
        "output_throughput_low": c.throughput_band_low * i.output_len * request_rate,
        "output_throughput_high": most * i.output_len * request_rate,
        **energy,
        "energy_per_token_low": i.power_calibration.energy_band_low * energy["energy_per_token"],
        "energy_per_token_high": i.power_calibration.energy_band_high * energy["energy_per_token"],
        **split,
        "running_batch_size": running,
        "running_limit": _running_limit(i, running),
        "recomputed_tokens": growth.recomputed,
        "cached_tokens": i.cached_share * i.seq_len,
        "loaded_tokens": i.loaded_share * i.seq_len,
        "prefix_hit_share": math.nan * running,
        "sessions": math.nan * running,
        "loading_latency": loading,
        "adapter_memory": i.attention_dp * resident_bytes(i),
        "batch_adapters": batch_adapters(i, running),
        "load_crossover": _crossover(i, d),
        "replica_devices": i.replica_devices,
        "model_weights_size": weights,
        "kv_cache_size": cache_size(i, i.batch_size, context),
        "total_memory_required": memory,
        "memory_capacity": capacity,
        "memory_utilization": memory / capacity,
        "max_batch_size": f.largest_batch(capacity, held, growth.whole),
        "max_seq_len": longest(i, capacity, held, c.kv_share),
        "feasible": memory <= capacity,
    }
    return answer, step


def gathered_tokens(i: ServingInputs) -> Value:
    """Return the tokens of a sequence between two admissions: more than one with drafts."""
    return i.accepted * maximum(i.calibration.poll_steps, 1 + i.calibration.hold_steps)


def aligned_prompts(i: ServingInputs) -> Value:
    """Return the least prompts in a pass that has any."""
    return maximum(1, i.calibration.aligned_ranks * i.attention_dp)


def prompts_together(i: ServingInputs, running: Value, output_len: Value) -> Value:
    """Return the prompts per pass with prompts, once sequences end one by one."""
    together = refills_together(
        running, output_len, gathered_tokens(i), aligned_prompts(i), i.attention_dp
    )
    return f.prompts_per_pass(pass_budget(i) * i.attention_dp, new_tokens(i), together)


def refills_together(
    running: Value, output_len: Value, gathered: Value, aligned: Value, ranks: Value
) -> Value:
    """Return the requests that are admitted together while each sequence that ends is replaced.

    Sequences of one rank spread out. Ranks do not coordinate, so some prompts fall into the same
    pass at random.
    """
    spread = f.arrivals_together(running, output_len, aligned, gathered)
    if is_zero(ranks - 1):
        return spread
    random = f.prompts_if_any(gathered * running / maximum(output_len - 1, 1))
    return where(ranks > 1, maximum(spread, minimum(running, random)), spread)


def _running_limit(i: ServingInputs, running: Value) -> Any:
    """Return what limits the sequences that run together."""
    room = where(running >= i.copies * most_sequences(i), "adapters", "memory")
    chosen = first_known(i.max_sequences, math.inf)
    limit = where(running >= chosen, "max_sequences", room)
    return where(running >= i.batch_size, "clients", limit)


def _attending(i: ServingInputs, d: Device, prompts: Value, prefill: Value) -> Value:
    """Return the part of a prompt's prefill in which new tokens attend to cached ones."""
    if is_zero(i.known_share):
        return zero_like(prefill)
    none = zero_like(i.cached_share)
    alike = i.but(seq_len=new_tokens(i), cached_share=none, loaded_share=none)
    time = prefill_pass(alike, d, prompts).time / (prompts * i.pp_size)
    return where(i.known_share > 0, maximum(prefill - time, zero_like(prefill)), zero_like(prefill))


def _crossover(i: ServingInputs, d: Device) -> Value:
    """Return the length above which loading a prefix is faster than prefill; NaN without a link."""
    if i.host_link is None:
        return math.nan * i.seq_len
    tokens, layers = pass_budget(i), i.model.layers
    every = tokens * i.attention_dp
    parts = batch_parts(i, tokens)
    if not is_zero(i.overlap_batches):
        tokens, every = tokens / parts, every / parts
    plan = _experts(i, every)
    layer = inference_layer(d, i.model, tokens, i.seq_len, i.tp_size, plan=plan)
    launched = _fixed_prefill(i)
    fixed = launched + communication(i, tokens, every)
    if not is_zero(i.overlap_batches):
        computation = layer.products.time + layer.attention + layer.elementwise + launched
        fixed = fixed - hidden_exchange(i, d, plan, tokens, parts, computation)
    token = layers * (layer.products.time + layer.elementwise + fixed) / tokens
    return crossover(i, token, layers * layer.attention / (tokens * i.seq_len))


@dataclass(frozen=True)
class _Growth:
    """Sequences that grow until the cache is full, so that some must be prefilled again."""

    running: Value
    whole: Value
    """Memory of one sequence at its full length."""
    recomputed: Value
    """Tokens of each request that are prefilled again."""
    charged: Value
    """The part of them that adds time; fitted constants already include their engine's own."""


def _growth(i: ServingInputs, room: Value, admitted: Value, whole: Value) -> _Growth:
    """Return the effect of a full cache on sequences that were admitted and keep growing.

    While the cache is full, each new token evicts a token of another sequence, which is prefilled
    again later. So the number of recomputed tokens is the number generated in that time, no matter
    how many sequences are preempted.
    """
    prompt = own_blocks(i, 1, i.seq_len) / i.calibration.kv_share
    full = f.cache_full_probability(admitted, room, prompt, whole)
    recomputed = full * i.output_len
    chosen = is_known(i.reserved_output)
    held = maximum(1, minimum(admitted, floor(2 * room / (prompt + whole))))
    return _Growth(
        running=where(chosen, held, admitted),
        whole=whole,
        recomputed=recomputed,
        charged=when(chosen, recomputed),
    )


def preempted_share(i: ServingInputs) -> Callable[[Value], Value]:
    """Return a function from a number of sequences to the share of time that the cache is full."""
    memory, share = server_memory(i, 1, 1), i.calibration.kv_share
    prompt = own_blocks(i, 1, i.seq_len) / share
    whole = own_blocks(i, 1, i.seq_len + i.output_len) / share
    room = memory.capacity - memory.held
    return lambda sequences: f.cache_full_probability(sequences, room, prompt, whole)


@dataclass(frozen=True)
class Memory:
    """Memory of one device of a server."""

    capacity: Value
    held: Value
    """Memory of weights, and of the activations of the largest pass."""
    memory: Value
    """All memory that the device needs."""
    weights: Value
    """Weights of the whole model."""


def server_memory(i: ServingInputs, sequences: Value, context: Value) -> Memory:
    """Return the memory that a device needs for a number of sequences, and its capacity."""
    chip = i.device.memory
    weights = stored_weights(i.model, i.weight_precision)
    held = _own_weights(i, weights) + _workspace(i)
    held = held + most_layers(i) * resident_bytes(i) / i.tp_size
    return Memory(
        capacity=first_known(chip.reported, chip.capacity),
        held=held,
        memory=held + own_blocks(i, sequences, context) / i.calibration.kv_share,
        weights=weights,
    )


def _own_weights(i: ServingInputs, weights: Value) -> Value:
    """Return the weights on a device: ranks share the experts and replicate the rest."""
    experts = expert_parameters(i.model) * expert_bytes(i.model, i.weight_precision)
    copied = experts * (1 + i.redundant_experts / i.model.experts)
    common = weights - experts
    whole = common / i.tp_size + copied / i.stage_devices
    return (
        whole if is_zero(i.pp_size - 1) else where(i.pp_size > 1, stage_weights(i, weights), whole)
    )


def new_tokens(i: ServingInputs) -> Value:
    """Return the tokens of a prompt that are in no cache: at least the last one."""
    return maximum(1, (1 - i.known_share) * i.seq_len)


def pass_budget(i: ServingInputs) -> Value:
    """Return the most tokens per rank in one pass."""
    return first_known(i.token_budget, i.calibration.pass_tokens)


def _workspace(i: ServingInputs) -> Value:
    """Return the memory that one device keeps for the activations of the largest pass."""
    inside, widest = 0, 0
    for _, a in i.model.attentions:
        inside = maximum(inside, a.inner_width)
    for group in i.model.groups:
        block = group.feed_forward
        if block is not None:
            width = where(group.count > 0, block.matrices * group.inner_width, 0)
            widest = maximum(widest, width)
    return f.pass_workspace(
        pass_budget(i),
        i.model.hidden_dim,
        inside,
        widest,
        i.tp_size,
        i.precision.training_bytes,
    )


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


def _experts(i: ServingInputs, tokens: Value) -> ExpertPlan:
    """Return the expert plan of a pass over a number of tokens, on all ranks of a stage."""
    c = i.calibration
    return ExpertPlan(
        tokens=tokens,
        groups=i.ep_size,
        devices=i.stage_devices,
        imbalance=i.expert_imbalance,
        redundant=i.redundant_experts,
        efficiency=i.expert_efficiency,
        memory=c.expert_memory,
        tile=c.expert_tile,
        padding=c.expert_padding,
        waiting=c.expert_waiting,
    )


def _fixed(i: ServingInputs, layer: Value, more: Value = 1) -> Value:
    """Return the fixed time of a mean layer, given that of a layer of two plain blocks.

    Experts and further parts of attention add their shares of it `more` times.
    """
    c, share = i.calibration, i.model.routed_layers / i.model.layers
    parts = mean_over_attention(i.model, lambda a: a.extra_parts)
    added = share * i.expert_overhead + parts * c.attention_overhead
    return by_blocks(i.model, layer) + more * added * layer


def _fixed_prefill(i: ServingInputs) -> Value:
    """Return the fixed time of a mean layer of a prefill pass."""
    return _fixed(i, i.calibration.prompt_overhead, i.calibration.prompt_parts)


def prefill_pass(i: ServingInputs, d: Device, prompts: Value) -> Pass:
    """Return the prefill of several prompts together, on all ranks."""
    model, layers = i.model, i.model.layers
    new = new_tokens(i)
    own = maximum(1, prompts / i.attention_dp)
    # Prompts longer than the token budget take several passes.
    chunks = maximum(1, own * new / pass_budget(i))
    tokens, every = own * new / chunks, maximum(prompts, 1) * new / chunks
    if not is_zero(i.calibration.padded_ranks):
        every = where(i.calibration.padded_ranks > 0, tokens * i.attention_dp, every)
    # Tokens after a cached prefix attend to it, and on average to half of the new tokens.
    context = i.seq_len + where(i.known_share > 0, i.seq_len - new, 0)
    parts = batch_parts(i, tokens)
    if not is_zero(i.overlap_batches):
        chunks, tokens, every = parts * chunks, tokens / parts, every / parts
    plan = _experts(i, every)
    layer = inference_layer(d, model, tokens, context, i.tp_size, plan=plan)
    logits = head(d, model, own, i.tp_size)
    adapters = adapter_work(i, d, tokens, own)
    fixed = _fixed_prefill(i)
    layer_time = (
        layer.products.time
        + layer.attention
        + layer.elementwise
        + adapters.time
        + communication(i, tokens, every)
        + fixed
    )
    if not is_zero(i.overlap_batches):
        computation = layer.products.time + layer.attention + layer.elementwise
        computation = computation + adapters.time + fixed
        layer_time = layer_time - hidden_exchange(i, d, plan, tokens, parts, computation)
    arithmetic = layer.products.compute + layer.attention
    # The product that computes keys and values also writes them to the cache, at no extra time.
    moved = layer.products.traffic + d.memory * (layer.elementwise + adapters.streamed)
    moved = chunks * layers * moved + logits.traffic
    time = chunks * layers * layer_time + logits.time + stage_hops(i, tokens)
    if tower := tower_of(i):
        vision = tower_pass(d, tower, own * i.images, i.tp_size)
        time, moved = time + vision.time, moved + vision.traffic
    return Pass(
        time=time,
        traffic=moved,
        bottleneck=where(arithmetic >= layer.products.memory, "compute", "memory"),
        shared=0,
        shared_traffic=0,
        padding=chunks * padding_flops(model, plan, i.conventions.flops_per_mac),
    )


def decode_pass(i: ServingInputs, d: Device, sequences: Value, context: Value) -> Pass:
    """Return a decode pass, which yields a token per sequence, at an average context length.

    Ranks decode different sequences, and stages work on different groups of them at a time. With
    drafts, a pass verifies several tokens of each sequence and yields `accepted` of them.
    """
    own = maximum(1, sequences / i.copies)
    every = maximum(1, sequences / i.pp_size) * i.step_tokens
    if is_zero(i.overlap_batches):
        return _decode(i, d, own, every, context, 1)
    parts = batch_parts(i, own)
    part = _decode(i, d, own / parts, every / parts, context, parts)
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
    i: ServingInputs, d: Device, own: Value, every: Value, context: Value, parts: Value
) -> Pass:
    """Return the decode pass of one of several parts of a batch.

    A rank has `own` sequences of the part, and all ranks of a stage have `every` token.
    """
    c, model, layers = i.calibration, i.model, i.model.layers
    tokens = own * i.step_tokens
    plan = _experts(i, every)
    layer = inference_layer(d, model, tokens, context, i.tp_size, decode=True, plan=plan)
    logits = head(d, model, tokens, i.tp_size)
    cache_bandwidth = c.kv_efficiency * i.device.memory.bandwidth

    def reading(a: AttentionKind) -> Value:
        return f.memory_time(cache_read(i, a, own, context), cache_bandwidth)

    def attending(a: AttentionKind) -> Value:
        arithmetic = attention_time(d, model, a, tokens, context, 1, i.tp_size, decode=True)
        return f.roofline_time(arithmetic, reading(a))

    cache = mean_over_attention(model, reading)
    fixed = _fixed(i, c.layer_overhead)
    attention = mean_over_attention(model, attending)
    exchanged = communication(i, tokens, every) + context_exchange(i, tokens)
    layer_time = layer.products.time + attention + layer.elementwise + exchanged + fixed
    adapters = adapter_work(i, d, tokens, own)
    if not is_zero(i.overlap_batches):
        computation = layer.products.time + attention + layer.elementwise + adapters.time + fixed
        layer_time = layer_time - hidden_exchange(i, d, plan, tokens, parts, computation)
    # A draft costs a layer and the output projection, for one token of each sequence at a time.
    drafts = i.draft_tokens * (layer_time + logits.time)
    on_device = layers * (layer_time + adapters.time) + logits.time + drafts
    moved = layer.products.traffic + d.memory * (layer.elementwise + adapters.streamed)
    moved = layers * moved + logits.traffic
    arithmetic = layer.products.compute + layer.attention
    waiting = maximum(zero_like(layer.products.time), layer.products.time - layer.products.compute)
    host = c.sequence_overhead + i.draft_tokens * c.draft_overhead
    return Pass(
        time=on_device + stage_hops(i, tokens) + own * i.pp_size * host,
        traffic=moved + layers * cache_bandwidth * cache,
        bottleneck=where(arithmetic >= layer.products.memory + cache, "compute", "memory"),
        shared=layers * (waiting + fixed),
        shared_traffic=layers * layer.products.traffic * waiting / layer.products.memory,
        padding=padding_flops(model, plan, i.conventions.flops_per_mac),
    )


def _power(
    i: ServingInputs,
    sequences: Value,
    context: Value,
    cycle: Value,
    traffic: Value,
    padding: Value,
    recomputed: Value,
) -> dict[str, Value]:
    """Return power and energy from the work and the time of one batch, including prefill."""
    c = i.conventions.flops_per_mac
    prompt = token_flops(i.model, i.seq_len, c)
    score = decode_score_flops(i.model, context, c)
    tokens = sequences * (new_tokens(i) + recomputed)
    decodes = maximum(i.output_len - 1, 0) * i.step_tokens / i.accepted

    tower = tower_of(i)
    # Adapters are in 16 bits, as attention and logits are.
    thin = 0 if is_zero(i.adapter_rank) else c * i.model.layers * adapter_parameters(i)

    def flops(matrix: Value) -> Value:
        step = f.decode_flops(sequences, matrix + thin, score, prompt.logit)
        reading = f.prefill_flops(tokens, sequences, matrix + thin, prompt.score, prompt.logit)
        if tower is not None:
            reading = reading + tower_flops(tower, sequences * i.images)
        return decodes * step + reading

    hfu = flops_share(
        i, flops(prompt.matrix), flops(zero_like(prompt.matrix)), cycle, i.replica_devices
    )
    if not is_zero(i.calibration.expert_padding):
        hfu = hfu + f.flops_utilization(padding, cycle, i.peak_rate, 1)
    return served_power(i, sequences, cycle, hfu, traffic)
