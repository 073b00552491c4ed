"""The transformer layer in forward passes, as libraries and servers run it."""

from __future__ import annotations

from mlsysim.core import formulas as f
from mlsysim.core.numeric import Value
from mlsysim.core.types import ServingCalibration, TransformerModel
from mlsysim.core.types.layers import ExpertBlock
from mlsysim.solvers.device import DeviceInputs
from mlsysim.solvers.layer import Device, Experts, Forward, forward

__all__ = ["InferenceInputs", "inference_device", "inference_layer"]


class InferenceInputs(DeviceInputs):
    """Inputs of a question about forward passes."""

    calibration: ServingCalibration


def inference_device(i: InferenceInputs, weight_bytes: Value, activation_bytes: Value) -> Device:
    """Return the rates that a device reaches in forward passes with a calibration."""
    c = i.calibration
    return Device(
        product=i.gemm_efficiency * i.peak_rate,
        head=i.wide_gemm_efficiency * i.wide_peak_rate,
        wide_rate=i.wide_peak_rate,
        attention_efficiency=c.attention_efficiency,
        memory=c.memory_efficiency * i.device.memory.bandwidth,
        weight_bytes=weight_bytes,
        activation_bytes=activation_bytes,
        hidden_bytes=i.hidden_bytes,
        ffn_bytes=i.ffn_bytes,
        flops_per_mac=i.conventions.flops_per_mac,
    )


def inference_layer(
    d: Device,
    model: TransformerModel,
    tokens: Value,
    context: Value,
    attended_fraction: Value,
    tp: Value,
) -> Forward:
    """Return the forward pass of a mean layer, its weights split over `tp` devices."""
    experts = {
        position: Experts(
            rows=group.feed_forward.experts_per_token * tokens,
            matrices=f.experts_visited(
                group.feed_forward.experts, group.feed_forward.experts_per_token, tokens
            ),
            shards=tp,
            rate=d.product,
        )
        for position, group in enumerate(model.groups)
        if isinstance(group.feed_forward, ExpertBlock)
    }
    return forward(d, model, tokens, context, attended_fraction, tp, 1, experts)
