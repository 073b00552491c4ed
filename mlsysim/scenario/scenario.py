"""Scenarios: a task, a workload, its system, and the limits to meet."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from mlsysim.core.errors import ConfigError, UnknownEntryError, hint, shown
from mlsysim.core.fields import Record, number, quantity, record, require, si_number, units_of
from mlsysim.core.result import Result
from mlsysim.core.types import (
    Accelerator,
    Datacenter,
    Fleet,
    GridProfile,
    Node,
    TransformerModel,
    Workload,
)
from mlsysim.core.units import Quantity, is_quantity, si_factor, strip, told
from mlsysim.scenario.systems import SYSTEMS, System, device_of, node_of, standalone_fleet
from mlsysim.solvers import (
    DistributedSolver,
    EconomicsSolver,
    ServingSolver,
    SingleNodeSolver,
    SustainabilitySolver,
)
from mlsysim.solvers.arguments import Argument
from mlsysim.solvers.base import Solver


def _server(system: System) -> System:
    """Return the hardware of one copy of a served model: a device, or the devices of a node."""
    return device_of(system) if node_of(system).accelerators_per_node == 1 else node_of(system)


@dataclass(frozen=True)
class Task:
    """The kind of question that a scenario poses."""

    name: str
    solver: type[Solver[Any, Any]]
    noun: str
    """The argument for the system."""
    part: Callable[[System], Any]
    """Function that picks the part of a device, node or fleet that the solver takes."""
    memory: str
    """Field of the result that is compared with the device's memory."""
    tokens: str = ""
    """Field of the result that counts tokens per second; empty if there is none."""
    unbroken: bool = False
    """Whether the task runs all the time, so that the power of its result is the system's."""

    @cached_property
    def defaults(self) -> dict[str, Any]:
        """Every argument that a scenario may set, with its default."""
        usual = self.solver.defaults
        return {n: default for n, default in usual.items() if n not in ("model", self.noun)}

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
                nearest = hint(name, self.defaults, f"known: {', '.join(self.defaults)}")
                yield UnknownEntryError(
                    f"{name} is not an argument of {self.name}; {nearest}", argument=str(name)
                )
        for name, default in self.defaults.items():
            if default is inspect.Parameter.empty and name not in arguments:
                example = getattr(self.solver.parameters[name], "wanted", "a value")
                yield ConfigError(
                    f"{name} is missing and has no default in {self.name}: give {example}",
                    argument=name,
                )

    def faults(
        self, workload: Workload, system: System, arguments: Mapping[str, Any]
    ) -> list[ConfigError]:
        """Return all faults that prevent the solver from running."""
        faults = list(self.name_faults(arguments))
        for name in filter(self.defaults.__contains__, arguments):
            try:
                self.solver.parameters[name].admit(name, arguments[name])
            except ConfigError as fault:
                faults.append(fault)
        if faults:
            return faults
        try:
            inputs = self.solver.admit(self.given(workload, system, arguments))
        except ConfigError as fault:
            return [fault]
        return list(self.solver.faults(inputs))


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


def metrics_of(*solvers: type[Solver[Any, Any]]) -> dict[str, str]:
    """Return the fields of solvers' results that can have a limit, with their units."""
    return {name: unit for solver in solvers for name, unit, _ in units_of(solver.result)}


MACRO_SOLVERS: tuple[type[Solver[Any, Any]], ...] = (SustainabilitySolver, EconomicsSolver)
MACRO_METRICS = metrics_of(*MACRO_SOLVERS)
"""Every metric of the macro level, with its unit."""
MACRO_FIGURES = ("total_energy", "carbon_footprint", "water_usage", "period_cost")
"""Metrics that a scorecard reports for a scenario with a duration and a location."""
METRICS = metrics_of(*(task.solver for task in TASKS.values()), *MACRO_SOLVERS)
"""Every metric that a scenario can limit, with its unit."""


