"""Exercises of the tutorial on strategies, answered by the advisor.

The advisor holds all plans as arrays, so it is imported when an answer comes in, and not before.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from mlsysim.core.types import Fleet
from mlsysim.core.units import Q_
from mlsysim.registry import Models, Systems
from mlsysim.solvers import DistributedResult, DistributedSolver
from mlsysim_course.answers import AmountAsked, ChoiceAsked, CountAsked, Exercise, Mistake, si
from mlsysim_course.exercises.bubbles import MICROBATCHES

if TYPE_CHECKING:
    from mlsysim.planner import Advice

__all__ = ["EXERCISES"]

_NODE, _NDR = Systems.Nodes.DGX_H100, Systems.Fabrics.InfiniBand_NDR
_ETHERNET = Systems.Clusters.Research_256
_FAST = Fleet(name="256 on NDR", node=_NODE, count=32, fabric=_NDR)
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
_LOSSES = ("under 1%", "1% to 5%", "over 5%")


def _advise(**given: Any) -> Advice:
    from mlsysim.planner import advise

    return advise(**{"tp_size": [1, 2, 4, 8], "cp_size": 1, **given})


def _loss(plan: DistributedResult, against: DistributedResult) -> float:
    """Return how much longer a token takes."""
    from mlsysim.planner import contrast

    return float(contrast(plan, against).loss)


def _pure_and_mixed() -> tuple[DistributedResult, DistributedResult]:
    """Return pure data parallelism, and the mixed plan."""
    book = {**_BOOK, "fleet": _ETHERNET}
    return DistributedSolver.solve(**book), DistributedSolver.solve(
        **book, tp_size=4, pp_size=2, microbatch_count=8
    )


def _faster_plan() -> str:
    """Return which of the two plans is faster."""
    return "mixed" if _loss(*_pure_and_mixed()) > 0 else "pure"


def _largest_part() -> str:
    """Return the part of the step in which the two plans differ most."""
    from mlsysim.planner import contrast

    parts = contrast(*_pure_and_mixed()).parts
    return max(parts, key=lambda name: abs(si(parts[name])))


@lru_cache(maxsize=2)
def _textbook_advice(fleet: Fleet) -> Advice:
    """Return the best plan that uses only the textbook's three ways to split."""
    return _advise(**_BOOK, fleet=fleet, **_THREE_WAYS)


def _advice_with_every_lever() -> Advice:
    """Return the plan that the textbook's model would choose with every lever."""
    return _advise(**_BOOK, fleet=_ETHERNET)


def _runner_up_loss() -> str:
    """Return how much longer the second-best plan takes on Ethernet."""
    best, second = _textbook_advice(_ETHERNET).plans["step_latency_total"].magnitude[:2]
    loss = second / best - 1
    return _LOSSES[int(loss >= 0.01) + int(loss >= 0.05)]


def _same_split_wins() -> bool:
    """Return whether the same split wins on both networks."""
    return bool(
        _textbook_advice(_ETHERNET).best.parallelism == _textbook_advice(_FAST).best.parallelism
    )


@lru_cache(maxsize=4)
def _best_plan(**given: Any) -> DistributedResult:
    """Return the best plan of the job on 64 GPUs, without chunks."""
    fleet = Fleet(name="64 H100", node=_NODE, count=8, fabric=_NDR)
    levers = {"schedule": "1f1b", "virtual_stages": 1, "zero_stage": 0, **given}
    return _advise(**_JOB, fleet=fleet, memory_reserve=Q_(5, "GB"), **levers).best


def _sharded_plan() -> DistributedResult:
    """Return the best of these plans with a sharded optimizer."""
    return _best_plan(zero_stage=1)


def _loss_without_sharding() -> float:
    """Return how much longer a token takes without a sharded optimizer."""
    return _loss(_best_plan(), _sharded_plan())


def _wide_tensor_plan(**fabric: Any) -> DistributedResult:
    """Return the plan with TP = 16, over Ethernet or a changed Ethernet."""
    fleet = replace(_ETHERNET, fabric=replace(_ETHERNET.fabric, name="changed", **fabric))
    return DistributedSolver.solve(
        **_SHORT, fleet=fleet, tp_size=16, pp_size=4, microbatch_count=32
    )


