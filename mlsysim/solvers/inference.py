"""The transformer layer in forward passes, as libraries and servers run it."""

from __future__ import annotations

from mlsysim.core import formulas as f
from mlsysim.core.fields import derived
from mlsysim.core.numeric import Value
from mlsysim.core.types import ServingCalibration, TransformerModel
from mlsysim.core.types.fitted import traffic_in
from mlsysim.core.types.layers import ExpertBlock
from mlsysim.solvers.device import DeviceInputs
from mlsysim.solvers.layer import Device, Experts, Forward, forward

__all__ = ["InferenceInputs", "inference_device", "inference_layer"]


class InferenceInputs(DeviceInputs):
    """Inputs of a question about forward passes."""

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
    score_dim: Value = None,
) -> Forward:
    """Return the forward pass of a mean layer, its weights split over `tp` devices.

    `score_dim` is the mean width of a key and a value where it is not that of the heads.
    """
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
    return forward(d, model, tokens, context, attended_fraction, tp, 1, experts, score_dim)
