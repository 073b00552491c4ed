"""The schema of configurations, and the checks of a document."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from typing import Any

from mlsysim.core.errors import ConfigError, shown
from mlsysim.core.types import (
    Accelerator,
    Calibration,
    Datacenter,
    Fleet,
    GridProfile,
    NetworkFabric,
    Node,
    TransformerModel,
    Workload,
)
from mlsysim.core.units import read_amount
from mlsysim.registry.names import entries
from mlsysim.scenario.files import Document, KeyPath, kind_of, refusal
from mlsysim.scenario.names import FILE, MODEL_FILE, PART, find_entry, read_argument
from mlsysim.scenario.scenario import (
    MACRO_METRICS,
    METRICS,
    TASKS,
    Limit,
    Scenario,
    Task,
    metrics_of,
)
from mlsysim.scenario.systems import without_facility
from mlsysim.solvers import SustainabilitySolver
from mlsysim.solvers.arguments import (
    Amount,
    Argument,
    Choice,
    Noun,
    Portion,
    PrecisionName,
    Share,
    Switch,
    Whole,
)
from mlsysim.solvers.signatures import notes_of

__all__ = ["KEYS", "checked", "json_schema"]

BOUNDS = ("at_most", "at_least")


class Parts:
    """Reads parts of a document and records their faults."""

    def __init__(self, document: Document) -> None:
        self._document = document

    def section(
        self, path: KeyPath, data: Any, keys: Iterable[str], required: Iterable[str] = ()
    ) -> Mapping[str, Any] | None:
        """Check that a value is a mapping with only known keys and all required ones."""
        known = tuple(keys)
        if not isinstance(data, Mapping):
            shown = "is empty" if data is None else f"is {kind_of(data)}"
            self._document.fault(path, f"{shown}: write keys and values: {', '.join(known)}")
            return None
        for key in data:
            if key not in known:
                near = get_close_matches(key, known, n=1)
                hint = f"did you mean {near[0]}?" if near else f"allowed: {', '.join(known)}"
                self._document.fault((*path, key), f"unknown key; {hint}")
        for key in required:
            if key not in data:
                self._document.fault((*path, key), "is missing", self._document.line_of(path))
        return data

    def entry(self, path: KeyPath, value: Any, kinds: tuple[type, ...], label: str) -> Any:
        """Look up a registry row by name."""
        if not isinstance(value, str):
            self._document.fault(path, f"is {kind_of(value)}: write the name of a {label}")
            return None
        try:
            return find_entry(value, kinds, label)
        except ConfigError as fault:
            self._document.fault(path, str(fault))
            return None

    def limits(self, path: KeyPath, data: Any, metrics: Mapping[str, str]) -> tuple[Limit, ...]:
        """Read limits on any of `metrics`, which are given with their units."""
        if self.section(path, data, metrics) is None:
            return ()
        found = (
            self._limit((*path, metric), metric, bounds, metrics[metric])
            for metric, bounds in data.items()
            if metric in metrics
        )
        return tuple(limit for limit in found if limit is not None)

    def _limit(self, path: KeyPath, metric: str, data: Any, unit: str) -> Limit | None:
        bounds = self.section(path, data, BOUNDS)
        if bounds is None:
            return None
        if not any(name in bounds for name in BOUNDS):
            self._document.fault(path, "has no bound: give at_most or at_least")
            return None
        amounts = {
            name: self.amount((*path, name), bounds[name], unit)
            for name in BOUNDS
            if name in bounds
        }
        if any(amount is None for amount in amounts.values()):
            return None
        try:
            return Limit(metric=metric, **amounts)
        except ConfigError as fault:
            self._document.fault(path, str(fault))
            return None

    def amount(self, path: KeyPath, value: Any, unit: str) -> Any:
        """Read a bound or a price: text with a unit, or a plain number if there is no unit."""
        name = str(path[-1])
        try:
            if isinstance(value, str):
                amount = read_amount(value, unit, name)
                return amount if unit else amount.to("").magnitude
            if type(value) in (int, float) and not unit:
                return value
        except ConfigError as fault:
            self._document.fault(path, str(fault))
            return None
        wanted = f'write a number and a unit, as in "5 {unit}"' if unit else "write a number"
        self._document.fault(path, f"is {kind_of(value)}: {wanted}")
        return None


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


Schema = dict[str, Any]
_NUMBER: Schema = {"type": "number", "minimum": 0}


def json_schema() -> Schema:
    """Compose the schema."""
    texts: dict[str, Schema] = {
        "name": {"type": "string", "minLength": 1, "maxLength": 200},
        "description": {"type": "string"},
        "task": {"enum": list(TASKS)},
        "model": _models(Workload),
        "system": _system(),
        "arguments": {"type": "object"},
        "limits": {"type": "object"},
        "macro": _macro(),
    }
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "mlsysim configuration",
        **_object({key: texts[key] for key in KEYS}, required=REQUIRED),
        "allOf": [_when(task) for task in TASKS.values()],
    }


def _object(properties: Mapping[str, Schema], **rest: Any) -> Schema:
    rest = {key: list(value) if isinstance(value, tuple) else value for key, value in rest.items()}
    return {
        "type": "object",
        "properties": dict(properties),
        "additionalProperties": False,
        **rest,
    }


def _names(*kinds: type) -> Schema:
    return {"enum": sorted(entries(*kinds))}


def _models(kind: type) -> Schema:
    """A model of the zoo, or the path of its configuration."""
    return {"anyOf": [_names(kind), {"type": "string", "pattern": MODEL_FILE.pattern}]}


def _hardware(kind: type) -> Schema:
    """A row of the zoo, the path of its file, or a part of a server."""
    patterns = {Accelerator: [FILE], Node: [FILE, PART]}.get(kind, [])
    files = [{"type": "string", "pattern": f"{pattern.pattern}$"} for pattern in patterns]
    return {"anyOf": [_names(kind), *files]} if files else _names(kind)


def _system() -> Schema:
    rows = {key: _hardware(kind) for key, kind in SYSTEM_KEYS.items()}
    fleet = {
        "node": rows["node"],
        "count": {"type": "integer", "minimum": 1, "maximum": 10**7},
        "fabric": _names(NetworkFabric),
    }
    alone = [_object({key: row}, required=(key,)) for key, row in rows.items()]
    return {"oneOf": [*alone, _object(fleet, required=tuple(fleet))]}


def _when(task: Task) -> Schema:
    """Compose the schema of a task: the arguments and results of its solver."""
    notes = notes_of(task.solver.solve)
    arguments = {
        name: _argument(kind, task.defaults[name], notes.get(name, ""))
        for name, kind in task.parameters.items()
    }
    missing = [n for n, default in task.defaults.items() if default is inspect.Parameter.empty]
    then: Schema = {
        "properties": {
            "arguments": _object(arguments, required=missing),
            "limits": _limits(metrics_of(task.solver.result)),
        }
    }
    if task.name != "inference":
        then["properties"]["model"] = _models(TransformerModel)
    if missing:
        then["required"] = ["arguments"]
    asked: Schema = {"properties": {"task": {"const": task.name}}, "required": ["task"]}
    return {"if": asked, "then": then}


def _argument(kind: Argument, default: Any, note: str) -> Schema:
    schema: Schema = {"description": note} if note else {}
    value = _value(kind)
    if kind.optional:
        value = {"anyOf": [*value.get("anyOf", [value]), {"type": "null"}]}
    schema |= value
    if default is not inspect.Parameter.empty:
        schema["default"] = default
    return schema


def _value(kind: Argument) -> Schema:
    match kind:
        case Whole():
            return {"type": "integer", "minimum": kind.minimum}
        case Portion():
            return {"type": "number", "minimum": 0, "maximum": 1}
        case Share():
            return {"type": "number", "exclusiveMinimum": 0, "maximum": 1}
        case Switch():
            return {"type": "boolean"}
        case Choice():
            return {"enum": list(kind.options or {})}
        case PrecisionName():
            return {"enum": list(kind.names)}
        case Amount():
            return _amount(kind.unit)
        case Noun() if Calibration in kind.kinds:
            return {"anyOf": [_names(*kind.kinds), {"type": "string", "pattern": FILE.pattern}]}
        case Noun():
            return _names(*kind.kinds)
    return {}


def _amount(unit: str) -> Schema:
    """A number and a unit as text; a plain number if there is no unit."""
    text: Schema = {"type": "string", "pattern": "^[-+]?[0-9]"}
    return {**text, "examples": [f"5 {unit}"]} if unit else {"anyOf": [_NUMBER, text]}


def _limits(metrics: Mapping[str, str]) -> Schema:
    return _object(
        {
            name: _object(dict.fromkeys(BOUNDS, _amount(unit)), minProperties=1)
            for name, unit in metrics.items()
        }
    )


def _macro() -> Schema:
    texts: dict[str, Schema] = {
        "duration_days": {"type": "number", "exclusiveMinimum": 0},
        "region": _names(*REGIONS),
        "facility": {"type": "boolean", "default": True},
        "utilization": {
            "type": "number",
            "minimum": 0,
            "maximum": 1,
            "description": "Position of the devices' power between idle (0) and design power (1). "
            "If left out, it is predicted from the workload for training and serving, and "
            "otherwise 1, an upper bound.",
        },
        **{name: _amount(unit) for name, unit in PRICES.items()},
        "limits": _limits(MACRO_METRICS),
    }
    return _object({key: texts[key] for key in MACRO_KEYS})
