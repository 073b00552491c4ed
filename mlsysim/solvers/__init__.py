"""Solvers: one question each."""

from mlsysim.solvers.distributed import DistributedSolver
from mlsysim.solvers.results import (
    DeviceStep,
    DistributedResult,
    Parallelism,
    ServingResult,
    SingleNodeResult,
)
from mlsysim.solvers.serving import ServingSolver
from mlsysim.solvers.single_node import SingleNodeSolver

__all__ = [
    "DeviceStep",
    "DistributedModel",
    "DistributedResult",
    "DistributedSolver",
    "Engine",
    "Parallelism",
    "ServingModel",
    "ServingResult",
    "ServingSolver",
    "SingleNodeModel",
    "SingleNodeResult",
    "SingleNodeSolver",
]

# Names of the first edition that are in print.
DistributedModel = DistributedSolver
ServingModel = ServingSolver
SingleNodeModel = SingleNodeSolver
Engine = SingleNodeSolver
