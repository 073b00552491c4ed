"""How many replicas does a day take, and is it cheapest to rent, reserve, own, or use an API?"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Unpack

import numpy as np

from mlsysim.core.calls import expects
from mlsysim.core.errors import ConfigError, shown
from mlsysim.core.fields import record, si_number
from mlsysim.core.table import Column, Table
from mlsysim.core.types import Accelerator, Node, TransformerModel
from mlsysim.core.units import Q_, Quantity, format_number, is_quantity, strip
from mlsysim.planner.prices import price_of, price_words
from mlsysim.planner.sensitivities.questions import question_of
from mlsysim.planner.service.deployments import later_times
from mlsysim.planner.service.engines import (
    at_rates,
    device_of,
    log_errors_of,
    queue_times,
    shared_arguments,
)
from mlsysim.planner.service.limits import floor_of, limits_of
from mlsysim.planner.service.probabilities import keeping, reached
from mlsysim.planner.service.serving_plans import (
    UNMEASURED,
    equal_lengths,
    exact_percent,
    percent,
    traffic_words,
    without_runs,
)
from mlsysim.planner.service.serving_search import CONFIDENCE, PRICE
from mlsysim.scenario import standalone_fleet
from mlsysim.solvers import EconomicsSolver, OpenLoopSolver
from mlsysim.solvers.arguments import Amount, Choice, Portion
from mlsysim.solvers.signatures import composed
from mlsysim.solvers.traffic.inputs import ROLES, OpenLoopArguments
from mlsysim.traffic import Trace, Traffic
from mlsysim.traffic.simulator import engine_that_fits

_DAY = 86_400.0
_HOUR = 3600.0
_START_UP = 300.0
"""Seconds until a new replica serves."""
_MOST_SLOTS = 100_000
_TOKEN_PRICE = Amount(unit="USD/Mtoken", zero=True)
_HALVINGS = 60
_OF_POOL = {
    "prefill": ("ttft", "time to first token"),
    "decode": ("tpot", "time per token"),
}
"""Times that each of two pools determines."""
_ROUNDING = 1e-9
_SELDOM = 1e-9
"""Most requests per second, and share of the capacity, at which requests do not meet."""


@record
class CapacityPlan:
    """Answer of `capacity`.

    Attributes
    ----------
    rate_per_replica : Quantity
        Requests per second that one replica serves within every limit.
    keeps_limits : float
        Probability that a replica meets every limit at this rate, given the error of predictions.
    outside : tuple of str
        Ways in which the load is outside all simulated systems. The errors of times are not known
        there, so the probability does not include them.
    slots : Table
        For each part of the day: arrivals, replicas, and their utilization.
    peak : int
        Most replicas at once.
    costs : Mapping[str, Quantity]
        Cost per day: ``on_demand`` with autoscaling, ``reserved`` for the peak, ``mixed`` with the
        cheapest number of reserved replicas, ``owned`` for the peak. Options without a price are
        left out.
    reserved_replicas : int or None
        Replicas that ``mixed`` reserves.
    api_cost : Quantity or None
        Cost per day of the same tokens at the API's price.
    break_even : Quantity or None
        Steady rate above which one replica on demand costs less than the API; `None` without a
        price or if even a full replica costs more.
    words : str
        A summary in words.
    """

    rate_per_replica: Quantity
    keeps_limits: float
    outside: tuple[str, ...]
    slots: Table
    peak: int
    costs: Mapping[str, Quantity]
    reserved_replicas: int | None
    api_cost: Quantity | None
    break_even: Quantity | None
    words: str

    def __str__(self) -> str:
        return f"{self.words}\n\n{self.slots}"


@composed(without=("power_calibration",))
@expects(traffic=Traffic)
def capacity(
    model: TransformerModel,
    hardware: Accelerator | Node,
    traffic: Traffic,
    slo: Mapping[str, Quantity],
    *,
    day: Sequence[float] | Quantity | Trace | None = None,
    slot: Annotated[Quantity | None, Amount(unit="h")] = None,
    start_up: Annotated[Quantity | None, Amount(unit="minute", zero=True)] = None,
    confidence: Annotated[float | None, Portion()] = CONFIDENCE,
    rental_price: Annotated[Quantity | None, PRICE] = None,
    reserved_price: Annotated[Quantity | None, PRICE] = None,
    api_input_price: Annotated[Quantity | None, _TOKEN_PRICE] = None,
    api_output_price: Annotated[Quantity | None, _TOKEN_PRICE] = None,
    role: Annotated[str, Choice(options=ROLES)] = "both",
    **engine: Unpack[OpenLoopArguments[int, str | None]],
) -> CapacityPlan:
    """Return the replicas needed over a day, and their cost.

    Parameters
    ----------
    model
        A transformer that generates text.
    hardware
        A device, or a node for tensor parallelism.
    traffic
        Lengths and burstiness, and the rate if no `day` is given.
    slo
        Limits, by the field of `OpenLoopResult`.
    day
        Requests per second in each part of the day, or a trace to count them from; `None` means a
        steady rate. The parts of a list must add up to a day, or to several whole ones. A trace
        that does not cover whole days repeats, which the answer's `words` state. It ends in the
        middle of a part: its rate is that of the time that the trace covers if this is half of the
        part or more, and otherwise the part is left out.
    slot
        Length of a part of the `day`; `None` takes one hour, or the length of a shorter trace.
    start_up
        Time from the decision to start a replica until it serves; `None` takes 5 minutes. It is
        paid for, and the replica is started that much earlier. Only replicas of a `day` start.
    confidence
        Lowest probability, given the error of predictions, with which a replica keeps all limits.
        If no rate reaches it, the answer is for the highest probability, and says so. `None` takes
        predictions as exact.
    rental_price
        Price per device and time on demand; `None` takes the lower median of the registry's
        offers. The answer has no `costs` if it has none.
    reserved_price
        Price per device and time for a reservation, paid all day.
    api_input_price
        Price of an API per token of a prompt, such as 0.5 USD/Mtoken.
    api_output_price
        Price of an API per token of an answer.
    role
        ``"both"``; or, for one of two separate pools, ``"prefill"`` or ``"decode"``. The pools grow
        and shrink independently, so plan each by itself, with the arguments that
        `ServingTable.engine` returns. A prefill pool has limits of the time to first token, less
        the transfer of keys and values, and a decode pool has limits of the time per token. Their
        costs add up, and their probabilities multiply.

    Returns
    -------
    CapacityPlan
        Replicas, costs, and the load above which an API costs more.

    Raises
    ------
    ConfigError
        If an argument is out of range, an engine cannot run, or a limit is shorter than a single
        request takes. The message gives the physical limit as well.

    Examples
    --------
    >>> from mlsysim import Models, Q_, Systems, Traffic, capacity
    >>> chat = Traffic(arrival_rate=Q_(20, "1/s"), seq_len=1000, output_len=200)
    >>> plan = capacity(
    ...     Models.Llama3_70B,
    ...     Systems.Nodes.DGX_H100,
    ...     chat,
    ...     {"ttft_p99": Q_(1, "s")},
    ...     day=[2, 20, 8],
    ...     slot=Q_(8, "h"),
    ...     tp_size=8,
    ... )
    >>> plan.slots["replicas"].tolist()
    [1, 2, 1]
    """
    shared = {"role": role, **engine}
    shared = shared_arguments(shared, ("model", "hardware", *traffic.arguments()))
    if "power_calibration" in shared:
        raise ConfigError(
            "power_calibration has no effect, because rent and price do not depend on power: leave "
            "it out",
            argument="power_calibration",
        )
    for name, value in {"slot": slot, "start_up": start_up}.items():
        if day is None and value is not None:
            raise ConfigError(
                f"{name} = {shown(value)} has no effect at a steady rate, at which no replica "
                "starts: leave it out, or give a day",
                argument=name,
            )
    limits = limits_of(slo, traffic)
    prices = {"api_input_price": api_input_price, "api_output_price": api_output_price}
    _check_pool(role, limits, prices)
    length = _usual_part(day) if slot is None else _seconds("slot", slot)
    starting = _START_UP if start_up is None else _seconds("start_up", start_up, zero=True)
    wanted = Portion(optional=True).admit("confidence", confidence)
    rates = _rates(day, traffic, length)
    parts = _DAY / (length * len(rates))
    given = {"model": model, "hardware": hardware, **traffic.arguments(), **shared}
    if role == "decode" and "cached_share" not in shared:
        given.pop("cached_share", None)  # of the traffic: the other pool caches prefixes
    rate, probability, device_count, constants = _rate_of_one(given, traffic, limits, wanted)
    device = device_of(hardware)

    replicas = np.ceil(np.round(rates / rate, 9)).astype(int)
    running = _started(replicas, starting / length)
    # A replica that starts several parts of the day ahead is paid for in those parts.
    starting = starting if starting < length else 0.0
    paid_time = _paid(running, length, starting)
    rent = price_of(device, rental_price) * device_count
    costs, reserved = {}, None
    if not math.isnan(rent):
        costs["on_demand"] = rent * paid_time * parts
    if reserved_price is not None:
        price = device_count * _price("reserved_price", reserved_price)
        costs["reserved"] = price * replicas.max() * _DAY
        if not math.isnan(rent):
            reserved, costs["mixed"] = _mixed(running, price, rent, length, starting, parts)
    ownership = _own_price(hardware)
    if not math.isnan(ownership):
        costs["owned"] = ownership * device_count * replicas.max() * _DAY
    api = _api(api_input_price, api_output_price, traffic)
    break_even = None
    if not math.isnan(api) and not math.isnan(rent) and rent / api <= rate:
        break_even = Q_(rent / api, "1/s")
    plan: dict[str, Any] = {
        "rate_per_replica": Q_(rate, "1/s"),
        "keeps_limits": probability,
        "outside": OpenLoopSolver.solve(**given | {"arrival_rate": rate}).outside,
        "slots": Table(
            {
                "start": Column(np.arange(len(rates)) * length / 3600, "h"),
                "arrival_rate": Column(rates, "1/s"),
                "replicas": Column(replicas),
                "running": Column(running),
                "devices": Column(running * device_count),
                "load": Column(rates / (np.maximum(running, 1) * rate)),
            },
            limit=None,
        ),
        "peak": int(replicas.max()),
        "costs": {name: Q_(float(cost), "USD") for name, cost in costs.items()},
        "reserved_replicas": reserved,
        "api_cost": None
        if math.isnan(api)
        else Q_(float(api * rates.sum() * length * parts), "USD"),
        "break_even": break_even,
    }
    steady = traffic.arguments() if day is None else {**traffic.arguments(), "arrival_rate": None}
    words = "\n".join(
        [
            f"Traffic: {traffic_words({n: v for n, v in steady.items() if v is not None})}",
            *equal_lengths(steady),
            *([without_runs(device.name)] if constants == UNMEASURED else []),
            *_unsure(wanted, probability),
            _words(plan, device_count, api=api, rent=rent),
            f"price of {device.name}: {price_words(device, rental_price)}",
        ]
    )
    if isinstance(day, Trace) and not _whole(1 / parts):
        hours = format_number(float(np.ptp(day.arrivals)) / _HOUR)
        words += f"\nThe trace covers {hours} h; costs per day assume that it repeats all day."
    return CapacityPlan(**plan, words=words)


def _check_pool(role: str, limits: Mapping[str, float], prices: Mapping[str, Any]) -> None:
    """Reject limits and prices that one of two pools does not determine by itself."""
    if role == "both":
        return
    own, words = _OF_POOL[role]
    for name in limits:
        if not name.startswith(own):
            raise ConfigError(
                f"slo has {name}, which a {role} pool does not determine by itself: give it limits "
                f"of the {words} only",
                argument="slo",
            )
    for name, price in prices.items():
        if price is not None:
            raise ConfigError(
                f"{name} is for whole requests, and a {role} pool serves a part of each: leave it "
                "out, and add the costs of both pools",
                argument=name,
            )


def _whole(days: float) -> bool:
    """Return whether parts of a day add up to whole days, within rounding."""
    return round(days) >= 1 and abs(days - round(days)) < _ROUNDING * days


def _seconds(name: str, value: Quantity, *, zero: bool = False) -> float:
    return si_number(value, name, name, {"unit": "s", "zero": zero})


def _price(name: str, value: Quantity, unit: str = "USD/s") -> float:
    return si_number(value, name, name, {"unit": unit, "zero": True})


def _usual_part(day: Any) -> float:
    """Return an hour, or the length of a shorter trace."""
    if not isinstance(day, Trace):
        return _HOUR
    return min(_HOUR, float(day.arrivals[-1] - day.arrivals[0]))


def _rates(day: Any, traffic: Traffic, slot: float) -> Any:
    """Return the arrival rate in each part of the day."""
    if day is None:
        return np.array([traffic.si("arrival_rate")])
    if isinstance(day, Trace):
        return _counted(day, slot)
    if is_quantity(day):
        day = strip(day, "1/s", "day")
    elif isinstance(day, list | tuple):
        day = [strip(rate, "1/s", "day") if is_quantity(rate) else rate for rate in day]
    try:
        rates = np.asarray(day, float)
    except (TypeError, ValueError):
        rates = np.empty((0, 0))
    if rates.ndim != 1 or not 1 <= len(rates) <= _MOST_SLOTS:
        raise ConfigError(
            f"day = {shown(day)}: give a list of 1 to {_MOST_SLOTS:,} rates", argument="day"
        )
    wrong = np.flatnonzero(~((rates >= 0) & (rates < math.inf)))
    if len(wrong):
        raise ConfigError(
            f"day[{wrong[0]}] = {rates[wrong[0]]:g} is not a rate: give requests per second, zero "
            "or more",
            argument="day",
        )
    if not rates.any():
        raise ConfigError("day has no requests: give a rate above zero", argument="day")
    if not _whole(slot * len(rates) / _DAY):
        covered, each = (format_number(x / _HOUR) for x in (slot * len(rates), slot))
        raise ConfigError(
            f"day has {len(rates)} rate(s) for {each} h each, which is {covered} h instead of a "
            f"whole day: give the others, or set slot to {format_number(24 / len(rates))} h",
            argument="day",
        )
    return rates


def _counted(trace: Trace, slot: float) -> Any:
    """Return the arrival rate in each part of a trace, over the time that the trace covers."""
    since = trace.arrivals - trace.arrivals[0]
    span = float(since[-1])
    parts = math.ceil(span / slot - 0.5)
    if not 1 <= parts <= _MOST_SLOTS:
        raise ConfigError(
            f"slot = {format_number(Q_(slot, 's'))} is out of range for a trace of "
            f"{format_number(Q_(span, 's'))}: give a time from its {_MOST_SLOTS:,}th part to its "
            "length",
            argument="slot",
        )
    counts = np.bincount((since // slot).astype(int), minlength=parts)[:parts]
    return counts / np.minimum(slot, span - slot * np.arange(parts))


def _rate_of_one(
    given: dict[str, Any], traffic: Traffic, limits: Mapping[str, float], least: float | None
) -> tuple[float, float, int, str]:
    """Return the highest rate at which one replica meets every limit, by bisection.

    The others are the probability that it does, its devices, and the name of its constants.
    """
    inputs: Any = question_of(OpenLoopSolver, given).inputs
    for fault in OpenLoopSolver.faults(inputs):
        raise fault
    engine = engine_that_fits(inputs)
    at = at_rates(inputs, engine) or (lambda rate: engine)
    answer = float(inputs.plain().answer)

    def times_at(rate: float) -> dict[str, Any]:
        times = queue_times(at(rate), rate, traffic, answer)
        # In a decode pool, the first of its tokens waits for a place as well.
        return times | later_times(times, answer) if inputs.role == "decode" else times

    # A capacity does not depend on the rate, except through cached prefixes.
    fastest = float(times_at(_SELDOM)["request_capacity"])
    low = _SELDOM * min(1.0, fastest)
    alone = times_at(low)
    for name, limit in limits.items():
        if limit < alone[name]:
            raise floor_of(name, limit, alone, inputs.plain(), "this engine")
    log_errors = np.array([[(each.mean, each.deviation) for each in log_errors_of(inputs)]])

    def probability(rate: float) -> float:
        """Return the probability that a replica meets every limit; -1 if it is not predicted to."""
        times = times_at(rate)
        if not times["stable"] or any(times[name] > limit for name, limit in limits.items()):
            return -1.0
        columns = {name: np.array([1e3 * times[name]]) for name in limits}
        columns["utilization"] = np.array([times["utilization"]])
        return float(keeping(columns, limits, log_errors)[0])

    high = float(alone["request_capacity"])
    level = 0.0 if least is None else reached(least, probability(low))
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        kept = probability(middle) >= level
        low, high = (middle, high) if kept else (low, middle)
    return low, probability(low), int(inputs.replica_devices), inputs.calibration.name


def _unsure(wanted: float | None, probability: float) -> list[str]:
    """Return a remark if no rate keeps the limits with the probability that is wanted."""
    if wanted is None or probability >= wanted:
        return []
    return [
        f"No rate keeps every limit with a probability of {exact_percent(wanted)}; even few "
        f"requests do with {percent(probability)} only."
    ]


def _started(needed: Any, ahead: float) -> Any:
    """Return the replicas that run or start: those of the next slots start ahead of time."""
    slots = min(math.ceil(ahead), len(needed) - 1) if ahead >= 1 else 0
    return np.max([np.roll(needed, -shift) for shift in range(slots + 1)], axis=0)


def _paid(running: Any, slot: float, starting: float) -> float:
    """Return the time of all replicas, including their start-up."""
    starts = np.maximum(np.diff(running, prepend=running[-1:]), 0)
    return float((running * slot + starts * starting).sum())


def _mixed(
    running: Any, reserved: float, rent: float, slot: float, starting: float, parts: float
) -> tuple[int, float]:
    """Return the cheapest number of reserved replicas, and the cost of the day."""
    best = (0, math.inf)
    for kept in range(int(running.max()) + 1):
        above = np.maximum(running - kept, 0)
        cost = kept * reserved * _DAY + rent * _paid(above, slot, starting) * parts
        if cost < best[1]:
            best = (kept, cost)
    return best


def _own_price(hardware: Accelerator | Node) -> float:
    """Return the cost per second of an owned device; NaN if its price or power is not known."""
    fleet = standalone_fleet(hardware)
    if fleet.node.unit_price is None or fleet.node.power is None:
        return math.nan
    price = EconomicsSolver.solve(fleet=fleet, duration_days=365).cost_per_device_hour
    return math.nan if price is None else float(strip(price, "USD/s", "hardware"))


def _api(input_price: Quantity | None, output_price: Quantity | None, traffic: Traffic) -> float:
    """Return the price of a request; NaN if no price is given."""
    if input_price is None and output_price is None:
        return math.nan
    if input_price is None or output_price is None:
        missing = "api_input_price" if input_price is None else "api_output_price"
        raise ConfigError(f"{missing} is missing: give both prices", argument=missing)
    read = _price("api_input_price", input_price, "USD/token") * traffic.seq_len
    price = read + _price("api_output_price", output_price, "USD/token") * traffic.output_len
    if price == 0:
        raise ConfigError(
            "api_input_price and api_output_price are both zero: give one above zero, or leave "
            "out both",
            argument="api_input_price",
        )
    return price


def _words(plan: Mapping[str, Any], devices: int, *, api: float, rent: float) -> str:
    lines = [
        f"One replica of {devices} device{'s' * (devices != 1)} serves "
        f"{format_number(plan['rate_per_replica'])} "
        f"within every limit, with a probability of {percent(plan['keeps_limits'])}; "
        f"the peak needs {plan['peak']}.",
        *(f"This probability is not reliable: {way}." for way in plan["outside"]),
        *(f"{name}: {format_number(cost)} per day" for name, cost in plan["costs"].items()),
    ]
    if plan["reserved_replicas"] is not None:
        lines.append(f"mixed reserves {plan['reserved_replicas']} of {plan['peak']}.")
    if plan["api_cost"] is not None:
        lines.append(f"The API costs {format_number(plan['api_cost'])} per day.")
        if plan["break_even"] is not None:
            lines.append(
                "A replica costs less than the API above a steady "
                f"{format_number(plan['break_even'])}."
            )
        elif not math.isnan(rent):
            full = rent / api / plan["rate_per_replica"].magnitude
            lines.append(f"Even a full replica costs {full:.2g} times as much as the API.")
    return "\n".join(lines)
