"""Tensor parallelism that can be run and counted: ranks simulated in NumPy.

A group holds what its ranks hold as lists of arrays, and its collectives send every part around a
ring and count it. So the bytes that formulas of communication predict can be held against bytes
that were sent, and a layer spread over ranks against the layer of a single device.
"""

from mlsysim.ranks.group import Array, Call, Group
from mlsysim.ranks.layer import TransformerLayer, random_weights
from mlsysim.ranks.layouts import Layout, Replicated, SequenceSharded
from mlsysim.ranks.linear import ColumnParallelLinear, RowParallelLinear
from mlsysim.ranks.sublayers import Attention, FeedForward

__all__ = [
    "Array",
    "Attention",
    "Call",
    "ColumnParallelLinear",
    "FeedForward",
    "Group",
    "Layout",
    "Replicated",
    "RowParallelLinear",
    "SequenceSharded",
    "TransformerLayer",
    "random_weights",
]
