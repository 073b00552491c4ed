"""A queue in front of an engine with passes that take longer the more sequences run."""

from __future__ import annotations

import math
from typing import Any

from mlsysim.core import formulas as f
from mlsysim.core.numeric import Value, exp, is_zero, maximum, minimum, sqrt, where
from mlsysim.solvers.serving.adapters import batch_adapters, resident_bytes
from mlsysim.solvers.serving.sessions import Prefixes, prefixes_at, running_memory, thinking
from mlsysim.solvers.traffic.bands import LAW, edges_of
from mlsysim.solvers.traffic.engine import Engine, engine_of, with_prefixes
from mlsysim.solvers.traffic.inputs import OpenLoopInputs

_SMALL = 1e-6
_PASS_ROUNDS = 4
"""Times that the prompts of a pass, and the sequences in flight, are computed from each other."""
_ROUNDS = 3
"""Iterations that compute the cached prefixes from the requests in flight."""

__all__ = ["PERCENTILES", "queue_at", "serve_open_loop", "serve_open_sessions", "settled"]

PERCENTILES = {
    "p50": (0.5, 0.0),
    "p90": (0.1, 1.2815515655446004),
    "p99": (0.01, 2.3263478740408408),
}
"""Percentiles: the share of requests beyond each, and its score in a normal distribution."""


def serve_open_loop(i: OpenLoopInputs) -> dict[str, Any]:
    """Serve requests that arrive from outside."""
    return _served_by(engine_of(i), i)


def _served_by(engine: Engine, i: OpenLoopInputs) -> dict[str, Any]:
    """Serve requests with an engine of these inputs."""
    found = asked(engine, i)
    for edge in ("low", "high"):
        # Passes that take k times as long are those of k times the rate in slow motion.
        slower = getattr(i.calibration, f"itl_band_{edge}")
        moved = asked(engine, i.but(arrival_rate=slower * i.arrival_rate))
        growth = {name: moved[name] / found[name] for name in LAW}
        found = found | edges_of(found, growth, i.calibration, edge)
    stable = found["stable"]
    served = where(stable, i.arrival_rate, found["request_capacity"])
    running = minimum(where(stable, found["requests_in_flight"], engine.places), engine.places)
    return {
        **found,
        "places": engine.places,
        "prefill_latency": engine.prefill,
        "output_throughput": served * i.answer,
        "max_batch_size": engine.fits,
        "cached_tokens": i.cached_share * i.seq_len,
        "loaded_tokens": i.loaded_share * i.seq_len,
        "loading_latency": engine.loading,
        "recomputed_tokens": i.answer * _at(engine.sizes, engine.preempted, running),
        "adapter_memory": i.attention_dp * resident_bytes(i),
        "batch_adapters": batch_adapters(i, running),
        "prefix_hit_share": math.nan * found["utilization"],
        "sessions": math.nan * found["utilization"],
        "feasible": where(engine.fits >= 1, stable, False),
    }


def _at(sizes: tuple[Value, ...], values: tuple[Value, ...], size: Value) -> Value:
    """Interpolate between the sizes of an engine."""
    found, before, last = values[0], sizes[0], values[0]
    for after, value in zip(sizes[1:], values[1:], strict=True):
        part = (size - before) / maximum(after - before, 1)
        found = where((size > before) & (after > before), last + part * (value - last), found)
        before, last = after, value
    return found


def serve_open_sessions(i: OpenLoopInputs) -> dict[str, Any]:
    """Serve sessions of several turns. Each prompt repeats the earlier turns."""
    engine, prefixes = settled(engine_of(i), i)
    found = _served_by(engine, i.but(cached_share=prefixes.cached, loaded_share=prefixes.loaded))
    waiting = where(found["stable"], thinking(i, i.arrival_rate), math.nan)
    return found | {
        "prefix_hit_share": prefixes.hits,
        "sessions": waiting + found["requests_in_flight"],
    }


def settled(engine: Engine, i: OpenLoopInputs) -> tuple[Engine, Prefixes]:
    """Return an engine with the prefixes that stay cached at these inputs' rate, and those.

    The cached prefixes depend on the memory of the requests in flight, and the other way around.
    Fewer prefixes mean more requests in flight, so we start without any and converge from below.
    """
    length = f.length_in_flight(i.answer, i.output_variation)
    for _ in range(_ROUNDS):
        found = asked(engine, i)
        inside = where(found["stable"], found["requests_in_flight"], engine.places)
        taken = running_memory(i.but(output_len=length), minimum(inside, engine.places))
        prefixes = prefixes_at(i, i.arrival_rate, taken)
        now = i.but(cached_share=prefixes.cached, loaded_share=prefixes.loaded)
        engine = with_prefixes(engine, now)
    return engine, prefixes


