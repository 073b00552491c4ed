"""Requests in an engine in a steady state: how many there are, and how long each one takes."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from mlsysim.core import formulas as f
from mlsysim.core.numeric import (
    Value,
    exp,
    is_zero,
    log,
    maximum,
    minimum,
    sqrt,
    when,
    where,
    zero_like,
)
from mlsysim.solvers.traffic.engine import PERCENTILES, Engine, interpolated, length_quantile
from mlsysim.solvers.traffic.inputs import OpenLoopInputs

_SMALL = 1e-6
_COUNT_VARIANCE = 1 / 6
"""Variance of a whole number that alternates between two neighboring values, on average."""
_MOST_EXPONENT = 600.0
"""Exponents of probabilities are limited to it; a larger one is a wait that never happens."""
_PASS_ROUNDS = 4
"""Times that the prompts of a pass are computed from its time."""


@dataclass(frozen=True)
class Requests:
    """Requests and how much they vary, in the arguments of `OpenLoopSolver`."""

    rate: Value
    """Arrivals per second."""
    output_len: Value
    burstiness: Value
    input_variation: Value
    output_variation: Value

    def decodes(self, engine: Engine) -> Value:
        """Return the decode steps of a request, after its first token."""
        return maximum(self.output_len - 1, 0) / engine.accepted


def requests_of(i: OpenLoopInputs) -> Requests:
    """Return the requests that arrive at an engine."""
    return Requests(i.arrival_rate, i.answer, i.burstiness, i.input_variation, i.output_variation)


@dataclass(frozen=True)
class Turnover:
    """An engine at each of its sizes, while as many requests arrive as end."""

    steps: tuple[Value, ...]
    """Time of a pass without prompts; zero without decode."""
    savings: tuple[Value, ...]
    """Mean time that prompts save because they share it."""
    prompts: tuple[Value, ...]
    """Time that each prompt adds to a pass."""
    stays: tuple[Value, ...]
    """Time for which a request has a slot, including the time until the next one may use it."""
    capacity: Value
    """Most requests per second."""


@dataclass(frozen=True, kw_only=True)
class _InFlight:
    """Requests in the engine in a steady state."""

    prefill: Value
    """Time that each prompt adds to a pass, on average."""
    another: Value
    """Time that one prompt more would add."""
    saving: Value
    """Time that prompts save in a pass that decodes."""
    running: Value
    """Mean requests in flight, if there are enough places."""
    variance: Value
    """Variance of the requests in flight."""
    peakedness: Value
    """Variance over mean of the requests in flight if passes did not depend on their number."""
    load: Value
    """Share of a request's stay that other requests cause."""


@dataclass(frozen=True, kw_only=True)
class SteadyState(_InFlight):
    """An engine that keeps up with its requests: those in flight, and the passes they share."""

    engine: Engine
    requests: Requests
    turnover: Turnover
    step: Value
    """Time of a pass without prompts."""
    mean_pass: Value
    seen_pass: Value
    """Time of the pass in which a request arrives; long passes have more arrivals."""
    full_pass: Value
    """Time that a pass takes for as many prompts as it may."""
    busy: Value
    """Share of the time in which the engine has requests."""


