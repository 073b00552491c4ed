"""Tensor parallelism on simulated ranks in NumPy, with counted communication.

A group stores the data of its ranks as lists of arrays, and its collectives send every part around
a ring and count it. This lets you compare the bytes predicted by communication formulas with the
bytes sent, and a layer split over ranks with the layer on a single device.
"""

from mlsysim_course.ranks.group import Array, Call, Group
from mlsysim_course.ranks.layer import TransformerLayer, random_weights
from mlsysim_course.ranks.layouts import Layout, Replicated, SequenceSharded
from mlsysim_course.ranks.linear import ColumnParallelLinear, RowParallelLinear
from mlsysim_course.ranks.sublayers import Attention, FeedForward

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
