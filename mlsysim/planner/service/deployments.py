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
_FORMAT = LEVERS.index("kv_precision")
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
    answer = traffic.output_len - 1
    prefill, prefill_tried = _pool_candidates(prefills, traffic, most, first_limits, _first, 1.0)
    # The time per token counts from the first token, so it includes the wait in the second pool.
    decode, decode_tried = _pool_candidates(
        decodes, traffic, most, token_limits, later_times, answer
    )
    tried = prefill_tried * decode_tried
    if not prefill or not decode:
        return Deployments({}, _NO_ERRORS, tried)
    parts, log_errors = [], []
    bandwidth, latency = link.si("bandwidth"), link.si("latency")
    for row, engine in enumerate(prefill["engine"]):
        first: dict[str, Any] = {name: values[row] for name, values in prefill.items()}
        transfer = np.maximum(first["moved"], decode["moved"]) / bandwidth + latency
        times = _pair_times(first, decode, transfer)
        # The decode pool reads keys and values in the prefill pool's format, by the same software.
        possible = (decode["format"] == first["format"]) & (
            first["devices"] + decode["devices"] <= most
        )
        for name, limit in limits.items():
            possible &= times[name] <= limit
        if not possible.any():
            continue
        second = _rows(decode, possible)
        devices, cost = first["devices"] + second["devices"], first["cost"] + second["cost"]
        columns = _levers(second["engine"])
        columns |= {
            f"prefill_{name}": np.array([engine.levers[LEVERS.index(name)]] * len(devices))
            for name in POOL_LEVERS
        }
        columns |= {
            "replicas": second["replicas"],
            "prefill_replicas": np.full(len(devices), first["replicas"]),
            "devices": devices,
            "pools": np.array(["separate"] * len(devices)),
        }
        columns |= {name: 1e3 * times[name][possible] for name in SLO}
        columns["utilization"] = np.maximum(first["utilization"], second["utilization"])
        columns |= _rates(
            traffic,
            devices=devices,
            cost=cost,
            read=first["cost"] / cost,
            prompts=_Prompts(
                engine.engine.seq_len, engine.engine.attending / engine.engine.prefill
            ),
            power=first["power"] + second["power"],
            tpot=times["tpot_mean"][possible],
        )
        parts.append(columns)
        pairs = [(engine.log_errors[0], *item.log_errors[1:]) for item in second["engine"]]
        log_errors.append(np.array([[(e.mean, e.deviation) for e in pair] for pair in pairs]))
    if not parts:
        return Deployments({}, _NO_ERRORS, tried)
    return Deployments(_joined(parts), np.concatenate(log_errors), tried)


def _pair_times(first: Mapping[str, Any], decode: Columns, transfer: NDArray[Any]) -> Columns:
    """Return the times of requests in one prefill pool and each of the decode pools."""
    times: Columns = {}
    for percent in _PERCENTS:
        times[f"ttft_{percent}"] = first[f"ttft_{percent}"] + transfer
        times[f"tpot_{percent}"] = decode[f"tpot_{percent}"]
        # Both waits are independent, so their deviations add as squares.
        deviation = np.hypot(
            first[f"ttft_{percent}"] - first["ttft_mean"],
            decode[f"e2e_{percent}"] - decode["e2e_mean"],
        )
        sign = -1 if percent == "p50" else 1
        times[f"e2e_{percent}"] = (
            first["ttft_mean"] + transfer + decode["e2e_mean"] + sign * deviation
        )
    return times


