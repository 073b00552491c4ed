"""Pictures of results, drawn with matplotlib."""

from typing import TYPE_CHECKING, Any

from mlsysim.viz.roofline import plot_roofline

if TYPE_CHECKING:
    from mlsysim.viz.scorecard import plot_scorecard

__all__ = ["plot_roofline", "plot_scorecard"]


def __getattr__(name: str) -> Any:
    # Scorecards bring the scenarios with them, which are loaded when they are asked for.
    if name == "plot_scorecard":
        from mlsysim.viz.scorecard import plot_scorecard

        return plot_scorecard
    raise AttributeError(f"module 'mlsysim.viz' has no attribute {name!r}")
