"""Sweeps: one solver over many configurations at once."""

from mlsysim.sweeps.reductions import Best, Pareto, Quantiles
from mlsysim.sweeps.tables import Sweep, sweep

__all__ = ["Best", "Pareto", "Quantiles", "Sweep", "sweep"]
