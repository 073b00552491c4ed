"""Lab: serving under an SLO. What random traffic does to a p99, and what buys it back.

Act I raises the traffic of ten H100 GPUs until more than 1% of the requests wait for memory. Act II
compares four ways to meet the SLO, and designs a service for a stricter one. Every number comes
from the model of `OpenLoopSolver`, with the times of a vLLM server. The rent of a GPU is an offer
of the catalog.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from mlsysim.core.errors import ConfigError
from mlsysim.core.numeric import Value
from mlsysim.core.recording import Input
from mlsysim.core.units import Q_
from mlsysim.registry import Hardware, Models, Systems
from mlsysim.registry.calibration.serving import ServingCalibrations
from mlsysim.registry.catalogs import Offers
from mlsysim.solvers import DisaggregatedSolver, OpenLoopResult, OpenLoopSolver
from mlsysim.solvers.traffic.engine import Engine, engine_of
from mlsysim.solvers.traffic.inputs import OpenLoopInputs
from mlsysim.solvers.traffic.queue import queue_at
from mlsysim_course.controls import Choice, Estimate, Selector, Slider, true_claim
from mlsysim_course.explorers.charts import axis, line, lines, mark, rule
from mlsysim_course.explorers.declare import Alert, Answer, Explorer, Reading, by_formula, read
from mlsysim_course.labs.lab import Lab
from mlsysim_course.labs.words import dollars, percent

MODEL = Models.Llama3_8B
HARDWARE = Hardware.H100
CALIBRATION = ServingCalibrations.Hopper_vLLM
LINK = Systems.Fabrics.InfiniBand_NDR
"""The network between the pools."""
OFFER = Offers.Lambda_H100
HOURS = 730
"""Hours in a month."""
PROMPT = 2000
"""Mean tokens of a prompt."""
OUTPUT = 250
"""Mean tokens of an answer."""
VARIATION = 1
"""Standard deviation of the lengths of prompts and of answers, divided by their means."""
BUDGET = 26_000
"""Dollars that the GPUs of Act II may cost in a month."""


@dataclass(frozen=True)
class Limits:
    """Limits for 99 of 100 requests, in seconds."""

    ttft: float
    tpot: float


LIMITS = Limits(0.6, 0.1)
"""The service level of the first email."""
STRICT = Limits(0.6, 0.013)
"""The service level that the planner of Act II has to meet."""


@dataclass(frozen=True)
class Service:
    """GPUs that serve a model: each runs prefill and decode, or some run only prefill."""

    rate: int = 85
    """Requests per second to all GPUs. Each GPU gets an equal share at random."""
    gpus: int = 10
    prompt_gpus: int = 0
    """GPUs that run only prefill; the others run only decode. With 0, every GPU does both."""
    precision: str = "bf16"
    token_budget: int = 8192
    """Most prompt tokens in one pass of a GPU."""
    burstiness: int = 1
    limit: int = 256
    """Sequences that a GPU runs at once at most; memory may allow fewer."""


MAIL = Service()
GROWTH = replace(MAIL, rate=94)


@dataclass(frozen=True)
class Times:
    """Times in seconds, infinite where requests arrive faster than they are answered."""

    ttft_mean: float
    ttft_p50: float
    ttft_p99: float
    tpot_p99: float
    utilization: float
    """Arrival rate divided by capacity, of the busier pool where there are two."""
    waiting: float
    """Share of the requests that find every slot for a sequence taken."""
    places: int
    """Most sequences that a GPU runs at once in decode."""

    @property
    def stable(self) -> bool:
        """Whether the service keeps up with the arrivals."""
        return self.utilization < 1

    def meets(self, limits: Limits) -> bool:
        """Return whether both percentiles are within limits."""
        return self.ttft_p99 <= limits.ttft and self.tpot_p99 <= limits.tpot


def pools(service: Service) -> tuple[Times, Times]:
    """Return the times of the prefill pool and of the decode pool."""
    generating = service.gpus - service.prompt_gpus
    return (
        _times(service, "prefill", service.rate / service.prompt_gpus),
        _times(service, "decode", service.rate / generating),
    )


def solve(service: Service) -> Times:
    """Return the times of a service."""
    if not service.prompt_gpus:
        return _times(service, "both", service.rate / service.gpus)
    reading, writing = pools(service)
    moved = _transfer(service.precision)
    # Two queues in series. The sum of two percentiles is a little above the percentile of the sum.
    return Times(
        ttft_mean=reading.ttft_mean + moved + writing.ttft_mean,
        ttft_p50=reading.ttft_p50 + moved + writing.ttft_p50,
        ttft_p99=reading.ttft_p99 + moved + writing.ttft_p99,
        tpot_p99=writing.tpot_p99,
        utilization=max(reading.utilization, writing.utilization),
        waiting=writing.waiting,
        places=writing.places,
    )


@functools.lru_cache(maxsize=4096)
def _times(service: Service, role: str, rate: float) -> Times:
    i, engine = _engine(role, service.precision, service.token_budget, service.limit)
    queue = queue_at(
        engine, rate, i.answer, service.burstiness, i.input_variation, i.output_variation
    )

    def read(name: str) -> float:
        return float(queue[name]) if queue["stable"] else math.inf

    return Times(
        ttft_mean=read("ttft_mean"),
        ttft_p50=read("ttft_p50"),
        ttft_p99=read("ttft_p99"),
        tpot_p99=read("tpot_p99"),
        utilization=float(queue["utilization"]),
        waiting=float(queue["waiting_probability"]) if queue["stable"] else 1.0,
        places=int(engine.places),
    )


@functools.lru_cache(maxsize=64)
def _engine(
    role: str, precision: str, token_budget: int, limit: int
) -> tuple[OpenLoopInputs, Engine]:
    """Return the engine of one GPU, which does not depend on the traffic, and its inputs.

    `OpenLoopSolver.solve` builds it again for every rate, and a chart has a dozen rates.
    """
    arguments = _arguments(role, precision, token_budget, limit)
    i = OpenLoopSolver.admit(arguments | {"arrival_rate": 1.0}).plain()
    return i, engine_of(i)


def _arguments(role: str, precision: str, token_budget: int, limit: int) -> dict[str, Any]:
    return {
        "model": MODEL,
        "hardware": HARDWARE,
        "precision": precision,
        "seq_len": PROMPT,
        "input_variation": VARIATION,
        "output_len": OUTPUT,
        "output_variation": VARIATION,
        "token_budget": token_budget,
        "batch_limit": limit,
        "role": role,
        "calibration": CALIBRATION,
    }


def each(service: Service, role: str = "both") -> OpenLoopResult:
    """Return the solver's result for one GPU, by default one that does both."""
    count = {"prefill": service.prompt_gpus, "decode": service.gpus - service.prompt_gpus}
    return OpenLoopSolver.solve(
        **_arguments(role, service.precision, service.token_budget, service.limit),
        arrival_rate=service.rate / count.get(role, service.gpus),
        burstiness=service.burstiness,
    )


