"""Lab: the roofline. What limits a device, and which device is cheapest for a rate.

Act I finds the batch at which an H100 reaches its ridge. Act II rents devices that deliver a token
rate within a budget. `SingleNodeSolver` computes all times with the textbook's roofline: every pass
reads all weights and computes one token per sequence, arithmetic reaches half of its peak, and
memory reaches its full bandwidth. The KV cache is left out. Prices are those of one cloud on one
day, so that devices can be compared.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from mlsysim.core import formulas as f
from mlsysim.core.numeric import Value, ceil
from mlsysim.core.recording import Input
from mlsysim.core.types import RentalOffer, TransformerModel
from mlsysim.registry import Models, Systems
from mlsysim.registry.conventions import TEXTBOOK_EFFICIENCY
from mlsysim.solvers import SingleNodeResult, SingleNodeSolver
from mlsysim_course.controls import Choice, Estimate, Selector, Slider, true_claim
from mlsysim_course.explorers.charts import axis, line, lines, mark
from mlsysim_course.explorers.declare import Alert, Answer, Explorer, Reading, by_formula, read
from mlsysim_course.labs.lab import Lab
from mlsysim_course.labs.words import count, gigabytes

DEVICES: dict[str, RentalOffer] = {
    "t4": Systems.Offers.Modal_T4,
    "l4": Systems.Offers.Modal_L4,
    "l40s": Systems.Offers.Modal_L40S,
    "a100": Systems.Offers.Modal_A100,
    "h100": Systems.Offers.Modal_H100,
}
MODELS: dict[str, TransformerModel] = {
    "1b": Models.Llama3_2_1B,
    "3b": Models.Llama3_2_3B,
    "8b": Models.Llama3_8B,
}
PRECISIONS = {"fp16": "16 bits (FP16)", "int8": "8 bits (INT8)"}
BATCHES = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512)
RATE = 200_000
"""Tokens per second that the email of Act II requires."""
LONGEST_MS = 20
"""Milliseconds between two tokens of a user that the email allows."""
BUDGET = 16.0
"""Dollars per hour that the email allows."""
NIGHT = 8
"""Sequences per batch at night, in the second reflection."""
_MOST = 2**20


@dataclass(frozen=True)
class Setup:
    """A device and what runs on it: keys of the tables above, and sequences per batch."""

    device: str = "h100"
    model: str = "8b"
    precision: str = "fp16"
    batch: int = 8

    @property
    def offer(self) -> RentalOffer:
        """The rented device."""
        return DEVICES[self.device]


MAIL = Setup()


@functools.lru_cache(maxsize=2048)
def solve(setup: Setup) -> SingleNodeResult:
    """Time one pass, which gives each sequence its next token."""
    return SingleNodeSolver.solve(
        model=MODELS[setup.model],
        hardware=setup.offer.accelerator,
        batch_size=setup.batch,
        precision=setup.precision,
        efficiency=float(TEXTBOOK_EFFICIENCY.value),
        seq_len=1,
    )


def crossing(setup: Setup) -> int:
    """Return the smallest batch that is compute-bound."""
    return _crossing(replace(setup, batch=1))


@functools.lru_cache(maxsize=64)
def _crossing(setup: Setup) -> int:
    low, high = 0, _MOST
    while high - low > 1:
        middle = (low + high) // 2
        bound = solve(replace(setup, batch=middle)).bottleneck == "compute"
        low, high = (low, middle) if bound else (middle, high)
    return high


def roof(setup: Setup, intensity: float) -> float:
    """Return the rate in TFLOP/s that a device reaches at an intensity in FLOP/byte."""
    device = setup.offer.accelerator
    peak = TEXTBOOK_EFFICIENCY.value * device.compute.rate(setup.precision).m_as("FLOP/s")
    reached = f.attainable_rate(intensity, peak, device.memory.bandwidth.m_as("byte/s"))
    return float(reached) / 1e12


def tokens(setup: Setup) -> float:
    """Return the tokens per second of one device."""
    return float(solve(setup).throughput.m_as("sample/s"))


def milliseconds(setup: Setup) -> float:
    """Return the time between two tokens of a user."""
    return float(solve(setup).latency.m_as("ms"))


def devices(setup: Setup) -> int:
    """Return the number of devices that deliver the email's rate."""
    return math.ceil(RATE / tokens(setup))


