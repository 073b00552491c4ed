"""Pictures of results, drawn with matplotlib."""

from mlsysim.viz.roofline import plot_roofline

__all__ = ["plot_roofline"]
