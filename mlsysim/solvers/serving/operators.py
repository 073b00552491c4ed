"""Serving with continuous batching, timed operator by operator with a calibration's constants."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

from mlsysim.core import formulas as f
from mlsysim.core.numeric import (
    Value,
    first_known,
    is_known,
    is_zero,
    maximum,
    minimum,
    when,
    where,
    zero_like,
)
from mlsysim.solvers.device import edges, rate_within_peak, within_peak
from mlsysim.solvers.layer import Device
from mlsysim.solvers.serving.adapters import batch_adapters, most_sequences, resident_bytes
from mlsysim.solvers.serving.inputs import ServingInputs
from mlsysim.solvers.serving.memory import (
    Memory,
    cache_size,
    loading_time,
    pass_budget,
    server_memory,
)
from mlsysim.solvers.serving.passes import (
    Pass,
    attending_time,
    decode_pass,
    device_rates,
    load_crossover,
    new_tokens,
    prefill_pass,
)
from mlsysim.solvers.serving.power import batch_power, token_times
from mlsysim.solvers.work import stored_weights


def serve_operators(i: ServingInputs) -> dict[str, Any]:
    """Serve requests by continuous batching, timed operator by operator."""
    c, d = i.calibration, device_rates(i)
    loop = closed_loop(i, d, prefill_pass(i, d, 1), batch_of(i))
    itl, ttft, request_rate = loop.itl, loop.ttft, loop.request_rate
    running, memory, energy = loop.batch.running, loop.batch.memory, loop.energy
    needed, stage = memory.fullest(i.batch_size, i.seq_len + i.output_len)
    attending = attending_time(i, d, loop.prompts, loop.prefill)
    output_rate = i.output_len * request_rate
    device_time = i.replica_devices / request_rate
    fastest = f.memory_time(loop.step.traffic, i.device.memory.bandwidth) / i.accepted
    used = maximum(energy["hfu"], energy["mbu"])
    rates = rate_within_peak(c.throughput_band, used)
    return {
        "ttft": ttft,
        **edges("ttft", c.ttft_band, ttft),
        "itl": itl,
        **edges("itl", within_peak(c.itl_band, fastest / itl), itl),
        "latency": f.request_time(ttft, itl, i.output_len),
        "prefill_latency": loop.alone.time,
        "decode_latency": loop.decode,
        "ttft_bottleneck": loop.alone.bottleneck,
        "itl_bottleneck": loop.step.bottleneck,
        "decode_throughput": running / loop.decode,
        "request_throughput": request_rate,
        "output_throughput": output_rate,
        **edges("output_throughput", rates, output_rate),
        **energy,
        **edges("energy_per_token", i.power_calibration.energy_band, energy["energy_per_token"]),
        **token_times(i, device_time, loop.prefill, attending, loop.decode, running),
        "running_batch_size": running,
        "running_limit": _running_limit(i, running),
        "recomputed_tokens": loop.batch.recomputed,
        "cached_tokens": i.cached_share * i.seq_len,
        "loaded_tokens": i.loaded_share * i.seq_len,
        "prefix_hit_share": math.nan * running,
        "sessions": math.nan * running,
        "loading_latency": loop.loading,
        "adapter_memory": i.attention_dp * resident_bytes(i, i.model.groups),
        "batch_adapters": batch_adapters(i, running),
        "load_crossover": load_crossover(i, d),
        "replica_devices": i.replica_devices,
        "model_weights_size": stored_weights(i.model, i.weight_precision),
        "kv_cache_size": cache_size(i, i.batch_size, i.seq_len + i.output_len),
        "total_memory_required": needed,
        "fullest_stage": stage,
        "memory_capacity": memory.capacity,
        "memory_utilization": needed / memory.capacity,
        "max_batch_size": loop.batch.fits,
        "max_seq_len": memory.longest(),
        "feasible": needed <= memory.capacity,
    }


@dataclass(frozen=True)
class ClosedLoop:
    """An engine whose clients send a request as soon as the last one is answered."""

    batch: Batch
    alone: Pass
    """A prompt with nothing else running."""
    step: Pass
    """A decode step of the running sequences."""
    decode: Value
    """Time of a decode step per token, without a concurrent prefill."""
    prompts: Value
    """Prompts per pass with prompts."""
    prefill: Value
    """Time of a prompt in such a pass."""
    loading: Value
    """Time to load a request's prefix and adapter from the host."""
    ttft: Value
    itl: Value
    request_rate: Value
    energy: dict[str, Value]
    """Power and energy, by field of the result."""


