"""The forward pass of a transformer layer, as libraries and servers run it."""

from __future__ import annotations

from collections.abc import Callable

from mlsysim.core.fields import derived
from mlsysim.core.numeric import Value
from mlsysim.core.types import Precision, ServingCalibration, TransformerModel
from mlsysim.core.types.fitted import traffic_in
from mlsysim.core.types.layers import Experts
from mlsysim.solvers.device import DeviceInputs
from mlsysim.solvers.layer import Device, Forward, Routed, forward
from mlsysim.solvers.work import stated_bytes, stored_bytes


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
    work: Callable[[Experts], Routed],
    decode: bool = False,
) -> Forward:
    """Return the forward pass of a mean layer, its weights split over `tp` devices.

    `work` returns a device's work for the experts of a layer. In `decode`, each token is the last
    of a sequence of its own.
    """
    routed = {
        position: work(group.experts)
        for position, group in enumerate(model.groups)
        if group.experts is not None
    }
    return forward(d, model, tokens, context, 1, tp, 1, routed, decode)
