"""Exercises of the tutorial on tensor parallelism, checked by simulated ranks."""

from __future__ import annotations

from mlsysim.registry import Models
from mlsysim_course.answers import AmountAsked, ChoiceAsked, CountAsked, Exercise, Mistake
from mlsysim_course.exercises import tensor_parallel_truths as found

__all__ = ["EXERCISES"]

_FIRST = Exercise(
    "tensor-parallel-1",
    {
        "excess": CountAsked(
            asks="how many times too many the bias is added to the result",
            truth=found.too_often,
            hint="Follow one element of the bias. Which ranks add it, and what does the sum do?",
            mistakes=(
                Mistake(
                    lambda: found.too_often() + 1,
                    "That is how often the bias is added. One of those times is correct.",
                ),
                Mistake(
                    lambda: 0,
                    "Each rank adds the bias to its own term, and then the terms are summed.",
                ),
            ),
        )
    },
)

_SECOND = Exercise(
    "tensor-parallel-2",
    {
        "first": ChoiceAsked(
            asks='which comes first, `"all_reduce"` or `"all_gather"`',
            options=("all_reduce", "all_gather"),
            truth=lambda: found.rows_first().calls[0].collective,
            hint="What does a rank have after a row split: some of the columns, or a term of each?",
        ),
        "factor": AmountAsked(
            asks="the ratio of the bytes sent to those of columns first, rows second",
            truth=found.times,
            hint="Which collectives does it need, and how wide is the data of each?",
            mistakes=(
                Mistake(
                    lambda: found.widening() + 1,
                    "A gather is one of the two halves of an all-reduce.",
                ),
                Mistake(
                    found.widening,
                    "At the end, the columns of the result are still spread over the ranks.",
                ),
                Mistake(
                    lambda: found.times() - found.widening() + 1,
                    "The sum is taken before GeLU. How wide are the activations there?",
                ),
                Mistake(
                    lambda: 1 / found.times(),
                    "Invert the ratio. This order sends more bytes, not fewer.",
                ),
            ),
        ),
    },
)

_THIRD = Exercise(
    "tensor-parallel-3",
    {
        "ranks": CountAsked(
            asks="the largest number of ranks at which no head is split",
            truth=found.most_ranks,
            hint="Every rank needs whole heads of each kind.",
            mistakes=(
                Mistake(
                    lambda: Models.Llama3_8B.heads,
                    "That is the number of query heads. What else does attention have heads of?",
                ),
                Mistake(
                    lambda: Models.Llama3_8B.heads // 2,
                    "That divides the query heads. What else does attention have heads of?",
                ),
                Mistake(
                    lambda: Models.Llama3_8B.heads // Models.Llama3_8B.kv_heads,
                    "That is how many query heads share a key-value head. Do all of them have to "
                    "be on one rank?",
                ),
            ),
        )
    },
)

_FOURTH = Exercise(
    "tensor-parallel-4",
    {
        "share": AmountAsked(
            asks="the extra bytes that both passes send, as a share of the bytes sent before",
            truth=found.more,
            hint="Which products need the tokens of all ranks for their weight gradients? Count "
            "the collectives. All of them have the same size.",
            mistakes=(
                Mistake(
                    lambda: found.more() / (1 + found.more()),
                    "That is the share of all the bytes that are sent now.",
                ),
                Mistake(lambda: found.more() / 2, "A layer has two blocks."),
                Mistake(
                    lambda: 2 * found.more(),
                    "Take half of that. One product of each block needs all tokens, and a gather "
                    "moves half as many bytes as an all-reduce.",
                ),
                Mistake(
                    lambda: found.more(1),
                    "You counted the sums of the gradients of norms and biases. They are needed "
                    "once per step, not in each pass.",
                ),
            ),
        ),
        "gradients": ChoiceAsked(
            asks='whether the gradients `"change"` or are the `"same"`',
            options=("change", "same"),
            truth=found.gradients,
            hint="Which data does the second gather bring, and in which order are they summed?",
        ),
    },
)

_HALF = (
    "That is half. Did you count both passes, both phases of each ring and all bytes of a number?"
)
_SELF_CHECK = Exercise(
    "tensor-parallel-self-check",
    {
        "sent": AmountAsked(
            asks="the bytes that a GPU sends for one layer and microbatch",
            unit="B",
            truth=found.sent,
            hint="How large is the residual stream of the sequence, and how often is it summed?",
            mistakes=(
                Mistake(lambda: found.sent() / 2, _HALF),
                Mistake(
                    lambda: 8 * found.message(),
                    "A rank keeps its own part, so in each phase one part is not sent.",
                ),
                Mistake(
                    found.message,
                    "That is one message. How many messages does a rank send, and how large is "
                    "each?",
                ),
                Mistake(lambda: found.sent() / 4, "That is for one of a layer's all-reduces."),
                Mistake(lambda: found.LARGE.layers * found.sent(), "That is for all layers."),
            ),
        ),
        "time": AmountAsked(
            asks="how long that takes",
            unit="s",
            tolerance=0.03,
            truth=found.time,
            hint="Divide the bytes by the bandwidth of a link in one direction.",
            mistakes=(
                Mistake(
                    lambda: found.time() / 2,
                    f"{_HALF} Or did you use the bandwidth of both directions together, as data "
                    "sheets give it?",
                ),
                Mistake(found.all_layers, "That is for all layers."),
            ),
        ),
    },
)

EXERCISES = (_FIRST, _SECOND, _THIRD, _FOURTH, _SELF_CHECK)
"""In the order of the tutorial."""
