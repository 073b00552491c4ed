"""What a forward pass on one device depends on."""

from __future__ import annotations

import math
from typing import cast

from mlsysim.core.fields import derived
from mlsysim.core.inputs import Inputs, default
from mlsysim.core.numeric import Value, first_known
from mlsysim.core.types import (
    Accelerator,
    FixedShapeModel,
    PowerCalibration,
    Precision,
    ServingCalibration,
    TransformerModel,
    find_precision,
)
from mlsysim.registry.calibration.power import power_calibration_for
from mlsysim.registry.calibration.serving import pass_calibration_for
from mlsysim.registry.conventions import (
    CONVENTIONS,
    TEXTBOOK_EFFICIENCY,
    Conventions,
    Efficiency,
)
from mlsysim.registry.operations import POWER_DRAW, PowerDraw

__all__ = ["PassInputs"]


class PassInputs(Inputs):
    """What a forward pass depends on: the arguments of `SingleNodeSolver.solve`, and constants."""

    model: TransformerModel | FixedShapeModel
    hardware: Accelerator
    batch_size: Value
    precision: Precision
    efficiency: Value
    seq_len: Value = default(
        lambda i: i.model.seq_len if isinstance(i.model, TransformerModel) else math.nan
    )
    calibration: ServingCalibration = default(lambda i: pass_calibration_for(i.hardware))
    power_calibration: PowerCalibration = default(lambda i: power_calibration_for(i.hardware))
    conventions: Conventions = default(lambda i: CONVENTIONS)
    power_draw: PowerDraw = default(lambda i: POWER_DRAW)
    textbook: Efficiency = default(lambda i: TEXTBOOK_EFFICIENCY)
    wide_precision: Precision = default(
        lambda i: find_precision(i.hardware.compute.wide_precision(i.precision.name))
    )
    """Format of what narrow products leave wide: attention and logits."""

    @property
    def transformer(self) -> TransformerModel:
        """The model of a question about a transformer."""
        return cast(TransformerModel, self.model)

    @property
    def network(self) -> FixedShapeModel:
        """The model of a question about a network of fixed shape."""
        return cast(FixedShapeModel, self.model)

    @property
    def device(self) -> Accelerator:
        """The device."""
        return self.hardware

    @property
    def share(self) -> Value:
        """Share of the peak rate that the textbook's arithmetic reaches."""
        return first_known(self.efficiency, self.textbook.value)

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

    @property
    def hidden_bytes(self) -> Value:
        """Memory traffic of element-wise operators per element of the residual stream."""
        return self.calibration.hidden_bytes

    @property
    def ffn_bytes(self) -> Value:
        """The same per element of the feed-forward block's inner width."""
        return self.calibration.ffn_bytes

    @derived
    def scale_bytes(self) -> Value:
        """Bytes of scale per stored weight."""
        return self.calibration.scale(self.precision.name)
