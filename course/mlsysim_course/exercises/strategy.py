"""Exercises of the tutorial on strategies, answered by the advisor.

The advisor holds all plans as arrays, so it is imported when an answer comes in, and not before.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from mlsysim import Q_, DistributedResult, DistributedSolver, Fleet, Models, Quantity, Systems
from mlsysim_course.answers import AmountAsked, ChoiceAsked, CountAsked, Parts, exercise

if TYPE_CHECKING:
    from mlsysim.planner import Advice

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


def _search(**given: Any) -> Advice:
    from mlsysim.planner import advise

    return advise(**{"tp_size": [1, 2, 4, 8], "cp_size": 1, **given})


def _pure_and_mixed() -> tuple[DistributedResult, DistributedResult]:
    """Return pure data parallelism, and the mixed plan."""
    book = {**_BOOK, "fleet": _ETHERNET}
    return DistributedSolver.solve(**book), DistributedSolver.solve(
        **book, tp_size=4, pp_size=2, microbatch_count=8
    )


@exercise
def _strategy_1() -> Parts:
    from mlsysim.planner import contrast

    pure, mixed_plan = _pure_and_mixed()
    comparison = contrast(pure, mixed_plan)
    parts = ("exchange between replicas", "tensor all-reduces", "bubble", "stage to stage")
    yield ChoiceAsked(
        "faster",
        asks='which plan is faster, the `"pure"` or the `"mixed"` one',
        options=("pure", "mixed"),
        truth="mixed" if comparison.loss > 0 else "pure",
        hint="How much does a node send at the end of a step under each plan?",
    )
    yield ChoiceAsked(
        "difference",
        asks="the part of the step in which they differ most, as `contrast` calls it: "
        + ", ".join(f'`"{part}"`' for part in parts),
        options=parts,
        truth=max(comparison.parts, key=lambda part: abs(comparison.parts[part])),
        hint="`contrast` lists the largest part first.",
    )


@exercise
def _strategy_2() -> Parts:
    on_ethernet, on_infiniband = (
        _search(**_BOOK, fleet=fleet, **_THREE_WAYS) for fleet in (_ETHERNET, _FAST)
    )
    every_lever = _search(**_BOOK, fleet=_ETHERNET)
    best_time, second_time = on_ethernet.plans["step_latency_total"].magnitude[:2]
    more_time = second_time / best_time - 1
    losses = ("under 1%", "1% to 5%", "over 5%")
    yield AmountAsked(
        "efficiency",
        asks="the highest scaling efficiency on Ethernet",
        tolerance=0.005,
        truth=on_ethernet.best.scaling_efficiency,
        hint="Fix the levers that the exercise excludes, and search all others.",
        mistakes={
            on_infiniband.best.scaling_efficiency: "That is the value for the winner on "
            "InfiniBand.",
            _pure_and_mixed()[1].scaling_efficiency: "That is the mixed plan of the previous "
            "exercise, which does not fit.",
            every_lever.best.scaling_efficiency: "That plan uses levers that the textbook "
            "does not have.",
        },
    )
    yield ChoiceAsked(
        "agree",
        asks="whether the same plan wins on both networks, `True` or `False`",
        options=(True, False),
        truth=on_ethernet.best.parallelism == on_infiniband.best.parallelism,
        hint="Compare the sizes of the two winners.",
    )
    yield ChoiceAsked(
        "loss",
        asks="how much more time the second-best plan takes on Ethernet: "
        + ", ".join(f'`"{loss}"`' for loss in losses),
        options=losses,
        truth=losses[int(more_time >= 0.01) + int(more_time >= 0.05)],
        hint="The plans of the advice are sorted. Compare the first two.",
    )


@exercise
def _strategy_4() -> Parts:
    from mlsysim.planner import contrast

    fleet = Fleet(name="64 H100", node=_NODE, count=8, fabric=_NDR)
    levers = {"schedule": "1f1b", "virtual_stages": 1, "memory_reserve": Q_(5, "GB")}
    bare, sharded = (
        _search(**_JOB, fleet=fleet, zero_stage=stage, **levers).best for stage in (0, 1)
    )
    worth = float(contrast(bare, sharded).loss)
    yield CountAsked(
        "tp_size",
        asks="the tensor-parallel size where nothing is sharded",
        truth=bare.parallelism.tp,
        hint="Let `advise` try tensor groups from one GPU up to a whole server.",
    )
    yield CountAsked(
        "pp_size",
        asks="the stages where nothing is sharded",
        truth=bare.parallelism.pp,
        hint="How many GPUs does it take to hold the model's state?",
        mistakes={sharded.parallelism.pp: "That is the winner with a sharded optimizer."},
    )
    yield AmountAsked(
        "worth",
        asks="how much longer a token takes without a sharded optimizer, as a share",
        tolerance=0.03,
        truth=worth,
        hint="Let the advisor choose again after the optimizer is sharded.",
        mistakes={
            1 - 1 / (1 + worth): "That is how much less time a token takes with a sharded "
            "optimizer.",
        },
    )


@exercise
def _strategy_5() -> Parts:
    def solve(**changes: Any) -> DistributedResult:
        fabric = replace(_ETHERNET.fabric, name="changed", **changes)
        fleet = replace(_ETHERNET, fabric=fabric)
        return DistributedSolver.solve(
            **_SHORT, fleet=fleet, tp_size=16, pp_size=4, microbatch_count=32
        )

    def share(**changes: Any) -> float:
        step = solve(**changes)
        return float(step.tp_communication_latency / step.step_latency_total)

    def time(gigabytes: float) -> Quantity:
        changed = solve(bandwidth=Q_(gigabytes, "GB/s"), latency=_NDR.latency)
        return changed.tp_communication_latency

    low, high = 1.0, 1e4
    floor = time(high)
    while high - low > 0.01:
        middle = (low + high) / 2
        low, high = (low, middle) if time(middle) <= floor * (1 + 1e-9) else (middle, high)
    waits = share()
    share_on_infiniband = share(latency=_NDR.latency, bandwidth=_NDR.bandwidth)
    yield AmountAsked(
        "waits",
        asks="the share of the step in which the GPUs wait for tensor all-reduces",
        truth=waits,
        hint="Divide the time of the tensor all-reduces by that of the step.",
        mistakes={
            waits / (1 - waits): "That is a ratio to the rest of the step. Divide by the "
            "whole step.",
            0.8: "That is the value that the tutorial tries. Solve the plan.",
        },
    )
    yield AmountAsked(
        "near",
        asks="the same share at the latency of InfiniBand, with the bandwidth of Ethernet",
        truth=share(latency=_NDR.latency),
        hint="Change one of the two, and nothing else.",
        mistakes={
            share_on_infiniband: "That uses both the bandwidth and the latency of InfiniBand.",
        },
    )
    yield AmountAsked(
        "enough",
        asks="the bandwidth of a port beyond which a faster network does not help",
        unit="GB/s",
        tolerance=0.2,
        truth=Q_(high, "GB/s"),
        hint="Which other link does the ring go over? And how many ports carry it out of a server?",
        mistakes={
            _NODE.scale_up.bandwidth: "One port would have to carry that alone. A server "
            "has several.",
        },
    )


def _plan_by_servers(servers: int) -> tuple[float, DistributedResult]:
    """Return the lowest rent of a run on a number of servers, and the best plan for it."""
    advice = _search(
        **_JOB,
        fleet=Fleet(name=f"{8 * servers} H100", node=_NODE, count=servers, fabric=_NDR),
        tp_size=None,
        memory_reserve=Q_(5, "GB"),
        training_tokens=1e11,
        goal="cost",
        rental_price=2.5,
    )
    return float(advice.plans["cost"].magnitude.min()), advice.best


@exercise
def _strategy_self_check() -> Parts:
    plans = {servers: _plan_by_servers(servers) for servers in (8, 16, 32, 64, 128)}
    (_, small), (largest_rent, large) = plans[8], plans[128]

    def share(plan: DistributedResult, field: str) -> float:
        return float(plan[field] / plan.step_latency_total)

    def trend(field: str) -> str:
        return "more" if share(large, field) > share(small, field) else "less"

    price = largest_rent / min(rent for rent, _ in plans.values()) - 1
    more_or_less = 'takes `"more"` or `"less"` of the step'
    hint = "How much work is left for each GPU when the batch is spread wider?"
    yield ChoiceAsked(
        "arithmetic",
        asks=f"whether the arithmetic {more_or_less}",
        options=("more", "less"),
        truth=trend("compute_latency"),
        hint=hint,
    )
    yield ChoiceAsked(
        "exchange",
        asks=f"whether the exchange between replicas {more_or_less}",
        options=("more", "less"),
        truth=trend("dp_communication_latency"),
        hint=hint,
    )
    yield ChoiceAsked(
        "bubble",
        asks=f"whether the bubble {more_or_less}",
        options=("more", "less"),
        truth=trend("pipeline_bubble_latency"),
        hint=hint,
    )
    yield AmountAsked(
        "price",
        asks="the extra cost of the run, as a share of its rent on the smallest fleet",
        tolerance=0.03,
        truth=price,
        hint="Compare the rents of the first and the last row of the table.",
        mistakes={
            1 + price: "That is the ratio of the two rents. Subtract 1 for the extra cost.",
            1 - 1 / (1 + price): "That is a share of the rent on the largest fleet.",
        },
    )
