"""The model behind both acts: Llama 3 8B on H100 GPUs, with requests that arrive at random.

Every number comes from the model of `OpenLoopSolver`, with the times of a vLLM server. The rent of
a GPU is an offer of the catalog.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from mlsysim.core.units import Q_
from mlsysim.registry import Hardware, Models, Systems
from mlsysim.registry.calibration.serving import ServingCalibrations
from mlsysim.registry.catalogs import Offers
from mlsysim.solvers import DisaggregatedSolver, OpenLoopResult, OpenLoopSolver
from mlsysim.solvers.traffic.engine import Engine, engine_of
from mlsysim.solvers.traffic.inputs import OpenLoopInputs
from mlsysim.solvers.traffic.queue import queue_at

__all__ = [
    "BUDGET",
    "GROWTH",
    "HARDWARE",
    "LIMITS",
    "MAIL",
    "MODEL",
    "OFFER",
    "OUTPUT",
    "PROMPT",
    "STRICT",
    "VARIATION",
    "Limits",
    "Service",
    "Times",
    "accepted",
    "each",
    "pools",
    "possible",
    "rent",
    "solve",
    "span",
    "splits",
]

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
    found = queue_at(
        engine, rate, i.answer, service.burstiness, i.input_variation, i.output_variation
    )

    def read(name: str) -> float:
        return float(found[name]) if found["stable"] else math.inf

    return Times(
        ttft_mean=read("ttft_mean"),
        ttft_p50=read("ttft_p50"),
        ttft_p99=read("ttft_p99"),
        tpot_p99=read("tpot_p99"),
        utilization=float(found["utilization"]),
        waiting=float(found["waiting_probability"]) if found["stable"] else 1.0,
        places=int(engine.places),
    )


@functools.lru_cache(maxsize=64)
def _engine(
    role: str, precision: str, token_budget: int, limit: int
) -> tuple[OpenLoopInputs, Engine]:
    """Return the engine of one GPU, which does not depend on the traffic, and its inputs.

    `OpenLoopSolver.solve` builds it again for every rate, and a chart has a dozen rates.
    """
    asked = _arguments(role, precision, token_budget, limit)
    i = OpenLoopSolver.admit(asked | {"arrival_rate": 1.0}).plain()
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
    found = DisaggregatedSolver.solve(
        model=MODEL,
        hardware=HARDWARE,
        seq_len=PROMPT,
        output_len=OUTPUT,
        precision=precision,
        transfer_link=LINK,
    )
    return float(found.kv_transfer_time.to("s").magnitude)


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
