"""Scenarios: a workload, the system that it runs on, its limits, and whether it meets them."""

from mlsysim.core.result import plain
from mlsysim.scenario.catalog import Scenarios
from mlsysim.scenario.scenario import TASKS, Limit, Scenario, Task
from mlsysim.scenario.scorecard import Check, Level, Scorecard, evaluate
from mlsysim.scenario.systems import part_of_server, standalone_fleet

__all__ = [
    "TASKS",
    "Check",
    "Level",
    "Limit",
    "Scenario",
    "Scenarios",
    "Scorecard",
    "Task",
    "evaluate",
    "part_of_server",
    "plain",
    "standalone_fleet",
]
