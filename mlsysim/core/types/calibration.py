"""Constants of operator-level models: the share of the datasheet that a framework reaches."""

from __future__ import annotations

from mlsysim.core.fields import number, quantity, record
from mlsysim.core.numeric import Value
from mlsysim.core.types.fitted import Fitted
from mlsysim.core.types.precision import PRECISIONS
from mlsysim.core.units import Quantity

__all__ = ["Calibration"]


@record
class Calibration(Fitted):
    """One set of constants per device generation and era of software.

    Shares are of the datasheet's dense peaks. Each constant's source names the measurements that
    it was fitted to, or the publication that it is from.

    Attributes
    ----------
    stack : str
        The software that it describes.
    gemm_overhead : Quantity
        Fixed time of a matrix product.
    memory_efficiency : float
        Share of the memory bandwidth that streams reach.
    attention_efficiency : float
        Share of the 16-bit peak rate that fused attention reaches.
    score_bytes : Quantity
        Memory traffic per attention score that is not fused, forward.
    cast_bytes : Quantity
        Memory traffic of conversion to a narrow format, per element of a product's input.
    elementwise_backward : float
        Backward over forward in element-wise operators, and in kernels launched.
    loss_bytes : Quantity
        Memory traffic per logit, forward and backward.
    optimizer_bytes : Quantity
        Memory traffic of the update, per parameter.
    link_efficiency, nic_efficiency : float
        Share of the bandwidth that collectives reach within a node and between nodes.
    gather_overlap : float
        Share of the shorter of computation and weight gathers that is hidden.
    gradient_overlap, plain_overlap : float
        Share of the gradient reduction that is hidden, where the optimizer is sharded, and where
        nothing is.
    gradient_scatters : float
        Volume of the gradients' scatter over that of one weight gather.
    collective_overhead : Quantity
        Fixed time of an all-reduce that all devices of a tensor-parallel group wait for.
    layer_launch : Quantity
        Time in which the host launches the forward pass of a layer.
    expert_launch : Quantity
        Time in which the host launches the routing and the experts of a layer, forward.
    expert_efficiency : float
        Share of a product's rate that the grouped products of experts reach.
    routing_bytes : Quantity
        Memory traffic per element that is routed to experts, forward.
    bias_bytes : Quantity
        Memory traffic per element that is routed, to add experts' biases, forward.
    launch_exposed : float
        Share of the shorter of launch and device time that is not hidden.
    exchange_overlap, tensor_overlap : float
        Share of the exchanges with experts, and of a tensor-parallel group's collectives, that
        overlaps with computation.
    copies_per_node : float
        1 if an exchange sends a token to each node once, 0 if to each of its experts.
    step_overhead : Quantity
        Fixed time per step.
    node_band_low, node_band_high, fleet_band_low, fleet_band_high : float or None
        Measured over predicted step time, at the tenth and the ninetieth percentile of runs that
        the constants were not fitted to: runs within one node, and runs over several. `None`
        if no such run is known.
    expert_band_low, expert_band_high : float or None
        The same for models with experts.
    """

    stack: str
    gemm_overhead: Quantity = quantity("us", zero=True)
    memory_efficiency: float = number(most=1)
    attention_efficiency: float = number(most=1)
    score_bytes: Quantity = quantity("byte", zero=True)
    cast_bytes: Quantity = quantity("byte", zero=True)
    elementwise_backward: float = number()
    loss_bytes: Quantity = quantity("byte")
    optimizer_bytes: Quantity = quantity("byte")
    link_efficiency: float = number(most=1)
    nic_efficiency: float = number(most=1)
    gather_overlap: float = number(zero=True, most=1)
    gradient_overlap: float = number(zero=True, most=1)
    gradient_scatters: float = number()
    collective_overhead: Quantity = quantity("us", zero=True)
    layer_launch: Quantity = quantity("ms", zero=True)
    expert_launch: Quantity = quantity("ms", zero=True)
    expert_efficiency: float = number(most=1)
    routing_bytes: Quantity = quantity("byte", zero=True)
    bias_bytes: Quantity = quantity("byte", zero=True)
    launch_exposed: float = number(zero=True, most=1)
    exchange_overlap: float = number(zero=True, most=1)
    tensor_overlap: float = number(zero=True, most=1)
    copies_per_node: float = number(zero=True, default=0.0, most=1)
    plain_overlap: float = number(zero=True, default=0.0, most=1)
    step_overhead: Quantity = quantity("ms", zero=True)
    node_band_low: float | None = number(default=None)
    node_band_high: float | None = number(default=None)
    fleet_band_low: float | None = number(default=None)
    fleet_band_high: float | None = number(default=None)
    expert_band_low: float | None = number(default=None)
    expert_band_high: float | None = number(default=None)

    def cast(self, precision: str) -> Value:
        """Memory traffic of conversion to a number format, per element."""
        return self.cast_bytes if PRECISIONS[precision].bits < 16 else 0 * self.cast_bytes
