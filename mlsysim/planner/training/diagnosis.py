"""Anti-patterns: common mistakes in a plan, with the change that fixes each.

Each pattern examines a solved plan, solves possible changes, and is reported only if a change is
faster. Its evidence and its gain are therefore the model's numbers, not rules of thumb.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from inspect import signature
from typing import Any

from mlsysim.core import formulas as f
from mlsysim.core.errors import ConfigError, shown
from mlsysim.core.fields import record
from mlsysim.core.files import printable
from mlsysim.core.result import Result
from mlsysim.core.units import Quantity, format_number
from mlsysim.planner.training.contrasts import spent
from mlsysim.planner.training.space import divisors
from mlsysim.solvers import DistributedResult, DistributedSolver

_LEAST_GAIN = 0.01
"""Share of tokens per second that a change must add before it is worth a diagnosis."""
_MUCH = 0.1
"""Smallest share of a step at which a pattern is examined. Solving the changes decides."""


@record
class Diagnosis:
    """An anti-pattern, found in a plan.

    Attributes
    ----------
    name : str
        The anti-pattern.
    evidence : str
        The model's numbers that show it.
    change : str
        The change that fixes it.
    configuration : Mapping[str, object]
        Arguments of the improved plan, as `DistributedSolver.solve` takes them.
    gain : float
        Relative gain in tokens per second: 0.1 means 10% more.
    """

    name: str
    evidence: str
    change: str
    configuration: Mapping[str, Any] = dataclasses.field()
    gain: float

    def __str__(self) -> str:
        words = f"{self.name}: {self.evidence}; {self.change}: {self.gain:+.1%} tokens per second"
        return printable(words, lines=True)


def diagnose(plan: DistributedResult | Mapping[str, Any]) -> tuple[Diagnosis, ...]:
    """Name the anti-patterns of a plan.

    Parameters
    ----------
    plan
        A result of `DistributedSolver`, or the arguments of one.

    Returns
    -------
    tuple of Diagnosis
        The anti-patterns found, largest gain first; empty if no change helps.

    Raises
    ------
    ConfigError
        If `plan` is neither.

    Notes
    -----
    The patterns are tensor parallelism over a slow link, groups that straddle nodes, tensor groups
    wider than needed, a small batch on many replicas, few microbatches in a pipeline, needless
    accumulation, and needless recomputation. A change must keep the plan feasible and gain at least
    one percent.

    Examples
    --------
    >>> from mlsysim import Models, Systems, diagnose
    >>> found = diagnose(
    ...     {
    ...         "model": Models.Llama3_70B,
    ...         "fleet": Systems.Clusters.Research_256,
    ...         "batch_size": 256,
    ...         "seq_len": 2048,
    ...         "tp_size": 16,
    ...         "pp_size": 4,
    ...         "microbatch_count": 32,
    ...     }
    ... )
    >>> found[0].name
    'tensor parallelism over a slow link'
    """
    if isinstance(plan, DistributedResult):
        if "_origin" not in plan.__dict__:
            raise ConfigError(
                "plan was not returned by DistributedSolver.solve: give its result, or its "
                "arguments",
                argument="plan",
            )
        case = Case(dict(plan.__dict__["_origin"][1]), plan)
    elif isinstance(plan, Mapping) and not isinstance(plan, Result):
        try:
            signature(DistributedSolver.solve).bind(**plan)
        except TypeError as fault:
            raise ConfigError(
                f"plan = {shown(plan)} does not contain arguments of DistributedSolver.solve: "
                f"{fault}",
                argument="plan",
            ) from fault
        case = Case(dict(plan), DistributedSolver.solve(**plan))
    else:
        raise ConfigError(
            f"plan = {shown(plan)} is not a plan: give a result of DistributedSolver.solve, or its "
            "arguments",
            argument="plan",
        )
    findings = {name: pattern(case) for name, pattern in PATTERNS.items()}
    diagnoses = [
        Diagnosis(
            name=name,
            evidence=finding.evidence,
            change=finding.better.changes_from(case),
            configuration=finding.better.given,
            gain=finding.better.gain(case),
        )
        for name, finding in findings.items()
        if finding is not None
    ]
    return tuple(sorted(diagnoses, key=lambda item: -item.gain))


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
            and case.gain(self) >= _LEAST_GAIN
        ]
        # A feasible plan beats any infeasible one.
        return max(worth, key=lambda c: (c.result.feasible, c.gain(self)), default=None)

    def changes_from(self, before: Case) -> str:
        """Describe the differences from another plan."""
        names = [name for name in self.given if self[name] != before[name]]
        changes = ", ".join(f"{name} = {self[name]} instead of {before[name]}" for name in names)
        if self["batch_size"] > before["batch_size"]:
            changes += " (with less progress per sequence)"
        return changes if self.result.feasible else f"{changes} (which is not feasible either)"


@dataclass(frozen=True)
class Finding:
    """Evidence, and a better plan."""

    evidence: str
    better: Case


def _finding(better: Case | None, evidence: str) -> Finding | None:
    return None if better is None else Finding(evidence, better)


def _near(case: Case, ranks: int, stride: int) -> tuple[int, int]:
    """Return how many ranks of a group share a node, and how many could."""
    slots = f.node_slots(case["fleet"].node.accelerators_per_node, stride)
    return int(f.local_ranks(ranks, slots)), int(min(ranks, slots))


def _narrower(case: Case) -> Iterator[Case | None]:
    """Yield plans with smaller tensor groups, and more stages or more replicas instead."""
    tp, pp = case["tp_size"], case["pp_size"]
    for size in divisors(tp)[:-1]:
        yield case.regrouped(size, pp * tp // size)
        yield case.regrouped(size, pp)


def slow_link(case: Case) -> Finding | None:
    """Find tensor groups that leave their node, and wait for the network in every layer."""
    if not _leaves(case):
        return None
    tp, node = case["tp_size"], case["fleet"].node
    near, _ = _near(case, tp, 1)
    return _finding(
        case.best(_narrower(case)),
        f"groups of {tp} span {tp // near} nodes; between nodes, {near} devices share "
        f"{format_number((near * _port(case)).to('GB/s'))}, while links within a node give "
        f"{format_number(node.scale_up.bandwidth.to('GB/s'))} to each device; {_waiting(case)}",
    )


def _leaves(case: Case) -> bool:
    """Return whether a group leaves its node for links of less than half the speed.

    A ring through several nodes uses the ports of all its devices on a node.
    """
    tp = case["tp_size"]
    near, _ = _near(case, tp, 1)
    local = case["fleet"].node.scale_up.bandwidth
    return near < tp and bool(near * _port(case) < local / 2)


def _port(case: Case) -> Quantity:
    """Return a device's share of its node's ports."""
    node, fabric = case["fleet"].node, case["fleet"].fabric
    share: Quantity = fabric.bandwidth * node.nics_per_node / node.accelerators_per_node
    return share


def wide_groups(case: Case) -> Finding | None:
    """Find tensor groups on fast links that are wider than memory requires."""
    tp = case["tp_size"]
    if tp == 1 or _leaves(case):
        return None
    better = case.best(_narrower(case))
    if better is None:
        return None
    return Finding(
        f"in groups of {tp}, {_waiting(case)}; groups of {better['tp_size']} need "
        f"{format_number(better.result.memory)} of {format_number(better.result.memory_capacity)}",
        better,
    )


def _waiting(case: Case) -> str:
    time = spent(case.seconds("tp_communication_latency"))
    return (
        f"their all-reduces take {time}, {case.share('tp_communication_latency'):.0%} of the step"
    )


def straddling(case: Case) -> Finding | None:
    """Find groups that span more nodes than necessary."""
    sizes = {"tensor": (case["tp_size"], 1), "context": (case["cp_size"], case["tp_size"])}
    for kind, (size, stride) in sizes.items():
        near, could = _near(case, size, stride)
        if near == could or size == 1:
            continue
        slots = case["fleet"].node.accelerators_per_node
        field = "tp_communication_latency" if kind == "tensor" else "cp_communication_latency"
        return _finding(
            case.best(_aligned(case)),
            f"a node of {slots} has room for {could} of a {kind} group's {size} ranks, but holds "
            f"{near} of every group, because {size} and {slots} share no larger divisor; waiting "
            f"for them takes {spent(case.seconds(field))}",
        )
    return None


def _aligned(case: Case) -> Iterator[Case | None]:
    """Yield plans with tensor groups that are spread evenly over nodes."""
    node = case["fleet"].node.accelerators_per_node
    tp, pp = case["tp_size"], case["pp_size"]
    for size in (n for n in divisors(node) if n != tp):
        depths = {pp, max(1, pp * tp // size), max(1, -(-pp * tp // size))}
        for depth in sorted(depths):
            yield case.regrouped(size, depth)


def small_batch(case: Case) -> Finding | None:
    """Find replicas that compute too little between exchanges."""
    replicas, share = case.result.dp_size, case.share("dp_communication_latency")
    if replicas == 1 or share < _MUCH:
        return None
    batch, count = case["batch_size"], case["microbatch_count"]

    def larger() -> Iterator[Case | None]:
        for factor in (2, 4, 8, 16, 32, 64):
            more = case.changed(batch_size=batch * factor, microbatch_count=count * factor)
            if more is None or case.result.microbatch_size < 1:
                # If replicas lack sequences, a larger batch is tried before more microbatches.
                more = case.changed(batch_size=batch * factor)
            yield more
            if more is not None and more.share("dp_communication_latency") < _MUCH:
                return

    return _finding(
        case.best(larger()),
        f"{replicas} replicas share {batch} sequences, {batch / replicas:g} each; their "
        f"communication takes {spent(case.seconds('dp_communication_latency'))}, compared with "
        f"{spent(case.seconds('compute_latency'))} of arithmetic: {share:.0%} of the step",
    )


def few_microbatches(case: Case) -> Finding | None:
    """Find pipelines that spend too long filling and draining."""
    share = case.share("pipeline_bubble_latency")
    stages, count = case["pp_size"], case["microbatch_count"]
    if stages == 1 or share < _MUCH:
        return None

    def fuller() -> Iterator[Case | None]:
        size = int(case.result.microbatch_size)
        for parts in divisors(size) if size else ():
            for chunks in (1, 2, 4, 8, 16):
                if parts > 1 or chunks != case["virtual_stages"]:
                    yield case.changed(microbatch_count=count * parts, virtual_stages=chunks)

    def shallower() -> Iterator[Case | None]:
        for depth in divisors(stages)[:-1]:
            yield case.regrouped(case["tp_size"], depth)
        for factor in (2, 4, 8):
            yield case.changed(
                batch_size=case["batch_size"] * factor, microbatch_count=count * factor
            )

    return _finding(
        case.best(fuller()) or case.best(shallower()),
        f"{stages} stages and {count} microbatches: stages idle for "
        f"{case.result.bubble_fraction:.0%} of the pipeline's time, which adds "
        f"{spent(case.seconds('pipeline_bubble_latency'))}, {share:.0%} of the step",
    )


def needless_accumulation(case: Case) -> Finding | None:
    """Find microbatches that are smaller than memory requires."""
    count = case["microbatch_count"]
    if case["pp_size"] > 1 or count == 1:
        return None
    better = case.best(case.changed(microbatch_count=n) for n in divisors(count)[:-1])
    if better is None:
        return None
    return Finding(
        f"gradients of {count} microbatches of {case.result.microbatch_size:g} are accumulated in "
        f"{format_number(case.result.memory)} of {format_number(case.result.memory_capacity)}, and "
        f"{better['microbatch_count']} of {better.result.microbatch_size:g} would take "
        f"{format_number(better.result.memory)}",
        better,
    )


def needless_recomputation(case: Case) -> Finding | None:
    """Find layers that are recomputed although their activations would fit."""
    if case["recompute"] != "full":
        return None
    better = case.best([case.changed(recompute="selective", recompute_layers=None)])
    if better is None:
        return None
    return Finding(
        f"{1 - case.result.mfu / case.result.hfu:.0%} of all operations are recomputation to save "
        f"memory; without it a device would hold {format_number(better.result.memory)} of "
        f"{format_number(better.result.memory_capacity)}",
        better,
    )


PATTERNS: dict[str, Callable[[Case], Finding | None]] = {
    "tensor parallelism over a slow link": slow_link,
    "groups that straddle nodes": straddling,
    "tensor groups wider than needed": wide_groups,
    "small batch on many replicas": small_batch,
    "few microbatches": few_microbatches,
    "accumulation without need": needless_accumulation,
    "recomputation without need": needless_recomputation,
}
"""The name of each anti-pattern, and the function that finds it."""
