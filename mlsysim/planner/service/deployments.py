"""Ways to deploy engines for a load: as identical replicas, or as separate pools.

Both give the same columns: levers, replicas, times, cost and energy. In separate pools, an engine
of the prefill pool generates the first token, the keys and values move over a link, and an engine
of the decode pool generates the other tokens. Each pool is an open-loop server of its own, so the
time in one pool does not depend on the other, and the search tries each pool's engines separately.
Then it joins every pair in which neither part is worse than another one in every respect.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mlsysim.core.types import NetworkFabric
from mlsysim.planner.service.engines import LEVERS, Choice, queue_times, stacked
from mlsysim.planner.service.limits import SLO
from mlsysim.planner.service.serving_plans import POOL_LEVERS
from mlsysim.solvers.traffic.engine import Engine
from mlsysim.traffic import Traffic

__all__ = ["Deployments", "disaggregated_pools", "later_times", "replicated_engines"]

Columns = dict[str, NDArray[Any]]
_ROWS_AT_ONCE = 20_000
_FORMAT, _CONSTANTS = LEVERS.index("kv_precision"), LEVERS.index("calibration")
_NO_ERRORS = np.empty((0, 4, 2))
_PERCENTS = ("mean", "p50", "p90", "p99")


@dataclass(frozen=True)
class Deployments:
    """Deployments that meet the limits, and the number of those tried."""

    columns: Columns
    log_errors: NDArray[Any]
    """Errors of time to first token, steps, energy and capacity, row by row: mean and deviation."""
    tried: int

    def joined_with(self, other: Deployments) -> Deployments:
        """Return the rows of both."""
        tried = self.tried + other.tried
        if not self.columns or not other.columns:
            some = self if self.columns else other
            return Deployments(some.columns, some.log_errors, tried)
        return Deployments(
            _joined([self.columns, other.columns]),
            np.concatenate([self.log_errors, other.log_errors]),
            tried,
        )


def replicated_engines(
    choices: Sequence[Choice], traffic: Traffic, limits: Mapping[str, float], most: int
) -> Deployments:
    """Try every engine with every number of replicas."""
    parts, log_errors, tried = [], [], 0
    for part in _answers(choices, traffic, most):
        tried += part.kept.size
        part = part.within(limits)
        if not part.kept.any():
            continue
        rows, spots = np.nonzero(part.kept)
        columns = part.levers(rows) | part.counts_at(rows, spots)
        columns |= {name: 1e3 * part.times[name][rows, spots] for name in SLO}
        columns["utilization"] = part.times["utilization"][rows, spots]
        read = part.read_share(traffic)[rows, spots]
        columns |= _rates(
            traffic,
            devices=columns["devices"],
            cost=part.of("price")[rows] * columns["devices"],
            read=read,
            prompts=part.prompts(rows, spots),
            power=part.times["device_power"][rows, spots] * columns["devices"],
            tpot=part.times["tpot_mean"][rows, spots],
        )
        parts.append(columns)
        errors = np.array(
            [[(d.mean, d.deviation) for d in item.log_errors] for item in part.choices]
        )
        log_errors.append(errors[rows])
    if not parts:
        return Deployments({}, _NO_ERRORS, tried)
    return Deployments(_joined(parts), np.concatenate(log_errors), tried)


def disaggregated_pools(
    prefills: Sequence[Choice],
    decodes: Sequence[Choice],
    link: NetworkFabric,
    traffic: Traffic,
    limits: Mapping[str, float],
    most: int,
) -> Deployments:
    """Try every pair of pools, with every number of engines in each."""
    first_limits = {name: limit for name, limit in limits.items() if name.startswith("ttft")}
    token_limits = {name: limit for name, limit in limits.items() if name.startswith("tpot")}
    prefill = _pool_candidates(prefills, traffic, most, first_limits, _first, 1.0)
    # The time per token counts from the first token, so it includes the wait in the second pool.
    answer = traffic.output_len - 1
    decode = _pool_candidates(decodes, traffic, most, token_limits, later_times, answer)
    tried = prefill.tried * decode.tried
    if not len(prefill.rows) or not len(decode.rows):
        return Deployments({}, _NO_ERRORS, tried)
    parts, log_errors = [], []
    bandwidth, latency = link.si("bandwidth"), link.si("latency")
    for row in range(len(prefill.rows)):
        devices = prefill.devices[row] + decode.devices
        moved = np.maximum(prefill.moved[row], decode.moved) / bandwidth + latency
        # The decode pool reads keys and values in the prefill pool's format, by the same software.
        same = decode.format == prefill.format[row]
        times: Columns = {}
        for percent in _PERCENTS:
            times[f"ttft_{percent}"] = prefill.times[row][f"ttft_{percent}"] + moved
            times[f"tpot_{percent}"] = decode.times[f"tpot_{percent}"]
            # Both waits are independent, so their deviations add as squares.
            apart = np.hypot(
                prefill.times[row][f"ttft_{percent}"] - prefill.times[row]["ttft_mean"],
                decode.times[f"e2e_{percent}"] - decode.times["e2e_mean"],
            )
            sign = -1 if percent == "p50" else 1
            mean = prefill.times[row]["ttft_mean"] + moved + decode.times["e2e_mean"]
            times[f"e2e_{percent}"] = mean + sign * apart
        kept = same & (devices <= most)
        for name, limit in limits.items():
            kept &= times[name] <= limit
        spots = np.flatnonzero(kept)
        if not len(spots):
            continue
        one = prefills[prefill.rows[row]]
        some = [decodes[place] for place in decode.rows[spots]]
        columns: Columns = {
            name: np.array([item.levers[spot] for item in some]) for spot, name in enumerate(LEVERS)
        }
        columns |= {
            f"prefill_{name}": np.array([one.levers[LEVERS.index(name)]] * len(spots))
            for name in POOL_LEVERS
        }
        columns |= {
            "replicas": decode.counts[spots],
            "prefill_replicas": np.full(len(spots), prefill.counts[row]),
            "devices": devices[spots],
            "pools": np.array(["separate"] * len(spots)),
        }
        columns |= {name: 1e3 * times[name][spots] for name in SLO}
        columns["utilization"] = np.maximum(prefill.busy[row], decode.busy[spots])
        cost = prefill.cost[row] + decode.cost[spots]
        columns |= _rates(
            traffic,
            devices=devices[spots],
            cost=cost,
            read=prefill.cost[row] / cost,
            prompts=_Prompts(one.engine.seq_len, one.engine.attending / one.engine.prefill),
            power=prefill.power[row] + decode.power[spots],
            tpot=times["tpot_mean"][spots],
        )
        parts.append(columns)
        several = [(one.log_errors[0], *item.log_errors[1:]) for item in some]
        log_errors.append(np.array([[(d.mean, d.deviation) for d in each] for each in several]))
    if not parts:
        return Deployments({}, _NO_ERRORS, tried)
    return Deployments(_joined(parts), np.concatenate(log_errors), tried)


@dataclass(frozen=True)
class _Answers:
    """Results of engines of one size, each with every number of replicas."""

    choices: Sequence[Choice]
    engine: Engine
    """All engines, stacked."""
    counts: NDArray[Any]
    times: dict[str, Any]
    kept: NDArray[Any]

    def within(self, limits: Mapping[str, float]) -> _Answers:
        """Return the results that meet the limits."""
        kept = self.kept & np.array(self.times["stable"])
        for name, limit in limits.items():
            kept &= np.nan_to_num(self.times[name], nan=np.inf) <= limit
        return replace(self, kept=kept)

    def of(self, name: str) -> NDArray[Any]:
        """Return a field of the engines."""
        return np.array([getattr(item, name) for item in self.choices])

    def levers(self, rows: NDArray[Any]) -> Columns:
        """Return the levers of engines."""
        return {
            name: np.array([item.levers[spot] for item in self.choices])[rows]
            for spot, name in enumerate(LEVERS)
        }

    def counts_at(self, rows: NDArray[Any], spots: NDArray[Any]) -> Columns:
        """Return replicas and devices."""
        counts = self.counts[spots].astype(int)
        return {"replicas": counts, "devices": counts * self.of("devices")[rows]}

    def read_share(self, traffic: Traffic) -> NDArray[Any]:
        """Return the share of an engine's work that is prefill; the rest is decode."""
        read = self.engine.prefill / (self.engine.ranks * self.engine.stages)
        # By Little's law: without those that wait, load a prefix, or are in prefill
        later = 1 - self.times["ttft_mean"] / self.times["e2e_mean"]
        running = np.maximum(later * self.times["requests_in_flight"], 1)
        made = max(traffic.output_len - 1, 0) * self.times["decode_latency"] / running
        share: NDArray[Any] = read / (read + made)
        return share

    def prompts(self, rows: NDArray[Any], spots: NDArray[Any]) -> _Prompts:
        """Return the prompts of engines."""
        engine, shape = self.engine, self.kept.shape
        attending = engine.attending / engine.prefill
        return _Prompts(
            np.broadcast_to(engine.seq_len, shape)[rows, spots],
            np.broadcast_to(attending, shape)[rows, spots],
        )


