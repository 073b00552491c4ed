"""Tensor parallelism that can be run and counted: ranks simulated in NumPy.

A group holds the data of its ranks as lists of arrays, and its collectives send every part around
a ring and count it. So we can compare the bytes that communication formulas predict with the bytes
sent, and a layer spread over ranks with the layer on a single device.
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
