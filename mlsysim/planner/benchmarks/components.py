"""Components of a predicted time, and how wrong each would have to be to explain a measured one."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from mlsysim.core import formulas as f
from mlsysim.core.errors import MLSysError
from mlsysim.core.fields import priors
from mlsysim.core.gradient import plain, slopes
from mlsysim.core.types import ServingCalibration
from mlsysim.planner.sensitivities.elasticities import recorded_field
from mlsysim.planner.sensitivities.questions import Place, Question, question_behind
from mlsysim.solvers import OpenLoopResult, ServingResult
from mlsysim.solvers.serving.operators import serve_operators
from mlsysim.solvers.traffic.engine import engine_of, with_prefixes
from mlsysim.solvers.traffic.steady import requests_of, steady_state, turnover_of

FAR = 10.0
"""Factor beyond which a component alone is not a plausible cause."""
_LIMIT = 1e3
"""Factor beyond which we do not look."""
_HALVINGS = 12
_FULL = 0.999
"""Share of the capacity at which the time per token is that of an overloaded engine."""
_NOTHING = 1e-9
"""Share of a time below which a component is rounding."""

MEMORY = "weights and activations"
ARITHMETIC = "arithmetic"
LINKS = "communication"

_CONSTANTS = {name: prior.scales for name, prior in priors(ServingCalibration).items()}
"""The component that a constant of `ServingCalibration` scales. Each part of a pass has exactly one
such constant, so that the components add up."""


@dataclass(frozen=True)
class Component:
    """A part of a predicted mean time, which is the `quantity`, such as ``"tpot_mean"``."""

    quantity: str
    phase: str
    """``"decode"``, ``"prefill"`` or ``"wait"``."""
    name: str
    seconds: float
    scales: tuple[tuple[str, bool, float], ...] = ()
    """Paths of the inputs that scale it, whether they are rates, and the seconds that each one
    scales; empty if it follows from the load."""


def components_of(result: OpenLoopResult | ServingResult) -> tuple[Component, ...]:
    """Divide the mean time to first token, and the mean time per token after it.

    Passes are divided by the exact derivatives of their times with respect to the constants that
    scale them. The rest is waiting.
    """
    question = question_behind(result)
    if isinstance(result, OpenLoopResult):
        if result.ttft_mean is None:
            return ()
        passes = _open_passes(result, question)
        times = plain(result.ttft_mean), result.tpot_mean
        slot = plain(result.place_wait)
    else:
        passes = _closed_passes(result, question)
        times = plain(result.ttft), result.itl
        slot = _slot_wait(result, question)
    found = list(_first(result, question, passes, times[0], slot))
    inputs: Any = question.inputs.plain()
    if times[1] is not None and inputs.output_len > 1:
        found += _later(question, passes, plain(times[1]))
    return tuple(found)


@dataclass(frozen=True)
class _Passes:
    """Recorded times of the pass with a request's prompt, and of a decode step."""

    own: Any
    step: Any


def _cached(result: Any, i: Any) -> dict[str, float]:
    """Return the shares of a prompt that were cached and loaded, which pass times may determine."""
    return {
        f"{how}_share": float(result[f"{how}_tokens"]) / i.seq_len for how in ("cached", "loaded")
    }


def _closed_passes(result: ServingResult, question: Question) -> _Passes:
    """Return the mean pass with a request's prompt in a closed loop, and a decode step."""
    i: Any = question.inputs.plain()
    if i.turns > 1:
        recorded: Any = question.inputs.recorded()
        served = serve_operators(recorded.but(**_cached(result, i)))
        return _Passes(served["prefill_latency"], served["decode_latency"])
    return _Passes(
        recorded_field(result, "prefill_latency")[1], recorded_field(result, "decode_latency")[1]
    )


def _open_passes(result: OpenLoopResult, question: Question) -> _Passes:
    """Return the mean pass with a request's prompt in an open loop, and a decode step.

    Next to decode steps, a prompt saves the work common to both; in an empty engine, it has a pass
    to itself.
    """
    i: Any = question.inputs.plain()
    known = _cached(result, i)
    engine = with_prefixes(engine_of(i), i.but(**known))
    requests = requests_of(i)
    turnover = turnover_of(engine, requests)
    state = steady_state(engine, requests, turnover)
    recorded: Any = question.inputs.recorded().but(**known)
    prompt = with_prefixes(engine, recorded)
    flight = min(max(float(result["requests_in_flight"]), 1.0), float(result.places))
    length = f.length_in_flight(i.answer, i.output_variation)
    decode = serve_operators(recorded.but(batch_size=flight, output_len=length))["decode_latency"]
    decode = plain(result["decode_latency"]) / plain(decode) * decode
    joined = engine.own_time(state.saving) / engine.alone * prompt.alone
    if i.answer > 1:
        joined = joined + engine.chunks * decode
    return _Passes((1 - state.busy) * prompt.alone + state.busy * joined, decode)