def turnover_of(engine: Engine, requests: Requests) -> Turnover:
    """Return the stays of requests at every size of an engine, and its capacity.

    The capacity is the throughput of the closed loop with a client for each slot.
    """
    decodes = requests.decodes(engine)
    some = requests.output_len > 1
    # A decode pool makes a single token in a decode step, and other engines in a prefill.
    decodes_first = engine.reads[0] == 0
    steps = tuple(
        where(some, engine.accepted * each, when(decodes_first, each)) for each in engine.decodes
    )
    # A request is next to others in a share of its passes.
    savings = tuple(
        where(some, (1 - 1 / size) * each, zero_like(each))
        for size, each in zip(engine.sizes, engine.savings, strict=True)
    )
    each_prompt: list[Value] = []
    stays: list[Value] = []
    for k, size in enumerate(engine.sizes):
        if k and size is engine.sizes[k - 1]:  # at the places, the sizes repeat
            each_prompt.append(each_prompt[-1])
            stays.append(stays[-1])
            continue
        prompts = size * engine.gathered / engine.accepted / maximum(decodes, 1)
        each_prompt.append(engine.mean_prompt_time(prompts, savings[k]))
        prompt_time = size * each_prompt[k]
        stays.append(decodes * steps[k] + prompt_time + engine.waits[k] + engine.filling)
    closed = decodes * steps[-1] + engine.waits[-1] + engine.filling
    closed = closed + engine.places * engine.refill_time(decodes, requests.output_len)
    return Turnover(steps, savings, tuple(each_prompt), tuple(stays), engine.places / closed)


def _in_flight(engine: Engine, requests: Requests, turnover: Turnover) -> _InFlight:
    """Return the requests in flight, whose number and time in the engine depend on each other."""
    arrivals = requests.rate
    # Up to one request, a stay does not depend on their number. Beyond, it is linear between sizes.
    base, slope = turnover.stays[0], zero_like(turnover.stays[0])
    low, high = zero_like(engine.sizes[0]), engine.sizes[0]
    for k in range(1, len(engine.sizes)):
        before, size = engine.sizes[k - 1], engine.sizes[k]
        if size is before:
            continue
        above = (arrivals * turnover.stays[k - 1] > before) & (size > before)
        rise = (turnover.stays[k] - turnover.stays[k - 1]) / maximum(size - before, _SMALL)
        base = where(above, turnover.stays[k - 1] - rise * before, base)
        slope = where(above, rise, slope)
        low, high = where(above, before, low), where(above, size, high)
    keeps_up = arrivals * slope < 1
    balance = f.requests_at_balance(arrivals, base, when(keeps_up, slope))
    balance = maximum(low, minimum(where(keeps_up, balance, high), high))

    peakedness = f.arrival_peakedness(requests.burstiness, requests.output_variation)
    step = interpolated(engine.sizes, turnover.steps, balance)
    saving = where(
        requests.output_len > 1,
        interpolated(engine.sizes, engine.savings, balance),
        zero_like(engine.savings[0]),
    )
    # A request that decodes meets prompts of others, which always save that time.
    mean_pass = _pass_time(engine, arrivals, step, saving)
    prompts = maximum(arrivals * mean_pass, _SMALL)
    prefill = engine.mean_prompt_time(prompts, saving)
    # Beyond the first one, prompts save nothing: which requests meet others does not depend on it.
    another = engine.added_time(engine.most_prompts, zero_like(saving)) / engine.most_prompts
    prefill, another = _without_decode(engine, requests, prefill, another)
    # Requests delay the others by no more than in a queue in front of a full engine.
    another = minimum(another, 1 / turnover.capacity)
    # Each sequence in flight lengthens a step by the same time on average.
    others = maximum(balance, minimum(2, engine.places))
    growth = interpolated(engine.sizes, turnover.steps, others) - turnover.steps[0]
    growth = maximum(growth, zero_like(growth)) / maximum(others - 1, _SMALL)
    decoding = arrivals * requests.decodes(engine) * growth
    load = minimum(decoding / (1 - arrivals * another), arrivals / turnover.capacity)
    running = f.mean_in_flight(balance, peakedness, load)
    return _InFlight(
        prefill=prefill,
        another=another,
        saving=saving,
        running=running,
        variance=f.in_flight_variance(running, peakedness, load),
        peakedness=peakedness,
        load=load,
    )


def _pass_time(engine: Engine, rate: Value, step: Value, saving: Value) -> Value:
    """Return the mean time of a pass, which prefills the prompts that arrived during the last one.

    It grows with the rate and with the time of either part, in every round.
    """
    full = engine.full_time(saving)
    most = engine.most_prompts
    longest = step + full
    spare = maximum(1 - rate * full / most, _SMALL)
    time = minimum(step / spare, longest)
    for _ in range(_PASS_ROUNDS):
        prompts = maximum(rate * time, _SMALL)
        time = minimum(step + prompts * engine.mean_prompt_time(prompts, saving), longest)
    return time


