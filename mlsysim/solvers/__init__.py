"""Solvers: one question each."""

from mlsysim.solvers.distributed import DistributedSolver
from mlsysim.solvers.results import (
    DeviceStep,
    DistributedResult,
    Parallelism,
    SingleNodeResult,
)
from mlsysim.solvers.single_node import SingleNodeSolver

__all__ = [
    "DeviceStep",
    "DistributedModel",
    "DistributedResult",
    "DistributedSolver",
    "Engine",
    "Parallelism",
    "SingleNodeModel",
    "SingleNodeResult",
    "SingleNodeSolver",
]

# Names of the first edition that are in print.
DistributedModel = DistributedSolver
SingleNodeModel = SingleNodeSolver
Engine = SingleNodeSolver
