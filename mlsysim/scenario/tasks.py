"""Tasks: the solver for a scenario, and its arguments."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cached_property
from typing import Any

from mlsysim.core.errors import ConfigError, UnknownEntryError
from mlsysim.core.types import Workload
from mlsysim.scenario.systems import System, device_of, node_of, standalone_fleet
from mlsysim.solvers import DistributedSolver, ServingSolver, SingleNodeSolver
from mlsysim.solvers.arguments import Argument
from mlsysim.solvers.base import Solver

__all__ = ["TASKS", "Task"]


def _server(system: System) -> System:
    """Return the hardware of one copy of a served model: a device, or the devices of a node."""
    return device_of(system) if node_of(system).accelerators_per_node == 1 else node_of(system)


@dataclass(frozen=True)
class Task:
    """The kind of question that a scenario poses.

    Attributes
    ----------
    solver : type
        The solver of the task.
    noun : str
        The argument for the system.
    part : callable
        Picks the part of a device, node or fleet that the solver takes.
    memory : str
        Field of the result that is compared with the device's memory.
    tokens : str
        Field of the result that counts tokens per second; empty if there is none.
    unbroken : bool
        Whether the task runs all the time, so that the power of its result is the system's.
    """

    name: str
    solver: type[Solver[Any, Any]]
    noun: str
    part: Callable[[System], Any]
    memory: str
    tokens: str = ""
    unbroken: bool = False

    @cached_property
    def defaults(self) -> dict[str, Any]:
        """Every argument that a scenario may set, with its default."""
        known = inspect.signature(self.solver.solve).parameters
        return {n: item.default for n, item in known.items() if n not in ("model", self.noun)}

    @property
    def parameters(self) -> dict[str, Argument]:
        """Every argument that a scenario may set, with its kind."""
        return {name: self.solver.parameters[name] for name in self.defaults}

    def given(
        self, workload: Workload, system: System, arguments: Mapping[str, Any]
    ) -> dict[str, Any]:
        """Return the solver's arguments for a workload on a system."""
        return {"model": workload, self.noun: self.part(system), **arguments}

    def name_faults(self, arguments: Mapping[str, Any]) -> Iterator[ConfigError]:
        """Yield a fault for each unknown and for each missing argument."""
        for name in arguments:
            if name not in self.defaults:
                near = get_close_matches(str(name), self.defaults, n=1)
                hint = f"did you mean {near[0]}?" if near else f"known: {', '.join(self.defaults)}"
                yield UnknownEntryError(
                    f"{name} is not an argument of {self.name}; {hint}", argument=str(name)
                )
        for name, default in self.defaults.items():
            if default is inspect.Parameter.empty and name not in arguments:
                wanted = getattr(self.solver.parameters[name], "wanted", "a value")
                yield ConfigError(
                    f"{name} is missing and has no default in {self.name}: give {wanted}",
                    argument=name,
                )

    def value_faults(self, arguments: Mapping[str, Any]) -> Iterator[ConfigError]:
        """Yield a fault for each argument with an invalid value."""
        for name, value in arguments.items():
            if name in self.defaults:
                try:
                    self.solver.parameters[name].admit(name, value)
                except ConfigError as fault:
                    yield fault

    def joint_faults(
        self, workload: Workload, system: System, arguments: Mapping[str, Any]
    ) -> Iterator[ConfigError]:
        """Yield a fault for each rule that the arguments break together."""
        given = {**self.defaults, **self.given(workload, system, arguments)}
        try:
            inputs = self.solver.admit(given)
        except ConfigError as fault:
            yield fault
            return
        yield from self.solver.faults(inputs)

    def faults(
        self, workload: Workload, system: System, arguments: Mapping[str, Any]
    ) -> list[ConfigError]:
        """Return all faults that prevent the solver from running."""
        found = [*self.name_faults(arguments), *self.value_faults(arguments)]
        return found or list(self.joint_faults(workload, system, arguments))

    def solve(self, workload: Workload, system: System, arguments: Mapping[str, Any]) -> Any:
        """Run the solver.

        Raises
        ------
        MLSysError
            If the arguments contradict each other.
        """
        for fault in self.faults(workload, system, arguments):
            raise fault
        return self.solver.solve(**self.given(workload, system, arguments))


TASKS: dict[str, Task] = {
    task.name: task
    for task in (
        Task("inference", SingleNodeSolver, "hardware", device_of, memory="memory"),
        Task(
            "serving",
            ServingSolver,
            "hardware",
            _server,
            "total_memory_required",
            "output_throughput",
            unbroken=True,
        ),
        Task(
            "training",
            DistributedSolver,
            "fleet",
            standalone_fleet,
            "memory",
            "token_throughput",
            unbroken=True,
        ),
    )
}
"""The tasks by name."""
