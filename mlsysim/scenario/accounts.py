"""The macro level: the solvers for energy, carbon, water and cost."""

from __future__ import annotations

from typing import Any

from mlsysim.core.fields import units_of
from mlsysim.solvers import EconomicsSolver, SustainabilitySolver
from mlsysim.solvers.base import Solver

__all__ = [
    "MACRO_FIGURES",
    "MACRO_METRICS",
    "MACRO_SOLVERS",
    "EconomicsSolver",
    "SustainabilitySolver",
]

MACRO_SOLVERS: tuple[type[Solver[Any, Any]], ...] = (SustainabilitySolver, EconomicsSolver)

MACRO_METRICS: dict[str, str] = {
    name: unit for solver in MACRO_SOLVERS for name, unit, _ in units_of(solver.result)
}
"""Every metric of the macro level, with its unit."""

MACRO_FIGURES = ("total_energy", "carbon_footprint", "water_usage", "period_cost")
"""Metrics that a scorecard reports for a scenario with a duration and a location."""
