"""The anti-patterns, one function each: the evidence for it, and the changes to try."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from mlsysim.core import formulas as f
from mlsysim.core.units import Quantity, format_number
from mlsysim.planner.cases import Case
from mlsysim.planner.contrasts import spent
from mlsysim.planner.space import divisors

__all__ = ["PATTERNS", "Finding"]

# Smallest share of a step at which a pattern is examined. Solving the changes decides.
_MUCH = 0.1


@dataclass(frozen=True)
class Finding:
    """Evidence, and a better plan."""

    evidence: str
    better: Case


def _found(better: Case | None, evidence: str) -> Finding | None:
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
    return _found(
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
        return _found(
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

    return _found(
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

    return _found(
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
