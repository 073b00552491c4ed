"""Answer of the single-node solver."""

from __future__ import annotations

from mlsysim.core.fields import number, quantity, record
from mlsysim.core.result import Result
from mlsysim.core.units import Quantity

__all__ = ["SingleNodeResult"]


@record
class SingleNodeResult(Result):
    """Answer of `SingleNodeSolver`: one forward pass of a batch on one device."""

    latency: Quantity = quantity("ms")
    """Time of the pass: the longer of `compute_time` and `memory_time`."""
    throughput: Quantity = quantity("sample/s")
    """Samples per second when one batch follows the other."""
    bottleneck: str
    """What takes the time: ``"compute"`` or ``"memory"``."""
    compute_time: Quantity = quantity("ms")
    """Time of the arithmetic alone."""
    memory_time: Quantity = quantity("ms")
    """Time of the memory traffic alone."""
    flops: Quantity = quantity("TFLOP")
    """Operations of the pass."""
    bytes_moved: Quantity = quantity("GB")
    """Memory traffic of the pass."""
    arithmetic_intensity: Quantity = quantity("flop/byte")
    """Operations per byte moved."""
    ridge_point: Quantity = quantity("flop/byte")
    """Intensity at which the device's arithmetic (at the efficiency given) and memory balance."""
    mfu: float = number()
    """Share of the dense peak rate that the pass uses."""
    energy: Quantity | None = quantity("J")
    """Energy at the device's full design power: an upper bound. `None` if that is not known."""
    memory: Quantity = quantity("GB")
    """Memory that weights (and, for a transformer, keys and values) take: a lower bound."""
    memory_capacity: Quantity = quantity("GB")
    """Memory that the device has."""
    feasible: bool
    """Whether it fits the device."""
    reasons: tuple[str, ...]
    """Why it is not feasible; empty if it is."""
