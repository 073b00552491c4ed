"""Exercises of the tutorial on distributed training, about the textbook's model."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count, product
from typing import Any

from mlsysim import (
    DistributedResult,
    DistributedSolver,
    Fleet,
    Models,
    NetworkFabric,
    ParallelismError,
    Systems,
)
from mlsysim.core.formulas import pipeline_bubble_fraction
from mlsysim_course.answers import AmountAsked, ChoiceAsked, CountAsked, Exercise, Parts, exercise

_POWERS = tuple(2**k for k in range(11))
_ETHERNET, _NDR = Systems.Fabrics.Ethernet_100G, Systems.Fabrics.InfiniBand_NDR


def _solve(fabric: NetworkFabric = _ETHERNET, **given: Any) -> DistributedResult:
    fleet = Fleet(name=fabric.name, node=Systems.Nodes.DGX_H100, count=32, fabric=fabric)
    job = {"batch_size": 256, "seq_len": 2048, "precision": "fp16", "efficiency": 0.5}
    return DistributedSolver.solve(model=Models.Llama3_70B, fleet=fleet, **{**job, **given})


def _mixed(**given: Any) -> DistributedResult:
    return _solve(**{"tp_size": 4, "pp_size": 2, "microbatch_count": 8, **given})


def _best(batch_size: int, fabric: NetworkFabric) -> DistributedResult:
    """Return the feasible plan that scales best."""
    plans = []
    for tensor, stages, parts in product(_POWERS[:4], _POWERS[:9], _POWERS):
        try:
            plan = _solve(
                fabric,
                batch_size=batch_size,
                tp_size=tensor,
                pp_size=stages,
                microbatch_count=parts,
            )
        except ParallelismError:
            continue
        if plan.feasible:
            plans.append(plan)
    return max(plans, key=lambda plan: plan.scaling_efficiency)


@exercise
def _distributed_1() -> Parts:
    yield ChoiceAsked(
        "efficiency",
        asks='whether its scaling efficiency is `"higher"` or `"lower"`',
        options=("higher", "lower"),
        truth="higher" if _mixed().scaling_efficiency > _solve().scaling_efficiency else "lower",
        hint="Compare the time that stages save in the gradient all-reduce with the bubble "
        "and the tensor all-reduces.",
    )
    yield ChoiceAsked(
        "feasible",
        asks="whether it fits in memory, `True` or `False`",
        options=(True, False),
        truth=_mixed().feasible,
        hint="Add up weights, gradients and optimizer state of a device.",
    )


@exercise
def _distributed_2() -> Parts:
    usual, large = (_best(batch, _ETHERNET).parallelism for batch in (256, 1024))
    depth = "deeper" if large.pp > usual.pp else "shallower" if large.pp < usual.pp else "same"
    yield ChoiceAsked(
        "depth",
        asks='whether the winners get `"deeper"`, `"shallower"`, or keep the `"same"` depth',
        options=("deeper", "shallower", "same"),
        truth=depth,
        hint="The work grows, but the gradients stay the same. Why were stages useful?",
    )
    yield ChoiceAsked(
        "agree",
        asks="whether the same plan wins on both fabrics, `True` or `False`",
        options=(True, False),
        truth=large == _best(1024, _NDR).parallelism,
        hint="What share of a step is the gradient all-reduce when there is four times the work?",
    )
    yield CountAsked(
        "tp_size",
        asks="the tensor-parallel size of the winner on Ethernet",
        truth=large.tp,
        hint="Compare only feasible plans.",
    )
    yield CountAsked(
        "pp_size",
        asks="the stages of the winner on Ethernet",
        truth=large.pp,
        hint="Search both sizes and the microbatches, and compare only feasible plans.",
        mistakes={usual.pp: "That is the best plan for 256 sequences."},
    )


def _fewest(bubble: Callable[[float], float] = lambda idle: idle, *, stages: int = 8) -> int:
    """Return the first number of microbatches whose bubble is below a tenth."""
    # A tenth is not below a tenth, whatever the rounding.
    return next(
        parts
        for parts in count(1)
        if bubble(pipeline_bubble_fraction(stages, parts, 1)) < 0.1 - 1e-12
    )


def _microbatches_for_a_small_bubble() -> Parts:
    for_time_added = _fewest(lambda idle: idle / (1 - idle))
    not_a_part = (
        "You took the time added, a multiple of the busy time. The idle share is a part of the "
        "whole."
    )
    yield CountAsked(
        "microbatches",
        asks="the first number of microbatches whose idle share is below a tenth",
        truth=_fewest(),
        hint="Solve for the number of microbatches, and round up.",
        mistakes={
            _fewest() - 1: "At that number the share is exactly a tenth, which is not below it.",
            for_time_added: not_a_part,
            for_time_added - 1: not_a_part,
            _fewest(stages=9): "A bubble has one slot fewer than the pipeline has stages.",
        },
    )


# Two tutorials ask it.
distributed_3 = Exercise("distributed-3", _microbatches_for_a_small_bubble)
strategy_3 = Exercise("strategy-3", _microbatches_for_a_small_bubble)


def _slowdown(fabric: NetworkFabric) -> float:
    """Return how much longer tensor all-reduces take with 16 ranks than with 8."""
    eight, sixteen = (
        _solve(fabric, tp_size=size, pp_size=4, microbatch_count=32).tp_communication_latency
        for size in (8, 16)
    )
    return float(sixteen / eight)


def _mistakes(fabric: NetworkFabric) -> dict[float, str]:
    slower_link = float(Systems.Nodes.DGX_H100.scale_up.bandwidth / fabric.bandwidth)
    return {
        slower_link: "That is the ratio of the two bandwidths. How much of the data has to "
        "cross it?",
        _slowdown(fabric) / 2: "There are half as many replicas, so each microbatch has more "
        "sequences than before.",
        2.0: "The activations grow by that factor, but now part of them crosses the network.",
    }


_CROSSING = (
    "Twice the ranks mean twice the activations in each microbatch. How much of a message crosses "
    "the network, and how much slower is that?"
)


@exercise
def _distributed_self_check() -> Parts:
    yield AmountAsked(
        "ethernet",
        asks="the factor on Ethernet",
        tolerance=0.1,
        truth=_slowdown(_ETHERNET),
        hint=_CROSSING,
        mistakes=_mistakes(_ETHERNET),
    )
    yield AmountAsked(
        "ndr",
        asks="the factor on NDR",
        tolerance=0.1,
        truth=_slowdown(_NDR),
        hint=_CROSSING,
        mistakes=_mistakes(_NDR),
    )