def _first(
    result: Any, question: Question, passes: _Passes, whole: float, slot: float
) -> Iterator[Component]:
    """Divide the time to first token."""
    rest = plain(passes.own)
    yield from _parts(question, "ttft_mean", "prefill", passes.own)
    waits: dict[str, tuple[float, tuple[tuple[str, bool, float], ...]]] = {
        "loading over the host link": (plain(result["loading_latency"] or 0), ()),
        "wait for a slot": (slot, ()),
    }
    if isinstance(result, ServingResult) and not _textbook(question):
        inputs: Any = question.inputs
        seconds = inputs.calibration.si("request_overhead")
        waits["request handling"] = seconds, (("calibration.request_overhead", False, seconds),)
    for name, (seconds, scales) in waits.items():
        rest += seconds
        if seconds > _NOTHING * whole:
            yield Component("ttft_mean", "wait", name, seconds, scales)
    if whole - rest > _NOTHING * whole:
        yield Component("ttft_mean", "wait", "wait for passes", whole - rest)


def _later(question: Question, passes: _Passes, whole: float) -> Iterator[Component]:
    """Divide the time per token after the first."""
    yield from _parts(question, "tpot_mean", "decode", passes.step)
    rest = whole - plain(passes.step)
    if rest > _NOTHING * whole:
        yield Component("tpot_mean", "wait", "prefills of other requests", rest)


def _slot_wait(result: ServingResult, question: Question) -> float:
    """Return the mean wait of requests that are not admitted yet, in a closed loop."""
    i: Any = question.inputs.plain()
    running = result.running_batch_size
    if running >= i.batch_size:
        return 0.0
    stay = running / plain(result.request_throughput)
    return float(f.place_wait(i.batch_size, running, stay, i.waves))


def _textbook(question: Question) -> bool:
    return question.given.get("efficiency") is not None


def _parts(question: Question, quantity: str, phase: str, time: Any) -> Iterator[Component]:
    """Divide the time of a pass by its constants."""
    seconds: dict[str, float] = {}
    scales: dict[str, list[tuple[str, bool, float]]] = {}
    for row in slopes(time):
        path, part = row.input.origin, row.slope * row.value
        name = _component(path, _textbook(question))
        # Time rises with an overhead or a latency, and falls with a rate.
        rate = not path.endswith(("overhead", "latency"))
        if name and part:
            part = -part if rate else part
            seconds[name] = seconds.get(name, 0.0) + part
            scales.setdefault(name, []).append((path, rate, part))
    # Traffic that a prompt hides beneath arithmetic, because the pass reads it anyway, is negative.
    hidden = sum(part for part in seconds.values() if part < 0)
    if hidden:
        seconds[max(seconds, key=lambda name: seconds[name])] += hidden
    for name in sorted(seconds, key=lambda name: -seconds[name]):
        if seconds[name] > _NOTHING * plain(time):
            yield Component(quantity, phase, name, seconds[name], tuple(scales[name]))


def _component(path: str, textbook: bool) -> str | None:
    """Return the component that an input scales."""
    owner, _, name = path.rpartition(".")
    if owner == "calibration":
        return _CONSTANTS.get(name) or None
    if path == "efficiency":
        return ARITHMETIC
    if name == "latency" and owner.startswith("hardware"):
        return LINKS
    if textbook and name == "bandwidth":
        return MEMORY if owner.endswith("memory") else LINKS
    return None


def needed_factor(
    component: Component, question: Question, field: str, predicted: float, measured: float
) -> float | None:
    """Return the factor by which a component's time would have to differ to explain a measurement.

    The solver answers again with the inputs that scale the component, so that longer passes also
    lengthen the queue. A wait follows from the load and is scaled by itself. Times are in seconds.
    The factor is `None` if there is none up to 1000, or if it would exceed the datasheet.
    """
    if not component.scales:
        factor = 1 + (measured - predicted) / component.seconds
        return factor if 1 / _LIMIT <= factor <= _LIMIT else None
    slower = measured > predicted

    def reached(factor: float) -> bool:
        time = _scaled(component, question, field, factor)
        return time >= measured if slower else time <= measured

    near, far = 1.0, _LIMIT if slower else 1 / _LIMIT
    if not reached(far):
        return None
    for _ in range(_HALVINGS):
        middle = math.sqrt(near * far)
        near, far = (near, middle) if reached(middle) else (middle, far)
    factor = math.sqrt(near * far)
    # The inputs that a datasheet limits may scale only a part of it.
    parts = [
        (part, max(factor, _least(question.place(path), rate)))
        for path, rate, part in component.scales
    ]
    return sum(part * own for part, own in parts) / sum(part for part, _ in parts)


def _least(place: Place, rate: bool) -> float:
    """Return the least factor of a time, because no rate exceeds that of the datasheet."""
    if not rate:
        return 0.0
    return place.value if place.unit in ("", "1") else 1.0


def _scaled(component: Component, question: Question, field: str, factor: float) -> float:
    """Return the time with a component that takes `factor` times as long.

    With more arrivals than the engine can serve, the time to first token is infinite.
    """
    try:
        for path, rate, _ in component.scales:
            place = question.place(path)
            own = max(factor, _least(place, rate))
            value = place.value / own if rate else place.value * own
            question = question.changed(place, value)
        found = question.outputs()
        if field == "tpot_mean" and not found["stable"]:
            # Only the queue grows; the engine works at its capacity.
            served = _FULL * float(found["request_capacity"])
            found = question.changed(question.place("arrival_rate"), served).outputs()
        answer = float(found[field])
    except (MLSysError, OverflowError, ZeroDivisionError):
        return math.inf
    return answer if math.isfinite(answer) else math.inf  # there is no steady state
