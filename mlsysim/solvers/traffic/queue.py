"""A queue in front of an engine with passes that take longer the more sequences run."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

from mlsysim.core import formulas as f
from mlsysim.core.numeric import Value, is_zero, maximum, minimum, where, zero_like
from mlsysim.solvers.serving.adapters import batch_adapters, resident_bytes
from mlsysim.solvers.serving.sessions import Prefixes, prefixes_at, running_memory, thinking
from mlsysim.solvers.traffic.bands import LAW, edges_of, simulated
from mlsysim.solvers.traffic.engine import Engine, engine_of, interpolated, with_prefixes
from mlsysim.solvers.traffic.inputs import OpenLoopInputs
from mlsysim.solvers.traffic.steady import (
    Requests,
    Turnover,
    percentiles,
    requests_of,
    steady_state,
    turnover_of,
)

_SMALL = 1e-6
_ROUNDS = 3
"""Iterations that compute the cached prefixes from the requests in flight."""


def serve_open_loop(i: OpenLoopInputs) -> dict[str, Any]:
    """Serve requests that arrive from outside."""
    return _served_by(engine_of(i), i)


def _served_by(engine: Engine, i: OpenLoopInputs) -> dict[str, Any]:
    """Serve requests with an engine of these inputs."""
    # Stays do not depend on the rate, so that those of the bands are the same.
    requests = requests_of(i)
    turnover = turnover_of(engine, requests)
    times = _queue(engine, requests, turnover)
    steps = engine.prefill / times["decode_latency"]
    prompt_steps = where(i.answer > 1, steps, math.nan * steps)
    known = simulated(i, prompt_steps)
    for edge in ("low", "high"):
        # Passes that take k times as long are those of k times the rate in slow motion.
        slower = getattr(i.calibration.itl_band, edge)
        moved = _queue(engine, replace(requests, rate=slower * requests.rate), turnover)
        growth = {name: moved[name] / times[name] for name in LAW}
        for name, value in edges_of(times, growth, i.calibration, edge).items():
            times[name] = where(known, value, math.nan * value)
    stable = times["stable"]
    served = where(stable, i.arrival_rate, times["request_capacity"])
    running = minimum(where(stable, times["requests_in_flight"], engine.places), engine.places)
    return {
        **times,
        "places": engine.places,
        "prefill_latency": engine.prefill,
        "prompt_steps": prompt_steps,
        "output_throughput": served * i.answer,
        "max_batch_size": engine.fits,
        "cached_tokens": i.cached_share * i.seq_len,
        "loaded_tokens": i.loaded_share * i.seq_len,
        "loading_latency": engine.loading,
        "recomputed_tokens": i.answer * interpolated(engine.sizes, engine.preempted, running),
        "adapter_memory": i.attention_dp * resident_bytes(i, i.model.groups),
        "batch_adapters": batch_adapters(i, running),
        "prefix_hit_share": math.nan * times["utilization"],
        "sessions": math.nan * times["utilization"],
        "feasible": where(engine.fits >= 1, stable, False),
    }


def serve_open_sessions(i: OpenLoopInputs) -> dict[str, Any]:
    """Serve sessions of several turns. Each prompt repeats the earlier turns."""
    engine, prefixes = settled(engine_of(i), i)
    times = _served_by(engine, i.but(cached_share=prefixes.cached, loaded_share=prefixes.loaded))
    waiting = where(times["stable"], thinking(i, i.arrival_rate), math.nan)
    return times | {
        "prefix_hit_share": prefixes.hits,
        "sessions": waiting + times["requests_in_flight"],
    }


def settled(engine: Engine, i: OpenLoopInputs) -> tuple[Engine, Prefixes]:
    """Return an engine with the prefixes that stay cached at these inputs' rate, and the prefixes.

    The cached prefixes depend on the memory of the requests in flight, and the other way around.
    Fewer prefixes mean more requests in flight, so we start without any and converge from below.
    """
    requests, length = requests_of(i), f.length_in_flight(i.answer, i.output_variation)
    for _ in range(_ROUNDS):
        times = _queue(engine, requests, turnover_of(engine, requests))
        inside = where(times["stable"], times["requests_in_flight"], engine.places)
        taken = running_memory(i.but(output_len=length), minimum(inside, engine.places))
        prefixes = prefixes_at(i, i.arrival_rate, taken)
        now = i.but(cached_share=prefixes.cached, loaded_share=prefixes.loaded)
        engine = with_prefixes(engine, now)
    return engine, prefixes


def _after_loading(engine: Engine, times: dict[str, Any], requests: Requests) -> dict[str, Any]:
    """Return the same with the time to load prefixes from the host, one prompt after another."""
    # The devices of each rank have links of their own.
    passes = engine.empty + engine.prefill
    each = maximum(engine.loading, _SMALL * passes) / engine.ranks
    # A client waits for the link as well, before its request has a slot.
    capacity = 1 / (1 / times["request_capacity"] + engine.loading / engine.places)
    capacity = minimum(capacity, 1 / each)
    utilization = requests.rate / capacity
    stable = utilization < 1
    busy = where(stable, requests.rate * each, zero_like(utilization))
    found_busy = f.share_found_busy(busy, requests.burstiness)
    wait = f.budget_wait(found_busy, engine.loading, requests.burstiness, requests.input_variation)
    more = engine.loading + wait
    later = {n: v + more for n, v in times.items() if n.startswith(("ttft", "e2e"))}
    later["requests_in_flight"] = requests.rate * later["e2e_mean"]
    known = {n: where(stable, v, math.nan * v) for n, v in later.items()}
    rates = {"request_capacity": capacity, "utilization": utilization, "stable": stable}
    return times | known | rates


def queue_at(
    engine: Engine,
    rate: Value,
    output_len: Value,
    burstiness: Value,
    input_variation: Value,
    output_variation: Value,
) -> dict[str, Any]:
    """Return rates, times and percentiles of an engine at an arrival rate."""
    requests = Requests(rate, output_len, burstiness, input_variation, output_variation)
    return _queue(engine, requests, turnover_of(engine, requests))


def _queue(engine: Engine, requests: Requests, turnover: Turnover) -> dict[str, Any]:
    """Return rates, times and percentiles of an engine with these stays of requests."""
    capacity = turnover.capacity
    utilization = requests.rate / capacity
    stable = utilization < 1
    # Without a steady state, times are computed at half of the capacity and then dropped.
    steady = replace(requests, rate=where(stable, requests.rate, capacity / 2))
    state = steady_state(engine, steady, turnover)
    times = percentiles(state)
    running = minimum(state.running, engine.places)
    drawn = interpolated(engine.sizes, engine.powers, running)
    # Without requests, a device draws what an idle one does that a program occupies.
    drawn = engine.idle_power + state.busy * (drawn - engine.idle_power)
    steady_times = times | {
        "requests_in_flight": steady.rate * times["e2e_mean"],
        "decode_latency": interpolated(engine.sizes, engine.decodes, running),
    }
    answer = {
        **{name: where(stable, value, math.nan * value) for name, value in steady_times.items()},
        "device_power": where(stable, drawn, engine.powers[-1]),
        "request_capacity": capacity,
        "utilization": utilization,
        "stable": stable,
    }
    return answer if is_zero(engine.loading) else _after_loading(engine, answer, requests)
