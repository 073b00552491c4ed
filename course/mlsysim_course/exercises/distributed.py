"""Exercises of the tutorial on distributed training, about the textbook's model."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count, product
from typing import Any

from mlsysim.core.errors import ParallelismError
from mlsysim.core.formulas import pipeline_bubble_fraction
from mlsysim.core.types import Fleet, NetworkFabric
from mlsysim.registry import Models, Systems
from mlsysim.solvers import DistributedResult, DistributedSolver
from mlsysim_course.answers import AmountAsked, ChoiceAsked, CountAsked, Parts, exercise

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
    deeper, shallower = large.pp > usual.pp, large.pp < usual.pp
    yield ChoiceAsked(
        "depth",
        asks='whether the winners get `"deeper"`, `"shallower"`, or keep the `"same"` depth',
        options=("deeper", "shallower", "same"),
        truth="deeper" if deeper else "shallower" if shallower else "same",
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


def microbatches_for_a_small_bubble() -> CountAsked:
    """Return the microbatches for an idle share below a tenth, an exercise of two tutorials."""

    def fewest(bubble: Callable[[float], float] = lambda idle: idle, *, stages: int = 8) -> int:
        # A tenth is not below a tenth, whatever the rounding.
        return next(
            parts
            for parts in count(1)
            if bubble(pipeline_bubble_fraction(stages, parts, 1)) < 0.1 - 1e-12
        )

    for_time_added = fewest(lambda idle: idle / (1 - idle))
    not_a_part = (
        "You took the time added, a multiple of the busy time. The idle share is a part of the "
        "whole."
    )
    return CountAsked(
        "microbatches",
        asks="the first number of microbatches whose idle share is below a tenth",
        truth=fewest(),
        hint="Solve for the number of microbatches, and round up.",
        mistakes={
            fewest() - 1: "At that number the share is exactly a tenth, which is not below it.",
            for_time_added: not_a_part,
            for_time_added - 1: not_a_part,
            fewest(stages=9): "A bubble has one slot fewer than the pipeline has stages.",
        },
    )


@exercise
def _distributed_3() -> Parts:
    yield microbatches_for_a_small_bubble()


@exercise
def _distributed_self_check() -> Parts:
    server = Systems.Nodes.DGX_H100.scale_up
    for name, words, fabric in (("ethernet", "Ethernet", _ETHERNET), ("ndr", "NDR", _NDR)):
        eight, sixteen = (
            _solve(fabric, tp_size=size, pp_size=4, microbatch_count=32).tp_communication_latency
            for size in (8, 16)
        )
        growth = float((sixteen / eight).to("").magnitude)
        slower_link = float((server.bandwidth / fabric.bandwidth).to("").magnitude)
        yield AmountAsked(
            name,
            asks=f"the factor on {words}",
            tolerance=0.1,
            truth=growth,
            hint="Twice the ranks mean twice the activations in each microbatch. How much of a "
            "message crosses the network, and how much slower is that?",
            mistakes={
                slower_link: "That is the ratio of the two bandwidths. How much of the data has to "
                "cross it?",
                growth / 2: "There are half as many replicas, so each microbatch has more "
                "sequences than before.",
                2.0: "The activations grow by that factor, but now part of them crosses the "
                "network.",
            },
        )