def _without_decode(
    engine: Engine, requests: Requests, prefill: Value, another: Value
) -> tuple[Value, Value]:
    """Return the same, or what a prompt adds to a pass that never decodes."""
    most = engine.prompts[-1]
    rise = (engine.reads[-1] - engine.reads[0]) / maximum(most - 1, _SMALL)
    each = where(most > 1, rise, engine.reads[0])
    some = requests.output_len > 1
    return where(some, prefill, each), where(some, another, each)


Deviations: TypeAlias = Callable[..., tuple[Value, ...]]
"""By how much each independent cause moves a percentile of a time away from its mean.

Each is the difference of two times: with the percentile of a number of prompts or sequences, and
with its mean. Both fall on faster hardware, except that a percentile near capacity may not. A
variance may grow, because faster memory makes passes shorter, but more dependent on their number of
prompts.
"""


@dataclass(frozen=True)
class _FirstToken:
    """Time to first token, without the wait for a place."""

    mean: Value
    alone: Value
    """Mean of requests that find the engine empty."""
    among: Value
    """Mean of requests that find others."""
    deviations: Deviations
    """For requests that find others, by the percentile's score in a normal distribution."""


@dataclass(frozen=True)
class _Tokens:
    """Mean time per token of a request, after its first token."""

    mean: Value
    unlimited: Value
    """The same if a pass could prefill any number of prompts, from which percentiles differ."""
    deviations: Deviations
    """By the percentile's score in a normal distribution, and the share beyond it."""
    least: Value
    """Time of a decode step of one sequence."""
    most: Value
    """Time of a pass while every place is taken and as many prompts are prefilled as it may."""


def steady_state(engine: Engine, requests: Requests, turnover: Turnover) -> SteadyState:
    """Return the requests in flight, and the passes, among them the one in which one arrives."""
    inside = _in_flight(engine, requests, turnover)
    arrivals, prefill = requests.rate, inside.prefill
    some = requests.output_len > 1
    step = interpolated(engine.sizes, turnover.steps, minimum(inside.running, engine.places))
    mean_pass = _pass_time(engine, arrivals, step, inside.saving)
    # Long passes have more arrivals, and passes with many prompts are long.
    reading = when(some, arrivals * inside.another)
    more = _variability(requests) * reading / (1 - reading * reading)
    prompts_seen = maximum(arrivals * mean_pass + more, _SMALL)
    seen = step + prompts_seen * engine.mean_prompt_time(prompts_seen, inside.saving)
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
    return SteadyState(
        **vars(inside),
        engine=engine,
        requests=requests,
        turnover=turnover,
        step=step,
        mean_pass=mean_pass,
        seen_pass=seen,
        full_pass=full_pass,
        busy=busy,
    )


