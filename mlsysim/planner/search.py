"""The search: every valid configuration through the solver's model, the feasible ones ranked."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from mlsysim.core.errors import OOMError
from mlsysim.core.table import Column
from mlsysim.core.types import Fleet, TransformerModel
from mlsysim.core.units import Q_, format_number
from mlsysim.planner.contrasts import PARTS
from mlsysim.planner.goals import Goal
from mlsysim.planner.plans import Plans
from mlsysim.planner.space import LEVERS, MOST_CONFIGURATIONS, Rows, by_words, layouts, too_many
from mlsysim.slices import Executors
from mlsysim.solvers import DistributedSolver
from mlsysim.sweeps import Sweep, sweep

__all__ = ["Search"]

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
_SHOWN = ("fleet", "batch_size", "dp_size", *LEVERS, "microbatch_size")


@dataclass
class Search:
    """Evaluates configurations and keeps those that can run.

    For configurations that cannot run, it keeps levers and memory, for the error message.
    """

    model: TransformerModel
    fixed: Mapping[str, Any]
    given: Mapping[str, Sequence[Any]]
    goal: Goal
    reserve: float = 0.0
    """Bytes of each device to leave free."""
    executor: Executors | None = None
    report: Callable[[int, int], None] | None = None
    searched: int = 0
    failed: list[tuple[dict[str, Any], Rows]] = field(default_factory=list)
    _parts: list[dict[str, Column]] = field(default_factory=list)

    def run(self, fleets: Sequence[Fleet], batches: Sequence[int]) -> Plans:
        """Evaluate everything and return what can run, best first."""
        seq_len = self.fixed["seq_len"] or self.model.seq_len
        work: list[tuple[dict[str, Any], Rows]] = []
        total = 0
        for fleet in fleets:
            for batch in batches:
                rows = layouts(self.model, fleet, batch, seq_len, self.given)
                named = {"fleet": fleet, "batch_size": batch}
                for shared, block in by_words(
                    rows, self.model, self.given, self.fixed["attention"]
                ):
                    work.append((named | shared, block))
                    total += len(block["tp_size"])
                    if total > MOST_CONFIGURATIONS:
                        raise too_many("microbatch_count")
        for shared, block in work:
            self._evaluate(shared, block, total)
        return self._ranked({fleet.name: fleet for fleet in fleets})

    def _evaluate(self, shared: dict[str, Any], block: Rows, total: int) -> None:
        axes: dict[str, Any] = {n: v for n, v in block.items() if n != "dp_size"}
        more: dict[str, Any] = {}
        if self.report is not None:
            before, report = self.searched, self.report
            more["progress"] = lambda done, _: report(before + done, total)
        found = sweep(
            DistributedSolver,
            how="zip",
            executor=self.executor,
            **self.fixed,
            **shared,
            **axes,
            **more,
        )
        self.searched += len(found)
        capacity = shared["fleet"].node.accelerator.memory.si("capacity")
        memory = np.asarray(found["memory"].to("byte").magnitude)
        runs = np.asarray(found["feasible"], dtype=bool) & (memory <= capacity - self.reserve)
        misses = {name: values[~runs] for name, values in block.items()}
        misses["memory"] = memory[~runs]
        self.failed.append((shared, misses))
        if runs.any():
            self._parts.append(self._columns(shared, found.where(runs)))

    def _columns(self, shared: dict[str, Any], found: Sweep) -> dict[str, Column]:
        size = len(found)
        known = {"fleet": shared["fleet"].name, **{n: v for n, v in shared.items() if n != "fleet"}}
        columns = {n: Column(np.full(size, v)) for n, v in known.items()}
        for name in (*_SHOWN, *_ANSWERS):
            if name in found.columns:
                values = found[name]
                unit = found.units.get(name, "")
                plain = np.asarray(getattr(values, "magnitude", values))
                columns[name] = Column(plain.astype(int) if name in _WHOLE else plain, unit)
        return columns | self.goal.columns(shared["fleet"], found)

    def _ranked(self, fleets: Mapping[str, Fleet]) -> Plans:
        if not self._parts:
            raise self._refusal()
        first = self._parts[0]
        names = [n for n in _SHOWN if n in first] + [n for n in first if n not in _SHOWN]
        every = {
            n: Column(np.concatenate([p[n].values for p in self._parts]), first[n].unit)
            for n in names
        }
        # Plans that differ by rounding are equal: then less memory comes first, then fewer levers.
        score, memory = (
            np.round(np.log(every[name].values), 9) for name in (self.goal.column, "memory")
        )
        sign = -1 if self.goal.name == "throughput" else 1
        plain = [every[name].values for name in ("tp_size", "pp_size", "cp_size")]
        order = np.lexsort((*plain, memory, sign * score))
        ranked = {n: Column(c.values[order], c.unit) for n, c in every.items()}
        return Plans(ranked, self.fixed, fleets)

    def _refusal(self) -> OOMError:
        """Compose the error: by how much the configuration with the least memory does not fit."""
        tried = [(s, m) for s, m in self.failed if m["memory"].size]
        shared, block = min(tried, key=lambda item: item[1]["memory"].min())
        row = int(block["memory"].argmin())
        axes: dict[str, Any] = {n: int(v[row]) for n, v in block.items() if n in LEVERS}
        lean = DistributedSolver.solve(**self.fixed, **shared, **axes)
        reserved = (
            f", with {format_number(Q_(self.reserve, 'byte').to('GB'))} reserved"
            if self.reserve
            else ""
        )
        spare = lean.memory_capacity - lean.memory
        way_out = (
            f"reserve at most {format_number(spare)} (memory_reserve)"
            if spare.magnitude > 0
            else "choose more devices, or a smaller model, batch or sequence"
        )
        return OOMError(
            f"none of {self.searched:,} configurations fits: the smallest needs "
            f"{format_number(lean.memory)} per device and has "
            f"{format_number(lean.memory_capacity)}{reserved}; {way_out}",
            required=lean.memory,
            available=lean.memory_capacity,
            by_component={n: lean[f"{n}_memory"] for n in _COMPONENTS},
        )
