"""What serving depends on, and which sizes contradict each other."""

from __future__ import annotations

import math

from mlsysim.core.errors import ParallelismError
from mlsysim.core.inputs import default
from mlsysim.core.numeric import Value
from mlsysim.core.types import (
    Accelerator,
    NetworkFabric,
    Node,
    Precision,
    ServingCalibration,
    TransformerModel,
)
from mlsysim.registry.calibration.serving import serving_calibration_for
from mlsysim.solvers.base import Rule
from mlsysim.solvers.inference import InferenceInputs
from mlsysim.solvers.tower import IMAGE_RULES

__all__ = ["RULES", "ServingInputs"]


class ServingInputs(InferenceInputs):
    """What serving depends on: the arguments of `ServingSolver.solve`, and constants."""

    model: TransformerModel
    hardware: Accelerator | Node
    seq_len: Value
    images: Value
    output_len: Value
    batch_size: Value
    weight_precision: Precision = default(lambda i: i.precision)
    kv_precision: Precision = default(lambda i: i.precision)
    tp_size: Value
    waves: Value = default(lambda i: math.inf)
    arrivals: Value
    efficiency: Value
    calibration: ServingCalibration = default(lambda i: serving_calibration_for(i.device))

    @property
    def device(self) -> Accelerator:
        """The device, or one device of the node."""
        return self.hardware.accelerator if isinstance(self.hardware, Node) else self.hardware

    @property
    def devices(self) -> Value:
        """Devices that the hardware has."""
        return self.hardware.accelerators_per_node if isinstance(self.hardware, Node) else 1

    @property
    def links(self) -> NetworkFabric | None:
        """The links between the devices of a node; a single device has none."""
        return self.hardware.scale_up if isinstance(self.hardware, Node) else None


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
        lambda i: i.model.split_heads % i.tp_size == 0,
        lambda i: (
            f"tp_size = {i.tp_size} does not divide the model's {i.model.split_heads} attention "
            "heads: choose a divisor of the number of heads"
        ),
        ParallelismError,
    ),
    *IMAGE_RULES,
)