def closed_loop(i: ServingInputs, d: Device, alone: Pass, batch: Batch) -> ClosedLoop:
    """Return the times and the rate of an engine that always has `batch_size` requests.

    `alone` is the pass of one prompt, which does not depend on `batch_size`.
    """
    c, running = i.calibration, batch.running

    # One decode step, running by itself
    mean_context = f.mean_context(i.seq_len, i.output_len)
    step = decode_pass(i, d, running, mean_context)
    decode = step.time / i.accepted

    # The prompts that share passes while sequences end one by one
    fresh = new_tokens(i)
    budget = pass_budget(i)
    ranks = i.attention_dp
    prompts = prompts_together(i, running, i.output_len)
    arriving = f.arrivals_together(running, i.output_len, i.arrivals, gathered_tokens(i))
    arriving = maximum(arriving, prompts)
    reading = alone if is_zero(prompts - 1) else prefill_pass(i, d, prompts)
    # Stages read different prompts at once.
    prefill = reading.time / (prompts * i.pp_size)
    prefills = running * prefill
    prompts_at_first = f.prompts_per_pass(budget, fresh, running, ranks)
    first_wave = f.burst_prefill_time(prefill, running, prompts_at_first)
    # Requests for one token never decode: each one waits until all others are prefilled.
    later_waves = where(
        i.output_len > 1, f.burst_prefill_time(prefill, arriving, prompts), prefills
    )
    prefill_wait = f.mean_over_waves(first_wave, later_waves, i.waves)
    # The first wave also waits for kernels that its first full pass has to compile.
    compiling = when(running * fresh >= ranks * budget, c.compile_time)
    compiled = f.mean_over_waves(compiling, zero_like(compiling), i.waves)

    # A chunk of a prompt that shares a pass with a decode step saves the work common to both.
    decodes = maximum(i.output_len - 1, 0)
    passes = running * f.passes_per_prompt(budget, fresh, prompts, ranks)
    decode_steps = decodes / i.accepted
    others = 1 - 1 / running
    saved = shared_time(running, prefill, passes, decode_steps, c.mixing * step.shared)
    saved_traffic = others * c.mixing * minimum(passes, decode_steps) * step.shared_traffic
    # Between two tokens it saves no more than the prefill of other prompts takes there, so that no
    # token is faster than a decode step. The rest shortens the time to first token.
    saved_at_first = maximum(
        saved - maximum(prefills - prefill_wait, zero_like(saved)), zero_like(saved)
    )
    # What is read again delays all decodes, as prompts do.
    repeated_prefills = where(
        i.output_len > 1, prefills * batch.charged / fresh, zero_like(prefill)
    )

    # Requests wait for whole steps, which yield several tokens each with drafts.
    steps = c.admission_steps + f.gathering_steps(c.poll_steps, c.hold_steps, running, i.output_len)
    admission = f.admission_wait(step.time, running, steps, i.output_len)
    # Between the steps for which a request waits, prompts of others are prefilled as well.
    waited = admission / decode
    interference = where(
        i.output_len > 1,
        f.interference_time(prefill, running, prefill_wait, i.output_len, waited)
        - (saved - saved_at_first) / (maximum(decodes, 1) + waited),
        zero_like(prefill),
    )
    itl = decode + interference + repeated_prefills / maximum(decodes, 1)

    # The rest of a request's time is outside decode steps. The last stage processes a prompt after
    # all others.
    filling = (1 - 1 / i.pp_size) * alone.time
    outside = admission + prefills + repeated_prefills - saved + filling + c.request_overhead
    loading = zero_like(outside)
    if not (is_zero(i.loaded_share) and is_zero(i.adapter_rank)):
        # A link loads one prompt at a time: no faster than all prompts of its rank, one by one.
        alone_on_link = loading_time(i)
        in_turn = running / i.attention_dp * alone_on_link - (decodes * decode + outside)
        loading = maximum(alone_on_link, in_turn)
        outside = outside + loading
    cycle = decodes * decode + outside
    wait = f.place_wait(i.batch_size, running, cycle, i.waves)
    between = waited * interference
    first_token = admission + between + prefill_wait - saved_at_first + wait + filling

    reads = (1 + batch.charged / fresh) * running / prompts
    return ClosedLoop(
        batch=batch,
        alone=alone,
        step=step,
        decode=decode,
        prompts=prompts,
        prefill=prefill,
        loading=loading,
        ttft=first_token + c.request_overhead + loading + compiled,
        itl=itl,
        request_rate=f.continuous_batching_rate(running, i.output_len, decode, outside),
        energy=batch_power(
            i,
            running,
            mean_context,
            cycle,
            decode_steps * step.traffic + reads * reading.traffic - saved_traffic,
            decode_steps * step.padding + reads * reading.padding,
            batch.charged,
        ),
    )