def _waiting_share(**fabric: Any) -> float:
    """Return the share of the step in which that plan waits for tensor all-reduces."""
    answer = _wide_tensor_plan(**fabric)
    share = answer.tp_communication_latency / answer.step_latency_total
    return float(share.to("").magnitude)


def _enough_bandwidth() -> float:
    """Return the bandwidth beyond which the tensor all-reduces get no shorter."""

    def seconds(gigabytes: float) -> float:
        changed = _wide_tensor_plan(bandwidth=Q_(gigabytes, "GB/s"), latency=_NDR.latency)
        return si(changed.tp_communication_latency)

    low, high = 1.0, 1e4
    floor = seconds(high)
    while high - low > 0.01:
        middle = (low + high) / 2
        low, high = (low, middle) if seconds(middle) <= floor * (1 + 1e-9) else (middle, high)
    return high * 1e9


@lru_cache(maxsize=1)
def _plans_by_servers() -> dict[int, tuple[float, DistributedResult]]:
    """Return the lowest rent of a run for each number of servers, and the plan for it."""
    plans = {}
    for servers in (8, 16, 32, 64, 128):
        fleet = Fleet(name=f"{8 * servers} H100", node=_NODE, count=servers, fabric=_NDR)
        advice = _advise(
            **_JOB,
            fleet=fleet,
            tp_size=None,
            memory_reserve=Q_(5, "GB"),
            training_tokens=1e11,
            goal="cost",
            rental_price=2.5,
        )
        plans[servers] = (float(advice.plans["cost"].magnitude.min()), advice.best)
    return plans


def _trend(field: str) -> str:
    """Return whether a part takes more or less of the step on the largest fleet."""
    small, large = (
        float((getattr(plan, field) / plan.step_latency_total).to("").magnitude)
        for _, plan in (_plans_by_servers()[8], _plans_by_servers()[128])
    )
    return "more" if large > small else "less"


def _extra_cost() -> float:
    """Return the extra cost of a run on the largest fleet over the cheapest, as a share."""
    return _plans_by_servers()[128][0] / min(rent for rent, _ in _plans_by_servers().values()) - 1


_PARTS = ("exchange between replicas", "tensor all-reduces", "bubble", "stage to stage")

_FIRST = Exercise(
    "strategy-1",
    {
        "faster": ChoiceAsked(
            asks='which plan is faster, the `"pure"` or the `"mixed"` one',
            options=("pure", "mixed"),
            truth=_faster_plan,
            hint="How much does a node send at the end of a step under each plan?",
        ),
        "difference": ChoiceAsked(
            asks="the part of the step in which they differ most, as `contrast` calls it: "
            + ", ".join(f'`"{part}"`' for part in _PARTS),
            options=_PARTS,
            truth=_largest_part,
            hint="`contrast` lists the largest part first.",
        ),
    },
)

_SECOND = Exercise(
    "strategy-2",
    {
        "efficiency": AmountAsked(
            asks="the highest scaling efficiency on Ethernet",
            tolerance=0.005,
            truth=lambda: _textbook_advice(_ETHERNET).best.scaling_efficiency,
            hint="Fix the levers that the exercise excludes, and search all others.",
            mistakes=(
                Mistake(
                    lambda: _textbook_advice(_FAST).best.scaling_efficiency,
                    "That is the value for the winner on InfiniBand.",
                ),
                Mistake(
                    lambda: _pure_and_mixed()[1].scaling_efficiency,
                    "That is the mixed plan of the previous exercise, which does not fit.",
                ),
                Mistake(
                    lambda: _advice_with_every_lever().best.scaling_efficiency,
                    "That plan uses levers that the textbook does not have.",
                ),
            ),
        ),
        "agree": ChoiceAsked(
            asks="whether the same plan wins on both networks, `True` or `False`",
            options=(True, False),
            truth=_same_split_wins,
            hint="Compare the sizes of the two winners.",
        ),
        "loss": ChoiceAsked(
            asks="how much more time the second-best plan takes on Ethernet: "
            + ", ".join(f'`"{loss}"`' for loss in _LOSSES),
            options=_LOSSES,
            truth=_runner_up_loss,
            hint="The plans of the advice are sorted. Compare the first two.",
        ),
    },
)

