"""Checks a document against the schema, and creates the scenario that it describes.

Every check records its faults and continues, so one run reports all of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from typing import Any

from mlsysim.config.document import Document
from mlsysim.config.faults import KeyPath, refusal
from mlsysim.config.parts import Parts, kind_of
from mlsysim.core.errors import ConfigError, shown
from mlsysim.core.types import (
    Accelerator,
    Datacenter,
    Fleet,
    GridProfile,
    NetworkFabric,
    Node,
    Workload,
)
from mlsysim.scenario.accounts import MACRO_METRICS, SustainabilitySolver
from mlsysim.scenario.amounts import read_argument
from mlsysim.scenario.limits import METRICS, metrics_of
from mlsysim.scenario.names import entries
from mlsysim.scenario.scenario import Scenario
from mlsysim.scenario.systems import without_facility
from mlsysim.scenario.tasks import TASKS, Task

__all__ = ["KEYS", "MACRO_KEYS", "PRICES", "REGIONS", "SYSTEM_KEYS", "checked"]

KEYS = ("name", "description", "task", "model", "system", "arguments", "limits", "macro")
REQUIRED = ("name", "task", "model", "system")
SYSTEM_KEYS: dict[str, type] = {"hardware": Accelerator, "node": Node, "cluster": Fleet}
PRICES = {
    "kwh_price": "USD/kWh",
    "unit_price": "USD",
    "rental_price": "USD/h",
    "maintenance_rate": "1/year",
    "service_life": "year",
}
MACRO_KEYS = ("duration_days", "region", "facility", "utilization", *PRICES, "limits")
REGIONS = (GridProfile, Datacenter)
_MAX_NAME = 200


def checked(document: Document) -> Scenario:
    """Check everything, and return the scenario.

    Raises
    ------
    ConfigError
        If anything is wrong; its `faults` list everything.
    """
    scenario = _Checker(document).scenario()
    if document.faults or scenario is None:
        raise refusal(document.faults)
    return scenario


class _Checker(Parts):
    """Walks a document, noting faults in it."""

    def scenario(self) -> Scenario | None:
        data = self.section((), self._document.data, KEYS, REQUIRED)
        if data is None:
            return None
        task = self._task(data)
        values = {
            "name": self._text(data, "name"),
            "description": self._text(data, "description") or "",
            "task": task.name if task else None,
            "workload": self.entry(("model",), data.get("model"), (Workload,), "model"),
            "system": self._system(data.get("system")),
            "arguments": self._arguments(task, data.get("arguments", {})),
            "limits": self.limits(
                ("limits",),
                data.get("limits", {}),
                metrics_of(task.solver.result) if task else METRICS,
            ),
            **self._macro(data.get("macro", {})),
        }
        return None if self._document.faults else self._made(values)

    def _made(self, values: Mapping[str, Any]) -> Scenario | None:
        """Create the scenario, and report keys that are inconsistent."""
        task = TASKS[values["task"]]
        try:
            return Scenario(**values)
        except ConfigError as first:
            found = task.faults(values["workload"], values["system"], values["arguments"])
            if str(first) not in map(str, found):
                found = [first]
        for fault in found:
            self._document.also(_place(fault, task), str(fault))
        return None

    def _text(self, data: Mapping[str, Any], key: str) -> str | None:
        value = data.get(key)
        if key not in data:
            return None
        if not isinstance(value, str):
            self._document.fault((key,), f"is {kind_of(value)}: write text, in quotes if necessary")
        elif key == "name" and not 0 < len(value.strip()) <= _MAX_NAME:
            self._document.fault((key,), f"must have 1 to {_MAX_NAME} characters")
        return value if isinstance(value, str) else None

    def _task(self, data: Mapping[str, Any]) -> Task | None:
        value = data.get("task")
        if isinstance(value, str) and value in TASKS:
            return TASKS[value]
        if "task" in data:
            near = get_close_matches(str(value), TASKS, n=1)
            hint = f"; did you mean {near[0]}?" if near else ""
            self._document.fault(
                ("task",), f"{shown(value)} is not one of {', '.join(TASKS)}{hint}"
            )
        return None

    def _system(self, data: Any) -> Any:
        path: KeyPath = ("system",)
        built = ("node", "count", "fabric")
        found = self.section(path, data, (*SYSTEM_KEYS, "count", "fabric"))
        if not found:
            self._document.fault(path, "is empty: name one of hardware, node and cluster")
            return None
        named = [key for key in SYSTEM_KEYS if key in found]
        parts = [key for key in ("count", "fabric") if key in found]
        if len(named) != 1:
            self._document.fault(path, "must name exactly one of hardware, node and cluster")
            return None
        kind = named[0]
        row = self.entry((*path, kind), found[kind], (SYSTEM_KEYS[kind],), kind)
        if not parts:
            return row
        if kind != "node":
            self._document.fault(
                (*path, parts[0]),
                f"cannot be combined with {kind}: a fleet takes {', '.join(built)}",
            )
            return None
        if len(parts) == 1:
            missing = "fabric" if parts == ["count"] else "count"
            self._document.fault((*path, missing), "is missing: a fleet needs count and fabric")
            return None
        fabric = self.entry((*path, "fabric"), found["fabric"], (NetworkFabric,), "fabric")
        count = found["count"]
        if type(count) is not int or not 1 <= count <= 10**7:
            self._document.fault(
                (*path, "count"), f"is {shown(count)}: write a whole number from 1"
            )
        elif row is not None and fabric is not None:
            return Fleet(name=f"{count} x {row.name}", node=row, count=count, fabric=fabric)
        return None

    def _arguments(self, task: Task | None, data: Any) -> dict[str, Any]:
        path: KeyPath = ("arguments",)
        if not isinstance(data, Mapping):
            self.section(path, data, task.defaults if task else ())
            return {}
        if task is None:
            return {}
        for fault in task.name_faults(data):
            name = str(_argument_of(fault))
            self._document.fault((*path, name), str(fault), self._document.line_of((*path, name)))
        return {
            name: self._argument((*path, name), task, name, value)
            for name, value in data.items()
            if name in task.defaults
        }

    def _argument(self, path: KeyPath, task: Task, name: str, value: Any) -> Any:
        kind = task.parameters[name]
        try:
            return read_argument(kind, name, value)
        except ConfigError as fault:
            self._document.fault(path, str(fault))
        return value

    def _macro(self, data: Any) -> dict[str, Any]:
        path: KeyPath = ("macro",)
        found = self.section(path, data, MACRO_KEYS)
        values: dict[str, Any] = {}
        for key, value in (found or {}).items():
            place = (*path, key)
            if key in ("duration_days", "utilization"):
                values[key] = self._number(place, value)
            elif key == "region":
                values[key] = self.entry(place, value, REGIONS, "region")
            elif key in PRICES:
                values[key] = self._price(place, value, PRICES[key])
            elif key == "limits":
                values["macro_limits"] = self.limits(place, value, MACRO_METRICS)
            elif key == "facility":
                self._check_facility(place, value)
        grid = values.get("region")
        if (found or {}).get("facility") is False and isinstance(grid, GridProfile):
            values["region"] = without_facility(grid)
        return values

    def _check_facility(self, path: KeyPath, value: Any) -> None:
        region = self._document.data["macro"].get("region")
        if not isinstance(value, bool):
            self._document.fault(path, f"is {kind_of(value)}: write true or false")
        elif value is False and str(region) not in entries(GridProfile):
            self._document.fault(
                path, "is false, which needs a region that is a grid: a datacenter is a facility"
            )

    def _number(self, path: KeyPath, value: Any) -> Any:
        name = str(path[-1])
        if type(value) not in (int, float):
            self._document.fault(path, f"is {kind_of(value)}: write a number")
            return None
        try:
            SustainabilitySolver.parameters[name].admit(name, value)
        except ConfigError as fault:
            self._document.fault(path, str(fault))
        return value

    def _price(self, path: KeyPath, value: Any, unit: str) -> Any:
        price = self.amount(path, value, unit)
        if price is not None and price.magnitude < 0:
            self._document.fault(path, "is below zero: write zero or more")
        elif price is not None and path[-1] == "service_life" and not price.magnitude:
            self._document.fault(path, "is zero: write the years that the hardware serves")
        return price


def _argument_of(fault: ConfigError) -> str | None:
    name: str | None = getattr(fault, "argument", None)
    return name


def _place(fault: ConfigError, task: Task) -> KeyPath:
    """Return the key at which a fault of the scenario occurred."""
    name = _argument_of(fault) or ""
    if name in task.defaults:
        return ("arguments", name)
    places = {task.noun: "system", "system": "system", "workload": "model", "model": "model"}
    return (places[name],) if name in places else ()
