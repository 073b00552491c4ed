"""What the advisor finds for the exercises on strategies.

It holds all plans as arrays, so it is imported when an answer comes in, and not before.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from mlsysim.core.types import Fleet
from mlsysim.core.units import Q_
from mlsysim.registry import Models, Systems
from mlsysim.solvers import DistributedResult, DistributedSolver

if TYPE_CHECKING:
    from mlsysim.planner import Advice

__all__ = [
    "ETHERNET",
    "FAST",
    "LOSSES",
    "NDR",
    "NODE",
    "agree",
    "bare",
    "becomes",
    "dearer",
    "difference",
    "enough",
    "faster",
    "free",
    "pair",
    "runner_up",
    "sharded",
    "textbook",
    "waits",
    "worth",
]

NODE, NDR = Systems.Nodes.DGX_H100, Systems.Fabrics.InfiniBand_NDR
ETHERNET = Systems.Clusters.Research_256
FAST = Fleet(name="256 on NDR", node=NODE, count=32, fabric=NDR)
_SHORT: dict[str, Any] = {"model": Models.Llama3_70B, "batch_size": 256, "seq_len": 2048}
_BOOK: dict[str, Any] = {**_SHORT, "efficiency": 0.5}
_JOB: dict[str, Any] = {
    "model": Models.Llama3_70B,
    "batch_size": 256,
    "seq_len": 4096,
    "precision": "bf16",
}
_THREE_WAYS: dict[str, Any] = {
    "schedule": "1f1b",
    "virtual_stages": 1,
    "zero_stage": 0,
    "sequence_parallel": False,
    "recompute": "selective",
}
LOSSES = ("under 1%", "1% to 5%", "over 5%")


def _advise(**given: Any) -> Advice:
    from mlsysim.planner import advise

    return advise(**{"tp_size": [1, 2, 4, 8], "cp_size": 1, **given})


def _loss(plan: DistributedResult, against: DistributedResult) -> float:
    """Return how much longer a token takes."""
    from mlsysim.planner import contrast

    return float(contrast(plan, against).loss)


def pair() -> tuple[DistributedResult, DistributedResult]:
    """Return pure data parallelism, and the mixed plan."""
    book = {**_BOOK, "fleet": ETHERNET}
    return DistributedSolver.solve(**book), DistributedSolver.solve(
        **book, tp_size=4, pp_size=2, microbatch_count=8
    )


def faster() -> str:
    """Return which of the two plans is faster."""
    return "mixed" if _loss(*pair()) > 0 else "pure"


def difference() -> str:
    """Return the part of the step in which the two plans differ most."""
    from mlsysim.planner import contrast

    parts = contrast(*pair()).parts
    return max(parts, key=lambda name: abs(parts[name].to_base_units().magnitude))


@lru_cache(maxsize=2)
def textbook(fleet: Fleet) -> Advice:
    """Return the best plan that uses only the textbook's three ways to split."""
    return _advise(**_BOOK, fleet=fleet, **_THREE_WAYS)


def free() -> Advice:
    """Return the plan that the textbook's model would choose with every lever."""
    return _advise(**_BOOK, fleet=ETHERNET)


def runner_up() -> str:
    """Return how much longer the second-best plan takes on Ethernet."""
    best, second = textbook(ETHERNET).plans["step_latency_total"].magnitude[:2]
    loss = second / best - 1
    return LOSSES[int(loss >= 0.01) + int(loss >= 0.05)]


def agree() -> bool:
    """Return whether the same split wins on both networks."""
    return bool(textbook(ETHERNET).best.parallelism == textbook(FAST).best.parallelism)


@lru_cache(maxsize=4)
def bare(**given: Any) -> DistributedResult:
    """Return the best plan of the job on 64 GPUs, without chunks."""
    fleet = Fleet(name="64 H100", node=NODE, count=8, fabric=NDR)
    free = {"schedule": "1f1b", "virtual_stages": 1, "zero_stage": 0, **given}
    return _advise(**_JOB, fleet=fleet, memory_reserve=Q_(5, "GB"), **free).best


def sharded() -> DistributedResult:
    """Return the best of these plans with a sharded optimizer."""
    return bare(zero_stage=1)


def worth(best: DistributedResult | None = None) -> float:
    """Return how much longer a token takes without a sharded optimizer."""
    return _loss(bare(), best or sharded())


def _habit(**fabric: Any) -> DistributedResult:
    """Return the plan with TP = 16, over Ethernet or a changed Ethernet."""
    fleet = replace(ETHERNET, fabric=replace(ETHERNET.fabric, name="changed", **fabric))
    return DistributedSolver.solve(
        **_SHORT, fleet=fleet, tp_size=16, pp_size=4, microbatch_count=32
    )


def waits(**fabric: Any) -> float:
    """Return the share of the step in which that plan waits for tensor all-reduces."""
    answer = _habit(**fabric)
    share = answer.tp_communication_latency / answer.step_latency_total
    return float(share.to("").magnitude)


def enough() -> float:
    """Return the bandwidth beyond which the tensor all-reduces get no shorter."""

    def seconds(gigabytes: float) -> float:
        changed = _habit(bandwidth=Q_(gigabytes, "GB/s"), latency=NDR.latency)
        return float(changed.tp_communication_latency.to_base_units().magnitude)

    low, high = 1.0, 1e4
    floor = seconds(high)
    while high - low > 0.01:
        middle = (low + high) / 2
        low, high = (low, middle) if seconds(middle) <= floor * (1 + 1e-9) else (middle, high)
    return high * 1e9


@lru_cache(maxsize=1)
def _grown() -> dict[int, tuple[float, DistributedResult]]:
    """Return the lowest rent of a run for each number of servers, and the plan for it."""
    found = {}
    for servers in (8, 16, 32, 64, 128):
        fleet = Fleet(name=f"{8 * servers} H100", node=NODE, count=servers, fabric=NDR)
        advice = _advise(
            **_JOB,
            fleet=fleet,
            tp_size=None,
            memory_reserve=Q_(5, "GB"),
            training_tokens=1e11,
            goal="cost",
            rental_price=2.5,
        )
        found[servers] = (float(advice.plans["cost"].magnitude.min()), advice.best)
    return found


def becomes(field: str) -> str:
    """Return whether a part takes more or less of the step on the largest fleet."""
    small, large = (
        float((getattr(plan, field) / plan.step_latency_total).to("").magnitude)
        for _, plan in (_grown()[8], _grown()[128])
    )
    return "more" if large > small else "less"


def dearer() -> float:
    """Return the extra cost of a run on the largest fleet over the cheapest, as a share."""
    return _grown()[128][0] / min(rent for rent, _ in _grown().values()) - 1
