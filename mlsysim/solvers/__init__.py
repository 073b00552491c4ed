"""Solvers: one question each."""

from collections.abc import Mapping
from typing import Any

from mlsysim.solvers.base import Solver
from mlsysim.solvers.disaggregated import DisaggregatedResult, DisaggregatedSolver
from mlsysim.solvers.passes import SingleNodeResult, SingleNodeSolver
from mlsysim.solvers.reliability import ReliabilityResult, ReliabilitySolver
from mlsysim.solvers.running.economics import EconomicsResult, EconomicsSolver
from mlsysim.solvers.running.sustainability import SustainabilityResult, SustainabilitySolver
from mlsysim.solvers.serving.solver import ServingResult, ServingSolver
from mlsysim.solvers.traffic.solver import OpenLoopResult, OpenLoopSolver
from mlsysim.solvers.training.result import DeviceStep, DistributedResult, Parallelism
from mlsysim.solvers.training.solver import DistributedSolver

__all__ = [
    "QUESTIONS",
    "DeviceStep",
    "DisaggregatedResult",
    "DisaggregatedSolver",
    "DistributedResult",
    "DistributedSolver",
    "EconomicsResult",
    "EconomicsSolver",
    "OpenLoopResult",
    "OpenLoopSolver",
    "Parallelism",
    "ReliabilityResult",
    "ReliabilitySolver",
    "ServingResult",
    "ServingSolver",
    "SingleNodeResult",
    "SingleNodeSolver",
    "SustainabilityResult",
    "SustainabilitySolver",
]

QUESTIONS: Mapping[str, type[Solver[Any, Any]]] = {
    "inference": SingleNodeSolver,
    "serving": ServingSolver,
    "open-loop": OpenLoopSolver,
    "disaggregated": DisaggregatedSolver,
    "training": DistributedSolver,
    "sustainability": SustainabilitySolver,
    "economics": EconomicsSolver,
    "reliability": ReliabilitySolver,
}
"""The solver of each question, as commands and tables of measurements name it."""