@record
class Limit(Record):
    """A bound on a metric, from above, from below, or both.

    Attributes
    ----------
    metric : str
        A numeric field of a solver's result, such as ``"latency"``; or, for the macro level,
        of `SustainabilitySolver` or `EconomicsSolver`, such as ``"carbon_footprint"``.
    at_most, at_least : Quantity, float or None
        The bounds, of the metric's dimension. At least one is given.

    Examples
    --------
    >>> from mlsysim import Limit, Q_
    >>> print(Limit(metric="latency", at_most=Q_(200, "ms")))
    latency at most 200 ms
    """

    metric: str
    at_most: Quantity | float | None = None
    at_least: Quantity | float | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.metric, str) or self.metric not in METRICS:
            raise UnknownEntryError.build(self.metric, "metric", METRICS)
        low, high = (self._bound(name) for name in ("at_least", "at_most"))
        if low is None and high is None:
            raise ConfigError(f"{self.metric} has no bound: give at_most or at_least")
        if low is not None and high is not None and low > high:
            raise ConfigError(
                f"{self.metric}: at_least = {told(self.at_least)} is above at_most = "
                f"{told(self.at_most)}",
                argument="at_least",
            )

    def _bound(self, name: str) -> float | None:
        value = getattr(self, name)
        if value is None:
            return None
        label = f"{self.metric} {name}"
        return si_number(value, label, name, {"unit": METRICS[self.metric], "zero": True})

    def bounds(self) -> Iterable[tuple[str, Any]]:
        """Yield ``("at_most", value)`` and ``("at_least", value)``, if they are given."""
        for name in ("at_most", "at_least"):
            if getattr(self, name) is not None:
                yield name, getattr(self, name)

    def allows(self, value: Any) -> bool:
        """Return whether a value of the metric meets the limit; an unknown value does not."""
        if value is None:
            return False
        number = strip(value, METRICS[self.metric], self.metric)
        low, high = self._bound("at_least"), self._bound("at_most")
        return (low is None or number >= low) and (high is None or number <= high)

    def __str__(self) -> str:
        bounds = (f"{name.replace('_', ' ')} {value}" for name, value in self.bounds())
        return f"{self.metric} {' and '.join(bounds)}"


