"""Exercises of the tutorial on tensor parallelism, checked by simulated ranks.

The ranks are arrays, so NumPy is imported when an answer comes in, and not before.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import Any

from mlsysim import Q_, DistributedSolver, Fleet, Models, ParallelismError, Systems
from mlsysim.core.formulas import ring_all_reduce_time
from mlsysim_course.answers import AmountAsked, ChoiceAsked, CountAsked, Parts, exercise

_RANKS = 4
_TOKENS = 48
_MODEL = replace(
    Models.MPT.MPT_125M,
    name="MPT, narrow",
    hidden_dim=192,
    head_dim=16,
    ffn_dim=768,
    parameters=None,
)
_NODE, _LARGE, _LONG = Systems.Nodes.DGX_H100, Models.Llama3_70B, 8192


def _most_ranks() -> int:
    """Return the largest number of ranks that can share a layer with the heads of Llama 3 8B."""
    from mlsysim_course.ranks import Group, Replicated, TransformerLayer, random_weights

    small = replace(
        Models.Llama3_8B, name="Llama", hidden_dim=64, head_dim=2, ffn_dim=192, parameters=None
    )
    weights = random_weights(small)
    for ranks in range(small.heads, 1, -1):
        try:
            TransformerLayer(small, Replicated(Group(ranks)), weights)
        except ParallelismError:
            continue
        return ranks
    return 1


@lru_cache(maxsize=2)
def _sequence(*, regather: bool) -> tuple[tuple[float, float], dict[str, Any]]:
    """Return the bytes of both passes, without and with the gradients' sums, and the gradients."""
    import numpy as np

    from mlsysim_course.ranks import Group, SequenceSharded, TransformerLayer, random_weights

    layout = SequenceSharded(Group(_RANKS), regather=regather)
    layer = TransformerLayer(_MODEL, layout, random_weights(_MODEL, seed=1))
    random = np.random.default_rng(0)
    x, gradient = (random.standard_normal((_TOKENS, 1, _MODEL.hidden_dim)) for _ in range(2))
    layer.forward(layout.place(x))
    layer.backward(layout.place(gradient))
    passes = layout.group.sent()
    gradients = layer.gradients()
    return (passes, layout.group.sent()), gradients


def _regather_share(which: int = 0) -> float:
    """Return the bytes that gathering again adds, as a share of the bytes sent before."""
    before, after = (_sequence(regather=regather)[0][which] for regather in (False, True))
    return after / before - 1


@exercise
def _tensor_parallel_1() -> Parts:
    import numpy as np

    from mlsysim_course.ranks import Group

    bias = np.ones(8)
    excess = float(Group(_RANKS).all_reduce([bias] * _RANKS)[0][0]) - 1
    yield CountAsked(
        "excess",
        asks="how many times too many the bias is added to the result",
        truth=excess,
        hint="Follow one element of the bias. Which ranks add it, and what does the sum do?",
        mistakes={
            excess + 1: "That is how often the bias is added. One of those times is correct.",
            0: "Each rank adds the bias to its own term, and then the terms are summed.",
        },
    )


@exercise
def _tensor_parallel_2() -> Parts:
    import numpy as np

    from mlsysim_course.ranks import Group
    from mlsysim_course.ranks.functions import gelu

    random = np.random.default_rng(0)
    width, inner = _MODEL.hidden_dim, _MODEL.ffn_dim
    x, a, b = map(random.standard_normal, ((_TOKENS, width), (width, inner), (inner, width)))
    group = Group(_RANKS)
    parts = zip(group.split(x, axis=1), group.split(a, axis=0), strict=True)
    sums = group.all_reduce([columns @ rows for columns, rows in parts])
    columns = [gelu(h) @ part for h, part in zip(sums, group.split(b, axis=1), strict=True)]
    group.all_gather([part.T for part in columns])
    # One all-reduce in double precision is what columns first, rows second sends.
    columns_first = float(ring_all_reduce_time(8 * _TOKENS * _MODEL.hidden_dim, _RANKS, 1.0, 0.0))
    factor = group.sent() / columns_first
    all_reduce_ratio = group.calls[0].sent[0] / columns_first
    yield ChoiceAsked(
        "first",
        asks='which comes first, `"all_reduce"` or `"all_gather"`',
        options=("all_reduce", "all_gather"),
        truth=group.calls[0].collective,
        hint="What does a rank have after a row split: some of the columns, or a term of each?",
    )
    yield AmountAsked(
        "factor",
        asks="the ratio of the bytes sent to those of columns first, rows second",
        truth=factor,
        hint="Which collectives does it need, and how wide is the data of each?",
        mistakes={
            all_reduce_ratio + 1: "A gather is one of the two halves of an all-reduce.",
            all_reduce_ratio: "At the end, the columns of the result are still spread over "
            "the ranks.",
            factor - all_reduce_ratio + 1: "The sum is taken before GeLU. How wide "
            "are the activations there?",
            1 / factor: "Invert the ratio. This order sends more bytes, not fewer.",
        },
    )