def _levers(choices: Sequence[Choice] | NDArray[Any]) -> Columns:
    return {
        name: np.array([item.levers[spot] for item in choices]) for spot, name in enumerate(LEVERS)
    }


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
        return _rows(_levers(self.choices), rows)

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
        engines = [item for item in choices if item.devices == size]
        if size > most:
            continue
        counts = np.arange(1, most // size + 1, dtype=float)
        several = max(1, _ROWS_AT_ONCE // len(counts))
        for start in range(0, len(engines), several):
            batch = engines[start : start + several]
            engine = stacked(batch, rate / counts)
            times = queue_times(engine, rate / counts, traffic, answer)
            yield _Answers(batch, engine, counts, times, np.ones(times["stable"].shape, bool))


def _first(times: Mapping[str, Any], answer: float) -> Columns:
    """Return the times that a prefill pool determines."""
    return {f"ttft_{percent}": times[f"ttft_{percent}"] for percent in _PERCENTS}


def later_times(times: Mapping[str, Any], answer: float) -> Columns:
    """Return the times that a decode pool determines, for all tokens after the first."""
    later = {f"e2e_{percent}": times[f"e2e_{percent}"] for percent in _PERCENTS}
    for percent in _PERCENTS:
        others = (answer - 1) * times[f"tpot_{percent}"] if answer > 1 else 0.0
        later[f"tpot_{percent}"] = (times["ttft_mean"] + others) / answer
    return later


def _pool_candidates(
    choices: Sequence[Choice],
    traffic: Traffic,
    most: int,
    limits: Mapping[str, float],
    times_of: Callable[[Mapping[str, Any], float], Columns],
    answer: float,
) -> tuple[Columns, int]:
    """Return the engines and counts of one pool that may be part of a best plan.

    The columns are the engine, its replicas and their properties, and the times that the pool
    determines. They are empty if no engine meets the limits. The number is that of all tried.
    """
    parts, tried = [], 0
    for part in _answers(choices, traffic, most, answer):
        tried += part.kept.size
        times = times_of(part.times, answer)
        part = replace(part, times=part.times | times).within(limits)
        rows, spots = np.nonzero(part.kept)
        if not len(rows):
            continue
        columns = part.counts_at(rows, spots)
        columns |= {
            "cost": part.of("price")[rows] * columns["devices"],
            "power": part.times["device_power"][rows, spots] * columns["devices"],
            "moved": part.of("moved")[rows],
            "utilization": part.times["utilization"][rows, spots],
        }
        columns |= {name: part.times[name][rows, spots] for name in times}
        columns["engine"] = np.array(part.choices, dtype=object)[rows]
        formats = [f"{item.levers[_FORMAT]}, {item.software}" for item in part.choices]
        columns["format"] = np.array(formats)[rows]
        columns["calibration"] = part.levers(rows)["calibration"]
        parts.append(columns)
    if not parts:
        return {}, tried
    columns = _joined(parts)
    # Pools with other errors, or with a cache that other software reads, are not compared.
    groups = np.char.add(columns["format"], columns["calibration"])
    names = ("devices", "cost", "power", "moved", "utilization", *times)
    known = columns | {"cost": np.nan_to_num(columns["cost"])}
    respects = np.column_stack([known[name] for name in names])
    return _rows(columns, pareto_front(respects, groups)), tried


def _rows(columns: Columns, rows: NDArray[Any]) -> Columns:
    return {name: values[rows] for name, values in columns.items()}


def pareto_front(respects: NDArray[Any], groups: NDArray[Any]) -> NDArray[Any]:
    """Return the rows that no other one of their group beats in every respect."""
    front: list[int] = []
    for group in np.unique(groups):
        members = np.flatnonzero(groups == group)
        members = members[np.lexsort(respects[members].T[::-1])]
        unbeaten = np.empty((0, respects.shape[1]))
        for row in members:
            if not (unbeaten <= respects[row]).all(axis=1).any():
                unbeaten = np.vstack([unbeaten, respects[row]])
                front.append(int(row))
    return np.array(front, int)


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
    columns = {}
    for name in names:
        kind = next(part[name].dtype for part in parts if name in part)
        empty: Any = "together" if name == "pools" else "" if kind.kind == "U" else 0
        size = [len(part["devices"]) for part in parts]
        columns[name] = np.concatenate(
            [part.get(name, np.full(n, empty)) for part, n in zip(parts, size, strict=True)]
        )
    return columns
