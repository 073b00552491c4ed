"""How many requests an engine can serve, and how many are in it at an arrival rate."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from mlsysim.core import formulas as f
from mlsysim.core.numeric import Value, exp, maximum, minimum, where
from mlsysim.solvers.traffic.engine import Engine

__all__ = ["InFlight", "Requests", "capacity_of", "in_flight"]

_SMALL = 1e-6
_MORE = 1.01
"""Factor on the prompts of a pass to see what another one adds."""
_PASS_ROUNDS = 4
"""Times that the prompts of a pass, and the sequences in flight, are computed from each other."""


@dataclass(frozen=True)
class Requests:
    """Requests and how much they vary, in the arguments of `OpenLoopSolver`."""

    rate: Value
    """Arrivals per second."""
    output_len: Value
    burstiness: Value
    input_variation: Value
    output_variation: Value

    @property
    def decodes(self) -> Value:
        """Decode steps of a request, after its first token."""
        return maximum(self.output_len - 1, 0)

    def steps_of(self, engine: Engine) -> list[Value]:
        """Return the time of a pass without prompts at each size of an engine.

        Requests for one token never decode.
        """
        return [where(self.output_len > 1, step, engine.empty) for step in engine.decodes]


@dataclass(frozen=True)
class InFlight:
    """Requests in the engine in a steady state. A stay is linear in them between two sizes."""

    low: Value
    """Size of the engine below their number."""
    fixed: Value
    """Time of a decode step that does not depend on their number."""
    growth: Value
    """Time by which another sequence lengthens a decode step."""
    prefill: Value
    """Time that each prompt adds to a pass, on average."""
    another: Value
    """Time that one prompt more would add."""
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
    low_power: Value
    """Power of a device at the size below."""
    more_power: Value
    """Power that another sequence adds."""

    def step_at(self, sequences: Value) -> Value:
        """Return the time of a decode step with a number of sequences."""
        return self.fixed + self.growth * maximum(sequences, self.low)

    def power_at(self, sequences: Value) -> Value:
        """Return the power of a busy device with a number of sequences."""
        return self.low_power + self.more_power * (maximum(sequences, self.low) - self.low)


def capacity_of(engine: Engine, requests: Requests) -> Value:
    """Return the most requests per second: places limit them, or the prompts that passes take."""
    capacity = 0 * requests.rate
    readers = engine.readers
    pass_tokens = readers * engine.pass_tokens
    departures = _departures(engine, requests)
    for step, leaving in zip(requests.steps_of(engine), departures, strict=True):
        reading = f.prompt_rate(
            engine.full_prefill(step) / readers, step, engine.seq_len, pass_tokens
        )
        capacity = maximum(capacity, minimum(leaving, reading))
    return capacity


def in_flight(engine: Engine, requests: Requests) -> InFlight:
    """Return the requests in flight, whose number and time in the engine depend on each other."""
    arrivals, decodes = requests.rate, requests.decodes
    steps, departures = requests.steps_of(engine), _departures(engine, requests)
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
    fixed = low_step - growth * low
    prefill, base, slope = engine.prefill / engine.readers, 0 * arrivals, 0 * arrivals
    balance = low
    for _ in range(_PASS_ROUNDS):
        # Sequences in flight depend on the time that prompts share, and that on their number.
        here = maximum(low, minimum(balance, high))
        prefill = _shared_prefill(engine, arrivals, fixed + growth * here)
        base = decodes * f.pass_with_prompts(fixed, arrivals, prefill)
        slope = decodes * f.pass_with_prompts(growth, arrivals, prefill)
        balance = f.requests_at_balance(arrivals, base, slope)
    # An engine that keeps up does so at the larger size.
    balance = where(arrivals * slope < 1, balance, high)
    another = _another_prompt(engine, arrivals, fixed + growth * maximum(low, balance), prefill)
    # Where more requests would lengthen a pass without end, only their mean is known.
    settles = arrivals * (decodes * growth + another) < 1
    another = where(settles, another, minimum(another, prefill))
    each = where(settles, f.pass_with_prompts(growth, arrivals, another), 0 * growth)
    load = arrivals * decodes * each
    peakedness = f.arrival_peakedness(requests.burstiness, requests.output_variation)
    running = f.mean_in_flight(balance, peakedness, load)
    return InFlight(
        low=low,
        fixed=fixed,
        growth=growth,
        prefill=prefill,
        another=another,
        per_sequence=each,
        running=running,
        variance=f.in_flight_variance(running, peakedness, load),
        peakedness=peakedness,
        load=load,
        low_power=low_power,
        more_power=(high_power - low_power) / maximum(high - low, 1),
    )


def _departures(engine: Engine, requests: Requests) -> list[Value]:
    """Return the rate at which sequences leave their places, at each size of an engine."""
    decodes = requests.decodes

    def shared_at(size: Value, step: Value) -> Value:
        """Return the time that a prompt adds in a steady state with a number of sequences."""
        prompts = size / maximum(decodes, 1)
        return engine.mean_prompt_time(prompts, step) / _together(engine, prompts)

    return [
        f.place_rate(size, decodes, step, shared_at(size, step))
        for size, step in zip(engine.sizes, requests.steps_of(engine), strict=True)
    ]


def _together(engine: Engine, prompts: Value) -> Value:
    """Return how many prompts share the time of one, with a mean number of arrivals per pass.

    All ranks and stages wait for one that reads, so a pass with any prompt takes as long as one on
    each of them. At random arrivals, a share of the passes has none.
    """
    mean = maximum(engine.chunks * prompts, _SMALL)
    return minimum(mean / (1 - exp(-mean)), engine.readers)


def _another_prompt(engine: Engine, rate: Value, step: Value, prefill: Value) -> Value:
    """Return the time that one prompt more adds to a pass.

    Many short prompts take longer together than the first ones, which hide behind the weights.
    """
    prompts = maximum(rate * f.pass_with_prompts(step, rate, prefill), _SMALL)
    both = [
        number * engine.mean_prompt_time(number, step) / _together(engine, number)
        for number in (prompts, _MORE * prompts)
    ]
    return (both[1] - both[0]) / ((_MORE - 1) * prompts)


def _shared_prefill(engine: Engine, rate: Value, step: Value) -> Value:
    """Return the time that a prompt adds next to decode steps of a given time.

    Prompts per pass are those that arrive during it. We begin with more than that, so that the time
    is approached from below and passes never take more than there is.
    """
    readers = engine.readers
    least = minimum(engine.prefill + engine.single_saving, engine.further_prefill) / readers
    base = step + engine.first_time(step)
    prompts = rate * (base + engine.prefill)
    for fixed, each in (
        (base, least),
        (base + engine.first_extra, engine.further_prefill / readers),
    ):
        prompts = maximum(prompts, rate * fixed / maximum(1 - rate * each, _SMALL))
    for _ in range(_PASS_ROUNDS):
        read = engine.mean_prompt_time(prompts, step) * prompts / _together(engine, prompts)
        prompts = rate * (step + read)
    return engine.mean_prompt_time(prompts, step) / _together(engine, prompts)
