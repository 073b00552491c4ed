"""How long a request takes in an engine with others: its first token, the next ones, and waits."""

from __future__ import annotations

import math
from dataclasses import dataclass

from mlsysim.core import formulas as f
from mlsysim.core.numeric import Value, exp, maximum, minimum, sqrt, where, zero_like
from mlsysim.solvers.traffic.engine import Engine, interpolated
from mlsysim.solvers.traffic.load import InFlight, Requests, Turnover

__all__ = [
    "PERCENTILES",
    "FirstToken",
    "Passes",
    "PlaceQueue",
    "Tokens",
    "first_token",
    "next_tokens",
    "passes_of",
    "percentiles",
    "place_queue",
]

_SMALL = 1e-6
_PASS_ROUNDS = 4
"""Times that the prompts of a pass that never decodes are computed from its time."""

PERCENTILES = {
    "p50": (0.5, 0.0),
    "p90": (0.1, 1.2815515655446004),
    "p99": (0.01, 2.3263478740408408),
}
"""Percentiles: the share of requests beyond each, and its score in a normal distribution."""


@dataclass(frozen=True)
class Passes:
    """Passes of an engine in a steady state."""

    step: Value
    """Time of a pass without prompts."""
    mean: Value
    seen: Value
    """Time of the pass in which a request arrives; long passes have more arrivals."""
    full: Value
    """Time that a pass takes for as many prompts as it may."""
    held: Value
    """Requests in the engine, including those whose prompts are being prefilled."""
    busy: Value
    """Share of the time in which the engine has requests."""


@dataclass(frozen=True)
class FirstToken:
    """Time to first token, without the wait for a place."""

    mean: Value
    variance: Value
    alone: Value
    """Mean of requests that find the engine empty."""
    alone_variance: Value
    among: Value
    """Mean of requests that find others."""
    among_variance: Value
    busy: Value
    """Share of the requests that find others."""


@dataclass(frozen=True)
class Tokens:
    """Mean time per token of a request, after its first token."""

    mean: Value
    variance: Value
    least: Value
    """Time of a decode step of one sequence."""
    most: Value
    """Time of a pass while every place is taken and as many prompts are prefilled as it may."""


@dataclass(frozen=True)
class PlaceQueue:
    """Wait of a request until one of the engine's places is free."""

    wait: Value
    """Mean wait of those that wait."""
    waiting: Value
    """Share of the requests that wait."""


def passes_of(engine: Engine, requests: Requests, turnover: Turnover, inside: InFlight) -> Passes:
    """Return the passes of an engine, among them the one in which a request arrives."""
    arrivals, prefill = requests.rate, inside.prefill
    some = requests.output_len > 1
    step = interpolated(engine.sizes, turnover.steps, minimum(inside.running, engine.places))
    mean_pass = f.pass_with_prompts(step, arrivals, prefill)
    longer = f.pass_seen_on_arrival(
        zero_like(step), arrivals, inside.another, requests.burstiness, requests.input_variation
    )
    seen = mean_pass + longer
    # Without decode there are no passes without prompts.
    alone = engine.reads[0]
    base = step + maximum(alone - prefill, zero_like(alone))
    prompts = f.prompts_in_busy_pass(arrivals, base, prefill)
    # A pass takes no more than its budget, which may be a part of a prompt.
    budget = engine.readers * engine.pass_tokens / engine.seq_len
    for _ in range(_PASS_ROUNDS):
        prompts = minimum(prompts, budget)
        arriving = arrivals * (step + engine.added_time(prompts, zero_like(alone)))
        prompts = arriving + exp(-arriving)
    prompts = minimum(prompts, budget)
    # A pass takes no longer than a full one.
    full_pass = engine.full_time(inside.saving)
    longest = step + full_pass
    packed = minimum(step + engine.added_time(prompts, zero_like(alone)), longest)
    packed_seen = f.busy_pass_seen(
        packed, prompts, arrivals, prefill, requests.burstiness, requests.input_variation
    )
    mean_pass = where(some, mean_pass, packed)
    seen = where(some, seen, packed_seen)
    mean_pass, seen = minimum(mean_pass, longest), minimum(seen, longest)
    # An engine without requests has no waits, so there is no logarithm.
    held = maximum(inside.running, _SMALL)
    busy = where(some, f.busy_share(held), arrivals * packed / prompts)
    return Passes(step, mean_pass, seen, full_pass, held, busy)


