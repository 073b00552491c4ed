"""Pictures of results, drawn with matplotlib."""

from importlib import import_module
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


_MODULES = {
    "plot_frontier": "frontier",
    "plot_scorecard": "scorecard",
    "plot_sensitivity": "tornado",
    "plot_timeline": "timeline",
}
"""Figures that are loaded on first use, because scorecards import the scenarios."""


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module 'mlsysim.viz' has no attribute {name!r}")
    return getattr(import_module(f"mlsysim.viz.{_MODULES[name]}"), name)
