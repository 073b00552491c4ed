"""Exercises of the tutorial on tensor parallelism, answered by ranks that send."""

from __future__ import annotations

from mlsysim.labs.answers import AmountAsked, ChoiceAsked, CountAsked, Exercise, Mistake
from mlsysim.labs.exercises import tensor_parallel_truths as found
from mlsysim.registry import Models

__all__ = ["EXERCISES"]

_FIRST = Exercise(
    "tensor-parallel-1",
    {
        "excess": CountAsked(
            asks="how many times too often the bias is in the result",
            truth=found.too_often,
            hint="Follow one number of the bias: who adds it, and what does the sum do with that?",
            mistakes=(
                Mistake(
                    lambda: found.too_often() + 1,
                    "So often it is there. One of these should be.",
                ),
                Mistake(lambda: 0, "Each rank adds it to its term. Then the terms are added up."),
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
            hint="What does a rank have after a product by rows: some columns, or a term of all?",
        ),
        "factor": AmountAsked(
            asks="the bytes sent over those of columns first, rows second",
            truth=found.times,
            hint="Which collectives are there, and how wide is the data of each?",
            mistakes=(
                Mistake(
                    lambda: found.widening() + 1,
                    "A gather is one of the two halves of an all-reduce.",
                ),
                Mistake(found.widening, "Columns of the result are spread over ranks at the end."),
                Mistake(
                    lambda: found.times() - found.widening() + 1,
                    "The sum is taken before GeLU. How wide is the stream there?",
                ),
                Mistake(lambda: 1 / found.times(), "Upside down: it sends more bytes, not fewer."),
            ),
        ),
    },
)

_THIRD = Exercise(
    "tensor-parallel-3",
    {
        "ranks": CountAsked(
            asks="the most ranks that split no head",
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
                    "That is how many queries share a key-value head. Must they share a rank with "
                    "all others too?",
                ),
            ),
        )
    },
)

_FOURTH = Exercise(
    "tensor-parallel-4",
    {
        "share": AmountAsked(
            asks="what both passes send in addition, as a share of what they sent before",
            truth=found.more,
            hint="Which products need the tokens of all ranks for their weight gradients? Count "
            "collectives: all have the same size.",
            mistakes=(
                Mistake(
                    lambda: found.more() / (1 + found.more()),
                    "That is its share of all that is sent now.",
                ),
                Mistake(lambda: found.more() / 2, "There are two blocks in a layer."),
                Mistake(
                    lambda: 2 * found.more(),
                    "Half of it: one product of each block needs all tokens, and a gather moves "
                    "half of what an all-reduce does.",
                ),
                Mistake(
                    lambda: found.more(1),
                    "You counted the sums of the norms' and biases' gradients. A step needs them "
                    "once, a pass does not.",
                ),
            ),
        ),
        "gradients": ChoiceAsked(
            asks='whether the gradients `"change"` or are the `"same"`',
            options=("change", "same"),
            truth=found.gradients,
            hint="Which data does the second gather bring, and in which order are they added up?",
        ),
    },
)

_HALF = "Half of it. Are both passes there, both rounds of each ring, and all bytes of each number?"
_SELF_CHECK = Exercise(
    "tensor-parallel-self-check",
    {
        "sent": AmountAsked(
            asks="the bytes that a GPU sends for one layer and microbatch",
            unit="B",
            truth=found.sent,
            hint="How large is the residual stream of the sequence, and how often is it summed up?",
            mistakes=(
                Mistake(lambda: found.sent() / 2, _HALF),
                Mistake(
                    lambda: 8 * found.message(),
                    "A rank keeps its own part: of each round, one part is not sent.",
                ),
                Mistake(found.message, "That is one message. How often is one sent, and how far?"),
                Mistake(lambda: found.sent() / 4, "That is one of a layer's all-reduces."),
                Mistake(lambda: found.LARGE.layers * found.sent(), "That is for all layers."),
            ),
        ),
        "time": AmountAsked(
            asks="how long that takes",
            unit="s",
            tolerance=0.03,
            truth=found.time,
            hint="Divide the bytes by what a link carries in one direction.",
            mistakes=(
                Mistake(
                    lambda: found.time() / 2,
                    f"{_HALF} Or was it the bandwidth, which data sheets give for both directions?",
                ),
                Mistake(found.all_layers, "That is for all layers."),
            ),
        ),
    },
)

EXERCISES = (_FIRST, _SECOND, _THIRD, _FOURTH, _SELF_CHECK)
"""In the order of the page."""