def first_token(
    engine: Engine, requests: Requests, inside: InFlight, passes: Passes, capacity: Value
) -> FirstToken:
    """Return the time to first token.

    A request that finds others waits for the rest of a pass, for the passes launched ahead, and for
    the prompts in front of its own.
    """
    arrivals, prefill, seen, busy = requests.rate, inside.prefill, passes.seen, passes.busy
    variation = requests.input_variation
    readers, chunks, per_pass = engine.readers, engine.chunks, engine.prompts_per_pass
    # Those beyond a pass's budget have passes of their own, whose time is part of `budget`.
    others = minimum(
        f.prompts_alongside(arrivals, seen, requests.burstiness),
        maximum(readers * per_pass - 1, zero_like(readers)),
    )
    queued = f.queued_prompt_time(passes.step, passes.full / per_pass, per_pass, readers)
    part = maximum(queued, passes.mean / (readers * per_pass))
    taken = minimum(arrivals * part, arrivals / capacity)
    budget = f.budget_wait(taken, part, requests.burstiness, variation)
    # With several ranks or stages, a prompt waits only if all of them read: Sakasegawa's exponent.
    budget = budget * taken ** (sqrt(2 * (readers + 1)) - 2)
    # Others are read at the same time, up to one on each rank.
    others_time = engine.added_time(1 + others, inside.saving) - engine.added_time(
        1 + zero_like(others), inside.saving
    )
    # Without decode, nothing runs after a pass, and so nothing is launched ahead.
    ahead = where(requests.output_len > 1, engine.delay_steps * passes.mean, zero_like(passes.mean))
    busy_time = seen / 2 + ahead + chunks * passes.step + others_time
    alone, among = engine.alone, engine.own_time(inside.saving) + busy_time + budget
    first = (1 - busy) * alone + busy * among
    # Half of the pass is waited for, and its arrivals are read alongside.
    half = 0.5 + arrivals * inside.another
    uneven = half * half * passes.mean * (seen - passes.mean)
    by_flight = (chunks + 0.5 + engine.delay_steps) * inside.per_sequence
    prompt_variance = engine.prefill * engine.prefill * variation * variation
    among_variance = (
        seen * seen / 12
        + arrivals * seen * _square_of_prompts(requests, inside.another) / 3
        + prompt_variance
        + others_time * prefill * (1 + variation * variation)
        + by_flight * by_flight * inside.variance
        + f.exponential_wait_variance(budget, maximum(taken, _SMALL))
        + uneven
    )
    apart = among - alone
    first_variance = (
        (1 - busy) * prompt_variance + busy * among_variance + busy * (1 - busy) * apart * apart
    )
    return FirstToken(first, first_variance, alone, prompt_variance, among, among_variance, busy)


def _square_of_prompts(requests: Requests, prefill: Value) -> Value:
    """Return how much the time that arriving prompts take varies, per arrival."""
    variation = requests.input_variation
    return prefill * prefill * (requests.burstiness + variation * variation)


def place_queue(
    engine: Engine, requests: Requests, inside: InFlight, passes: Passes, capacity: Value
) -> PlaceQueue:
    """Return the wait for a place, which a request also occupies during its prefill."""
    place_wait = f.place_queue_wait(
        requests.rate, capacity, requests.burstiness, requests.output_variation
    )
    waiting = f.waiting_probability(
        engine.places, passes.held, inside.variance, requests.rate, capacity, inside.peakedness
    )
    return PlaceQueue(place_wait, waiting)


