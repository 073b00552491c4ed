"""Solvers: one question each."""

from mlsysim.solvers.distributed import DistributedSolver
from mlsysim.solvers.economics import EconomicsSolver
from mlsysim.solvers.reliability import ReliabilitySolver
from mlsysim.solvers.results import (
    DeviceStep,
    DistributedResult,
    EconomicsResult,
    Parallelism,
    ReliabilityResult,
    ServingResult,
    SingleNodeResult,
    SustainabilityResult,
)
from mlsysim.solvers.serving import ServingSolver
from mlsysim.solvers.single_node import SingleNodeSolver
from mlsysim.solvers.sustainability import SustainabilitySolver

__all__ = [
    "DeviceStep",
    "DistributedResult",
    "DistributedSolver",
    "EconomicsResult",
    "EconomicsSolver",
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