def _first_token(s: SteadyState) -> _FirstToken:
    """Return the time to first token.

    A request that finds others waits for the rest of a pass, for the passes launched ahead, and for
    the prompts in front of its own.
    """
    engine, requests, seen = s.engine, s.requests, s.seen_pass
    arrivals, variation = requests.rate, requests.input_variation
    readers, chunks, per_pass = engine.readers, engine.chunks, engine.prompts_per_pass
    # Those beyond a pass's budget have passes of their own, whose time is part of `budget`.
    others = minimum(
        f.prompts_alongside(arrivals, seen, requests.burstiness),
        maximum(engine.most_prompts - 1, zero_like(readers)),
    )
    queued = f.queued_prompt_time(s.step, s.full_pass / per_pass, per_pass, readers)
    part = maximum(queued, s.mean_pass / engine.most_prompts)
    taken = minimum(arrivals * part, arrivals / s.turnover.capacity)
    found_busy = f.share_found_busy(taken, requests.burstiness)
    budget = f.budget_wait(found_busy, part, requests.burstiness, variation)
    # With several ranks or stages, a prompt waits only if all of them read: Sakasegawa's exponent.
    all_read = taken ** (sqrt(2 * (readers + 1)) - 2)
    budget = budget * all_read
    # Most requests do not wait, and the others for an exponential time.
    wait_at = _skewed(1, 2 / maximum(found_busy * all_read, _SMALL) - 1)
    # Others are read at the same time, up to one on each rank.
    read = engine.added_time(1 + others, s.saving)
    others_time = read - engine.added_time(1 + zero_like(others), s.saving)
    # Without decode, nothing runs after a pass, and so nothing is launched ahead.
    ahead = when(requests.output_len > 1, engine.delay_steps * s.mean_pass)
    busy_time = seen / 2 + ahead + chunks * s.step + others_time
    alone, among = engine.alone, engine.own_time(s.saving) + busy_time + budget
    first = (1 - s.busy) * alone + s.busy * among
    # Half of the pass is waited for, and its arrivals are read alongside.
    busy_reading = arrivals * s.another
    half = 0.5 + busy_reading
    waited = half * half * s.mean_pass / (1 - busy_reading * busy_reading)
    met = arrivals * (waited + seen / 3) * _variability(requests)
    met = met + others * (1 + variation * variation)
    passes_met = (chunks + 0.5 + engine.delay_steps) / (1 - busy_reading)
    step = interpolated(engine.sizes, s.turnover.steps, s.running)

    prompts_at = _skewed(1 + others, met + _SMALL)

    def deviations(score: Value) -> tuple[Value, ...]:
        running = s.running + score * sqrt(s.variance)
        return (
            score * seen / sqrt(12),
            _alone(engine, requests, score) - alone,
            engine.added_time(prompts_at(score), s.saving) - read,
            passes_met * (interpolated(engine.sizes, s.turnover.steps, running) - step),
            budget * (wait_at(score) - 1),
        )

    return _FirstToken(first, alone, among, deviations)


def _variability(requests: Requests) -> Value:
    """Return the variance of the prompts that arrive, per arrival, in prompts of mean length."""
    return requests.burstiness + requests.input_variation * requests.input_variation


def _skewed(mean: Value, variance: Value) -> Callable[[Value], Value]:
    """Return the percentiles of an amount that is never negative, by score.

    Large numbers are about normally distributed, and small ones are skewed: we take the larger one
    of a normal and of a lognormal percentile.
    """
    deviation, log_deviation = sqrt(variance), f.lognormal_deviation(mean, variance)

    def percentile(score: Value) -> Value:
        return maximum(mean + score * deviation, f.lognormal_quantile(mean, log_deviation, score))

    return percentile


def _alone(engine: Engine, requests: Requests, score: Value) -> Value:
    """Return a percentile of the time of a prompt in an engine without other requests."""
    if is_zero(requests.input_variation):
        return engine.alone
    return engine.prompt_time(length_quantile(requests.input_variation, score))


def _together(least: Value, deviations: tuple[Value, ...]) -> Value:
    """Return by how much a percentile of a sum differs from its mean.

    Independent deviations add up by their squares, those above the mean and those below it apart.
    The percentile grows with each mean and with each percentile of the parts.
    """
    # The root of zero has no slope.
    above = below = _SMALL * _SMALL * least * least
    for each in deviations:
        more, less = maximum(each, zero_like(each)), minimum(each, zero_like(each))
        above, below = above + more * more, below + less * less
    return sqrt(above) - sqrt(below)


