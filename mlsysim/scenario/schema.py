"""The schema of configurations: JSON Schema for editors, and the readers of each value.

JSON Schema cannot express rules such as sizes that must tile a fleet, and names have several
spellings, so the functions that read the values decide about them.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from functools import cache, partial
from typing import Any, cast

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
from mlsysim.registry.names import entries
from mlsysim.scenario.files import (
    Document,
    KeyPath,
    Schema,
    amount_of,
    kind_of,
    public,
    refusal,
    section,
)
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
from mlsysim.scenario.systems import System, without_facility
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

KEYS = ("name", "description", "task", "model", "system", "arguments", "limits", "macro")
_REQUIRED = ("name", "task", "model", "system")
_SYSTEMS: dict[str, type] = {"hardware": Accelerator, "node": Node, "cluster": Fleet}
_PRICES = {
    "kwh_price": "USD/kWh",
    "unit_price": "USD",
    "rental_price": "USD/h",
    "maintenance_rate": "1/year",
    "service_life": "year",
}
_BOUNDS = ("at_most", "at_least")
_MAX_NAME = 200
_MOST_NODES = 10**7
_NUMBER: Schema = {"type": "number", "minimum": 0}


def checked(document: Document) -> Scenario:
    """Check everything, and return the scenario.

    Raises
    ------
    ConfigError
        If anything is wrong; its `faults` list everything.
    """
    data = document.data if isinstance(document.data, Mapping) else {}
    name = data.get("task")
    task = TASKS.get(name) if isinstance(name, str) else None
    if task is not None and isinstance(arguments := data.get("arguments", {}), Mapping):
        for fault in task.name_faults(arguments):
            document.fault(("arguments", _argument_of(fault)), str(fault))
    values = document.read(_configuration(task))
    macro = dict(values["macro"]) if isinstance(data.get("macro"), Mapping) else {}
    grid = macro.get("region")
    if macro.pop("facility", True) is False:
        if isinstance(grid, GridProfile):
            macro["region"] = without_facility(grid)
        else:
            document.fault(
                ("macro", "facility"),
                "is false, which needs a region that is a grid: a datacenter is a facility",
            )
    if document.faults:
        raise refusal(document.faults)
    arguments = {
        "workload": values.pop("model"),
        "arguments": {},
        "macro_limits": macro.pop("limits", ()),
        **{key: value for key, value in values.items() if key != "macro"},
        **macro,
    }
    try:
        return Scenario(**arguments)
    except ConfigError as first:
        _note(document, TASKS[values["task"]], first, arguments)
    raise refusal(document.faults)


def _note(document: Document, task: Task, first: ConfigError, arguments: Mapping[str, Any]) -> None:
    """Record why values that are valid alone do not make a scenario together."""
    faults = task.faults(arguments["workload"], arguments["system"], arguments["arguments"])
    if str(first) not in map(str, faults):
        faults = [first]
    places = {task.noun: "system", "system": "system", "workload": "model", "model": "model"}
    for fault in faults:
        name = _argument_of(fault)
        path: KeyPath = (places[name],) if name in places else ()
        document.also(("arguments", name) if name in task.defaults else path, str(fault))


def _argument_of(fault: ConfigError) -> str:
    return str(getattr(fault, "argument", None) or "")


def json_schema() -> Schema:
    """Return the JSON Schema, for editors that complete names and underline mistakes."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "mlsysim configuration",
        **public(_configuration(None)),
        "allOf": [_when(task) for task in TASKS.values()],
    }


def _when(task: Task) -> Schema:
    """Return the schema of a task: the arguments and results of its solver."""
    rules = public(_configuration(task))["properties"]
    then: Schema = {"properties": {key: rules[key] for key in ("model", "arguments", "limits")}}
    if rules["arguments"]["required"]:
        then["required"] = ["arguments"]
    condition: Schema = {"properties": {"task": {"const": task.name}}, "required": ["task"]}
    return {"if": condition, "then": then}


@cache
def _configuration(task: Task | None) -> Schema:
    """Return the schema of a configuration; without a task, its arguments are not known."""
    layers = task is not None and task.name != "inference"
    properties: dict[str, Schema] = {
        "name": {
            "type": "string",
            "pattern": r"\S",
            "maxLength": _MAX_NAME,
            "faults": dict.fromkeys(
                ("pattern", "maxLength"), f"must have 1 to {_MAX_NAME} characters"
            ),
        },
        "description": {"type": "string"},
        "task": {"enum": list(TASKS)},
        "model": {
            "anyOf": [
                _names(TransformerModel if layers else Workload),
                {"type": "string", "pattern": MODEL_FILE.pattern},
            ],
            "reads": partial(_row, (Workload,), "model"),
        },
        "system": _system(),
        "arguments": {"type": "object"} if task is None else _arguments(task),
        "limits": _limits(METRICS if task is None else metrics_of(task.solver.result)),
        "macro": _macro(),
    }
    return section({key: properties[key] for key in KEYS}, required=list(_REQUIRED))


def _names(*kinds: type) -> Schema:
    return {"enum": sorted(entries(*kinds))}


