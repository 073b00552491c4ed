"""The search: solve every valid configuration and rank the feasible ones."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from mlsysim.core import formulas as f
from mlsysim.core.calls import checked_by_numpy, expects
from mlsysim.core.errors import OOMError, ParallelismError
from mlsysim.core.table import Column, Table
from mlsysim.core.types import SCHEDULES, Fleet, TransformerModel, find_precision
from mlsysim.core.units import Q_, format_number
from mlsysim.planner.plans import PlanTable, numbers
from mlsysim.planner.training.contrasts import PARTS
from mlsysim.planner.training.goals import Goal
from mlsysim.planner.training.space import (
    EXCHANGE,
    LEVERS,
    MOST_CONFIGURATIONS,
    Rows,
    by_exchange,
    by_words,
    layouts,
    masked,
    partial_recomputes,
    too_many,
)
from mlsysim.registry.calibration.training import Options, calibration_for, options_of
from mlsysim.solvers import DistributedResult, DistributedSolver
from mlsysim.sweeps import Sweep, sweep
from mlsysim.sweeps.reductions import unbeaten
from mlsysim.sweeps.slices import Executors

_RANKS = ("cp_size", "crosses", "zero_stage", "virtual_stages", "memory", "tp_size", "pp_size")
"""Among equally good plans, the one with less of these comes first, in this order."""
_CONTEXT, _ACROSS = 1.01, 1.03
"""By how much a plan with context parallelism, or with tensor groups across nodes, must be better
than one without: the model is less certain there, and such a plan is harder to run."""

_ANSWERS = (
    "step_latency_total",
    "step_latency_low",
    "step_latency_high",
    "token_throughput",
    "mfu",
    "hfu",
    "memory",
    "energy_per_token",
    "power_utilization",
    "compute_latency",
    *PARTS,
)
_COMPONENTS = ("weights", "gradient", "optimizer", "activation", "working")
_WHOLE = ("dp_size", "microbatch_size")
_SHOWN = ("fleet", "batch_size", "dp_size", *LEVERS, *EXCHANGE, "microbatch_size")


class Plans(PlanTable):
    """Feasible configurations, best first: the levers, the goal, and parts of the result."""

    def __init__(
        self, columns: Mapping[str, Column], fixed: Mapping[str, Any], fleets: Mapping[str, Any]
    ) -> None:
        super().__init__(columns, fixed, fleets)
        self._fixed = dict(fixed)
        self._fleets = dict(fleets)

    def configuration(self, index: int) -> dict[str, Any]:
        """Return the arguments of `DistributedSolver` for one row.

        Raises
        ------
        ConfigError
            If there is no such row.
        """
        row = self.row(index)
        searched = {name: row[name] for name in ("batch_size", *LEVERS)}
        for name in EXCHANGE:
            if name in row:
                searched[name] = None if row[name] == "" else row[name]
        if searched.get("expert_nodes") is not None:
            searched["expert_nodes"] = int(searched["expert_nodes"])
        return {**self._fixed, "fleet": self._fleets[row["fleet"]], **searched}

    def result(self, index: int) -> DistributedResult:
        """Solve one row, for its reasons and its derivation.

        Raises
        ------
        ConfigError
            If there is no such row.
        """
        return DistributedSolver.solve(**self.configuration(index))

    def where(self, mask: Any) -> Plans:
        """Return the rows for which `mask`, one True or False per row, is true."""
        return self.take(np.flatnonzero(np.asarray(mask)))


@expects(plans=Table, first=str, second=str)
@checked_by_numpy
def front(plans: Plans, first: str, second: str) -> Plans:
    """Return the Pareto front: plans that no other plan beats in both columns, smallest first.

    Parameters
    ----------
    plans
        The plans.
    first, second
        Columns of numbers. Less is better.
    """
    return plans.take(unbeaten(np.column_stack([numbers(plans, first), numbers(plans, second)])))


@dataclass
class Search:
    """Evaluates configurations and keeps those that are feasible.

    For infeasible configurations, it keeps levers and memory for the error message.
    """

    model: TransformerModel
    fixed: Mapping[str, Any]
    given: Mapping[str, Sequence[Any]]
    goal: Goal
    reserve: Callable[[float], float] = lambda capacity: 0.0
    """Bytes of a device to leave free, by its memory."""
    executor: Executors | None = None
    report: Callable[[int, int], None] | None = None
    optional: frozenset[str] = frozenset()
    """Names of fleets that may have no plan."""
    searched: int = field(default=0, init=False)
    failed: list[tuple[dict[str, Any], Rows]] = field(default_factory=list, init=False)
    tight: int = field(default=0, init=False)
    """Plans that fit, but leave less memory free than the reserve."""
    tight_rate: float = field(default=0.0, init=False)
    """Tokens per second of the fastest of them."""
    exchange: Mapping[str, Any] = field(default_factory=dict)
    """Arguments for the exchanges with experts that are given; `None` for others."""
    _parts: list[dict[str, Column]] = field(default_factory=list, init=False)
    _crowded: list[tuple[dict[str, Any], Rows]] = field(default_factory=list, init=False)
    """Plans that fit without the overlap of exchanges only, with the speed that it would give."""
    _rates: dict[tuple[str, int], float] = field(default_factory=dict, init=False)
    """Tokens per second of the fastest plan, by fleet and batch."""

    def run(self, fleets: Sequence[Fleet], batches: Sequence[int]) -> Plans:
        """Evaluate everything and return the feasible ones, best first."""
        seq_len = self.fixed["seq_len"] or self.model.seq_len
        work: list[tuple[dict[str, Any], Rows]] = []
        total = 0
        for fleet in fleets:
            for batch in batches:
                try:
                    rows = layouts(self.model, fleet, batch, seq_len, self.given)
                except ParallelismError:
                    if fleet.name not in self.optional:
                        raise
                    continue
                named = {"fleet": fleet, "batch_size": batch}
                options = self._options(fleet)
                schedules = options.schedules
                if self.mixed:  # GPipe takes as long as 1F1B and needs more memory
                    schedules = tuple(s for s in schedules if not SCHEDULES[s].all_forward_first)
                for shared, block in by_words(rows, self.given, self.fixed["attention"], schedules):
                    work += self._exchanged(named | shared, block, options)
                    total += len(block["tp_size"])
                    if total > MOST_CONFIGURATIONS:
                        raise too_many("microbatch_count")
        for shared, block in work:
            self._evaluate(shared, block, total)
        if self.mixed and "recompute" not in self.given:
            self._recompute_parts(total)
        if not self._parts and not any(block["memory"].size for _, block in self.failed):
            shared, block = work[0]
            levers = (*LEVERS, *EXCHANGE)
            first: dict[str, Any] = {n: int(v[0]) for n, v in block.items() if n in levers}
            DistributedSolver.solve(**self.fixed, **shared, **first)  # explains why none is valid
        return self._ranked({fleet.name: fleet for fleet in fleets})

    @property
    def mixed(self) -> bool:
        """Whether exchanges with experts and partial recomputation are searched."""
        return self.model.moe_layers > 0 and self.fixed["efficiency"] is None

    def _options(self, fleet: Fleet) -> Options:
        """Return what the framework of a fleet's plans can switch on."""
        constants = self.fixed["calibration"] or calibration_for(fleet.node.accelerator)
        return options_of(constants.software)

    def _exchanged(
        self, shared: dict[str, Any], block: Rows, options: Options
    ) -> list[tuple[dict[str, Any], Rows]]:
        """Return the block by the exchanges of its rows; those that are given are the same."""
        if not self.mixed:
            return [(shared, block)]
        narrow = find_precision(self.fixed["precision"], "precision").bits <= 8
        blocks = []
        for each, rows in by_exchange(
            shared, block, self.model, shared["fleet"].node, options, narrow
        ):
            given = {n: v for n, v in self.exchange.items() if v is not None}
            blocks.append(({**each, **given}, {n: v for n, v in rows.items() if n not in given}))
        return blocks

    def _recompute_parts(self, total: int) -> None:
        """Recompute parts of the layers where a plan does not fit and would be the fastest.

        Recomputation makes a step longer, so other plans cannot become the best. First all modules
        are recomputed, which needs the least memory; only plans that then fit can keep some.
        """
        base = "selective" if self.fixed["attention"] == "fused" else "none"
        lacking = [*self.failed, *self._crowded]
        blocks = [item for item in lacking if item[0]["recompute"] == base]
        groups: dict[tuple[str, int], list[tuple[dict[str, Any], Rows]]] = {}
        for shared, block in blocks:
            groups.setdefault((shared["fleet"].name, shared["batch_size"]), []).append(
                (shared, block)
            )
        for (fleet, batch), lacking in groups.items():
            options = self._options(lacking[0][0]["fleet"])
            ways = partial_recomputes(base, options.recomputes, self.model)
            for way in ways:
                best = self._rates.get((fleet, batch), 0.0)
                left = []
                for shared, block in lacking:
                    faster = masked(block, block["rate"] > best)
                    if not len(faster["rate"]):
                        continue
                    levers = {n: v for n, v in faster.items() if n not in ("memory", "rate")}
                    fits = self._evaluate({**shared, "recompute": way}, levers, total)
                    left.append((shared, masked(faster, fits) if way == ways[0] else faster))
                lacking = left

    def _evaluate(self, shared: dict[str, Any], block: Rows, total: int) -> Any:
        """Solve a block, keep its feasible plans, and return which rows can run."""
        axes: dict[str, Any] = {n: v for n, v in block.items() if n != "dp_size"}
        more: dict[str, Any] = {}
        if self.report is not None:
            before, report = self.searched, self.report
            every = max(total, before + len(block["tp_size"]))
            more["progress"] = lambda done, _: report(before + done, every)
        # Levers that are not searched may be incompatible with some layouts.
        answers = sweep(
            DistributedSolver,
            how="zip",
            invalid="mark",
            executor=self.executor,
            **self.fixed,
            **shared,
            **axes,
            **more,
        )
        self.searched += len(answers)
        valid = np.asarray(answers["valid"], dtype=bool)
        memory = np.asarray(answers["memory"].to("byte").magnitude)
        fits = np.asarray(answers["feasible"], dtype=bool)
        held = shared["fleet"].node.accelerator.memory
        capacity = (held.capacity if held.reported is None else held.reported).to("byte").magnitude
        limit = capacity - self.reserve(capacity)
        room = memory <= limit
        stated = self.exchange.get("exchange_overlap") is not None
        second = 0.0 if stated else _second_microbatch(shared, answers)
        runs = fits & (memory + second <= limit)
        rates = np.asarray(answers["token_throughput"].to("token/s").magnitude)
        if (tight := fits & ~room).any():
            self.tight += int(tight.sum())
            self.tight_rate = max(self.tight_rate, float(rates[tight].max()))
        # Plans that have no room for a second microbatch run without the overlap.
        crowded = fits & room & ~runs
        if crowded.any():
            rows = masked({**block, "rate": rates}, crowded)
            self._crowded.append((shared, rows))
            self._evaluate({**shared, "exchange_overlap": None}, masked(block, crowded), total)
        lacking = valid & ~runs & ~crowded
        misses = {name: values[lacking] for name, values in block.items()}
        misses["memory"], misses["rate"] = memory[lacking], rates[lacking]
        self.failed.append((shared, misses))
        if runs.any():
            self._parts.append(self._columns(shared, answers.where(runs)))
            job = (shared["fleet"].name, shared["batch_size"])
            self._rates[job] = max(self._rates.get(job, 0.0), float(rates[runs].max()))
        return runs | crowded

    def _columns(self, shared: dict[str, Any], answers: Sweep) -> dict[str, Column]:
        size = len(answers)
        known = {"fleet": shared["fleet"].name, **{n: v for n, v in shared.items() if n != "fleet"}}
        absent = {"exchange_overlap": math.nan, "expert_nodes": math.nan, "dispatch_precision": ""}
        columns = {
            n: Column(np.full(size, absent[n] if v is None else v)) for n, v in known.items()
        }
        for name in (*_SHOWN, *_ANSWERS):
            if name in answers.columns and name not in EXCHANGE:
                values = answers[name]
                unit = answers.units.get(name, "")
                plain = np.asarray(getattr(values, "magnitude", values))
                columns[name] = Column(plain.astype(int) if name in _WHOLE else plain, unit)
        if "expert_nodes" in answers.columns:
            columns["expert_nodes"] = Column(np.asarray(answers["expert_nodes"], dtype=float))
        crosses = crossing_nodes(columns["tp_size"].values, shared["fleet"])
        return {
            **columns,
            **self.goal.columns(shared["fleet"], answers, self.model, self.fixed["precision"]),
            "crosses": Column(crosses),
        }

    def _ranked(self, fleets: Mapping[str, Fleet]) -> Plans:
        if not self._parts:
            raise self._refusal()
        first = self._parts[0]
        names = [n for n in _SHOWN if n in first] + [n for n in first if n not in _SHOWN]
        every = {
            n: Column(np.concatenate([p[n].values for p in self._parts]), first[n].unit)
            for n in names
        }
        factor = np.where(every["cp_size"].values > 1, _CONTEXT, 1.0) * np.where(
            every["crosses"].values, _CONTEXT * _ACROSS, 1.0
        )
        best_first = self.goal.order(every, factor)
        plain = [every[name].values for name in _RANKS]
        # The last of these keys counts most.
        order = np.lexsort((*reversed(plain), *reversed(best_first)))
        del every["crosses"]
        ranked = {n: Column(c.values[order], c.unit) for n, c in every.items()}
        return Plans(ranked, self.fixed, fleets)

    def _refusal(self) -> OOMError:
        """Compose the error: by how much the smallest configuration exceeds the memory."""
        tried = [(s, m) for s, m in self.failed if m["memory"].size]
        shared, block = min(tried, key=lambda item: item[1]["memory"].min())
        row = int(block["memory"].argmin())
        axes: dict[str, Any] = {
            n: int(v[row]) for n, v in block.items() if n in (*LEVERS, *EXCHANGE)
        }
        lean = DistributedSolver.solve(**self.fixed, **shared, **axes)
        spare = self.reserve(lean.memory_capacity.to("byte").magnitude)
        reserve = format_number(Q_(spare, "byte").to("GB"))
        reserved = f", and {reserve} must stay free" if spare else ""
        spare = lean.memory_capacity - lean.memory
        way_out = (
            f"reserve at most {format_number(spare)} (memory_reserve)"
            if spare.magnitude > 0
            else "choose more devices, or a smaller model, batch or sequence"
        )
        return OOMError(
            f"none of {self.searched:,} configurations fits: the smallest needs "
            f"{format_number(lean.memory)} per device; {format_number(lean.memory_capacity)} are "
            f"available{reserved}; {way_out}",
            required=lean.memory,
            available=lean.memory_capacity,
            by_component={n: lean[f"{n}_memory"] for n in _COMPONENTS},
        )


def _second_microbatch(shared: Mapping[str, Any], answers: Sweep) -> Any:
    """Return the activations of one more microbatch in flight, where exchanges overlap with it.

    In an interleaved pipeline it is one more chunk of those that the first stage holds. The
    solver's memory counts it only for bidirectional schedules.
    """
    if not shared.get("exchange_overlap") or SCHEDULES[shared["schedule"]].bidirectional:
        return 0.0
    stages, chunks = (np.asarray(answers[name]) for name in ("pp_size", "virtual_stages"))
    in_flight = 2 * (stages - 1) + (chunks - 1) * stages + 1
    return np.asarray(answers["activation_memory"].to("byte").magnitude) / in_flight


def crossing_nodes(tp_size: Any, fleet: Fleet) -> Any:
    """Return which tensor groups span several nodes."""
    slots = f.node_slots(fleet.node.accelerators_per_node, 1)
    return f.local_ranks(np.asarray(tp_size, dtype=float), slots) < tp_size
