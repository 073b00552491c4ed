"""A scenario: a workload, its system, and the limits to meet."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from typing import Any

from mlsysim.core.errors import ConfigError, UnknownEntryError, shown
from mlsysim.core.fields import Record, number, quantity, record, require
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
from mlsysim.core.units import Quantity, is_quantity, si_factor, strip
from mlsysim.scenario.accounts import MACRO_METRICS, SustainabilitySolver
from mlsysim.scenario.limits import Limit, metrics_of
from mlsysim.scenario.systems import SYSTEMS, standalone_fleet
from mlsysim.scenario.tasks import TASKS, Task

__all__ = ["Scenario"]


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
    utilization: float | None = number(default=None, zero=True)
    macro_limits: tuple[Limit, ...] = ()

    def __post_init__(self) -> None:
        if is_quantity(self.duration_days):  # in the form that solvers take
            days = strip(self.duration_days, "day", "duration_days") / si_factor("day")
            self._keep("duration_days", days)
        super().__post_init__()
        require(self, arguments=Mapping)
        for field in ("limits", "macro_limits"):
            given = getattr(self, field)
            if not isinstance(given, (tuple, frozenset, Iterator)):
                raise ConfigError(
                    f"{field} = {shown(given)} is not a tuple of limits: pass (Limit(...),)",
                    argument=field,
                )
            self._keep(field, tuple(given))
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
        answer: Result = self.question.solve(self.workload, self.system, self.arguments)
        return answer

    def faults(self) -> list[ConfigError]:
        """Return everything that is wrong with the scenario; a valid scenario has no faults."""
        found = list(self._field_faults())
        return found or self.question.faults(self.workload, self.system, self.arguments)

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
        if self.utilization is not None:
            try:
                SustainabilitySolver.parameters["utilization"].admit(
                    "utilization", self.utilization
                )
            except ConfigError as fault:
                yield fault
        known = {"limits": metrics_of(self.question.solver.result), "macro_limits": MACRO_METRICS}
        for field, metrics in known.items():
            for limit in getattr(self, field):
                if not isinstance(limit, Limit):
                    yield ConfigError(
                        f"{field} holds {shown(limit)}: pass Limit(...)", argument=field
                    )
                elif limit.metric not in metrics:
                    yield UnknownEntryError.build(limit.metric, f"{self.task} metric", metrics)
