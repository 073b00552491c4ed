"""The numbers of a lab as text, and the readings that several labs show."""

from __future__ import annotations

from collections.abc import Callable

from mlsysim.core.units import Quantity, ureg
from mlsysim.solvers import DistributedResult
from mlsysim_course.explorers.declare import Reading, read

# Results are in base units, so these conversions are free and parse no unit names.
_S, _B, _ONE = ureg.Unit("s"), ureg.Unit("byte"), ureg.Unit("")


def percent(share: float, digits: int = 1) -> str:
    """Print a share in percent."""
    return f"{100 * share:.{digits}f}%"


def count(number: float, noun: str, plural: str = "s") -> str:
    """Format a count with its noun."""
    return f"{number:,.4g} {noun}{'' if number == 1 else plural}"


def ratio(part: Quantity, whole: Quantity) -> float:
    """Return the ratio of one quantity to another."""
    return float((part / whole).m_as(_ONE))


def milliseconds(time: Quantity, digits: int = 0) -> str:
    """Print a time in milliseconds."""
    return f"{1e3 * time.m_as(_S):,.{digits}f} ms"


def seconds(time: Quantity) -> str:
    """Print a time in seconds."""
    return f"{time.m_as(_S):,.2f} s"


def minutes(time: Quantity) -> str:
    """Print a time in minutes."""
    return f"{time.m_as(_S) / 60:,.1f} minutes"


def hours(time: Quantity) -> str:
    """Print a time in hours."""
    return f"{time.m_as(_S) / 3600:,.3g} hours"


def dollars(amount: float) -> str:
    """Print an amount of money in whole dollars."""
    return f"${amount:,.0f}"


def millions(dollars: float) -> str:
    """Print an amount of money in millions of dollars."""
    return f"${dollars / 1e6:,.2f} million"


def gigabytes(size: Quantity) -> str:
    """Print a size in gigabytes."""
    value = size.m_as(_B) / 1e9
    return f"{value:,.0f} GB" if value >= 100 else f"{value:.1f} GB"


def band(result: DistributedResult, show: Callable[[Quantity], str]) -> str:
    """Return the error band of a step time in words, with times as `show` prints them."""
    low, high = result.step_latency_low, result.step_latency_high
    if low is None or high is None:
        return "no published run to compare with"
    return f"80% of comparable runs: {show(low)} to {show(high)}"


def utilization_reading(result: DistributedResult, target: float) -> Reading:
    """Read the MFU of a step, judged by a target."""
    return read("MFU", result, "mfu", scale=100, shown="%").judged(
        "good" if result.mfu >= target and result.feasible else "bad",
        f"target: {percent(target, 0)} or more",
    )


def memory_reading(result: DistributedResult) -> Reading:
    """Read the memory of a GPU, judged by its capacity."""
    share = ratio(result.memory, result.memory_capacity)
    return read("Memory per GPU", result, "memory", "GB").judged(
        "bad" if share > 1 else "warn" if share > 0.9 else "good",
        f"capacity: {gigabytes(result.memory_capacity)}",
    )