def asked(engine: Engine, i: OpenLoopInputs) -> dict[str, Any]:
    """Return rates, times and percentiles of an engine for the traffic of these inputs."""
    return queue_at(
        engine,
        i.arrival_rate,
        i.answer,
        i.burstiness,
        i.input_variation,
        i.output_variation,
    )


def _after_loading(
    engine: Engine, found: dict[str, Any], rate: Value, burstiness: Value, input_variation: Value
) -> dict[str, Any]:
    """Return the same with the time to load prefixes from the host, one prompt after another."""
    # The devices of each rank have links of their own.
    passes = engine.empty + engine.prefill
    each = maximum(engine.loading, _SMALL * passes) / engine.ranks
    capacity = minimum(found["request_capacity"], 1 / each)
    utilization = rate / capacity
    stable = utilization < 1
    busy = where(stable, rate * each, 0 * utilization)
    wait = f.budget_wait(busy, engine.loading, burstiness, input_variation)
    more = engine.loading + wait
    later = {n: v + more for n, v in found.items() if n.startswith(("ttft", "e2e"))}
    later["requests_in_flight"] = rate * later["e2e_mean"]
    known = {n: where(stable, v, math.nan * v) for n, v in later.items()}
    return (
        found
        | known
        | {
            "request_capacity": capacity,
            "utilization": utilization,
            "stable": stable,
        }
    )


def _together(prompts: Value, readers: Value) -> Value:
    """Return how many prompts share the time of one, with a mean number of arrivals per pass.

    All ranks and stages wait for one that reads, so a pass with any prompt takes as long as one on
    each of them. At random arrivals, a share of the passes has none.
    """
    mean = maximum(prompts, _SMALL)
    return minimum(mean / (1 - exp(-mean)), readers)


def _shared_prefill(engine: Engine, rate: Value, step: Value, chunks: Value) -> Value:
    """Return the time that a prompt adds next to decode steps of a given time.

    Prompts per pass are those that arrive during it. We begin with more than that, so that the time
    is approached from below and passes never take more than there is.
    """
    readers = engine.ranks * engine.stages
    least = minimum(engine.prefill + engine.single_saving, engine.further_prefill) / readers
    prompts = rate * (step + engine.prefill)
    for fixed, each in (
        (step, least),
        (step + engine.first_extra, engine.further_prefill / readers),
    ):
        prompts = maximum(prompts, rate * fixed / maximum(1 - rate * each, _SMALL))
    for _ in range(_PASS_ROUNDS):
        read = engine.mean_prompt_time(prompts) * prompts / _together(chunks * prompts, readers)
        prompts = rate * (step + read)
    return engine.mean_prompt_time(prompts) / _together(chunks * prompts, readers)


