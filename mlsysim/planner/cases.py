"""Plans that can be changed and solved again."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from mlsysim.core.errors import ConfigError
from mlsysim.solvers import DistributedResult, DistributedSolver

__all__ = ["LEAST_GAIN", "Case"]

LEAST_GAIN = 0.01
"""Share of tokens per second that a change must add before it is worth a diagnosis."""


@dataclass(frozen=True)
class Case:
    """A plan: its arguments and its result."""

    given: dict[str, Any]
    result: DistributedResult

    def __getitem__(self, name: str) -> Any:
        return self.given.get(name, DistributedSolver.defaults[name])

    @property
    def step(self) -> float:
        """Seconds of a step."""
        return self.seconds("step_latency_total")

    def seconds(self, name: str) -> float:
        """Return a field of the result in seconds."""
        return float(self.result[name].to("s").magnitude)

    def share(self, name: str) -> float:
        """Return a part of the step as a share of it."""
        return self.seconds(name) / self.step

    def gain(self, before: Case) -> float:
        """Return the relative gain of this plan in tokens per second over another."""
        rates = (self.result.token_throughput, before.result.token_throughput)
        return float((rates[0] / rates[1]).to("").magnitude) - 1

    def changed(self, **changes: Any) -> Case | None:
        """Solve the plan with changes; `None` if they are contradictory."""
        given = self.given | changes
        try:
            return Case(given, DistributedSolver.solve(**given))
        except ConfigError:
            return None

    def regrouped(self, tp_size: int, pp_size: int) -> Case | None:
        """Return the plan with other groups, and microbatches of the same size."""
        devices = self["fleet"].total_accelerators
        replicas, rest = divmod(devices, tp_size * pp_size * self["cp_size"])
        if rest or not replicas:
            return None
        size = self.result.microbatch_size
        count = self["batch_size"] / (replicas * max(size, 1))
        if count != int(count) or count < 1:
            return None
        chunks = self["virtual_stages"] if count % pp_size == 0 and pp_size > 1 else 1
        return self.changed(
            tp_size=tp_size, pp_size=pp_size, microbatch_count=int(count), virtual_stages=chunks
        )

    def best(self, candidates: Iterable[Case | None]) -> Case | None:
        """Return the fastest candidate with a sufficient gain that is feasible if this plan is."""
        worth = [
            case
            for case in candidates
            if case is not None
            and (case.result.feasible or not self.result.feasible)
            and case.gain(self) >= LEAST_GAIN
        ]
        # A feasible plan beats any infeasible one.
        return max(worth, key=lambda c: (c.result.feasible, c.gain(self)), default=None)

    def told(self, before: Case) -> str:
        """Describe the differences from another plan."""
        names = [name for name in self.given if self[name] != before[name]]
        changes = ", ".join(f"{name} = {self[name]} instead of {before[name]}" for name in names)
        if self["batch_size"] > before["batch_size"]:
            changes += " (with less progress per sequence)"
        return changes if self.result.feasible else f"{changes} (which is not feasible either)"
