"""Ways to deploy engines for a load: as identical replicas, or as separate pools.

Both give the same columns: levers, replicas, times, cost and energy. In separate pools, an engine
of the prefill pool generates the first token, the keys and values move over a link, and an engine
of the decode pool generates the other tokens. Each pool is an open-loop server of its own, so the
time in one pool does not depend on the other, and the search tries each pool's engines separately.
Then it joins every pair in which neither part is worse than another one in every respect.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from mlsysim.core.types import NetworkFabric
from mlsysim.planner.service.engines import LEVERS, Choice, queue_times, stacked
from mlsysim.planner.service.limits import PERCENTS, SLO
from mlsysim.planner.service.probabilities import LogError
from mlsysim.planner.service.serving_plans import POOL_LEVERS
from mlsysim.solvers.traffic.engine import Engine
from mlsysim.sweeps.reductions import unbeaten
from mlsysim.traffic import Traffic

Columns = dict[str, NDArray[Any]]
_ROWS_AT_ONCE = 20_000
_FORMAT = LEVERS.index("kv_precision")


@dataclass(frozen=True)
class Deployments:
    """Deployments that meet the limits, and the number of those tried."""

    columns: Columns
    log_errors: NDArray[Any]
    """Errors of time to first token, steps, energy and capacity, row by row: mean and deviation."""
    tried: int

    @classmethod
    def of(cls, parts: Sequence[Columns], log_errors: Sequence[NDArray[Any]], tried: int) -> Self:
        """Return all rows of several parts."""
        if not parts:
            return cls({}, np.empty((0, 4, 2)), tried)
        return cls(_joined(parts), np.concatenate(log_errors), tried)

    def joined_with(self, other: Deployments) -> Deployments:
        """Return the rows of both."""
        both = [item for item in (self, other) if item.columns]
        columns, log_errors = [item.columns for item in both], [item.log_errors for item in both]
        return Deployments.of(columns, log_errors, self.tried + other.tried)


def replicated_engines(
    choices: Sequence[Choice], traffic: Traffic, limits: Mapping[str, float], most: int
) -> Deployments:
    """Try every engine with every number of replicas."""
    parts, log_errors, tried = [], [], 0
    for part in _parts(choices, traffic, most, limits):
        tried += part.tried
        if not len(part.rows):
            continue
        columns = _rows(_levers(part.choices), part.rows)
        columns |= {"replicas": part.replicas, "devices": part.devices}
        columns |= {name: 1e3 * part.time(name) for name in SLO}
        columns["utilization"] = part.time("utilization")
        columns |= _rates(
            traffic,
            devices=part.devices,
            cost=part.of("price") * part.devices,
            read=part.read_share(traffic),
            new=part.spread(part.engine.seq_len),
            attending=part.spread(part.engine.attending / part.engine.prefill),
            power=part.time("device_power") * part.devices,
            tpot=part.time("tpot_mean"),
        )
        parts.append(columns)
        log_errors.append(_log_errors([item.log_errors for item in part.choices])[part.rows])
    return Deployments.of(parts, log_errors, tried)


def disaggregated_pools(
    prefills: Sequence[Choice],
    decodes: Sequence[Choice],
    link: NetworkFabric,
    traffic: Traffic,
    limits: Mapping[str, float],
    most: int,
) -> Deployments:
    """Try every pair of pools, with every number of engines in each."""
    prefill, prefill_tried = _pool_candidates(prefills, traffic, most, limits, "prefill")
    decode, decode_tried = _pool_candidates(decodes, traffic, most, limits, "decode")
    tried = prefill_tried * decode_tried
    if not prefill or not decode:
        return Deployments.of([], [], tried)
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
            new=engine.engine.seq_len,
            attending=engine.engine.attending / engine.engine.prefill,
            power=first["power"] + second["power"],
            tpot=times["tpot_mean"][possible],
        )
        parts.append(columns)
        pairs = [(engine.log_errors[0], *item.log_errors[1:]) for item in second["engine"]]
        log_errors.append(_log_errors(pairs))
    return Deployments.of(parts, log_errors, tried)


def _pair_times(first: Mapping[str, Any], decode: Columns, transfer: NDArray[Any]) -> Columns:
    """Return the times of requests in one prefill pool and each of the decode pools."""
    times: Columns = {}
    for percent in PERCENTS:
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


def _log_errors(engines: Sequence[Sequence[LogError]]) -> NDArray[Any]:
    """Return the mean and the deviation of each error of each engine."""
    return np.array([[(error.mean, error.deviation) for error in errors] for errors in engines])


@dataclass(frozen=True)
class _Part:
    """Engines of one size, each with the numbers of replicas that meet the limits: one per row."""

    choices: Sequence[Choice]
    engine: Engine
    """All engines, stacked."""
    times: Mapping[str, Any]
    """Times of every engine with every number of replicas."""
    rows: NDArray[Any]
    """The engine of each row."""
    spots: NDArray[Any]
    """Its place among the numbers of replicas."""
    tried: int

    @property
    def replicas(self) -> NDArray[Any]:
        """Replicas of each row."""
        return self.spots + 1

    @property
    def devices(self) -> NDArray[Any]:
        """Devices of each row."""
        return self.replicas * self.choices[0].devices

    def of(self, name: str) -> NDArray[Any]:
        """Return a field of each row's engine."""
        field: NDArray[Any] = np.array([getattr(item, name) for item in self.choices])[self.rows]
        return field

    def spread(self, values: Any) -> NDArray[Any]:
        """Return each row's number among those of engines, or of engines and their replicas."""
        shape = self.times["stable"].shape
        numbers: NDArray[Any] = np.broadcast_to(values, shape)[self.rows, self.spots]
        return numbers

    def time(self, name: str) -> NDArray[Any]:
        """Return a time of each row."""
        return self.spread(self.times[name])

    def read_share(self, traffic: Traffic) -> NDArray[Any]:
        """Return the share of an engine's work that is prefill; the rest is decode."""
        read = self.spread(self.engine.prefill / (self.engine.ranks * self.engine.stages))
        # By Little's law: without those that wait, load a prefix, or are in prefill
        later = 1 - self.time("ttft_mean") / self.time("e2e_mean")
        running = np.maximum(later * self.time("requests_in_flight"), 1)
        made = max(traffic.output_len - 1, 0) * self.time("decode_latency") / running
        return np.asarray(read / (read + made))


