"""Answers to the exercises on tensor parallelism, from ranks that are simulated.

The ranks are arrays, so NumPy is imported when an answer comes in, and not before.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from mlsysim.core.errors import ParallelismError
from mlsysim.core.formulas import ring_all_reduce_time
from mlsysim.core.types import Fleet
from mlsysim.registry import Models, Systems
from mlsysim.solvers import DistributedSolver

if TYPE_CHECKING:
    from mlsysim_course.ranks import Group

__all__ = [
    "LARGE",
    "all_layers",
    "gradients",
    "message",
    "more",
    "most_ranks",
    "rows_first",
    "sent",
    "time",
    "times",
    "too_often",
    "widening",
]

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
_NODE, LARGE, _LONG = Systems.Nodes.DGX_H100, Models.Llama3_70B, 8192


def too_often() -> float:
    """Return how many biases too many a sum has if every rank adds one."""
    import numpy as np

    from mlsysim_course.ranks import Group

    bias = np.ones(8)
    return float(Group(_RANKS).all_reduce([bias] * _RANKS)[0][0]) - 1


def rows_first() -> Group:
    """Run the communication of a block that is split by rows first and by columns second."""
    import numpy as np

    from mlsysim_course.ranks import Group

    group = Group(_RANKS)
    group.all_reduce([np.zeros((_TOKENS, _MODEL.ffn_dim))] * _RANKS)
    group.all_gather([np.zeros((_MODEL.hidden_dim // _RANKS, _TOKENS))] * _RANKS)
    return group


def _over_columns_first(sent: float) -> float:
    """Return the ratio of some bytes to those of one all-reduce, in double precision."""
    size = 8 * _TOKENS * _MODEL.hidden_dim
    return sent / float(ring_all_reduce_time(size, _RANKS, 1.0, 0.0))


def times() -> float:
    """Return the ratio of the bytes of rows first to those of columns first."""
    return _over_columns_first(rows_first().sent())


def widening() -> float:
    """Return the ratio of the bytes of its all-reduce alone to those of columns first."""
    return _over_columns_first(rows_first().calls[0].sent[0])


def most_ranks() -> int:
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


def more(which: int = 0) -> float:
    """Return the bytes that gathering again adds, as a share of the bytes sent before."""
    before, after = (_sequence(regather=regather)[0][which] for regather in (False, True))
    return after / before - 1


def gradients() -> str:
    """Return whether gathering again changes the gradients."""
    import numpy as np

    kept, again = (_sequence(regather=regather)[1] for regather in (False, True))
    return "same" if all(np.array_equal(kept[name], again[name]) for name in kept) else "change"


def message() -> float:
    """Return the bytes of the residual stream of a long sequence."""
    return 2.0 * _LONG * LARGE.hidden_dim


def sent() -> float:
    """Return the bytes of a layer's all-reduces: at a byte per second, seconds are bytes."""
    return 4 * float(ring_all_reduce_time(message(), 8, 1.0, 0.0))


def all_layers() -> float:
    """Return the seconds of a microbatch's all-reduces in all layers, by the solver."""
    server = Fleet(name="one server", node=_NODE, count=1, fabric=Systems.Fabrics.InfiniBand_NDR)
    answer = DistributedSolver.solve(
        model=LARGE,
        fleet=server,
        batch_size=1,
        seq_len=_LONG,
        tp_size=8,
        precision="bf16",
        efficiency=0.5,
    )
    return float(answer.tp_communication_latency.to_base_units().magnitude)


def time() -> float:
    """Return the seconds of one layer's all-reduces."""
    return all_layers() / LARGE.layers
