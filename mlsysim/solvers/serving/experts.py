"""The experts of a device in a pass: their rows, their weights, and rows of zeros."""

from __future__ import annotations

from mlsysim.core import formulas as f
from mlsysim.core.numeric import Value, is_zero, where, zero_like
from mlsysim.core.types.layers import Experts
from mlsysim.solvers.layer import Device, Routed
from mlsysim.solvers.serving.inputs import ServingInputs
from mlsysim.solvers.work import sum_of


def expert_work(i: ServingInputs, d: Device, block: Experts, tokens: Value) -> Routed:
    """Return the work of a device's experts: that of the busiest device if the load differs.

    `tokens` are those of all ranks of a stage, which share the experts.
    """
    c, groups = i.calibration, i.ep_size
    held = block.count + i.redundant_experts
    visited = f.experts_visited(held, block.per_token, tokens)
    rows = block.per_token * tokens
    # On average, half of each expert's last tile is padding.
    filled = rows / (rows + visited * c.expert_tile / 2)
    if not is_zero(c.expert_padding):
        filled = where(c.expert_padding > 0, 1, filled)
    busiest_rows = where(groups > 1, i.expert_imbalance, 1) * rows / groups
    alone, mean = is_zero(c.expert_waiting), visited / groups
    busiest = mean if alone else f.busiest_visited(held, visited, groups)
    return Routed(
        rows=busiest_rows
        if is_zero(c.expert_padding)
        else busiest_rows + _zero_rows(i, block, tokens),
        matrices=mean if alone else where(c.expert_waiting > 0, busiest, mean),
        mean_matrices=None if alone else mean,
        shards=i.stage_devices / groups,
        rate=i.expert_efficiency * filled * d.product,
        memory=c.expert_memory * d.memory,
    )


def _zero_rows(i: ServingInputs, block: Experts, tokens: Value) -> Value:
    """Return the rows of zeros that a device's experts compute."""
    padding = i.calibration.expert_padding
    # The buffer has room for the copies of all tokens, wherever their experts are.
    elsewhere = block.per_token * tokens * (1 - 1 / i.ep_size)
    held = (block.count + i.redundant_experts) / i.ep_size
    return where(padding > 0, elsewhere + held * padding, zero_like(elsewhere))


def padding_flops(i: ServingInputs, tokens: Value) -> Value:
    """Return the operations of a pass on a device that are spent on rows of zeros."""
    if is_zero(i.calibration.expert_padding):
        return 0
    shards = i.stage_devices / i.ep_size
    parts = [
        group.count
        * _zero_rows(i, block, tokens)
        * i.conventions.flops_per_mac
        * block.expert_parameters(i.model.hidden_dim)
        / shards
        for group in i.model.groups
        if (block := group.experts) is not None
    ]
    return sum_of(parts) if parts else 0
