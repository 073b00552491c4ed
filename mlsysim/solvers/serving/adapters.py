"""Low-rank adapters (LoRA) of a served model: their memory, and their work in a pass.

Requests choose among the adapters with equal probability. Adapters are in 16 bits and are split
over the devices of a layer in the same way as the matrices.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from mlsysim.core import formulas as f
from mlsysim.core.numeric import Value, first_known, floor, is_zero, maximum, when, where, zero_like
from mlsysim.core.types.attention import Matrix
from mlsysim.core.types.layers import LayerGroup
from mlsysim.solvers.layer import Device
from mlsysim.solvers.serving.inputs import ServingInputs
from mlsysim.solvers.work import layer_adapters, mean_over, sum_of, sum_over


@dataclass(frozen=True)
class AdapterWork:
    """The work that adapters add to a mean layer of a pass, on one device."""

    time: Value
    streamed: Value
    """Time for the memory traffic alone."""


def adapter_bytes(i: ServingInputs, groups: Sequence[LayerGroup]) -> Value:
    """Return the bytes of one adapter in some of the model's layers."""
    adapters = layer_adapters(i.model, i.adapter_rank)
    parameters = sum_over(groups, [each.common + each.experts for each in adapters])
    return i.precision.training_bytes * parameters


def resident_bytes(i: ServingInputs, groups: Sequence[LayerGroup]) -> Value:
    """Return the bytes of the resident adapters in some layers, on all devices that share them."""
    if is_zero(i.adapter_rank):
        return zero_like(i.device.memory.capacity)
    return first_known(i.resident_adapters, i.adapters) * adapter_bytes(i, groups)


def adapter_parameters(i: ServingInputs) -> Value:
    """Return the parameters of one adapter that a token uses in a mean layer."""
    adapters = layer_adapters(i.model, i.adapter_rank)
    return mean_over(i.model, [each.visited for each in adapters])


def most_sequences(i: ServingInputs) -> Value:
    """Return how many sequences a rank runs at once, as all of their adapters are resident."""
    if is_zero(i.adapter_rank):
        return math.inf
    resident = first_known(i.resident_adapters, i.adapters)
    return floor(f.sequences_of_adapters(resident, i.adapters) + 1e-9)


def batch_adapters(i: ServingInputs, running: Value) -> Value:
    """Return how many different adapters a rank's batch uses; NaN without any."""
    unknown = math.nan * running
    if is_zero(i.adapter_rank):
        return unknown
    used = f.distinct_adapters(i.adapters, maximum(1, running / i.copies))
    return where(i.adapter_rank > 0, used, unknown)


def adapter_work(i: ServingInputs, d: Device, tokens: Value, sequences: Value) -> AdapterWork:
    """Return the work that adapters add to a layer for several sequences."""
    if is_zero(i.adapter_rank):
        nothing = zero_like(i.calibration.layer_overhead)
        return AdapterWork(nothing, nothing)
    rank, each = i.adapter_rank, i.precision.training_bytes
    used = f.distinct_adapters(i.adapters, sequences)

    def traffic(matrices: list[Matrix], rows: Value, copies: Value) -> Value:
        parts = []
        for m in matrices:
            size = f.adapter_traffic(rank, m.rows, m.columns, rows, copies, each)
            parts.append(where(m.columns > 0, m.count * size, zero_like(size)))
        return sum_of(parts)

    moved = []
    for group in i.model.groups:
        hidden_dim, dense = i.model.hidden_dim, group.feed_forward
        matrices = [matrix for a in group.attentions for matrix in a.matrices(hidden_dim)]
        if dense is not None:
            matrices += _directed(dense.common_matrices(hidden_dim))
        part = traffic(matrices, tokens, used)
        if (block := group.experts) is not None:
            visited = f.experts_visited(block.count, block.per_token, tokens / used)
            experts = _directed([block.expert_matrix(hidden_dim)])
            part = part + traffic(experts, block.per_token * tokens, used * visited)
        moved.append(part)
    streamed = f.memory_time(mean_over(i.model, moved) / i.tp_size, d.memory)
    work = d.flops_per_mac * tokens * adapter_parameters(i) / i.tp_size / d.head
    some = rank > 0
    time = f.roofline_time(work, streamed)
    return AdapterWork(when(some, time), when(some, streamed))


def _directed(matrices: list[Matrix]) -> list[Matrix]:
    """Return the matrices of a block; the last of each kind leads back to the residual stream."""
    directed = []
    for m in matrices:
        directed += [Matrix(m.rows, m.columns, m.count - 1), Matrix(m.columns, m.rows)]
    return directed
