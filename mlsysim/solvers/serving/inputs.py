"""What serving depends on, and which sizes make no sense."""

from __future__ import annotations

import math

from mlsysim.core.errors import ParallelismError
from mlsysim.core.fields import derived
from mlsysim.core.inputs import Inputs, default
from mlsysim.core.numeric import Value
from mlsysim.core.types import (
    Accelerator,
    NetworkFabric,
    Node,
    PowerCalibration,
    Precision,
    ServingCalibration,
    TransformerModel,
    find_precision,
)
from mlsysim.core.types.fitted import traffic_in
from mlsysim.registry.calibration.power import power_calibration_for
from mlsysim.registry.calibration.serving import serving_calibration_for
from mlsysim.registry.conventions import CONVENTIONS, Conventions
from mlsysim.registry.operations import POWER_DRAW, PowerDraw
from mlsysim.solvers.base import Rule

__all__ = ["RULES", "ServingInputs"]


class ServingInputs(Inputs):
    """What serving depends on: the arguments of `ServingSolver.solve`, and constants."""

    model: TransformerModel
    hardware: Accelerator | Node
    seq_len: Value
    output_len: Value
    batch_size: Value
    precision: Precision
    weight_precision: Precision = default(lambda i: i.precision)
    kv_precision: Precision = default(lambda i: i.precision)
    tp_size: Value
    waves: Value = default(lambda i: math.inf)
    arrivals: Value
    efficiency: Value
    calibration: ServingCalibration = default(lambda i: serving_calibration_for(i.device))
    power_calibration: PowerCalibration = default(lambda i: power_calibration_for(i.device))
    conventions: Conventions = default(lambda i: CONVENTIONS)
    power_draw: PowerDraw = default(lambda i: POWER_DRAW)
    wide_precision: Precision = default(
        lambda i: find_precision(i.device.compute.wide_precision(i.precision.name))
    )
    """Format of what narrow products leave wide: attention and logits."""

    @property
    def device(self) -> Accelerator:
        """The device, or the one of which the node has several."""
        return self.hardware.accelerator if isinstance(self.hardware, Node) else self.hardware

    @property
    def devices(self) -> Value:
        """Devices that the hardware has."""
        return self.hardware.accelerators_per_node if isinstance(self.hardware, Node) else 1

    @property
    def links(self) -> NetworkFabric | None:
        """The links between the devices of a node; a device alone has none."""
        return self.hardware.scale_up if isinstance(self.hardware, Node) else None

    @derived
    def peak_rate(self) -> Value:
        """Dense peak rate of a device, in the format of the products."""
        return self.device.compute.rate(self.precision.name)

    @derived
    def wide_peak_rate(self) -> Value:
        """Dense peak rate of a device, in the format of attention and logits."""
        return self.device.compute.rate(self.wide_precision.name)

    @derived
    def gemm_efficiency(self) -> Value:
        """Share of the peak rate that products reach."""
        return self.calibration.gemm(self.precision.name)

    @derived
    def wide_gemm_efficiency(self) -> Value:
        """Share of the peak rate that the output projection reaches."""
        return self.calibration.gemm(self.wide_precision.name)

    @derived
    def hidden_bytes(self) -> Value:
        """Memory traffic of element-wise operators per element of the residual stream."""
        return traffic_in(self.precision.name, self.calibration.hidden_bytes)

    @derived
    def ffn_bytes(self) -> Value:
        """The same per element of the feed-forward block's inner width."""
        return traffic_in(self.precision.name, self.calibration.ffn_bytes)

    @derived
    def scale_bytes(self) -> Value:
        """Bytes of scale per stored weight."""
        return self.calibration.scale(self.weight_precision.name)


RULES: tuple[Rule[ServingInputs], ...] = (
    Rule(
        "tp_size",
        lambda i: i.tp_size <= i.devices,
        lambda i: (
            f"tp_size = {i.tp_size} is more than the {i.devices} device(s) that the "
            f"hardware has: choose at most {i.devices}, or pass a node that has more, such as "
            "Systems.Nodes.DGX_H100"
        ),
        ParallelismError,
    ),
    Rule(
        "tp_size",
        lambda i: i.model.heads % i.tp_size == 0,
        lambda i: (
            f"tp_size = {i.tp_size} does not divide the model's {i.model.heads} attention heads: "
            "choose a divisor of the number of heads"
        ),
        ParallelismError,
    ),
)