def _rows(label: str, *kinds: type) -> Schema:
    return {**_names(*kinds), "reads": partial(_row, kinds, label)}


def _row(kinds: tuple[type, ...], label: str, value: Any) -> Any:
    if not isinstance(value, str):
        raise ConfigError(f"is {kind_of(value)}: write the name of a {label}")
    return find_entry(value, kinds, label)


def _hardware(label: str, kind: type) -> Schema:
    """Return the schema of a row of the zoo, the path of its file, or a part of a server."""
    patterns = {Accelerator: [FILE], Node: [FILE, PART]}.get(kind, [])
    texts = [{"type": "string", "pattern": f"{pattern.pattern}$"} for pattern in patterns]
    return {"anyOf": [_names(kind), *texts], "reads": partial(_row, (kind,), label)}


def _system() -> Schema:
    rows = {key: _hardware(key, kind) for key, kind in _SYSTEMS.items()}
    fleet: dict[str, Schema] = {
        "count": {
            "type": "integer",
            "minimum": 1,
            "maximum": _MOST_NODES,
            "reads": _count,
        },
        "fabric": _rows("fabric", NetworkFabric),
    }

    def alone(kind: str) -> Schema:
        message = f"cannot be combined with {kind}: a fleet takes node, {', '.join(fleet)}"
        refused = {"not": {}, "faults": {"not": message}}
        return {"properties": dict.fromkeys(fleet, refused)}

    together = {
        "dependentRequired": {"count": ["fabric"], "fabric": ["count"]},
        "faults": {"dependentRequired": "is missing: a fleet needs count and fabric"},
    }
    return section(
        rows | fleet,
        minProperties=1,
        oneOf=[{"required": [key]} for key in rows],
        dependentSchemas={
            "hardware": alone("hardware"),
            "cluster": alone("cluster"),
            "node": together,
        },
        faults={
            "minProperties": "is empty: name one of hardware, node and cluster",
            "oneOf": "must name exactly one of hardware, node and cluster",
        },
        reads=_system_of,
    )


def _count(value: Any) -> int:
    if type(value) is not int or not 1 <= value <= _MOST_NODES:
        raise ConfigError(f"is {shown(value)}: write a whole number from 1 to {_MOST_NODES:,}")
    return value


def _system_of(values: Mapping[str, Any]) -> System:
    (system,) = (values[key] for key in _SYSTEMS if key in values)
    if "count" not in values:
        return cast(System, system)
    name = f"{values['count']} x {system.name}"
    return Fleet(name=name, node=system, count=values["count"], fabric=values["fabric"])


def _arguments(task: Task) -> Schema:
    notes = notes_of(task.solver.solve)
    arguments = {
        name: _argument(kind, task.defaults[name], notes.get(name, ""))
        | {"reads": partial(read_argument, kind, name)}
        for name, kind in task.parameters.items()
    }
    missing = [n for n, default in task.defaults.items() if default is inspect.Parameter.empty]
    return section(arguments, required=missing)


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
    """Return the schema of limits on metrics, which are given with their units."""
    return section(
        {
            metric: section(
                {name: _amounts(name, unit) for name in _BOUNDS},
                anyOf=[{"required": [name]} for name in _BOUNDS],
                faults={"anyOf": "has no bound: give at_most or at_least"},
                reads=partial(_limit, metric),
            )
            for metric, unit in metrics.items()
        },
        reads=lambda limits: tuple(limits.values()),
    )


def _limit(metric: str, bounds: Mapping[str, Any]) -> Limit:
    return Limit(metric=metric, **bounds)


def _amounts(name: str, unit: str) -> Schema:
    return {**_amount(unit), "reads": partial(amount_of, name, unit)}


def _macro() -> Schema:
    return section(
        {
            "duration_days": {
                "type": "number",
                "exclusiveMinimum": 0,
                "reads": partial(_plain_number, "duration_days"),
            },
            "region": _rows("region", GridProfile, Datacenter),
            "facility": {"type": "boolean", "default": True},
            "utilization": {
                "type": "number",
                "minimum": 0,
                "maximum": 1,
                "description": "Position of the devices' power between idle (0) and design power "
                "(1). If left out, it is predicted from the workload for training and serving, "
                "and otherwise 1, an upper bound.",
                "reads": partial(_plain_number, "utilization"),
            },
            **{
                name: {**_amount(unit), "reads": partial(_price, name, unit)}
                for name, unit in _PRICES.items()
            },
            "limits": _limits(MACRO_METRICS),
        }
    )


def _plain_number(name: str, value: Any) -> Any:
    if type(value) not in (int, float):
        raise ConfigError(f"is {kind_of(value)}: write a number")
    SustainabilitySolver.parameters[name].admit(name, value)
    return value


def _price(name: str, unit: str, value: Any) -> Any:
    price = amount_of(name, unit, value)
    if price.magnitude < 0:
        raise ConfigError("is below zero: write zero or more")
    if name == "service_life" and not price.magnitude:
        raise ConfigError("is zero: write the years that the hardware serves")
    return price