@functools.lru_cache(maxsize=4)
def _transfer(precision: str) -> float:
    """Return the time in seconds to move the keys and values of a prompt to another GPU."""
    result = DisaggregatedSolver.solve(
        model=MODEL,
        hardware=HARDWARE,
        seq_len=PROMPT,
        output_len=OUTPUT,
        precision=precision,
        transfer_link=LINK,
    )
    return float(result.kv_transfer_time.to("s").magnitude)


def splits(service: Service) -> Iterator[Service]:
    """Yield every way to split the GPUs into a prefill pool and a decode pool."""
    for count in range(1, service.gpus):
        yield replace(service, prompt_gpus=count)


def rent(service: Service) -> float:
    """Return the monthly rent of a service's GPUs in dollars."""
    return float((OFFER.price * Q_(HOURS, "h")).to("USD").magnitude) * service.gpus


def accepted(service: Service) -> bool:
    """Return whether a service meets the requirements of Act II."""
    return possible(service) and solve(service).meets(STRICT) and rent(service) <= BUDGET


def possible(service: Service) -> bool:
    """Return whether there are GPUs that generate."""
    return service.prompt_gpus < service.gpus


def span(seconds: float) -> str:
    """Format a time; an infinite one is the wait in a queue that only grows."""
    if math.isinf(seconds):
        return "unbounded"
    return f"{seconds:.1f} s" if seconds >= 1 else f"{1e3 * seconds:.3g} ms"