def queue_at(
    engine: Engine,
    rate: Value,
    output_len: Value,
    burstiness: Value,
    input_variation: Value,
    output_variation: Value,
) -> dict[str, Any]:
    """Return rates, times and percentiles of an engine at an arrival rate."""
    decodes = maximum(output_len - 1, 0)
    # Stages prefill different prompts at once, and so do ranks.
    alone_prefill = engine.prefill
    readers = engine.ranks * engine.stages
    pass_tokens = readers * engine.pass_tokens
    # A prompt that exceeds one pass takes several, each with a decode step.
    chunks = maximum(engine.seq_len / engine.pass_tokens, 1)
    # Requests for one token never decode.
    steps = [where(output_len > 1, step, engine.empty) for step in engine.decodes]

    def shared_at(size: Value) -> Value:
        """Return the time that a prompt adds in a steady state with a number of sequences."""
        prompts = size / maximum(decodes, 1)
        return engine.mean_prompt_time(prompts) / _together(chunks * prompts, readers)

    # Rates at which sequences leave their places
    departures = [
        f.place_rate(size, decodes, step, shared_at(size))
        for size, step in zip(engine.sizes, steps, strict=True)
    ]
    # Capacity: limited by the places for sequences, or by the prompts that passes take.
    capacity = 0 * rate
    per_pass = engine.pass_tokens / engine.seq_len
    full_prefill = engine.prompt_time(readers * per_pass, per_pass)
    for step, leaving in zip(steps, departures, strict=True):
        reading = f.prompt_rate(full_prefill / readers, step, engine.seq_len, pass_tokens)
        capacity = maximum(capacity, minimum(leaving, reading))
    utilization = rate / capacity
    stable = utilization < 1
    # Without a steady state, times are computed at half of the capacity and then dropped.
    arrivals = where(stable, rate, capacity / 2)
    # Requests in flight. A stay is linear in them between two sizes.
    low, low_step = high, high_step = engine.sizes[0], steps[0]
    low_power = high_power = engine.powers[0]
    left, left_step, left_power = low, low_step, low_power
    inside: Any = True
    above = zip(engine.sizes[1:], steps[1:], engine.powers[1:], departures[1:], strict=True)
    for size, step, power, leaving in above:
        further = where(inside, size > left, False)  # at the places, the sizes repeat
        low, low_step = where(further, left, low), where(further, left_step, low_step)
        high, high_step = where(further, size, high), where(further, step, high_step)
        low_power = where(further, left_power, low_power)
        high_power = where(further, power, high_power)
        left, left_step, left_power = size, step, power
        inside = leaving < arrivals
    growth = (high_step - low_step) / maximum(high - low, 1)
    still = low_step - growth * low
    prefill, base, slope, balance = alone_prefill / readers, 0 * rate, 0 * rate, low
    for _ in range(_PASS_ROUNDS):
        # Sequences in flight depend on the time that prompts share, and that on their number.
        here = maximum(low, minimum(balance, high))
        prefill = _shared_prefill(engine, arrivals, still + growth * here, chunks)
        base = decodes * f.pass_with_prompts(still, arrivals, prefill)
        slope = decodes * f.pass_with_prompts(growth, arrivals, prefill)
        balance = f.requests_at_balance(arrivals, base, slope)
    load = arrivals * slope
    peakedness = f.arrival_peakedness(burstiness, output_variation)
    running = f.mean_in_flight(balance, peakedness, load)
    variance = f.in_flight_variance(running, peakedness, load)

    # The first token: the rest of a pass, passes launched ahead, and the pass with the prompt
    here = minimum(running, engine.places)
    step = still + growth * maximum(here, low)
    seen = f.pass_seen_on_arrival(step, arrivals, prefill, burstiness, input_variation)
    mean_pass = f.pass_with_prompts(step, arrivals, prefill)
    # Without decode there are no passes without prompts.
    packed = f.prompts_in_busy_pass(arrivals, engine.empty, prefill)
    # A pass takes no more than its budget, which may be a part of a prompt.
    packed = minimum(packed, pass_tokens / engine.seq_len)
    # A pass takes no longer than a full one.
    full_pass = full_prefill * per_pass
    longest = step + full_pass
    own_pass = minimum(engine.empty + packed * prefill, longest)
    packed_seen = f.busy_pass_seen(own_pass, packed, arrivals, prefill, burstiness, input_variation)
    mean_pass = where(output_len > 1, mean_pass, own_pass)
    seen = where(output_len > 1, seen, packed_seen)
    mean_pass, seen = minimum(mean_pass, longest), minimum(seen, longest)
    # Those beyond a pass's budget have passes of their own, whose time is part of `budget`.
    others = minimum(
        f.prompts_alongside(arrivals, seen, burstiness),
        maximum(pass_tokens / engine.seq_len - 1, 0 * readers),
    )
    # An engine without requests has no waits, so there is no logarithm.
    held = maximum(running + arrivals * chunks * mean_pass, _SMALL)
    busy = where(output_len > 1, f.busy_share(held), arrivals * own_pass / packed)
    queued = f.queued_prompt_time(step, full_prefill, per_pass, readers)
    part = maximum(queued, mean_pass / (readers * per_pass))
    taken = minimum(arrivals * part, arrivals / capacity)
    budget = f.budget_wait(taken, part, burstiness, input_variation)
    # With several ranks or stages, a prompt waits only if all of them read: Sakasegawa's exponent.
    budget = budget * taken ** (sqrt(2 * (readers + 1)) - 2)
    # Others are read at the same time, up to one on each rank and stage.
    busiest = maximum((1 + others) / readers, 1)
    all_prompts = busiest * engine.prompt_time(1 + others, busiest)
    others_time = maximum(all_prompts - alone_prefill, 0 * all_prompts)
    # Half of the pass is waited for, and its arrivals are read alongside.
    uneven = (0.5 + arrivals * prefill) * (0.5 + arrivals * prefill) * own_pass * (seen - own_pass)
    # Without decode, nothing runs after a pass, and so nothing is launched ahead.
    ahead = where(output_len > 1, engine.delay_steps * mean_pass, 0 * mean_pass)
    busy_time = seen / 2 + ahead + chunks * step + others_time
    alone, among = alone_prefill + engine.empty, alone_prefill + busy_time + budget
    first = (1 - busy) * alone + busy * among
    by_flight = (chunks + 0.5 + engine.delay_steps) * growth
    prompt_variance = alone_prefill * alone_prefill * input_variation * input_variation
    prompt_square = prefill * prefill * (burstiness + input_variation * input_variation)
    among_variance = (
        seen * seen / 12
        + arrivals * seen * prompt_square / 3
        + prompt_variance
        + others_time * prefill * (1 + input_variation * input_variation)
        + by_flight * by_flight * variance
        + f.exponential_wait_variance(budget, maximum(taken, _SMALL))
        + where(output_len > 1, 0 * seen * seen, uneven)
    )
    apart = among - alone
    first_variance = (
        (1 - busy) * prompt_variance + busy * among_variance + busy * (1 - busy) * apart * apart
    )
    # The root of a variance of zero would have no slope.
    alone_variance = maximum(prompt_variance, _SMALL * alone * alone)

    # A request also occupies a place during its prefill.
    full = maximum(f.place_rate(engine.places, decodes, steps[-1], prefill), capacity)
    place_wait = f.place_queue_wait(arrivals, full, burstiness, output_variation)
    waiting = f.waiting_probability(engine.places, held, variance, arrivals, full, peakedness)

    # Other requests: an arriving request sees itself and those already there.
    seat = minimum(running + peakedness, engine.places)
    shared = still + growth * maximum(seat, low)
    token = f.pass_with_prompts(shared, arrivals, prefill)
    slowest = f.pass_with_prompts(still + growth * engine.places, arrivals, prefill)
    per_flight = f.pass_with_prompts(growth, arrivals, prefill)
    # The first decode steps meet the prompts that waited behind the request's own.
    reading_share = arrivals * prefill
    backlog = f.budget_wait(reading_share, prefill, burstiness, input_variation)
    most = prefill * minimum(pass_tokens / engine.seq_len, 1)
    token = token + f.backlog_per_token(backlog, reading_share, maximum(decodes, 1), most)
    token = minimum(token, shared + full_pass)
    slowest = maximum(slowest, token)
    token_variance = per_flight * per_flight * variance * f.fluctuation_over_a_stay(
        load
    ) + arrivals * token * prompt_square / maximum(decodes, 1)
    rest = decodes * token
    long_answers = token * output_len * output_variation
    whole = first + rest
    whole_variance = (
        first_variance + decodes * decodes * token_variance + long_answers * long_answers
    )
    times = {
        "ttft_mean": first + waiting * place_wait,
        "tpot_mean": where(output_len > 1, token, math.nan * token),
        "e2e_mean": whole + waiting * place_wait,
    }
    alone_deviation = f.lognormal_deviation(alone, alone_variance)
    among_deviation = f.lognormal_deviation(among, among_variance)
    # Without decode, the time per token is zero, and its logarithm has no deviation.
    token_deviation = f.lognormal_deviation(where(output_len > 1, token, alone), token_variance)
    whole_deviation = f.lognormal_deviation(whole, whole_variance)
    for name, (beyond, score) in PERCENTILES.items():
        queued = f.waiting_quantile(place_wait, waiting, beyond)
        # Among requests that find others, a larger share is this slow or slower than among all.
        late = f.normal_score(maximum(1 - beyond / busy, _SMALL))
        times[f"ttft_{name}"] = queued + maximum(
            f.lognormal_quantile(alone, alone_deviation, score),
            f.lognormal_quantile(among, among_deviation, late),
        )
        # No token takes less than a decode step of one sequence.
        slow = f.lognormal_quantile(token, token_deviation, score)
        slow = maximum(minimum(slow, slowest), steps[0])
        times[f"tpot_{name}"] = where(output_len > 1, slow, math.nan * slow)
        # No request ends before its first token, which is the last one without decode.
        started = times[f"ttft_{name}"]
        ended = f.lognormal_quantile(whole, whole_deviation, score) + queued
        times[f"e2e_{name}"] = where(output_len > 1, maximum(started, ended), started)
    warmer = (high_power - low_power) / maximum(high - low, 1)
    drawn = low_power + warmer * (maximum(here, low) - low)
    # Without requests, a device draws what an idle one does that a program occupies.
    drawn = engine.idle_power + busy * (drawn - engine.idle_power)
    found = times | {
        "requests_in_flight": arrivals * times["e2e_mean"],
        "waiting_probability": waiting,
        "place_wait": waiting * place_wait,
        "decode_latency": step,
    }
    answer = {
        **{name: where(stable, value, math.nan * value) for name, value in found.items()},
        "device_power": where(stable, drawn, engine.powers[-1]),
        "request_capacity": capacity,
        "utilization": utilization,
        "stable": stable,
    }
    if is_zero(engine.loading):
        return answer
    return _after_loading(engine, answer, rate, burstiness, input_variation)
