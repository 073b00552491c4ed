"""Answers of the solvers: every field with its unit and its meaning."""

from mlsysim.solvers.results.distributed import DeviceStep, DistributedResult, Parallelism
from mlsysim.solvers.results.serving import ServingResult
from mlsysim.solvers.results.single_node import SingleNodeResult

__all__ = ["DeviceStep", "DistributedResult", "Parallelism", "ServingResult", "SingleNodeResult"]