RATES = (20, 40, 60, 70, 75, 80, 85, 87, 89, 90, 91, 92, 93, 94, 95, 96, 98)
_PLAN_RATES = (25, 50, 75, 90, 95, 99, 105, 110, 125, 150, 175, 200)

CHANGES: dict[str, Callable[[], Service]] = {
    "replica": lambda: replace(GROWTH, gpus=GROWTH.gpus + 1),
    "budget": lambda: replace(GROWTH, token_budget=2 * GROWTH.token_budget),
    "fp8": lambda: replace(GROWTH, precision="fp8"),
    "pools": lambda: min(splits(GROWTH), key=lambda split: solve(split).utilization),
}
"""The services that the second prediction compares; pools have the split with the least load."""


@functools.cache
def cheapest(*, separate: bool) -> Service:
    """Return the service with the fewest GPUs in FP8 that keeps the stricter promise."""
    for gpus in range(1, 100):
        whole = replace(GROWTH, gpus=gpus, precision="fp8")
        for service in splits(whole) if separate else [whole]:
            if solve(service).meets(STRICT):
                return service
    raise ArithmeticError("no number of GPUs keeps the promise")


def _cause() -> str:
    """Return what the slowest requests wait for, the only true one of the options."""
    before, after = solve(MAIL), solve(GROWTH)
    slower = after.ttft_p99 / before.ttft_p99
    prompts = each(GROWTH).prefill_latency / each(MAIL).prefill_latency
    return true_claim(
        {
            "prompts": prompts.m_as("") > slower / 2,
            "places": before.waiting < 0.01 < after.waiting,
            "tokens": after.tpot_p99 / before.tpot_p99 > slower / 2,
            "everyone": after.ttft_p50 / before.ttft_p50 > slower / 2,
        }
    )


def _overloaded() -> str:
    return true_claim({name: not solve(change()).stable for name, change in CHANGES.items()})


def _advantage() -> str:
    """Return why pools need fewer GPUs, the only true one of the options."""
    apart, both = cheapest(separate=True), cheapest(separate=False)
    best = min(splits(both), key=lambda split: solve(split).utilization)
    whole = replace(apart, prompt_gpus=0)
    prefill = each(apart, "prefill").prefill_latency / each(both).prefill_latency
    return true_claim(
        {
            "prompts": solve(apart).utilization > solve(both).utilization,
            "memory": solve(apart).places > 1.05 * solve(whole).places,
            "faster": prefill.m_as("") < 0.95,
            "capacity": solve(best).utilization < solve(both).utilization,
        }
    )


PREDICTION_1 = Estimate(
    id="act1_prediction",
    truth=lambda: 1e3 * solve(GROWTH).ttft_p99,
    unit="ms",
    low=10,
    high=100_000,
    factor=2,
    reply=lambda answer: f"You predicted {answer:g} ms.",
)
REFLECTION_1 = Choice(
    id="act1_reflection", options=("prompts", "places", "tokens", "everyone"), truth=_cause
)
PREDICTION_2 = Choice(id="act2_prediction", options=tuple(CHANGES), truth=_overloaded, locks=True)
REFLECTION_2 = Choice(
    id="act2_reflection", options=("prompts", "memory", "faster", "capacity"), truth=_advantage
)