@dataclass(frozen=True)
class Batch:
    """Sequences that run together, in the memory of a device."""

    memory: Memory
    prompts: list[Value]
    """Memory of a prompt on each stage."""
    wholes: list[Value]
    """Memory of a sequence of full length on each stage."""
    running: Value
    fits: Value
    """Most sequences of full length."""
    recomputed: Value
    """Tokens of each request that are prefilled again, because the cache was full."""
    charged: Value
    """The part of them that adds time; fitted constants already include their engine's own."""

    def full_share(self, sequences: Value) -> Value:
        """Return the share of time that the cache is full with a number of sequences."""
        return self.memory.full_share(sequences, self.prompts, self.wholes)

    def of(self, sequences: Value) -> Batch:
        """Return fewer sequences, in the same memory."""
        i = self.memory.inputs
        recomputed = self.full_share(sequences) * i.output_len
        charged = when(is_known(i.reserved_output), recomputed)
        return replace(self, running=sequences, recomputed=recomputed, charged=charged)


def batch_of(i: ServingInputs) -> Batch:
    """Return the sequences that are admitted, and the effect of a cache that they fill.

    While the cache is full, each new token evicts a token of another sequence, which is prefilled
    again later. So the number of recomputed tokens is the number generated in that time, no matter
    how many sequences are preempted.
    """
    memory = server_memory(i)
    prompts, wholes = memory.reserved(1, i.seq_len), memory.reserved(1, i.seq_len + i.output_len)
    reserved_share = first_known(i.reserved_output, i.calibration.reserved_output)
    fitting = minimum(
        first_known(i.max_sequences, i.batch_size),
        memory.fits(memory.reserved(1, i.seq_len + reserved_share * i.output_len)),
    )
    if not is_zero(i.adapter_rank):
        fitting = minimum(fitting, i.copies * most_sequences(i))
    admitted = maximum(1, minimum(i.batch_size, fitting))
    recomputed = memory.full_share(admitted, prompts, wholes) * i.output_len
    chosen = is_known(i.reserved_output)
    means = [(prompt + whole) / 2 for prompt, whole in zip(prompts, wholes, strict=True)]
    growing = maximum(1, minimum(admitted, memory.fits(means)))
    return Batch(
        memory=memory,
        prompts=prompts,
        wholes=wholes,
        running=where(chosen, growing, admitted),
        fits=memory.fits(wholes),
        recomputed=recomputed,
        charged=when(chosen, recomputed),
    )


def gathered_tokens(i: ServingInputs) -> Value:
    """Return the tokens of a sequence between two admissions: more than one with drafts."""
    return i.accepted * maximum(i.calibration.poll_steps, 1 + i.calibration.hold_steps)


def aligned_prompts(i: ServingInputs) -> Value:
    """Return the least prompts in a pass that has any."""
    return maximum(1, i.calibration.aligned_ranks * i.attention_dp)


def prompts_together(i: ServingInputs, running: Value, output_len: Value) -> Value:
    """Return the prompts that are prefilled at once, once sequences end one by one."""
    return refills_together(
        running,
        output_len,
        new_tokens(i),
        pass_budget(i),
        i.attention_dp,
        gathered_tokens(i),
        aligned_prompts(i),
    )


def refills_together(
    running: Value,
    output_len: Value,
    seq_len: Value,
    pass_tokens: Value,
    ranks: Value,
    gathered: Value,
    aligned: Value,
) -> Value:
    """Return the prompts that are prefilled at once while each sequence that ends is replaced.

    Prompts of one rank spread out. Ranks do not coordinate, so some of them prefill in the same
    pass at random: the more, the more passes a prompt takes.
    """
    together = f.arrivals_together(running, output_len, aligned, gathered)
    if not is_zero(ranks - 1):
        chunks = maximum(1, seq_len / pass_tokens)
        random = f.prompts_if_any(chunks * gathered * running / maximum(output_len - 1, 1))
        random = maximum(together, minimum(running, random))
        together = where(ranks > 1, random, together)
    return f.prompts_per_pass(pass_tokens, seq_len, together, ranks)


def shared_time(
    running: Value, prefill: Value, passes: Value, steps: Value, saving: Value
) -> Value:
    """Return the time saved because prompts of all running sequences join decode steps of one.

    A pass saves no more than its prompts take.
    """
    common = minimum(saving, running * prefill / passes)
    return (1 - 1 / running) * f.shared_pass_time(common, passes, steps)


def _running_limit(i: ServingInputs, running: Value) -> Any:
    """Return what limits the sequences that run together."""
    room = where(running >= i.copies * most_sequences(i), "adapters", "memory")
    chosen = first_known(i.max_sequences, math.inf)
    limit = where(running >= chosen, "max_sequences", room)
    return where(running >= i.batch_size, "clients", limit)
