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
    "DistributedModel",
    "DistributedResult",
    "DistributedSolver",
    "EconomicsModel",
    "EconomicsResult",
    "EconomicsSolver",
    "Engine",
    "Parallelism",
    "ReliabilityModel",
    "ReliabilityResult",
    "ReliabilitySolver",
    "ServingModel",
    "ServingResult",
    "ServingSolver",
    "SingleNodeModel",
    "SingleNodeResult",
    "SingleNodeSolver",
    "SustainabilityModel",
    "SustainabilityResult",
    "SustainabilitySolver",
]

# Names of the first edition that are in print.
DistributedModel = DistributedSolver
EconomicsModel = EconomicsSolver
ReliabilityModel = ReliabilitySolver
ServingModel = ServingSolver
SingleNodeModel = SingleNodeSolver
SustainabilityModel = SustainabilitySolver
Engine = SingleNodeSolver