def _tone(value: float, most: float) -> str:
    return "good" if value <= most else "bad"


def _time(label: str, result: OpenLoopResult, name: str, most: float | None = None) -> Reading:
    """Read a time in milliseconds, compared with its limit if it has one."""
    reading = read(label, result, name, "ms")
    if most is None:
        return reading
    return reading.judged(_tone(reading.value, 1e3 * most), f"limit: {span(most)}")


def _load(result: OpenLoopResult, hint: str = "of the capacity") -> Reading:
    return read("Load", result, "utilization", scale=100, shown="%").judged(hint=hint)


def _alerts(times: Times) -> list[Alert]:
    if not times.stable:
        text = (
            f"More requests arrive than {MAIL.gpus} GPUs can answer: the load is "
            f"{percent(times.utilization)} of their capacity, so the queue grows as long as the "
            "traffic lasts."
        )
        return [Alert("overload", "bad", "The queue grows without end", text)]
    if times.meets(LIMITS):
        return []
    text = f"The p99 of TTFT is {span(times.ttft_p99)}, and that of TPOT {span(times.tpot_p99)}."
    if times.ttft_p99 > LIMITS.ttft >= times.ttft_mean:
        text += f" A dashboard that shows the mean, {span(times.ttft_mean)}, would not tell you."
    return [Alert("late", "warn", "The promise is broken", text)]


def _rate_curve(chosen: Service) -> dict[str, Any]:
    """Return a chart of the time to first token by rate."""
    by_rate = [(rate, solve(replace(chosen, rate=rate))) for rate in RATES]
    stable = [(rate, times) for rate, times in by_rate if times.stable]
    here = solve(chosen)
    marks = [mark(chosen.rate, 1e3 * here.ttft_p99, span(here.ttft_p99))] if here.stable else []
    return lines(
        axis("Requests per second"),
        axis("Time to first token (ms)", log=True),
        [
            line("p99", [(rate, 1e3 * times.ttft_p99) for rate, times in stable]),
            line("mean", [(rate, 1e3 * times.ttft_mean) for rate, times in stable]),
            line("median", [(rate, 1e3 * times.ttft_p50) for rate, times in stable]),
        ],
        marks=marks,
        rules=[rule(1e3 * LIMITS.ttft, f"limit of the p99: {span(LIMITS.ttft)}")],
    )


def _first(state: Mapping[str, Any]) -> Service:
    return replace(MAIL, rate=state["rate"], burstiness=state["burstiness"], limit=state["limit"])


def _explore(state: Mapping[str, Any]) -> Answer:
    chosen = _first(state)
    times, result = solve(chosen), each(chosen)
    slots = read("Slots of a GPU", result, "places").judged(hint="sequences that fit in memory")
    readings: tuple[Reading, ...] = (_load(result), slots)
    if times.stable:
        readings = (
            _time("TTFT, p99", result, "ttft_p99", LIMITS.ttft),
            _time("TTFT, mean", result, "ttft_mean"),
            _time("TTFT, median", result, "ttft_p50"),
            _time("TPOT, p99", result, "tpot_p99", LIMITS.tpot),
            _load(result),
            read("Wait for a slot", result, "waiting_probability", scale=100, shown="%").judged(
                hint="of requests"
            ),
            slots,
        )
    return Answer(
        f"{chosen.rate} requests per second on {chosen.gpus} GPUs: the p99 of the time to first "
        f"token is {span(times.ttft_p99)}, its mean {span(times.ttft_mean)} and its median "
        f"{span(times.ttft_p50)}.",
        readings,
        (_rate_curve(chosen),),
        alerts=tuple(_alerts(times)),
    )


