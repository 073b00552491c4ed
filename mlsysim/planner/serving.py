"""Which engines on which devices, and how many, meet a service's limits? Exhaustive search."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mlsysim.core.errors import ConfigError, InfeasibleError, shown
from mlsysim.core.table import Column, Table
from mlsysim.core.types import Accelerator, Node, ServingCalibration, TransformerModel
from mlsysim.core.units import Q_, Quantity, format_number, strip
from mlsysim.planner.questions import question_of
from mlsysim.planner.service_plans import LEVERS, SLO, UNITS, ServingPlan, ServingTable
from mlsysim.registry.offers import usual_offer
from mlsysim.solvers import OpenLoopSolver
from mlsysim.solvers.traffic.engine import Engine, engine_of
from mlsysim.solvers.traffic.queue import queue_at
from mlsysim.traffic import Traffic

__all__ = [
    "SERVING_GOALS",
    "SLO",
    "ServingPlan",
    "ServingTable",
    "asked",
    "floor_of",
    "limits_of",
    "plan_serving",
    "price_of",
]

SERVING_GOALS = {
    "fewest_devices": "devices",
    "cost": "cost_per_token",
    "energy": "energy_per_token",
    "latency": "e2e_mean",
}
"""Goals, and the column that each one minimizes."""
_LIMITS = tuple(2**power for power in range(3, 10))
_UNKNOWN = 0.15
"""Standard deviation of the logarithm of a time, for calibrations without a band."""
_BAND = 2 * 1.2816
"""Standard deviations of a normal distribution from its tenth to its ninetieth percentile."""
_MOST_DEVICES = 100_000
_ROWS_AT_ONCE = 20_000


@dataclass(frozen=True)
class _Choice:
    """An engine with its levers."""

    levers: tuple[Any, ...]
    engine: Engine
    price: float
    """USD per device and second; NaN if it is not known."""
    doubt: float
    """Standard deviation of the logarithm of its times."""


def plan_serving(
    model: TransformerModel,
    traffic: Traffic,
    slo: Mapping[str, Quantity],
    devices: Accelerator | Node | Sequence[Accelerator | Node],
    *,
    goal: str = "fewest_devices",
    precision: str = "bf16",
    weight_precision: str | Sequence[str] | None = None,
    kv_precision: str | Sequence[str] | None = None,
    tp_size: int | Sequence[int] | None = None,
    batch_limit: int | Sequence[int] = _LIMITS,
    cached_share: float = 0,
    most_devices: int = 256,
    rental_price: Quantity | Mapping[str, Quantity] | None = None,
    calibration: ServingCalibration | None = None,
) -> ServingPlan:
    """Find the best engines for a service: devices, tensor parallelism, formats and replicas.

    All combinations are tried. Each replica gets an equal share of the requests.

    Parameters
    ----------
    model
        A transformer that generates text.
    traffic
        Requests that arrive at the whole service.
    slo
        Limits of the service, by the field of `OpenLoopResult`: ``{"ttft_p99": Q_(500, "ms")}``.
    devices
        Devices or nodes to choose from. A node allows tensor parallelism.
    goal
        ``"fewest_devices"``, ``"cost"`` or ``"energy"`` per token, or ``"latency"``.
    precision
        Number format of the arithmetic.
    weight_precision, kv_precision
        Formats to choose from; `None` takes `precision`.
    tp_size
        Sizes to choose from; `None` takes all powers of two up to the devices of a node.
    batch_limit
        Most sequences that an engine runs at once, to choose from.
    cached_share
        Share of each prompt that is already in the prefix cache.
    most_devices
        Most devices that the service may use.
    rental_price
        Price per device and time, or one for each device by its name; `None` takes the median of
        the registry's offers on demand.
    calibration
        Constants for the operators; `None` takes each device's own.

    Returns
    -------
    ServingPlan
        The plans that meet the limits, best first; the Pareto front; the cost of every other
        choice.

    Raises
    ------
    ConfigError
        If an argument is out of range, or a limit is below what any engine can reach.
    InfeasibleError
        If no plan with at most `most_devices` meets every limit. The message names the limits.

    Examples
    --------
    >>> from mlsysim import Models, Q_, Systems, Traffic, plan_serving
    >>> chat = Traffic(arrival_rate=Q_(20, "1/s"), seq_len=1000, output_len=200)
    >>> plan = plan_serving(
    ...     Models.Llama3_70B,
    ...     chat,
    ...     {"ttft_p99": Q_(1, "s"), "tpot_p99": Q_(50, "ms")},
    ...     [Systems.Nodes.DGX_H100],
    ... )
    >>> plan.best["devices"], plan.best["tp_size"]
    (8, 4)
    """
    if goal not in SERVING_GOALS:
        raise ConfigError(
            f"goal = {shown(goal)} is unknown: choose one of {', '.join(SERVING_GOALS)}",
            argument="goal",
        )
    if not isinstance(most_devices, int) or not 1 <= most_devices <= _MOST_DEVICES:
        raise ConfigError(
            f"most_devices = {shown(most_devices)} is out of range: give 1 to {_MOST_DEVICES:,}",
            argument="most_devices",
        )
    limits = limits_of(slo)
    nouns = _listed("devices", devices, (Accelerator, Node))
    fixed = {
        "model": model,
        **traffic.arguments(),
        "precision": precision,
        "cached_share": cached_share,
        "calibration": calibration,
    }
    formats = [_listed(n, v, str) for n, v in _given(precision, weight_precision, kv_precision)]
    choices, refused = _choices(
        fixed,
        nouns,
        _several_tp(tp_size),
        formats,
        _listed("batch_limit", batch_limit, int),
        rental_price,
    )
    if not choices:
        raise InfeasibleError(f"no engine can run: {'; '.join(refused)}")
    _check_floor(limits, choices, traffic)
    if goal == "cost" and all(math.isnan(item.price) for item in choices):
        raise ConfigError(
            "rental_price is missing: the registry has no offer for these devices; give a price "
            "such as Q_(3, 'USD/h')",
            argument="rental_price",
        )
    columns, doubt, searched = _searched(choices, traffic, limits, most_devices)
    if not len(doubt):
        raise InfeasibleError(_why_none(limits, choices, traffic, most_devices))
    order = _order(columns, goal)
    names = {item.name: item for item in nouns}
    table = ServingTable(
        {n: Column(values[order], UNITS.get(n, "")) for n, values in columns.items()},
        fixed,
        names,
    )
    doubt = doubt[order]
    return ServingPlan(
        goal=goal,
        searched=searched,
        plans=table,
        front=table.take(_front(table)),
        alternatives=_alternatives(table, goal),
        headroom=_headroom(table, limits),
        keeps_limits=_keeps(table, limits, float(doubt[0])),
        stays_best=_stays(table, goal, doubt),
        refused=refused,
    )


def limits_of(slo: Mapping[str, Quantity]) -> dict[str, float]:
    """Return the limits of a service in seconds.

    Raises
    ------
    ConfigError
        If there are none, or one is unknown or not a time.
    """
    if not isinstance(slo, Mapping) or not slo:
        raise ConfigError(
            f"slo = {shown(slo)} has no limits: give some, such as {{'ttft_p99': Q_(500, 'ms')}}",
            argument="slo",
        )
    found = {}
    for name, limit in slo.items():
        if name not in SLO:
            raise ConfigError(
                f"slo has {shown(name)}, which is unknown: choose from {', '.join(SLO)}",
                argument="slo",
            )
        seconds = float(strip(limit, "s", f"slo[{name!r}]"))
        if not 0 < seconds < math.inf:
            raise ConfigError(
                f"slo[{name!r}] = {shown(limit)} is out of range: give a time above zero",
                argument="slo",
            )
        found[name] = seconds
    return found


def _listed(name: str, value: Any, kinds: type | tuple[type, ...]) -> list[Any]:
    found = [value] if isinstance(value, kinds) else list(value)
    wrong = [item for item in found if not isinstance(item, kinds) or isinstance(item, bool)]
    if wrong or not found:
        raise ConfigError(
            f"{name} = {shown(wrong[0] if wrong else value)} cannot be chosen: give one or more",
            argument=name,
        )
    return list(dict.fromkeys(found))


def _several_tp(value: int | Sequence[int] | None) -> list[int] | None:
    return None if value is None else _listed("tp_size", value, int)


def _given(precision: str, weights: Any, kept: Any) -> Iterable[tuple[str, Any]]:
    yield "weight_precision", precision if weights is None else weights
    yield "kv_precision", precision if kept is None else kept


def _choices(
    fixed: Mapping[str, Any],
    nouns: Sequence[Accelerator | Node],
    sizes: Sequence[int] | None,
    formats: Sequence[Sequence[str]],
    limits: Sequence[int],
    prices: Any,
) -> tuple[list[_Choice], dict[str, int]]:
    """Return every engine that can run, and how many cannot, by reason."""
    found: list[_Choice] = []
    refused: dict[str, int] = {}
    for noun in nouns:
        device = noun.accelerator if isinstance(noun, Node) else noun
        held = int(noun.accelerators_per_node) if isinstance(noun, Node) else 1
        own = sizes or [2**p for p in range(held.bit_length()) if 2**p <= held]
        price = price_of(device, prices)
        for tp, weights, kept in itertools.product(own, *formats):
            try:
                given = {
                    **fixed,
                    "hardware": noun,
                    "tp_size": tp,
                    "weight_precision": weights,
                    "kv_precision": kept,
                    "batch_limit": max(limits),
                }
                inputs: Any = question_of(OpenLoopSolver, given).inputs
                for fault in OpenLoopSolver.faults(inputs):
                    raise fault
                engine = engine_of(inputs.plain())
            except ConfigError as fault:
                refused[fault.message] = refused.get(fault.message, 0) + 1
                continue
            if engine.fits < 1:
                reason = f"memory: not one sequence fits on {tp} {device.name} in {weights}"
                refused[reason] = refused.get(reason, 0) + 1
                continue
            c = inputs.calibration
            low, high = c.itl_band_low, c.itl_band_high
            known = low is not None and high is not None
            doubt = math.log(high / low) / _BAND if known else _UNKNOWN
            for limit in limits:
                levers = (noun.name, tp, weights, kept, limit)
                found.append(_Choice(levers, _limited(engine, limit), price, doubt))
    return found, refused


def _limited(engine: Engine, limit: int) -> Engine:
    """Return the engine with fewer places; its steps are interpolated where needed."""
    places = min(float(limit), engine.places)
    sizes = tuple(min(size, places) for size in engine.sizes)
    return replace(
        engine,
        places=places,
        sizes=sizes,
        decodes=tuple(np.interp(sizes, engine.sizes, engine.decodes).tolist()),
        powers=tuple(np.interp(sizes, engine.sizes, engine.powers).tolist()),
    )


def price_of(device: Accelerator, prices: Any) -> float:
    """Return the price of a device in USD per second; NaN if it is not known."""
    if prices is None:
        offer = usual_offer(device)
        return math.nan if offer is None else offer.si("price")
    if isinstance(prices, Mapping):
        if device.name not in prices:
            return math.nan
        prices = prices[device.name]
    return float(strip(prices, "USD/s", "rental_price"))


def asked(engine: Engine, rate: Any, traffic: Traffic) -> dict[str, Any]:
    """Return the times and the capacity of engines at arrival rates."""
    return queue_at(
        engine,
        rate,
        traffic.output_len,
        traffic.burstiness,
        traffic.input_variation,
        traffic.output_variation,
    )


def _check_floor(limits: Mapping[str, float], choices: Sequence[_Choice], traffic: Traffic) -> None:
    """Reject a limit that no engine meets even for a single request."""
    alone = asked(_stacked(choices), 1e-9, traffic)
    for name, limit in limits.items():
        times = alone[name][:, 0]
        best = int(np.nanargmin(times))
        if limit < times[best]:
            hardware, tp, weights, *_ = choices[best].levers
            fastest = f"the fastest engine ({hardware}, tp_size = {tp}, weights in {weights})"
            raise floor_of(name, limit, float(times[best]), fastest)


def floor_of(name: str, limit: float, least: float, engine: str) -> ConfigError:
    """Compose the error for a limit that an engine cannot meet even for one request."""
    part = {
        "ttft": "prefill",
        "tpot": "a decode step",
        "e2e": "prefill and all decode steps",
    }[name.split("_")[0]]
    return ConfigError(
        f"slo: {name} = {format_number(Q_(limit, 's'))} is below the physical limit: even for a "
        f"single request, {part} takes {format_number(Q_(least, 's'))} on {engine}; raise the "
        "limit, or choose faster devices, narrower formats or a larger tp_size",
        argument="slo",
    )


Columns = dict[str, NDArray[Any]]


def _searched(
    choices: Sequence[_Choice], traffic: Traffic, limits: Mapping[str, float], most: int
) -> tuple[Columns, NDArray[Any], int]:
    """Try every engine with every number of replicas, and return plans that meet the limits."""
    rate, tried, parts, doubts = traffic.si("arrival_rate"), 0, [], []
    for size, some in _groups(choices, most):
        counts = np.arange(1, most // size + 1, dtype=float)
        found = asked(_stacked(some), rate / counts, traffic)
        devices = np.broadcast_to(size * counts, found["stable"].shape)
        tried += devices.size
        good = np.array(found["stable"])
        for name, limit in limits.items():
            good &= np.nan_to_num(found[name], nan=np.inf) <= limit
        rows, spots = np.nonzero(good)
        if not len(rows):
            continue
        tokens = rate * traffic.output_len
        used = devices[rows, spots]
        price = np.array([item.price for item in some])[rows]
        columns: Columns = {
            name: np.array([item.levers[spot] for item in some])[rows]
            for spot, name in enumerate(LEVERS)
        }
        columns |= {"replicas": counts[spots].astype(int), "devices": used.astype(int)}
        columns |= {name: 1e3 * found[name][rows, spots] for name in SLO}
        columns["utilization"] = found["utilization"][rows, spots]
        cost = 1e6 * price * used
        read = _read_share(some, found, traffic)[rows, spots]
        columns["cost_per_token"] = cost / tokens
        columns["cost_per_input_token"] = read * cost / (rate * traffic.seq_len)
        columns["cost_per_output_token"] = (1 - read) * cost / tokens
        columns["energy_per_token"] = found["device_power"][rows, spots] * used / tokens
        columns["tokens_per_s_per_user"] = 1 / found["tpot_mean"][rows, spots]
        columns["tokens_per_s_per_device"] = tokens / used
        parts.append(columns)
        doubts.append(np.array([item.doubt for item in some])[rows])
    if not parts:
        return {}, np.array([]), tried
    joined = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    return joined, np.concatenate(doubts), tried


def _groups(choices: Sequence[_Choice], most: int) -> Iterator[tuple[int, list[_Choice]]]:
    """Yield groups of engines with equally many devices, small enough for the processor's cache."""
    for size in sorted({item.levers[1] for item in choices}):
        own = [item for item in choices if item.levers[1] == size]
        if size > most:
            continue
        several = max(1, _ROWS_AT_ONCE // (most // size))
        for start in range(0, len(own), several):
            yield size, own[start : start + several]


def _read_share(
    choices: Sequence[_Choice], found: Mapping[str, Any], traffic: Traffic
) -> NDArray[Any]:
    """Return the share of an engine's work that is prefill; the rest is decode."""
    read = np.array([item.engine.prefill for item in choices])[:, None]
    together = np.maximum(found["requests_in_flight"], 1)
    made = max(traffic.output_len - 1, 0) * found["decode_latency"] / together
    share: NDArray[Any] = read / (read + made)
    return share


def _stacked(choices: Sequence[_Choice]) -> Engine:
    """Return one engine with a column of numbers in each field."""

    def column(values: Iterable[float]) -> Any:
        return np.array(list(values), float)[:, None]

    engines = [item.engine for item in choices]
    several = {
        name: tuple(column(each) for each in zip(*(getattr(e, name) for e in engines), strict=True))
        for name in ("sizes", "decodes", "powers")
    }
    names = ("empty", "prefill", "places", "fits", "seq_len", "pass_tokens", "delay_steps")
    return Engine(**several, **{n: column(getattr(e, n) for e in engines) for n in names})


def _order(columns: Columns, goal: str) -> NDArray[Any]:
    """Sort by the goal, and equal plans by devices and then by end-to-end time."""
    keys = [columns["e2e_mean"], columns["devices"], columns[SERVING_GOALS[goal]]]
    return np.lexsort([np.round(np.log(key), 9) for key in keys])


def _front(table: ServingTable) -> NDArray[Any]:
    user = -np.asarray(table["tokens_per_s_per_user"].magnitude)
    device = -np.asarray(table["tokens_per_s_per_device"].magnitude)
    order = np.lexsort((device, user))
    before = np.minimum.accumulate(np.concatenate([[np.inf], device[order][:-1]]))
    return order[device[order] < before]


def _numbers(table: Table, name: str) -> NDArray[Any]:
    column = table[name]
    return np.asarray(getattr(column, "magnitude", column), float)


def _alternatives(table: ServingTable, goal: str) -> Table:
    """Return the first (best) of the sorted plans for each other value of a lever."""
    column, best = SERVING_GOALS[goal], table.row(0)
    value, rows = _numbers(table, column), []
    for name in LEVERS:
        found, first = np.unique(np.asarray(table[name]), return_index=True)
        for word, row in zip(found.tolist(), first.tolist(), strict=True):
            if word != best[name]:
                rows.append((name, str(word), row, value[row] / value[0] - 1))
    names = ("lever", "value", "row", "loss")
    if not rows:
        return Table({name: Column(np.array([])) for name in names})
    return Table({n: Column(list(v)) for n, v in zip(names, zip(*rows, strict=True), strict=True)})


def _headroom(table: ServingTable, limits: Mapping[str, float]) -> dict[str, float]:
    found = {n: 1e3 * limit / float(_numbers(table, n)[0]) - 1 for n, limit in limits.items()}
    return found | {"arrival_rate": 1 / float(_numbers(table, "utilization")[0]) - 1}


def _normal(score: float) -> float:
    return (1 + math.erf(score / math.sqrt(2))) / 2


def _keeps(table: ServingTable, limits: Mapping[str, float], doubt: float) -> float:
    """Return the probability that all times stay below their limits, with one common error."""
    return _normal(math.log1p(min(_headroom(table, limits).values())) / doubt)


def _stays(table: ServingTable, goal: str, doubt: NDArray[Any]) -> float | None:
    """Return the probability that the best plan beats the best one on other devices."""
    if goal == "fewest_devices":
        return None
    other = np.flatnonzero(np.asarray(table["hardware"]) != table["hardware"][0])
    if not len(other):
        return None
    value = _numbers(table, SERVING_GOALS[goal])
    margin = math.log(value[other[0]] / value[0])
    return _normal(margin / math.hypot(doubt[0], doubt[other[0]]))


def _why_none(
    limits: Mapping[str, float], choices: Sequence[_Choice], traffic: Traffic, most: int
) -> str:
    """Return the reason why no plan meets the limits."""
    rate = traffic.si("arrival_rate")
    replicas = np.array([most // item.levers[1] for item in choices], float)[:, None]
    capacity = float((replicas * asked(_stacked(choices), 1e-9, traffic)["request_capacity"]).max())
    if capacity == 0:
        return f"no engine fits on {most} devices: raise most_devices"
    if capacity <= rate:
        return (
            f"arrivals exceed capacity by {rate / capacity - 1:.0%} with {most} devices: raise "
            "most_devices, or choose faster ones"
        )
    words = ", ".join(f"{name} <= {format_number(Q_(v, 's'))}" for name, v in limits.items())
    return (
        f"no plan with at most {most} devices meets {words} together: raise a limit or most_devices"
    )