def _next_tokens(s: SteadyState) -> _Tokens:
    """Return the time of a decode step of a request, in passes that other requests share."""
    engine, requests, turnover = s.engine, s.requests, s.turnover
    arrivals, decodes = requests.rate, requests.decodes(engine)
    # An arriving request sees itself and those already there.
    seat = minimum(s.running + s.peakedness, engine.places)
    shared = interpolated(engine.sizes, turnover.steps, seat)
    saving = interpolated(engine.sizes, engine.savings, seat)
    full = engine.full_time(saving)
    passes = _pass_time(engine, arrivals, shared, saving)
    # The first decode steps meet the prompts that waited behind the request's own.
    reading = arrivals * s.another
    found_busy = maximum(f.share_found_busy(reading, requests.burstiness), _SMALL)
    reads = engine.chunks * engine.stages
    backlog = f.budget_wait(found_busy, reads, requests.burstiness, requests.input_variation)
    steps = maximum(decodes, 1)
    backlog_share = f.steps_with_backlog(backlog, reading, steps)
    # A pass takes one prompt or a part of one from the backlog, up to its budget.
    arriving = maximum(arrivals * passes, _SMALL)
    spare = maximum(engine.most_prompts - arriving, zero_like(arriving))
    behind = minimum(minimum(engine.prompts_per_pass, 1), spare)
    mean_prompts = arriving + backlog_share * behind
    # Prompts lengthen a stay, in which more prompts arrive, as they do in a busy period.
    longer = 1 / (1 - reading)
    met = arriving * _variability(requests) / steps * longer * longer + _SMALL * _SMALL
    lasting = s.variance * f.fluctuation_over_a_stay(s.load)
    arriving_at = _skewed(arriving, met)

    def pass_time(running: Value, prompts: Value) -> Value:
        """Return the time of a pass with a number of sequences and a mean number of prompts."""
        step = interpolated(engine.sizes, turnover.steps, running)
        saved = interpolated(engine.sizes, engine.savings, running)
        time = prompts * engine.mean_prompt_time(prompts, saved)
        return step + minimum(time, engine.full_time(saved))

    token = pass_time(seat, mean_prompts)

    def deviations(score: Value, beyond: Value) -> tuple[Value, ...]:
        queued = f.waiting_quantile(backlog / found_busy, found_busy, beyond)
        more: tuple[Value, ...] = (behind * (minimum(queued * longer / steps, 1) - backlog_share),)
        slower = zero_like(token)
        if not is_zero(score):  # the median is the mean
            slower = pass_time(seat + score * sqrt(lasting), mean_prompts) - token
            more = (arriving_at(score) - arriving, *more)
        prompts = maximum(mean_prompts + _together(arriving, more), _SMALL)
        return (slower, pass_time(seat, prompts) - token)

    longest_mean = shared + full
    longest = turnover.steps[-1] + engine.full_time(turnover.savings[-1])
    return _Tokens(minimum(token, longest_mean), token, deviations, turnover.steps[0], longest)


