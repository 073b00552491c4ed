"""Answer of the reliability solver."""

from __future__ import annotations

from mlsysim.core.fields import number, quantity, record
from mlsysim.core.result import Result
from mlsysim.core.units import Quantity

__all__ = ["ReliabilityResult"]


@record
class ReliabilityResult(Result):
    """Answer of `ReliabilitySolver`: a long job on a fleet that fails."""

    fleet_mtbf: Quantity = quantity("h")
    """Mean time between failures of the whole fleet."""
    device_mtbf: Quantity = quantity("h")
    """Mean time between failures of one device, its share of host and network included."""
    failure_probability: float = number()
    """Probability that the job meets at least one failure."""
    expected_failures: float = number()
    """Failures to expect during the job."""
    optimal_checkpoint_interval: Quantity = quantity("minute")
    """Time of work between checkpoints that loses least: Young's formula."""
    checkpoint_interval: Quantity = quantity("minute")
    """The interval that the rest is computed with: the optimal one, or the one given."""
    checkpoint_size: Quantity | None = quantity("GB")
    """Weights and optimizer state; `None` without a model."""
    checkpoint_time: Quantity = quantity("s")
    """Time to write a checkpoint, in which training waits."""
    restart_time: Quantity = quantity("minute")
    """Time from a failure until training goes on."""
    goodput: float = number()
    """Share of the job's time that is progress."""
    lost_time: Quantity = quantity("h")
    """Time of the job that is none: checkpoints, work done again, restarts."""
    checkpoint_overhead: Quantity = quantity("h")
    """Part of it for checkpoints."""
    failure_loss: Quantity = quantity("h")
    """Part of it for failures."""
    feasible: bool
    """Whether interval and checkpoint are each shorter than the time between failures."""
    reasons: tuple[str, ...]
    """Why the job makes next to no progress; empty if it does."""
