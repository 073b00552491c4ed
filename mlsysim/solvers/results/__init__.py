"""Answers of the solvers: every field with its unit and its meaning."""

from mlsysim.solvers.results.distributed import DeviceStep, DistributedResult, Parallelism
from mlsysim.solvers.results.economics import EconomicsResult
from mlsysim.solvers.results.reliability import ReliabilityResult
from mlsysim.solvers.results.serving import ServingResult
from mlsysim.solvers.results.single_node import SingleNodeResult
from mlsysim.solvers.results.sustainability import SustainabilityResult

__all__ = [
    "DeviceStep",
    "DistributedResult",
    "EconomicsResult",
    "Parallelism",
    "ReliabilityResult",
    "ServingResult",
    "SingleNodeResult",
    "SustainabilityResult",
]