def price(setup: Setup) -> float:
    """Return the rent of one device in dollars per hour."""
    return float(setup.offer.price.m_as("USD/h"))


def dollars_per_hour(setup: Setup) -> float:
    """Return the rent in dollars per hour of the devices that deliver the email's rate."""
    return devices(setup) * price(setup)


def dollars_per_million(setup: Setup) -> float:
    """Return dollars per million tokens on a device that is always busy."""
    return price(setup) / (3600 * tokens(setup)) * 1e6


def fast_enough(setup: Setup) -> bool:
    """Return whether the model fits and no user waits too long for a token."""
    return solve(setup).feasible and milliseconds(setup) <= LONGEST_MS


def accepted(setup: Setup) -> bool:
    """Return whether a setup meets the requirements of the email."""
    return fast_enough(setup) and dollars_per_hour(setup) <= BUDGET


@functools.lru_cache(maxsize=8)
def cheapest(device: str) -> Setup | None:
    """Return the cheapest setup of a device for the rate; none if all are too slow."""
    setups = [Setup(device, "8b", one, batch) for one in PRECISIONS for batch in BATCHES]
    return min(filter(fast_enough, setups), key=dollars_per_hour, default=None)


def per_dollar(key: str, what: str) -> float:
    """Return a property of a device per dollar of its hourly price.

    In GB/s of bandwidth, TFLOP/s in 16 bits or GB of capacity; ``"price"`` is one over the price.
    """
    offer = DEVICES[key]
    device = offer.accelerator
    value = {
        "bandwidth": device.memory.bandwidth.m_as("GB/s"),
        "arithmetic": device.compute.rate("fp16").m_as("TFLOP/s"),
        "capacity": device.memory.capacity.m_as("GB"),
        "price": 1.0,
    }[what]
    return float(value / offer.price.m_as("USD/h"))


def night_cost(device: str) -> float:
    """Return dollars per million tokens with the batch of the night, in 8 bits."""
    return dollars_per_million(Setup(device, MAIL.model, "int8", NIGHT))


def limit(setup: Setup) -> str:
    """Return what limits a setup, in words."""
    return "arithmetic" if solve(setup).bottleneck == "compute" else "memory"


def intensity(value: Any) -> str:
    """Print an arithmetic intensity."""
    return f"{value.m_as('FLOP/byte'):,.1f} operations per byte"


_STRETCHES = {"same": 1, "double": 2, "half": 1 / 2, "quarter": 1 / 4}
"""What each option of the first reflection does to the batch at the ridge."""
_PROPERTIES = ("bandwidth", "arithmetic", "capacity", "price")


def _stretch() -> str:
    """Return the option that is nearest to the change of the batch at the ridge in 8 bits."""
    change = crossing(replace(MAIL, precision="int8")) / crossing(MAIL)
    return min(_STRETCHES, key=lambda name: abs(math.log(change / _STRETCHES[name])))


def _cheapest_device() -> str:
    costs = {key: dollars_per_hour(best) for key in DEVICES if (best := cheapest(key))}
    return min(costs, key=lambda key: costs[key])


def _ranking() -> str:
    """Return the property that ranks the devices by the cost of a token at night."""
    ranked = sorted(DEVICES, key=night_cost)
    return true_claim(
        {
            what: sorted(DEVICES, key=lambda key: -per_dollar(key, what)) == ranked
            for what in _PROPERTIES
        }
    )


def _reply(answer: float) -> str:
    tried = replace(MAIL, batch=max(1, round(answer)))
    rate = f"{tokens(tried):,.0f} tokens per second"
    return f"With your {answer:g}, the limit is {limit(tried)} and the H100 gives {rate}."


PREDICTION_1 = Estimate(
    id="act1_prediction",
    truth=lambda: float(crossing(MAIL)),
    unit="sequences",
    low=1,
    high=1_000_000,
    factor=1.5,
    reply=_reply,
)
REFLECTION_1 = Choice(id="act1_reflection", options=tuple(_STRETCHES), truth=_stretch)
PREDICTION_2 = Choice(
    id="act2_prediction", options=tuple(DEVICES), truth=_cheapest_device, locks=True
)
REFLECTION_2 = Choice(id="act2_reflection", options=_PROPERTIES, truth=_ranking)