def next_tokens(
    engine: Engine, requests: Requests, turnover: Turnover, inside: InFlight, passes: Passes
) -> Tokens:
    """Return the time of a decode step of a request, in passes that other requests share."""
    arrivals, decodes, prefill = requests.rate, requests.decodes(engine), inside.prefill
    # An arriving request sees itself and those already there.
    seat = minimum(inside.running + inside.peakedness, engine.places)
    shared = interpolated(engine.sizes, turnover.steps, seat)
    token = f.pass_with_prompts(shared, arrivals, prefill)
    # The first decode steps meet the prompts that waited behind the request's own.
    reading_share = arrivals * prefill
    backlog = f.budget_wait(reading_share, prefill, requests.burstiness, requests.input_variation)
    most = prefill * minimum(engine.readers * engine.pass_tokens / engine.seq_len, 1)
    steps = maximum(decodes, 1)
    token = token + f.backlog_per_token(backlog, reading_share, steps, most)
    slowest = shared + passes.full
    token = minimum(token, slowest)
    # Prompts lengthen a stay, in which more prompts arrive, as they do in a busy period.
    left = 1 - arrivals * inside.another
    arriving = (
        arrivals * token * _square_of_prompts(requests, inside.another) / (steps * left * left)
    )
    waited = f.exponential_wait_variance(backlog, maximum(reading_share, _SMALL))
    waited = waited / (steps * steps * left * left)
    found = most * most * reading_share * left
    prompt_variance = f.bounded_variance(arriving + minimum(waited, found), token, shared, slowest)
    flight_variance = inside.per_sequence * inside.per_sequence * inside.variance
    token_variance = prompt_variance + flight_variance * f.fluctuation_over_a_stay(inside.load)
    longest = turnover.steps[-1] + passes.full
    return Tokens(token, token_variance, turnover.steps[0], longest)


def percentiles(
    engine: Engine, requests: Requests, first: FirstToken, tokens: Tokens, places: PlaceQueue
) -> dict[str, Value]:
    """Return the mean and the percentiles of every time, by field of the result."""
    decodes, token = requests.decodes(engine), tokens.mean
    some = requests.output_len > 1
    long_answers = token * requests.output_len * requests.output_variation / engine.accepted
    whole = first.mean + decodes * token
    whole_variance = (
        first.variance + decodes * decodes * tokens.variance + long_answers * long_answers
    )
    place_wait = places.waiting * places.wait
    times = {
        "ttft_mean": first.mean + place_wait,
        "tpot_mean": where(some, token / engine.accepted, math.nan * token),
        "e2e_mean": whole + place_wait,
    }
    alone, among, busy = first.alone, first.among, first.busy
    # The root of a variance of zero would have no slope.
    alone_variance = maximum(first.alone_variance, _SMALL * alone * alone)
    alone_deviation = f.lognormal_deviation(alone, alone_variance)
    among_deviation = f.lognormal_deviation(among, first.among_variance)
    # Without decode, the time per token is zero, and its logarithm has no deviation.
    token_deviation = f.lognormal_deviation(where(some, token, alone), tokens.variance)
    whole_deviation = f.lognormal_deviation(whole, whole_variance)
    for name, (beyond, score) in PERCENTILES.items():
        queued = f.waiting_quantile(places.wait, places.waiting, beyond)
        # Among requests that find others, a larger share is this slow or slower than among all.
        late = f.normal_score(maximum(1 - beyond / busy, _SMALL))
        started = queued + maximum(
            f.lognormal_quantile(alone, alone_deviation, score),
            f.lognormal_quantile(among, among_deviation, late),
        )
        slow = f.lognormal_quantile(token, token_deviation, score)
        slow = maximum(minimum(slow, tokens.most), tokens.least)
        # No request ends before its first token, which is the last one without decode.
        ended = f.lognormal_quantile(whole, whole_deviation, score) + queued
        times[f"ttft_{name}"] = started
        times[f"tpot_{name}"] = where(some, slow / engine.accepted, math.nan * slow)
        times[f"e2e_{name}"] = where(some, maximum(started, ended), started)
    return times