@exercise
def _tensor_parallel_3() -> Parts:
    query_heads_per_cached_head = Models.Llama3_8B.heads // Models.Llama3_8B.kv_heads
    yield CountAsked(
        "ranks",
        asks="the largest number of ranks at which no head is split",
        truth=_most_ranks(),
        hint="Every rank needs whole heads of each kind.",
        mistakes={
            Models.Llama3_8B.heads: "That is the number of query heads. What else does "
            "attention have heads of?",
            Models.Llama3_8B.heads // 2: "That divides the query heads. What else does "
            "attention have heads of?",
            query_heads_per_cached_head: "That is how many query heads share a key-value "
            "head. Do all of them have to be on one rank?",
        },
    )


@exercise
def _tensor_parallel_4() -> Parts:
    import numpy as np

    stored, gathered = (_sequence(regather=regather)[1] for regather in (False, True))
    same = all(np.array_equal(stored[name], gathered[name]) for name in stored)
    share = _regather_share()
    yield AmountAsked(
        "share",
        asks="the extra bytes that both passes send, as a share of the bytes sent before",
        truth=share,
        hint="Which products need the tokens of all ranks for their weight gradients? Count "
        "the collectives. All of them have the same size.",
        mistakes={
            share / (1 + share): "That is the share of all the bytes that are sent now.",
            share / 2: "A layer has two blocks.",
            2 * share: "Take half of that. One product of each block needs all "
            "tokens, and a gather moves half as many bytes as an all-reduce.",
            _regather_share(1): "You counted the sums of the gradients of norms and biases. "
            "They are needed once per step, not in each pass.",
        },
    )
    yield ChoiceAsked(
        "gradients",
        asks='whether the gradients `"change"` or are the `"same"`',
        options=("change", "same"),
        truth="same" if same else "change",
        hint="Which data does the second gather bring, and in which order are they summed?",
    )


_HALF = (
    "That is half. Did you count both passes, both phases of each ring and all bytes of a number?"
)


@exercise
def _tensor_parallel_self_check() -> Parts:
    server = Fleet(name="one server", node=_NODE, count=1, fabric=Systems.Fabrics.InfiniBand_NDR)
    answer = DistributedSolver.solve(
        model=_LARGE,
        fleet=server,
        batch_size=1,
        seq_len=_LONG,
        tp_size=8,
        precision="bf16",
        efficiency=0.5,
    )
    time = answer.tp_communication_latency / _LARGE.layers
    message_size = Q_(2, "byte") * _LONG * _LARGE.hidden_dim
    # Each of the four all-reduces of a layer sends all parts but one, in each of its two phases.
    sent = 4 * 2 * 7 / 8 * message_size
    yield AmountAsked(
        "sent",
        asks="the bytes that a GPU sends for one layer and microbatch",
        unit="B",
        form=",.0f",
        truth=sent,
        hint="How large is the residual stream of the sequence, and how often is it summed?",
        mistakes={
            sent / 2: _HALF,
            8 * message_size: "A rank keeps its own part, so in each phase one part is not sent.",
            message_size: "That is one message. How many messages does a rank send, and how "
            "large is each?",
            sent / 4: "That is for one of a layer's all-reduces.",
            _LARGE.layers * sent: "That is for all layers.",
        },
    )
    yield AmountAsked(
        "time",
        asks="how long that takes",
        unit="s",
        tolerance=0.03,
        truth=time,
        hint="Divide the bytes by the bandwidth of a link in one direction.",
        mistakes={
            time / 2: f"{_HALF} Or did you use the bandwidth of both directions together, as data "
            "sheets give it?",
            _LARGE.layers * time: "That is for all layers.",
        },
    )