@record
class Scenario(Record):
    """A workload on a system, with limits that it must meet.

    A scenario is checked when it is created: every argument, and whether they are consistent. It
    has everything that `evaluate` needs for three questions: does it fit, is it fast enough, and
    what does it cost in money, carbon and water?

    Attributes
    ----------
    name : str
        Name of the scenario.
    description : str
        One sentence about it.
    task : str
        The task: ``"inference"`` (one forward pass on one device), ``"serving"`` (requests served
        by a device or a node) or ``"training"`` (a step on the whole fleet).
    workload : Workload
        The model.
    system : Accelerator, Node or Fleet
        The system it runs on. The solver receives the part that the task uses; energy and cost are
        those of the whole system.
    arguments : Mapping[str, object]
        Further arguments of the task's solver.
    limits : tuple of Limit
        Limits on the solver's result.
    duration_days : float or None
        Days that the system runs, or a quantity of time, which is converted to days.
    region : GridProfile, Datacenter or None
        Where it runs.
    kwh_price : Quantity or None
        Price of electricity; `None` takes the default of `EconomicsSolver`.
    unit_price : Quantity or None
        Price of one node with its devices; `None` takes the registry's.
    rental_price : Quantity or None
        Price of renting one device for an hour; `None` if hardware is bought.
    maintenance_rate : Quantity or None
        Repair and support per year, as a share of the purchase price, such as ``Q_(0.05,
        "1/year")``; `None` takes the default of `EconomicsSolver`.
    service_life : Quantity or None
        Time over which hardware is depreciated; `None` takes the default of `EconomicsSolver`.
    utilization : float or None
        Position of the devices' power between idle (0) and design power (1). For training and
        serving, which run all the time, `None` takes the prediction of the result; otherwise it
        takes 1, an upper bound. The scorecard reports which one was used.
    macro_limits : tuple of Limit
        Limits on energy, carbon, water and cost.

    Examples
    --------
    >>> from mlsysim import Hardware, Limit, Models, Q_, Scenario
    >>> scenario = Scenario(
    ...     name="Camera",
    ...     task="inference",
    ...     workload=Models.ResNet50,
    ...     system=Hardware.T4,
    ...     limits=(Limit(metric="latency", at_most=Q_(10, "ms")),),
    ... )
    >>> scenario.solve().feasible
    True
    """

    name: str
    task: str
    workload: Workload
    system: Accelerator | Node | Fleet
    description: str = ""
    arguments: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    limits: tuple[Limit, ...] = ()
    # A quantity is converted to plain days.
    duration_days: Any = number(default=None)
    region: GridProfile | Datacenter | None = None
    kwh_price: Quantity | None = quantity("USD/kWh", default=None, zero=True)
    unit_price: Quantity | None = quantity("USD", default=None, zero=True)
    rental_price: Quantity | None = quantity("USD/h", default=None, zero=True)
    maintenance_rate: Quantity | None = quantity("1/year", default=None, zero=True)
    service_life: Quantity | None = quantity("year", default=None)
    utilization: float | None = number(default=None, zero=True, most=1)
    macro_limits: tuple[Limit, ...] = ()

    def __post_init__(self) -> None:
        if is_quantity(self.duration_days):  # in the form that solvers take
            days = strip(self.duration_days, "day", "duration_days") / si_factor("day")
            self._keep("duration_days", days)
        super().__post_init__()
        require(self, arguments=Mapping)
        for field in ("limits", "macro_limits"):
            limits = getattr(self, field)
            if not isinstance(limits, (tuple, frozenset, Iterator)):
                raise ConfigError(
                    f"{field} = {shown(limits)} is not a tuple of limits: pass (Limit(...),)",
                    argument=field,
                )
            self._keep(field, tuple(limits))
        for fault in self.faults():
            raise fault

    @property
    def question(self) -> Task:
        """The task: its solver, and the part of the system that it uses."""
        return TASKS[self.task]

    @property
    def fleet(self) -> Fleet:
        """The whole system as a fleet; a single device or node has no peers."""
        return standalone_fleet(self.system)

    def solve(self) -> Any:
        """Run the task's solver.

        Returns
        -------
        SingleNodeResult, ServingResult or DistributedResult
            The solver's result, which can show its work.
        """
        arguments = self.question.given(self.workload, self.system, self.arguments)
        answer: Result = self.question.solver.solve(**arguments)
        return answer

    def faults(self) -> list[ConfigError]:
        """Return everything that is wrong with the scenario; a valid scenario has no faults."""
        faults = list(self._field_faults())
        return faults or self.question.faults(self.workload, self.system, self.arguments)

    def _field_faults(self) -> Iterator[ConfigError]:
        if self.task not in TASKS:
            yield UnknownEntryError.build(self.task, "task", TASKS)
            return
        kinds: dict[str, tuple[type, ...]] = {"workload": (Workload,), "system": SYSTEMS}
        if self.region is not None:
            kinds["region"] = (GridProfile, Datacenter)
        for field, wanted in kinds.items():
            if not isinstance(getattr(self, field), wanted):
                names = " or ".join(kind.__name__ for kind in wanted)
                yield ConfigError(
                    f"{field} = {shown(getattr(self, field))} is not a {names}", argument=field
                )
        if self.task != "inference" and not isinstance(self.workload, TransformerModel):
            yield ConfigError(
                f"workload = {shown(self.workload)} has no layers to split or cache: {self.task} "
                "takes a transformer such as Models.Llama3_8B",
                argument="workload",
            )
        limited = {"limits": metrics_of(self.question.solver), "macro_limits": MACRO_METRICS}
        for field, metrics in limited.items():
            for limit in getattr(self, field):
                if not isinstance(limit, Limit):
                    yield ConfigError(
                        f"{field} holds {shown(limit)}: pass Limit(...)", argument=field
                    )
                elif limit.metric not in metrics:
                    yield UnknownEntryError.build(limit.metric, f"{self.task} metric", metrics)
