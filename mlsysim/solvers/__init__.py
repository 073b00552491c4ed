"""Solvers: one question each."""

from collections.abc import Mapping
from typing import Any

from mlsysim.solvers.base import Solver
from mlsysim.solvers.disaggregated import DisaggregatedSolver
from mlsysim.solvers.disaggregated_result import DisaggregatedResult
from mlsysim.solvers.passes.result import SingleNodeResult
from mlsysim.solvers.passes.solver import SingleNodeSolver
from mlsysim.solvers.reliability import ReliabilityResult, ReliabilitySolver
from mlsysim.solvers.running.economics import EconomicsResult, EconomicsSolver
from mlsysim.solvers.running.sustainability import SustainabilityResult, SustainabilitySolver
from mlsysim.solvers.serving.result import ServingResult
from mlsysim.solvers.serving.solver import ServingSolver
from mlsysim.solvers.traffic.result import OpenLoopResult
from mlsysim.solvers.traffic.solver import OpenLoopSolver
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