def _plan(state: Mapping[str, Any]) -> Service:
    return replace(
        GROWTH,
        gpus=state["plan_gpus"],
        prompt_gpus=state["plan_prompt_gpus"],
        precision=state["plan_precision"],
        token_budget=state["plan_token_budget"],
    )


def _in_series(prefill: Value, transfer: Value, decode: Value) -> Value:
    """Return the time of two queues in series, with a transfer between them."""
    return prefill + transfer + decode


def _rent_of(price: Value, hours: Value, gpus: Value) -> Value:
    """Return the rent of a service's GPUs in a month."""
    return price * hours * gpus


def _both_pools(chosen: Service) -> Reading:
    """Read the p99 of the time to first token of two pools in series."""
    times = {
        "prefill": pools(chosen)[0].ttft_p99,
        "transfer": _transfer(chosen.precision),
        "decode": pools(chosen)[1].ttft_p99,
    }
    origins = ("p99 of TTFT of the prefill pool", "transfer of a prompt", "p99 of the decode pool")
    given = {
        name: Input(name, Q_(1e3 * time, "ms"), "", origin)
        for (name, time), origin in zip(times.items(), origins, strict=True)
    }
    reading = by_formula("TTFT, p99", _in_series, "ms", given)
    return reading.judged(_tone(reading.value, 1e3 * STRICT.ttft), f"limit: {span(STRICT.ttft)}")


def _readings(chosen: Service) -> list[Reading]:
    times, cost = solve(chosen), rent(chosen)
    given = {"price": OFFER.price, "hours": Q_(HOURS, "hour"), "gpus": chosen.gpus}
    monthly = by_formula("Rent", _rent_of, "USD", given, shown="$").judged(
        "good" if cost <= BUDGET else "bad", f"a month; budget: {dollars(BUDGET)}"
    )
    if not chosen.prompt_gpus:
        both = each(chosen)
        if not times.stable:
            return [_load(both), monthly]
        first = _time("TTFT, p99", both, "ttft_p99", STRICT.ttft)
        return [first, _time("TPOT, p99", both, "tpot_p99", STRICT.tpot), monthly, _load(both)]
    prefill, decode = pools(chosen)
    role = "prefill" if prefill.utilization > decode.utilization else "decode"
    load = _load(each(chosen, role), "of the busier pool's capacity")
    if not times.stable:
        return [load, monthly]
    rest = _time("TPOT, p99", each(chosen, "decode"), "tpot_p99", STRICT.tpot)
    return [_both_pools(chosen), rest, monthly, load]


def _verdict(chosen: Service) -> list[Alert]:
    times = solve(chosen)
    if not times.stable:
        text = f"The load is {percent(times.utilization)} of the capacity."
        if chosen.prompt_gpus:
            text += " That is the busier pool. Move GPUs to it, or add some."
        return [Alert("overload", "bad", "The queue grows without end", text)]
    if accepted(chosen):
        text = (
            f"The p99 of TTFT is {span(times.ttft_p99)}, that of TPOT is {span(times.tpot_p99)}, "
            f"and the GPUs cost {dollars(rent(chosen))} a month."
        )
        return [Alert("accepted", "good", "This service meets the requirements", text)]
    if times.meets(STRICT):
        text = f"The GPUs cost {dollars(rent(chosen) - BUDGET)} a month more than the budget."
        return [Alert("budget", "warn", "Above the budget", text)]
    late = [
        f"{name} takes {span(value)}, and its limit is {span(most)}"
        for name, value, most in (
            ("TTFT", times.ttft_p99, STRICT.ttft),
            ("TPOT", times.tpot_p99, STRICT.tpot),
        )
        if value > most
    ]
    return [Alert("late", "warn", "The p99 is too high", f"{'. '.join(late)}.")]


def _worst(times: Times) -> float:
    """Return the worse of the two percentiles in percent of its limit."""
    return 100 * max(times.ttft_p99 / STRICT.ttft, times.tpot_p99 / STRICT.tpot)


