"""How many requests an engine can serve, and how many are in it at an arrival rate."""

from __future__ import annotations

from dataclasses import dataclass

from mlsysim.core import formulas as f
from mlsysim.core.numeric import Value, maximum, minimum, sqrt, when, where, zero_like
from mlsysim.solvers.traffic.engine import Engine, interpolated

__all__ = ["InFlight", "Requests", "Turnover", "in_flight", "turnover_of"]

_SMALL = 1e-6


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


@dataclass(frozen=True)
class Turnover:
    """An engine at each of its sizes, while as many requests arrive as end."""

    steps: tuple[Value, ...]
    """Time of a pass without prompts; zero without decode."""
    savings: tuple[Value, ...]
    """Mean time that prompts save because they share it."""
    stays: tuple[Value, ...]
    """Time for which a request has a slot, including the time until the next one may use it."""
    capacity: Value
    """Most requests per second."""


@dataclass(frozen=True)
class InFlight:
    """Requests in the engine in a steady state."""

    prefill: Value
    """Time that each prompt adds to a pass, on average."""
    another: Value
    """Time that one prompt more would add."""
    growth: Value
    """Time by which another sequence lengthens a decode step."""
    saving: Value
    """Time that prompts save in a pass that decodes."""
    per_sequence: Value
    """Time by which another sequence lengthens a pass, and the prompts that arrive during it."""
    running: Value
    """Mean requests in flight, if there are enough places."""
    variance: Value
    """Variance of the requests in flight."""
    peakedness: Value
    """Variance over mean of the requests in flight if passes did not depend on their number."""
    load: Value
    """Share of a request's stay that other requests cause."""


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
    stays: list[Value] = []
    reading: Value = None
    for k, size in enumerate(engine.sizes):
        if k and size is engine.sizes[k - 1]:  # at the places, the sizes repeat
            stays.append(stays[-1])
            continue
        prompts = size * engine.gathered / engine.accepted / maximum(decodes, 1)
        each = engine.mean_prompt_time(prompts, savings[k])
        stays.append(decodes * steps[k] + size * each + engine.waits[k] + engine.filling)
        # A pass gives each sequence a token and prefills no more prompts than it may.
        passes = steps[k] + engine.full_time(savings[k])
        most = minimum(size / stays[k], engine.readers * engine.prompts_per_pass / passes)
        reading = most if reading is None else maximum(reading, most)
    closed = decodes * steps[-1] + engine.waits[-1] + engine.filling
    closed = closed + engine.places * engine.refill_time(requests.output_len)
    return Turnover(steps, savings, tuple(stays), minimum(engine.places / closed, reading))


def in_flight(engine: Engine, requests: Requests, turnover: Turnover) -> InFlight:
    """Return the requests in flight, whose number and time in the engine depend on each other."""
    arrivals, decodes = requests.rate, requests.decodes(engine)
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
    # Slopes are means over the usual range of the requests in flight.
    reach = 1 + sqrt(maximum(peakedness, 0) * balance)
    least = maximum(balance - reach, engine.sizes[0])
    most = maximum(minimum(balance + reach, engine.places), least)
    span = maximum(most - least, _SMALL)

    def slope_of(values: tuple[Value, ...]) -> Value:
        ends = [interpolated(engine.sizes, values, at) for at in (least, most)]
        return (ends[1] - ends[0]) / span

    growth = slope_of(turnover.steps)
    growth = maximum(growth, zero_like(growth))
    step = interpolated(engine.sizes, turnover.steps, balance)
    saving = where(
        requests.output_len > 1,
        interpolated(engine.sizes, engine.savings, balance),
        zero_like(engine.savings[0]),
    )
    # A request that decodes meets prompts of others, which always save that time.
    prompts = maximum(balance * engine.gathered / engine.accepted / maximum(decodes, 1), _SMALL)
    prefill = engine.mean_prompt_time(prompts, saving)
    # Passes take no more than there is: what is left of a stay is the prefill of all.
    inside = maximum(balance, engine.sizes[0])
    wait = interpolated(engine.sizes, engine.waits, inside) + engine.filling
    rest = interpolated(engine.sizes, turnover.stays, inside) - decodes * step - wait
    prefill = minimum(prefill, maximum(rest, zero_like(rest)) / inside)
    another = _another_prompt(
        engine, arrivals, f.pass_with_prompts(step, arrivals, prefill), saving
    )
    prefill, another = _without_decode(engine, requests, prefill, another)
    # One request more delays the others by no more than in a queue in front of a full engine.
    delay = arrivals * (decodes * growth + another)
    share = minimum(1, arrivals / turnover.capacity / maximum(delay, _SMALL))
    growth, another = share * growth, share * another
    each = f.pass_with_prompts(growth, arrivals, another)
    load = arrivals * decodes * each
    running = f.mean_in_flight(balance, peakedness, load)
    return InFlight(
        prefill=prefill,
        another=another,
        growth=growth,
        saving=saving,
        per_sequence=each,
        running=running,
        variance=f.in_flight_variance(running, peakedness, load),
        peakedness=peakedness,
        load=load,
    )


def _another_prompt(engine: Engine, rate: Value, time: Value, saving: Value) -> Value:
    """Return the time that one prompt more adds to a pass of a given mean time.

    At random arrivals, a share of the passes has no prompt; the first one of a pass adds the most.
    """
    mean = maximum(rate * time, _SMALL)
    ends = [
        prompts * engine.mean_prompt_time(prompts, saving) for prompts in (mean / 2, 3 * mean / 2)
    ]
    return (ends[1] - ends[0]) / mean


def _without_decode(
    engine: Engine, requests: Requests, prefill: Value, another: Value
) -> tuple[Value, Value]:
    """Return the same, or what a prompt adds to a pass that never decodes."""
    most = engine.prompts[-1]
    rise = (engine.reads[-1] - engine.reads[0]) / maximum(most - 1, _SMALL)
    each = where(most > 1, rise, engine.reads[0])
    some = requests.output_len > 1
    return where(some, prefill, each), where(some, another, each)