_THIRD = Exercise("strategy-3", {"microbatches": MICROBATCHES})

_FOURTH = Exercise(
    "strategy-4",
    {
        "tp_size": CountAsked(
            asks="the tensor-parallel size where nothing is sharded",
            truth=lambda: _best_plan().parallelism.tp,
            hint="Let `advise` try tensor groups from one GPU up to a whole server.",
        ),
        "pp_size": CountAsked(
            asks="the stages where nothing is sharded",
            truth=lambda: _best_plan().parallelism.pp,
            hint="How many GPUs does it take to hold the model's state?",
            mistakes=(
                Mistake(
                    lambda: _sharded_plan().parallelism.pp,
                    "That is the winner with a sharded optimizer.",
                ),
            ),
        ),
        "worth": AmountAsked(
            asks="how much longer a token takes without a sharded optimizer, as a share",
            tolerance=0.03,
            truth=_loss_without_sharding,
            hint="Let the advisor choose again after the optimizer is sharded.",
            mistakes=(
                Mistake(
                    lambda: 1 - 1 / (1 + _loss_without_sharding()),
                    "That is how much less time a token takes with a sharded optimizer.",
                ),
            ),
        ),
    },
)

_FIFTH = Exercise(
    "strategy-5",
    {
        "waits": AmountAsked(
            asks="the share of the step in which the GPUs wait for tensor all-reduces",
            truth=_waiting_share,
            hint="Divide the time of the tensor all-reduces by that of the step.",
            mistakes=(
                Mistake(
                    lambda: _waiting_share() / (1 - _waiting_share()),
                    "That is a ratio to the rest of the step. Divide by the whole step.",
                ),
                Mistake(lambda: 0.8, "That is the value that the tutorial tries. Solve the plan."),
            ),
        ),
        "near": AmountAsked(
            asks="the same share at the latency of InfiniBand, with the bandwidth of Ethernet",
            truth=lambda: _waiting_share(latency=_NDR.latency),
            hint="Change one of the two, and nothing else.",
            mistakes=(
                Mistake(
                    lambda: _waiting_share(latency=_NDR.latency, bandwidth=_NDR.bandwidth),
                    "That uses both the bandwidth and the latency of InfiniBand.",
                ),
            ),
        ),
        "enough": AmountAsked(
            asks="the bandwidth of a port beyond which a faster network does not help",
            unit="GB/s",
            tolerance=0.2,
            truth=_enough_bandwidth,
            hint="Which other link does the ring go over? And how many ports carry it out of a "
            "server?",
            mistakes=(
                Mistake(
                    lambda: si(_NODE.scale_up.bandwidth),
                    "One port would have to carry that alone. A server has several.",
                ),
            ),
        ),
    },
)

_SELF_CHECK = Exercise(
    "strategy-self-check",
    {
        name: ChoiceAsked(
            asks=f'whether {words} takes `"more"` or `"less"` of the step',
            options=("more", "less"),
            truth=lambda field=field: _trend(field),  # type: ignore[misc]
            hint="How much work is left for each GPU when the batch is spread wider?",
        )
        for name, words, field in (
            ("arithmetic", "the arithmetic", "compute_latency"),
            ("exchange", "the exchange between replicas", "dp_communication_latency"),
            ("bubble", "the bubble", "pipeline_bubble_latency"),
        )
    }
    | {
        "price": AmountAsked(
            asks="the extra cost of the run, as a share of its rent on the smallest fleet",
            tolerance=0.03,
            truth=_extra_cost,
            hint="Compare the rents of the first and the last row of the table.",
            mistakes=(
                Mistake(
                    lambda: 1 + _extra_cost(),
                    "That is the ratio of the two rents. Subtract 1 for the extra cost.",
                ),
                Mistake(
                    lambda: 1 - 1 / (1 + _extra_cost()),
                    "That is a share of the rent on the largest fleet.",
                ),
            ),
        )
    },
)

EXERCISES = (_FIRST, _SECOND, _THIRD, _FOURTH, _FIFTH, _SELF_CHECK)
"""In the order of the tutorial."""