def _answers(
    choices: Sequence[Choice], traffic: Traffic, most: int, answer: float | None = None
) -> Iterator[_Answers]:
    """Yield results of engines of one size, in batches that fit in the processor's cache."""
    rate = traffic.si("arrival_rate")
    for size in sorted({item.devices for item in choices}):
        own = [item for item in choices if item.devices == size]
        if size > most:
            continue
        counts = np.arange(1, most // size + 1, dtype=float)
        several = max(1, _ROWS_AT_ONCE // len(counts))
        for start in range(0, len(own), several):
            some = own[start : start + several]
            engine = stacked(some, rate / counts)
            found = queue_times(engine, rate / counts, traffic, answer)
            yield _Answers(some, engine, counts, found, np.ones(found["stable"].shape, bool))


@dataclass(frozen=True)
class PoolCandidates:
    """One pool: its engines and counts that no other one beats in every respect."""

    tried: int
    rows: NDArray[Any]
    """Which engine."""
    counts: NDArray[Any]
    devices: NDArray[Any]
    cost: NDArray[Any]
    power: NDArray[Any]
    busy: NDArray[Any]
    moved: NDArray[Any]
    format: NDArray[Any]
    """Format of keys and values, and the software that reads them."""
    constants: NDArray[Any]
    """Name of the calibration, and so of the errors."""
    times: NDArray[Any]
    """A record array with a field for each time and percentile that the pool determines."""


def _first(times: Mapping[str, Any], answer: float) -> Columns:
    """Return the times that a prefill pool determines."""
    return {f"ttft_{percent}": times[f"ttft_{percent}"] for percent in _PERCENTS}


def later_times(times: Mapping[str, Any], answer: float) -> Columns:
    """Return the times that a decode pool determines, for all tokens after the first."""
    found = {f"e2e_{percent}": times[f"e2e_{percent}"] for percent in _PERCENTS}
    for percent in _PERCENTS:
        others = (answer - 1) * times[f"tpot_{percent}"] if answer > 1 else 0.0
        found[f"tpot_{percent}"] = (times["ttft_mean"] + others) / answer
    return found


def _pool_candidates(
    choices: Sequence[Choice],
    traffic: Traffic,
    most: int,
    limits: Mapping[str, float],
    times_of: Callable[[Mapping[str, Any], float], Columns],
    answer: float,
) -> PoolCandidates:
    """Try every engine of one pool with every count; keep those that may be part of a best plan."""
    place = {id(item): spot for spot, item in enumerate(choices)}
    parts: list[tuple[Any, ...]] = []
    tried = 0
    for part in _answers(choices, traffic, most, answer):
        tried += part.kept.size
        part = replace(part, times=part.times | times_of(part.times, answer)).within(limits)
        rows, spots = np.nonzero(part.kept)
        found = part.counts_at(rows, spots)
        names = times_of(part.times, answer)
        times = np.empty(len(rows), np.dtype([(name, float) for name in names]))
        for name in names:
            times[name] = part.times[name][rows, spots]
        some = [part.choices[row] for row in rows.tolist()]
        parts.append(
            (
                np.array([place[id(item)] for item in some], int),
                found["replicas"],
                found["devices"],
                part.of("price")[rows] * found["devices"],
                part.times["device_power"][rows, spots] * found["devices"],
                part.times["utilization"][rows, spots],
                part.of("moved")[rows],
                np.array([f"{item.levers[_FORMAT]}, {item.software}" for item in some], str),
                np.array([item.levers[_CONSTANTS] for item in some], str),
                times,
            )
        )
    if not parts:
        return PoolCandidates(tried, *[np.array([])] * 10)
    fields = [np.concatenate(each) for each in zip(*parts, strict=True)]
    kept = pareto_front(PoolCandidates(tried, *fields))
    return PoolCandidates(tried, *(each[kept] for each in fields))


def pareto_front(half: PoolCandidates) -> NDArray[Any]:
    """Return the rows that no other one with this format and errors beats in every respect."""
    if not len(half.rows):
        return np.array([], int)
    respects = np.column_stack(
        [half.devices, np.nan_to_num(half.cost), half.power, half.moved, half.busy]
        + [half.times[name] for name in half.times.dtype.names or ()]
    )
    kept: list[int] = []
    groups = np.char.add(half.format, half.constants)
    for name in np.unique(groups):
        own = np.flatnonzero(groups == name)
        own = own[np.lexsort(respects[own].T[::-1])]
        front = np.empty((0, respects.shape[1]))
        for row in own:
            if not (front <= respects[row]).all(axis=1).any():
                front = np.vstack([front, respects[row]])
                kept.append(int(row))
    return np.array(kept, int)


@dataclass(frozen=True)
class _Prompts:
    """New tokens of the prompts of engines, and the part of a prefill due to cached tokens."""

    new: Any
    attending: Any


def _rates(
    traffic: Traffic,
    *,
    devices: Any,
    cost: Any,
    read: Any,
    prompts: _Prompts,
    power: Any,
    tpot: Any,
) -> Columns:
    """Return cost and energy per token, and rates per user and per device.

    Device time is split into prefill and decode. Prefill is split into the time that new tokens
    take by themselves and the time in which they attend to cached tokens. The parts give the costs
    of new input, of output and of cached tokens.
    """
    rate = traffic.si("arrival_rate")
    tokens = rate * traffic.output_len
    prefill = 1e6 * read * cost / rate
    cached = np.maximum(traffic.seq_len - prompts.new, 0)
    none = np.where(cached > 0, 1.0, np.nan)
    return {
        "cost_per_token": 1e6 * cost / tokens,
        "cost_per_input_token": (1 - prompts.attending) * prefill / prompts.new,
        "cost_per_output_token": 1e6 * (1 - read) * cost / tokens,
        "cost_per_cached_token": none * prompts.attending * prefill / np.maximum(cached, 1),
        "energy_per_token": power / tokens,
        "tokens_per_s_per_user": 1 / tpot,
        "tokens_per_s_per_device": tokens / devices,
    }


def _joined(parts: Sequence[Columns]) -> Columns:
    """Return all rows. Without separate pools, the levers of a prefill pool are empty."""
    names = dict.fromkeys(name for part in parts for name in part)
    found = {}
    for name in names:
        kind = next(part[name].dtype for part in parts if name in part)
        empty: Any = "together" if name == "pools" else "" if kind.kind == "U" else 0
        size = [len(part["devices"]) for part in parts]
        found[name] = np.concatenate(
            [part.get(name, np.full(n, empty)) for part, n in zip(parts, size, strict=True)]
        )
    return found