def _odds_of_a_full_engine(s: SteadyState) -> Value:
    """Return the probability that every place is taken, relative to that of a free place.

    While requests share a server, the probabilities of `n` and of `n - 1` requests have the ratio
    `rate * stay / n`. Peaked arrivals flatten them, as they widen a normal distribution. The sum
    over `n` is an integral, with points that are evenly spaced in the root of `n`, because its
    fluctuations are. Every point has a positive weight, so the result grows with the rate and with
    the stay at every size.
    """
    sizes, rate = s.engine.sizes, s.requests.rate
    utilization = rate / s.turnover.capacity
    # Arrivals during a stay. As many prompts are prefilled as arrive, and no more than that while
    # more requests are in flight.
    arrivals = [
        maximum(rate * (stay - size * prompt) / (1 - minimum(rate * prompt, utilization)), _SMALL)
        for size, prompt, stay in zip(sizes, s.turnover.prompts, s.turnover.stays, strict=True)
    ]
    flattening = s.peakedness + _COUNT_VARIANCE / s.engine.places
    places = sizes[-1]
    # Integral of their logarithm, from a number of requests to all places.
    log_arrivals = zero_like(arrivals[0])

    def density(root: Value, number: Value) -> Value:
        """Return the probability of a number per change of its root, relative to all places."""
        change = most - number * (log(number) - 1) - log_arrivals
        return root * exp(minimum(change / flattening, _MOST_EXPONENT))

    most, free = places * (log(places) - 1), zero_like(arrivals[0])
    for k in reversed(range(len(sizes))):
        high, low = sizes[k], sizes[k - 1] if k else zero_like(sizes[0])
        if high is low:
            continue
        first, fewer = sqrt(high), arrivals[max(k - 1, 0)] - arrivals[k]
        intervals = max(1, min(6, round(2 ** (k / 2) / 2.5))) if k else 2
        width = (first - sqrt(low)) / intervals
        number, log_arriving = high, log(arrivals[k])
        free = free + width * density(first, number)
        # There is nothing to add at zero requests.
        for point in range(1, intervals + 1 if k else intervals):
            distance = point * width
            root = first - distance
            below = high - distance * (first + root)  # nothing if the sizes repeat
            part = (high - below) / maximum(high - low, _SMALL)
            log_below = log(arrivals[k] + part * fewer)
            log_arrivals = log_arrivals + (number - below) * (log_arriving + log_below) / 2
            number, log_arriving = below, log_below
            free = free + (1 if point == intervals else 2) * width * density(root, number)
    # From the middle between two numbers to the next one.
    return exp(log(arrivals[-1] / places) / flattening / 2) / free


def percentiles(s: SteadyState) -> dict[str, Value]:
    """Return the mean and the percentiles of every time, and of waits, by field of the result."""
    engine, requests, capacity = s.engine, s.requests, s.turnover.capacity
    first, tokens = _first_token(s), _next_tokens(s)
    decodes, token = requests.decodes(engine), tokens.mean
    some = requests.output_len > 1
    whole = first.mean + decodes * token
    # A request also occupies its place during its prefill.
    wait = f.place_queue_wait(
        requests.rate, capacity, requests.burstiness, requests.output_variation
    )
    waiting = f.waiting_probability(
        _odds_of_a_full_engine(s), requests.rate, capacity, s.peakedness
    )
    place_wait = waiting * wait
    times = {
        "waiting_probability": waiting,
        "place_wait": place_wait,
        "ttft_mean": first.mean + place_wait,
        "tpot_mean": where(some, token / engine.accepted, math.nan * token),
        "e2e_mean": whole + place_wait,
    }
    answers = token * requests.output_len / engine.accepted
    median_alone = _alone(engine, requests, 0.0)
    for name, (beyond, score) in PERCENTILES.items():
        queued = f.waiting_quantile(wait, waiting, beyond)
        # Among requests that find others, a larger share is this slow or slower than among all.
        share_beyond = minimum(beyond / s.busy, 1)
        score_among = f.normal_score(1 - minimum(share_beyond, 0.5))
        among = first.among + _together(first.alone, first.deviations(score_among))
        # Below the median of these, times are between it and the median of requests alone.
        weight = minimum(2 * (1 - share_beyond), 1)
        among = median_alone + weight * (among - median_alone)
        first_token = maximum(_alone(engine, requests, score), among)
        parts = tokens.deviations(score, beyond)
        slow = tokens.unlimited + _together(first.alone, parts)
        slow = maximum(minimum(slow, tokens.most), tokens.least)
        causes = (first_token - first.mean, *(decodes * part for part in parts))
        if not is_zero(requests.output_variation):
            longer = length_quantile(requests.output_variation, score) - 1
            causes = (*causes, answers * longer)
        # No request ends before its first token, which is the last one without decode.
        sum_of_means = first.mean + decodes * tokens.unlimited
        end_to_end = maximum(first_token, sum_of_means + _together(first.alone, causes))
        times[f"ttft_{name}"] = queued + first_token
        times[f"tpot_{name}"] = where(some, slow / engine.accepted, math.nan * slow)
        times[f"e2e_{name}"] = queued + where(some, end_to_end, first_token)
    return times