_INTENSITIES = tuple(2**k for k in range(11))


def _picture(chosen: Setup) -> dict[str, Any]:
    """Return the roofline of a setup, and that of the email."""
    result = solve(chosen)
    here = result.arithmetic_intensity.m_as("FLOP/byte")
    rate = (result.flops / result.latency).m_as("TFLOP/s")

    def points(one: Setup) -> list[tuple[float, float]]:
        corner = round(solve(one).ridge_point.m_as("FLOP/byte"))
        return [(x, roof(one, x)) for x in sorted({*_INTENSITIES, corner})]

    email = replace(chosen, device=MAIL.device, precision=MAIL.precision)
    others = [] if email == chosen else [line("The email's device", points(email))]
    return lines(
        axis("Operations per byte", log=True),
        axis("Rate (TFLOP/s)", log=True),
        [line("Your device", points(chosen)), *others],
        marks=[mark(here, rate, f"batch {chosen.batch}")],
    )


def _alerts(chosen: Setup) -> list[Alert]:
    """Return what is wrong with a setup."""
    result = solve(chosen)
    if not result.feasible:
        text = (
            f"The weights take {gigabytes(result.memory)}, and the device has "
            f"{gigabytes(result.memory_capacity)}. The times shown assume enough memory."
        )
        return [Alert("memory", "bad", "Out of memory", text)]
    beyond = chosen.batch / crossing(chosen)
    if beyond < 2:
        return []
    text = (
        f"The batch is {beyond:.1f} times as large as at the ridge. More sequences yield no more "
        f"tokens per second, and a token takes {milliseconds(chosen):,.1f} ms."
    )
    return [Alert("beyond", "warn", "Far beyond the ridge", text)]


def _sentence(chosen: Setup) -> str:
    result = solve(chosen)
    return (
        f"{MODELS[chosen.model].name} on {chosen.offer.accelerator.name} in "
        f"{PRECISIONS[chosen.precision]}, {count(chosen.batch, 'sequence')}: the limit is "
        f"{limit(chosen)}. The intensity is {intensity(result.arithmetic_intensity)}, and the "
        f"ridge is at {intensity(result.ridge_point)}, a batch of {crossing(chosen):,}."
    )


def _token_cost(price: Value, throughput: Value) -> Value:
    """Return the rent for one token on a device that is always busy."""
    return price / throughput


def _devices(rate: Value, throughput: Value) -> Value:
    """Return the whole number of devices that deliver a rate together."""
    return ceil(rate / throughput)


def _rent(price: Value, rate: Value, throughput: Value) -> Value:
    """Return the rent of the devices that deliver a rate together."""
    return price * _devices(rate, throughput)


def _million(chosen: Setup) -> Reading:
    return by_formula(
        "A million tokens",
        _token_cost,
        "USD",
        {"price": chosen.offer.price, "throughput": _throughput(chosen)},
        shown="$",
        scale=1e6,
    )


def _throughput(chosen: Setup) -> Input:
    rate = solve(chosen).throughput
    return Input("throughput", rate, "", "throughput of one device")


def _rate(chosen: Setup) -> Reading:
    return read("Tokens per second", solve(chosen), "throughput", "1/s", shown="tokens/s")


def _wait(chosen: Setup) -> Reading:
    return read("Time per token", solve(chosen), "latency", "ms")


def _share(chosen: Setup) -> Reading:
    return read("MFU", solve(chosen), "mfu", scale=100, shown="%").judged(hint="of the peak rate")


def _setup(state: Mapping[str, Any]) -> Setup:
    return Setup(state["device"], state["model"], state["precision"], state["batch"])


def _explore(state: Mapping[str, Any]) -> Answer:
    chosen = _setup(state)
    result = solve(chosen)
    ridge = f"ridge: {result.ridge_point.m_as('FLOP/byte'):,.1f}"
    price_hint = f"at {price(chosen):,.2f} dollars per hour"
    return Answer(
        _sentence(chosen),
        (
            _rate(chosen),
            _wait(chosen).judged(hint="for each user"),
            read("Intensity", result, "arithmetic_intensity", "FLOP/byte").judged(hint=ridge),
            read("Ridge", result, "ridge_point", "FLOP/byte").judged(
                hint=f"at a batch of {crossing(chosen):,}"
            ),
            _share(chosen),
            _million(chosen).judged(hint=price_hint),
        ),
        (_picture(chosen),),
        alerts=tuple(_alerts(chosen)),
    )


