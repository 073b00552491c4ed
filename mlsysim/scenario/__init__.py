"""Scenarios: a workload, the system that it runs on, and its limits."""

from mlsysim.scenario.catalog import Scenarios
from mlsysim.scenario.limits import Limit
from mlsysim.scenario.scenario import Scenario
from mlsysim.scenario.systems import standalone_fleet
from mlsysim.scenario.tasks import TASKS, Task

__all__ = ["TASKS", "Limit", "Scenario", "Scenarios", "Task", "standalone_fleet"]
