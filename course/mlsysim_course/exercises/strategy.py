"""Exercises of the tutorial on strategies, answered by the advisor."""

from __future__ import annotations

from mlsysim_course.answers import AmountAsked, ChoiceAsked, CountAsked, Exercise, Mistake
from mlsysim_course.exercises import strategy_truths as found
from mlsysim_course.exercises.bubbles import MICROBATCHES

__all__ = ["EXERCISES"]

_PARTS = ("exchange between replicas", "tensor all-reduces", "bubble", "stage to stage")

_FIRST = Exercise(
    "strategy-1",
    {
        "faster": ChoiceAsked(
            asks='which plan is faster, the `"pure"` or the `"mixed"` one',
            options=("pure", "mixed"),
            truth=found.faster,
            hint="How much does a node send at the end of a step under each plan?",
        ),
        "difference": ChoiceAsked(
            asks="the part of the step in which they differ most, as `contrast` calls it: "
            + ", ".join(f'`"{part}"`' for part in _PARTS),
            options=_PARTS,
            truth=found.difference,
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
            truth=lambda: found.textbook(found.ETHERNET).best.scaling_efficiency,
            hint="Fix the levers that the exercise excludes, and search all others.",
            mistakes=(
                Mistake(
                    lambda: found.textbook(found.FAST).best.scaling_efficiency,
                    "That is the value for the winner on InfiniBand.",
                ),
                Mistake(
                    lambda: found.pair()[1].scaling_efficiency,
                    "That is the mixed plan of the previous exercise, which does not fit.",
                ),
                Mistake(
                    lambda: found.free().best.scaling_efficiency,
                    "That plan uses levers that the textbook does not have.",
                ),
            ),
        ),
        "agree": ChoiceAsked(
            asks="whether the same plan wins on both networks, `True` or `False`",
            options=(True, False),
            truth=found.agree,
            hint="Compare the sizes of the two winners.",
        ),
        "loss": ChoiceAsked(
            asks="how much more time the second-best plan takes on Ethernet: "
            + ", ".join(f'`"{loss}"`' for loss in found.LOSSES),
            options=found.LOSSES,
            truth=found.runner_up,
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
            truth=lambda: found.bare().parallelism.tp,
            hint="Let `advise` try tensor groups from one GPU up to a whole server.",
        ),
        "pp_size": CountAsked(
            asks="the stages where nothing is sharded",
            truth=lambda: found.bare().parallelism.pp,
            hint="How many GPUs does it take to hold the model's state?",
            mistakes=(
                Mistake(
                    lambda: found.sharded().parallelism.pp,
                    "That is the winner with a sharded optimizer.",
                ),
            ),
        ),
        "worth": AmountAsked(
            asks="how much longer a token takes without a sharded optimizer, as a share",
            tolerance=0.03,
            truth=found.worth,
            hint="Let the advisor choose again after the optimizer is sharded.",
            mistakes=(
                Mistake(
                    lambda: 1 - 1 / (1 + found.worth()),
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
            truth=found.waits,
            hint="Divide the time of the tensor all-reduces by that of the step.",
            mistakes=(
                Mistake(
                    lambda: found.waits() / (1 - found.waits()),
                    "That is a ratio to the rest of the step. Divide by the whole step.",
                ),
                Mistake(lambda: 0.8, "That is the value that the tutorial tries. Solve the plan."),
            ),
        ),
        "near": AmountAsked(
            asks="the same share at the latency of InfiniBand, with the bandwidth of Ethernet",
            truth=lambda: found.waits(latency=found.NDR.latency),
            hint="Change one of the two, and nothing else.",
            mistakes=(
                Mistake(
                    lambda: found.waits(latency=found.NDR.latency, bandwidth=found.NDR.bandwidth),
                    "That uses both the bandwidth and the latency of InfiniBand.",
                ),
            ),
        ),
        "enough": AmountAsked(
            asks="the bandwidth of a port beyond which a faster network does not help",
            unit="GB/s",
            tolerance=0.2,
            truth=found.enough,
            hint="Which other link does the ring go over? And how many ports carry it out of a "
            "server?",
            mistakes=(
                Mistake(
                    lambda: found.NODE.scale_up.bandwidth.to_base_units().magnitude,
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
            truth=lambda field=field: found.becomes(field),  # type: ignore[misc]
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
            truth=found.dearer,
            hint="Compare the rents of the first and the last row of the table.",
            mistakes=(
                Mistake(
                    lambda: 1 + found.dearer(),
                    "That is the ratio of the two rents. Subtract 1 for the extra cost.",
                ),
                Mistake(
                    lambda: 1 - 1 / (1 + found.dearer()),
                    "That is a share of the rent on the largest fleet.",
                ),
            ),
        )
    },
)

EXERCISES = (_FIRST, _SECOND, _THIRD, _FOURTH, _FIFTH, _SELF_CHECK)
"""In the order of the tutorial."""