def _plan(state: Mapping[str, Any]) -> Setup:
    return Setup(state["plan_device"], MAIL.model, state["plan_precision"], state["plan_batch"])


def _verdict(chosen: Setup) -> list[Alert]:
    if not solve(chosen).feasible:
        return []
    wait = f"{milliseconds(chosen):.1f} ms"
    if accepted(chosen):
        text = (
            f"{count(devices(chosen), 'device')} generate {devices(chosen) * tokens(chosen):,.0f} "
            f"tokens per second for ${dollars_per_hour(chosen):.2f} per hour, and a user waits "
            f"{wait} for a token."
        )
        return [Alert("accepted", "good", "This setup meets the requirements", text)]
    if milliseconds(chosen) <= LONGEST_MS:
        return []
    advice = (
        "The batch is beyond the ridge: make it smaller."
        if solve(chosen).bottleneck == "compute"
        else "A smaller batch does not help, because reading the weights takes that long. Use a "
        "lower precision or a device with faster memory."
    )
    text = f"A token takes {wait}, and the limit is {LONGEST_MS} ms. {advice}"
    return [Alert("slow", "bad", "Users wait too long", text)]


def _choose(state: Mapping[str, Any]) -> Answer:
    chosen = _plan(state)
    rate = Input("rate", solve(chosen).throughput / tokens(chosen) * RATE, "", "rate of the email")
    given = {"rate": rate, "throughput": _throughput(chosen)}
    cost, wait = dollars_per_hour(chosen), milliseconds(chosen)
    return Answer(
        _sentence(chosen),
        (
            by_formula(
                "All devices",
                _rent,
                "USD/hour",
                {"price": chosen.offer.price, **given},
                shown="$ per hour",
            ).judged("good" if cost <= BUDGET else "bad", f"budget: ${BUDGET:g}"),
            _wait(chosen).judged(
                "good" if wait <= LONGEST_MS else "bad", f"limit: {LONGEST_MS} ms"
            ),
            by_formula("Devices", _devices, "", given).judged(
                hint=f"for {RATE:,} tokens per second"
            ),
            _rate(chosen).judged(hint="of one device"),
            _million(chosen),
            _share(chosen),
        ),
        (_picture(chosen),),
        alerts=(*_alerts(chosen), *_verdict(chosen)),
    )


_NAMES = {key: offer.accelerator.name for key, offer in DEVICES.items()}
_JOB = (
    "One pass generates one token per sequence. Arithmetic reaches half of its peak, memory its "
    "full bandwidth, and the KV cache is left out."
)
RIDGE = Explorer(
    "roofline/ridge",
    "The explorer",
    _JOB,
    (
        Selector("device", "Device", MAIL.device, _NAMES),
        Selector("model", "Model", MAIL.model, {key: row.name for key, row in MODELS.items()}),
        Selector("precision", "Precision", MAIL.precision, PRECISIONS),
        Slider("batch", "Batch", MAIL.batch, BATCHES, "sequences"),
    ),
    _explore,
)
PLAN = Explorer(
    "roofline/plan",
    "The planner",
    f"{_JOB} {RATE:,} tokens per second from {MODELS[MAIL.model].name}.",
    (
        Selector("plan_device", "Device to rent", "l4", _NAMES),
        Selector("plan_precision", "Precision", MAIL.precision, PRECISIONS),
        Slider("plan_batch", "Batch", MAIL.batch, BATCHES, "sequences"),
    ),
    _choose,
)
LAB = Lab(
    name="roofline",
    title="Roofline",
    minutes=30,
    questions=(PREDICTION_1, REFLECTION_1, PREDICTION_2, REFLECTION_2),
    explorers=(RIDGE, PLAN),
    requirements=f"gives {RATE:,} tokens per second with at most {LONGEST_MS} ms between two "
    f"tokens of a user, for at most ${BUDGET:g} per hour",
)
