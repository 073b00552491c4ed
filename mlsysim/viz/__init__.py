"""Pictures of results, drawn with matplotlib."""

from typing import TYPE_CHECKING, Any

from mlsysim.viz.roofline import plot_roofline
from mlsysim.viz.style import COLORS, label_lines

if TYPE_CHECKING:
    from mlsysim.viz.frontier import plot_frontier
    from mlsysim.viz.scorecard import plot_scorecard
    from mlsysim.viz.timeline import plot_timeline
    from mlsysim.viz.tornado import plot_sensitivity

__all__ = [
    "COLORS",
    "label_lines",
    "plot_frontier",
    "plot_roofline",
    "plot_scorecard",
    "plot_sensitivity",
    "plot_timeline",
]


def __getattr__(name: str) -> Any:
    # Scorecards import the scenarios, so they are loaded on first use.
    if name == "plot_scorecard":
        from mlsysim.viz.scorecard import plot_scorecard

        return plot_scorecard
    if name == "plot_frontier":
        from mlsysim.viz.frontier import plot_frontier

        return plot_frontier
    if name == "plot_timeline":
        from mlsysim.viz.timeline import plot_timeline

        return plot_timeline
    if name == "plot_sensitivity":
        from mlsysim.viz.tornado import plot_sensitivity

        return plot_sensitivity
    raise AttributeError(f"module 'mlsysim.viz' has no attribute {name!r}")
