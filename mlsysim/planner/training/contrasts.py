"""Compare two plans: where one spends more time than the other."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from mlsysim.core.errors import ConfigError, shown
from mlsysim.core.fields import quantity, record
from mlsysim.core.files import printable
from mlsysim.core.units import Q_, Quantity
from mlsysim.solvers import DistributedResult

PARTS = {
    "tp_communication_latency": "tensor all-reduces",
    "cp_communication_latency": "keys and values around the ring",
    "ep_communication_latency": "exchanges with experts",
    "pp_communication_latency": "stage to stage",
    "pipeline_bubble_latency": "bubble",
    "dp_communication_latency": "exchange between replicas",
    "optimizer_latency": "update",
    "launch_latency": "waits for the host",
}
"""Fields that add to a step, besides arithmetic, and their names."""

# Ignore differences below this share of the step, and mention at most this many.
_WORTH = 0.005
_TOLD = 4


@record
class Contrast:
    """One plan against another, per step of the other's batch.

    Attributes
    ----------
    loss : float
        How much longer a token takes: 0.1 means 10% more time. Negative if the plan is faster.
    parts : Mapping[str, Quantity]
        Additional time of each part of the step, negative if it is less. The parts add up to the
        difference of the step times.
    extra_memory : Quantity
        Additional memory that a device needs.
    words : str
        The four largest parts in words.
    """

    loss: float
    parts: Mapping[str, Quantity] = dataclasses.field()
    extra_memory: Quantity = quantity("GB")
    words: str

    def __str__(self) -> str:
        return printable(self.words, lines=True)


def parts_of(result: Mapping[str, Any]) -> dict[str, float]:
    """Return the parts of a step, or of a row of plans, in seconds; they add up to the step."""
    compute = _seconds(result, "compute_latency")
    again = compute * (1 - result["mfu"] / result["hfu"])
    parts = {"arithmetic": compute - again, "recomputed arithmetic": again}
    return parts | {name: _seconds(result, field) for field, name in PARTS.items()}


def contrast(result: DistributedResult, against: DistributedResult) -> Contrast:
    """Compare a plan with another: the difference in time, and its causes.

    Parameters
    ----------
    result
        The plan to examine.
    against
        The plan to compare it with; batches may differ, models and sequences should not.

    Returns
    -------
    Contrast
        Differences in time and memory, in numbers and in words.

    Raises
    ------
    ConfigError
        If one of them is not a result of `DistributedSolver`.

    Notes
    -----
    Recomputation is separated from other arithmetic by its share of the operations.

    Examples
    --------
    >>> from mlsysim import DistributedSolver, Models, Systems, contrast
    >>> job = dict(
    ...     model=Models.Llama3_70B,
    ...     fleet=Systems.Clusters.Research_256,
    ...     batch_size=256,
    ...     seq_len=2048,
    ...     tp_size=8,
    ...     pp_size=4,
    ...     efficiency=0.5,
    ... )
    >>> few = DistributedSolver.solve(microbatch_count=4, **job)
    >>> many = DistributedSolver.solve(microbatch_count=16, **job)
    >>> print(contrast(few, many))
    37.5% slower: bubble +1.2 s
    """
    for name, value in (("result", result), ("against", against)):
        if not isinstance(value, DistributedResult):
            raise ConfigError(
                f"{name} = {shown(value)} is not a DistributedResult: give what "
                "DistributedSolver.solve returns",
                argument=name,
            )
    return compared(result, against)


def compared(result: Mapping[str, Any], against: Mapping[str, Any]) -> Contrast:
    """Compare two results, or two rows of plans."""
    rates = [(r["token_throughput"].to("token/s").magnitude) for r in (result, against)]
    loss = rates[1] / rates[0] - 1
    step = _seconds(against, "step_latency_total")
    scale = step * (1 + loss) / _seconds(result, "step_latency_total")
    ours, theirs = parts_of(result), parts_of(against)
    more = {name: scale * ours[name] - theirs[name] for name in ours}
    return Contrast(
        loss=loss,
        parts={name: Q_(value, "s") for name, value in more.items()},
        extra_memory=(result["memory"] - against["memory"]).to("GB"),
        words=_words(loss, more, step),
    )


def _words(loss: float, more: Mapping[str, float], step: float) -> str:
    if abs(loss) < 0.0005:
        head = "as fast"
    else:
        head = f"{loss:.1%} slower" if loss > 0 else f"{-loss:.1%} less time"
    ranked = sorted(more.items(), key=lambda item: -abs(item[1]))
    told = [
        f"{name} {'+' if value > 0 else '−'}{spent(abs(value))}"
        for name, value in ranked[:_TOLD]
        if abs(value) > _WORTH * step
    ]
    return ": ".join([head, *([", ".join(told)] if told else [])])


def spent(seconds: float) -> str:
    """Return a time as text of two digits, in a suitable unit."""
    for factor, unit in ((1, "s"), (1e3, "ms")):
        if seconds * factor >= 1:
            value = seconds * factor
            return f"{value:.1f} {unit}" if value < 10 else f"{value:.0f} {unit}"
    return f"{seconds * 1e6:.0f} µs"


def _seconds(result: Mapping[str, Any], field: str) -> float:
    return float(result[field].to("s").magnitude)
