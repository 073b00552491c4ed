"""The forward pass of a transformer layer, as libraries and servers run it."""

from __future__ import annotations

from dataclasses import dataclass

from mlsysim.core import formulas as f
from mlsysim.core.fields import derived
from mlsysim.core.numeric import Value, is_zero, where, zero_like
from mlsysim.core.types import Precision, ServingCalibration, TransformerModel
from mlsysim.core.types.fitted import traffic_in
from mlsysim.core.types.layers import Experts
from mlsysim.solvers.device import DeviceInputs
from mlsysim.solvers.layer import Device, Forward, Routed, forward
from mlsysim.solvers.work import stated_bytes, stored_bytes, sum_of

__all__ = [
    "ExpertPlan",
    "InferenceInputs",
    "inference_device",
    "inference_layer",
    "padding_flops",
    "routed_work",
]


@dataclass(frozen=True)
class ExpertPlan:
    """How experts are placed on several devices in a forward pass."""

    tokens: Value
    """Tokens of all ranks that share the experts."""
    groups: Value
    """Groups of devices that hold different experts."""
    devices: Value
    """Devices that hold the experts; each expert is split over the devices of one group."""
    imbalance: Value
    """Load of the busiest group divided by the mean, with the redundant copies in place."""
    redundant: Value
    """Additional copies of experts per layer. Alone, they only add weights to hold and to read."""
    efficiency: Value
    """Rate of the experts' matrix products, relative to ordinary ones."""
    memory: Value
    """Bandwidth at which experts' weights stream, relative to other weights."""
    tile: Value
    """Rows per tile of the experts' products."""
    padding: Value = 0
    """Rows that are added for each expert on a device, visited or not."""
    waiting: Value = 0
    """1 if a pass takes as long as the device that reads the most experts."""


class InferenceInputs(DeviceInputs):
    """Inputs shared by questions about forward passes."""

    calibration: ServingCalibration

    @derived
    def gemm_efficiency(self) -> Value:
        """Share of the peak rate that products reach."""
        return self.calibration.gemm(self.precision.name)

    @derived
    def wide_gemm_efficiency(self) -> Value:
        """Share of the peak rate that products in the wide format reach."""
        return self.calibration.gemm(self.wide_precision.name)

    @derived
    def hidden_bytes(self) -> Value:
        """Memory traffic of element-wise operators per element of the residual stream."""
        return traffic_in(self.precision.name, self.calibration.hidden_bytes)

    @derived
    def ffn_bytes(self) -> Value:
        """Memory traffic of the same operators per element of the feed-forward block's width."""
        return traffic_in(self.precision.name, self.calibration.ffn_bytes)


def inference_device(
    i: InferenceInputs, model: TransformerModel, stored: Precision, activation_bytes: Value
) -> Device:
    """Return the rates that a device reaches in forward passes, by a calibration."""
    c, each = i.calibration, stored_bytes(stored)
    stated = model.formats
    return Device(
        product=i.gemm_efficiency * i.peak_rate,
        head=i.wide_gemm_efficiency * i.wide_peak_rate,
        wide_rate=i.wide_peak_rate,
        attention_efficiency=c.attention_efficiency,
        state_efficiency=c.state_efficiency,
        memory=c.memory_efficiency * i.device.memory.bandwidth,
        weight_bytes=each if stated is None else stated_bytes(stated.feed_forward, each),
        activation_bytes=activation_bytes,
        hidden_bytes=i.hidden_bytes,
        ffn_bytes=i.ffn_bytes,
        flops_per_mac=i.conventions.flops_per_mac,
        attention_bytes=None if stated is None else stated_bytes(stated.attention, each),
        expert_bytes=None if stated is None else stated_bytes(stated.experts, each),
        arithmetic_bytes=i.precision.bytes_per_element,
        unpacking=c.unpacking,
        head_bytes=(None if stated is None else stated_bytes(stated.embeddings, activation_bytes)),
    )


def inference_layer(
    d: Device,
    model: TransformerModel,
    tokens: Value,
    context: Value,
    tp: Value,
    decode: bool = False,
    plan: ExpertPlan | None = None,
) -> Forward:
    """Return the forward pass of a mean layer, its weights split over `tp` devices.

    In `decode`, each token is the last of a sequence of its own. Without a `plan`, all experts are
    split over the `tp` devices.
    """
    routed = {
        position: routed_work(d, group.experts, tokens, tp, plan)
        for position, group in enumerate(model.groups)
        if group.experts is not None
    }
    return forward(d, model, tokens, context, 1, tp, 1, routed, decode)


def routed_work(
    d: Device, block: Experts, tokens: Value, tp: Value, plan: ExpertPlan | None
) -> Routed:
    """Return the work of a device's experts: that of the busiest device if the load differs."""
    if plan is None:
        return Routed(
            rows=block.per_token * tokens,
            matrices=f.experts_visited(block.count, block.per_token, tokens),
            shards=tp,
            rate=d.product,
        )
    held = block.count + plan.redundant
    visited = f.experts_visited(held, block.per_token, plan.tokens)
    rows = block.per_token * plan.tokens
    # On average, half of each expert's last tile is padding.
    filled = rows / (rows + visited * plan.tile / 2)
    if not is_zero(plan.padding):
        filled = where(plan.padding > 0, 1, filled)
    own = where(plan.groups > 1, plan.imbalance, 1) * rows / plan.groups
    alone, mean = is_zero(plan.waiting), visited / plan.groups
    busiest = mean if alone else f.busiest_visited(held, visited, plan.groups)
    return Routed(
        rows=own if is_zero(plan.padding) else own + _padding(block, plan),
        matrices=mean if alone else where(plan.waiting > 0, busiest, mean),
        mean_matrices=None if alone else mean,
        shards=plan.devices / plan.groups,
        rate=plan.efficiency * filled * d.product,
        memory=plan.memory * d.memory,
    )


def _padding(block: Experts, plan: ExpertPlan) -> Value:
    """Return the rows of zeros that a device's experts compute."""
    # The buffer has room for the copies of all tokens, wherever their experts are.
    elsewhere = block.per_token * plan.tokens * (1 - 1 / plan.groups)
    held = (block.count + plan.redundant) / plan.groups
    return where(plan.padding > 0, elsewhere + held * plan.padding, zero_like(elsewhere))


def padding_flops(model: TransformerModel, plan: ExpertPlan, flops_per_mac: Value) -> Value:
    """Return the operations of a forward pass on a device that are spent on rows of zeros."""
    if is_zero(plan.padding):
        return 0
    parts = []
    for group in model.groups:
        if (block := group.experts) is not None:
            expert, shards = block.expert_parameters(model.hidden_dim), plan.devices / plan.groups
            parts.append(group.count * _padding(block, plan) * flops_per_mac * expert / shards)
    return sum_of(parts) if parts else 0
