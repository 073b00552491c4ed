"""The JSON Schema of configurations, built from the registries and the solvers.

Editors use it to complete names and to underline mistakes. The authoritative checks are those of
`checking`, because a schema cannot express rules such as sizes that must tile a fleet.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping
from typing import Any

from mlsysim.config.checking import KEYS, MACRO_KEYS, PRICES, REGIONS, REQUIRED, SYSTEM_KEYS
from mlsysim.config.parts import BOUNDS
from mlsysim.core.types import Calibration, NetworkFabric, TransformerModel, Workload
from mlsysim.scenario.accounts import MACRO_METRICS
from mlsysim.scenario.limits import metrics_of
from mlsysim.scenario.names import FILE, MODEL_FILE, entries
from mlsysim.scenario.tasks import TASKS, Task
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

__all__ = ["argument_notes", "json_schema"]

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


def _system() -> Schema:
    rows = {key: _names(kind) for key, kind in SYSTEM_KEYS.items()}
    fleet = {
        "node": rows["node"],
        "count": {"type": "integer", "minimum": 1, "maximum": 10**7},
        "fabric": _names(NetworkFabric),
    }
    alone = [_object({key: row}, required=(key,)) for key, row in rows.items()]
    return {"oneOf": [*alone, _object(fleet, required=tuple(fleet))]}


def _when(task: Task) -> Schema:
    """Compose the schema of a task: the arguments and results of its solver."""
    notes = argument_notes(task.solver.solve)
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


def argument_notes(function: Callable[..., Any]) -> dict[str, str]:
    """Return the description of each argument in a solver's docstring."""
    text = inspect.getdoc(function) or ""
    section = re.search(r"Parameters\n-+\n(.*?)(?=\n\n\w+\n-+\n|\Z)", text, re.DOTALL)
    items = re.findall(r"^(\w+)\n((?: .*\n?)+)", section[1] if section else "", re.MULTILINE)
    return {name: " ".join(body.split()) for name, body in items}