def _parts(
    choices: Sequence[Choice],
    traffic: Traffic,
    most: int,
    limits: Mapping[str, float],
    role: str = "both",
) -> Iterator[_Part]:
    """Yield engines of one size that meet the limits, in batches that fit in the cache."""
    answer = {"both": traffic.output_len, "prefill": 1.0, "decode": traffic.output_len - 1}[role]
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
            if role == "decode":
                times |= later_times(times, answer)
            sufficient = np.array(times["stable"])
            for name, limit in limits.items():
                sufficient &= np.nan_to_num(times[name], nan=np.inf) <= limit
            rows, spots = np.nonzero(sufficient)
            yield _Part(batch, engine, times, rows, spots, sufficient.size)


def later_times(times: Mapping[str, Any], answer: float) -> Columns:
    """Return the times that a decode pool determines, for all tokens after the first.

    The time per token counts from the first token, so it includes the wait in the second pool.
    """
    later = {f"e2e_{percent}": times[f"e2e_{percent}"] for percent in PERCENTS}
    for percent in PERCENTS:
        others = (answer - 1) * times[f"tpot_{percent}"] if answer > 1 else 0.0
        later[f"tpot_{percent}"] = (times["ttft_mean"] + others) / answer
    return later


def _pool_candidates(
    choices: Sequence[Choice],
    traffic: Traffic,
    most: int,
    limits: Mapping[str, float],
    role: str,
) -> tuple[Columns, int]:
    """Return the engines and counts of one pool that may be part of a best plan.

    The columns are the engine, its replicas and their properties, and the times that the pool
    determines. They are empty if no engine meets the limits. The number is that of all tried.
    """
    limited, *others = {"prefill": ("ttft",), "decode": ("tpot", "e2e")}[role]
    limits = {name: limit for name, limit in limits.items() if name.startswith(limited)}
    names = [f"{time}_{percent}" for time in (*others, limited) for percent in PERCENTS]
    parts, tried = [], 0
    for part in _parts(choices, traffic, most, limits, role):
        tried += part.tried
        if not len(part.rows):
            continue
        columns = {
            "replicas": part.replicas,
            "devices": part.devices,
            "cost": part.of("price") * part.devices,
            "power": part.time("device_power") * part.devices,
            "moved": part.of("moved"),
            "utilization": part.time("utilization"),
        }
        columns |= {name: part.time(name) for name in names}
        columns["engine"] = np.array(part.choices, dtype=object)[part.rows]
        formats = [f"{item.levers[_FORMAT]}, {item.software}" for item in part.choices]
        columns["format"] = np.array(formats)[part.rows]
        columns["calibration"] = _levers(part.choices)["calibration"][part.rows]
        parts.append(columns)
    if not parts:
        return {}, tried
    columns = _joined(parts)
    # Pools with other errors, or with a cache that other software reads, are not compared.
    groups = np.char.add(columns["format"], columns["calibration"])
    members = (np.flatnonzero(groups == group) for group in np.unique(groups))
    respected = ("devices", "cost", "power", "moved", "utilization", *names)
    respects = np.nan_to_num(np.column_stack([columns[name] for name in respected]))
    front = np.concatenate([rows[unbeaten(respects[rows])] for rows in members])
    return _rows(columns, front), tried


def _rows(columns: Columns, rows: NDArray[Any]) -> Columns:
    return {name: values[rows] for name, values in columns.items()}


def _rates(
    traffic: Traffic,
    *,
    devices: Any,
    cost: Any,
    read: Any,
    new: Any,
    attending: Any,
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
    cached = np.maximum(traffic.seq_len - new, 0)
    none = np.where(cached > 0, 1.0, np.nan)
    return {
        "cost_per_token": 1e6 * cost / tokens,
        "cost_per_input_token": (1 - attending) * prefill / new,
        "cost_per_output_token": 1e6 * (1 - read) * cost / tokens,
        "cost_per_cached_token": none * attending * prefill / np.maximum(cached, 1),
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