def _limit_curve(chosen: Service) -> dict[str, Any]:
    """Return a chart of both percentiles, as shares of their limits, by rate."""

    def points(service: Service, name: str, most: float) -> list[tuple[float, float]]:
        by_rate = [(rate, solve(replace(service, rate=rate))) for rate in _PLAN_RATES]
        return [(rate, 100 * getattr(t, name) / most) for rate, t in by_rate if t.stable]

    curves = [
        ("TTFT, your setting", points(chosen, "ttft_p99", STRICT.ttft)),
        ("TPOT, your setting", points(chosen, "tpot_p99", STRICT.tpot)),
        ("TTFT, today's service", points(GROWTH, "ttft_p99", STRICT.ttft)),
    ]
    times = solve(chosen)
    worst = _worst(times)
    return lines(
        axis("Requests per second"),
        axis("p99 over its limit (%)", log=True),
        [line(name, curve) for name, curve in curves if curve],
        marks=[mark(chosen.rate, worst, f"{worst:,.0f}%")] if times.stable else [],
        rules=[rule(100, "the limit")],
    )


def _choose(state: Mapping[str, Any]) -> Answer:
    chosen = _plan(state)
    if not possible(chosen):
        raise ConfigError(
            f"{chosen.prompt_gpus} of {chosen.gpus} GPUs run prefill: leave some for decode"
        )
    times = solve(chosen)
    share = f"{_worst(times):,.0f}%" if times.stable else "unbounded, far more than 100%"
    return Answer(
        f"{chosen.gpus} GPUs at {GROWTH.rate} requests per second: the worse of the two "
        f"percentiles is {share} of its limit.",
        tuple(_readings(chosen)),
        (_limit_curve(chosen),),
        alerts=tuple(_verdict(chosen)),
    )


_JOB = (
    f"{MODEL.name} on H100 GPUs with the constants of vLLM. Prompts of {PROMPT:,} tokens and "
    f"answers of {OUTPUT} on average; the standard deviations equal the means."
)
TRAFFIC = Explorer(
    "serving_slo/traffic",
    "The explorer",
    f"{_JOB} {MAIL.gpus} GPUs.",
    (
        Slider("rate", "Requests per second", MAIL.rate, RATES),
        Slider(
            "burstiness",
            "Burstiness (0: evenly spaced, 1: random, more: in bursts)",
            MAIL.burstiness,
            (0, 1, 2, 4, 8),
        ),
        Slider("limit", "Sequences that a GPU may run at once", MAIL.limit, (32, 64, 128, 256)),
    ),
    _explore,
)
PLAN = Explorer(
    "serving_slo/plan",
    "The planner",
    f"{_JOB} {GROWTH.rate} requests per second.",
    (
        Slider("plan_gpus", "GPUs", 10, (6, 7, 8, 9, 10, 11, 12, 14, 16, 20, 24)),
        Slider(
            "plan_prompt_gpus",
            "Of these, GPUs that only run prefill (0: every GPU does both)",
            0,
            tuple(range(13)),
        ),
        Selector(
            "plan_precision",
            "Weights, keys and values",
            "bf16",
            {"bf16": "BF16", "fp8": "FP8"},
        ),
        # Shorter passes split many prompts, and there the closed form is too optimistic.
        Slider(
            "plan_token_budget",
            "Prompt tokens per pass",
            GROWTH.token_budget,
            (8192, 16_384, 32_768),
        ),
    ),
    _choose,
)
LAB = Lab(
    name="serving_slo",
    title="Serving under an SLO",
    minutes=35,
    questions=(PREDICTION_1, REFLECTION_1, PREDICTION_2, REFLECTION_2),
    explorers=(TRAFFIC, PLAN),
    requirements=f"keeps the p99 of TTFT within {span(STRICT.ttft)} and that of TPOT within "
    f"{span(STRICT.tpot)} for at most {dollars(BUDGET)} a month",
)
