"""Configurations: scenarios as files that people write and programs check.

JSON Schema, for editors, has what it can express. It cannot express rules such as sizes that must
tile a fleet, and names have several spellings, so the functions that read the values decide.
"""

from __future__ import annotations

import dataclasses
import inspect
import math
from collections.abc import Mapping
from functools import cache, partial
from pathlib import Path
from typing import Any, cast

from mlsysim.core.errors import ConfigError, shown
from mlsysim.core.fields import Record, plain_data, read_only, record, si_number
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
    document_of,
    kind_of,
    public,
    read_file,
    read_text,
    refusal,
    section,
    write_yaml,
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

_KEYS = ("name", "description", "task", "model", "system", "arguments", "limits", "macro")
_REQUIRED = ("name", "task", "model", "system")
_SYSTEMS: dict[str, type] = {"hardware": Accelerator, "node": Node, "cluster": Fleet}
_BOUNDS = ("at_most", "at_least")
_MAX_NAME = 200
_MOST_NODES = 10**7


@record
class SimulationConfig(Record):
    """A scenario in plain data: names of registry rows, numbers, and amounts as text.

    A configuration is checked when it is created, before anything runs. All errors are reported
    together in one `ConfigError`. Its `faults` have file, line and key.

    Attributes
    ----------
    name : str
        Name of the scenario.
    description : str
        One sentence about it.
    task : str
        ``"inference"``, ``"serving"`` or ``"training"``.
    model : str
        Name of a registry row, such as ``"Llama3_8B"``.
    system : Mapping[str, object]
        ``{"hardware": name}``, ``{"node": name}``, ``{"cluster": name}``, or a fleet:
        ``{"node": name, "count": number, "fabric": name}``.
    arguments : Mapping[str, object]
        Further arguments of the task's solver.
    limits : Mapping[str, object]
        Limits on the solver's result: ``{"latency": {"at_most": "200 ms"}}``.
    macro : Mapping[str, object]
        How long the system runs and where: `duration_days`, `region`, `utilization`,
        `kwh_price`, `unit_price`, `rental_price`, `maintenance_rate`, `service_life`; and
        `limits` on energy, carbon, water and cost. With
        `facility` false the system is not in a data center, and its PUE is 1.

    Examples
    --------
    >>> from mlsysim import SimulationConfig, evaluate
    >>> config = SimulationConfig.from_text('''
    ... name: Chat
    ... task: serving
    ... model: Llama3_8B
    ... system: {hardware: H100}
    ... arguments: {seq_len: 2048, batch_size: 16}
    ... limits:
    ...   itl: {at_most: 20 ms}
    ... ''')
    >>> evaluate(config.scenario()).status
    'pass'
    """

    name: str
    task: str
    model: str
    system: Mapping[str, Any]
    description: str = ""
    arguments: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    limits: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    macro: Mapping[str, Any] = dataclasses.field(default_factory=dict)

    def __post_init__(self) -> None:
        super().__post_init__()
        document = document_of(self._plain())
        object.__setattr__(self, "_scenario", _scenario(document))
        for field, value in document.data.items():
            self._keep(field, read_only(value))

    def _plain(self) -> dict[str, Any]:
        """Return every key with a value, in the order of the schema."""
        empty: tuple[Any, ...] = ("", {})
        values = {key: getattr(self, key) for key in _KEYS}
        return {k: item for k, item in values.items() if k in _REQUIRED or item not in empty}

    @classmethod
    def from_file(cls, path: str | Path) -> SimulationConfig:
        """Read a file; its suffix determines whether it is YAML or JSON.

        Parameters
        ----------
        path
            A file that ends in ``.yaml``, ``.yml`` or ``.json``.

        Raises
        ------
        ConfigError
            If the file cannot be read, or its contents are invalid.
        """
        return cls._from(read_file(path))

    @classmethod
    def from_text(cls, text: str, *, kind: str = "yaml") -> SimulationConfig:
        """Read a configuration from text.

        Parameters
        ----------
        text
            The configuration.
        kind
            ``"yaml"`` or ``"json"``.

        Raises
        ------
        ConfigError
            If the text is not a valid configuration.
        """
        return cls._from(read_text(text, kind))

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> SimulationConfig:
        """Create a configuration from data with the structure of a file.

        Raises
        ------
        ConfigError
            If the data is not a valid configuration.
        """
        return cls._from(document_of(data))

    @classmethod
    def _from(cls, document: Document) -> SimulationConfig:
        # Checked here first, because the line numbers are known here.
        _scenario(document)
        return cls(**document.data)

    def to_dict(self) -> dict[str, Any]:
        """Return the configuration as plain data, which `from_dict` accepts."""
        data: dict[str, Any] = plain_data(self._plain())
        return data

    def to_yaml(self) -> str:
        """Return the configuration as YAML, which `from_text` accepts."""
        return write_yaml(self.to_dict())

    def scenario(self) -> Scenario:
        """Return the scenario that the configuration describes."""
        made: Scenario = self._scenario  # type: ignore[attr-defined]
        return made

    @staticmethod
    def json_schema() -> dict[str, Any]:
        """Return the JSON Schema of configurations, for editors that complete and check."""
        return {
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "title": "mlsysim configuration",
            **public(_configuration(None)),
            "allOf": [_of_task(task) for task in TASKS.values()],
        }


def _scenario(document: Document) -> Scenario:
    """Return the scenario that a document describes, or refuse it with all of its faults."""
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


def _of_task(task: Task) -> Schema:
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
        "limits": _limits(METRICS if task is None else metrics_of(task.solver)),
        "macro": _macro(),
    }
    return section({key: properties[key] for key in _KEYS}, required=list(_REQUIRED))


def _names(*kinds: type) -> Schema:
    return {"enum": sorted(entries(*kinds))}


def _rows(label: str, *kinds: type) -> Schema:
    return {**_names(*kinds), "reads": partial(_row, kinds, label)}


def _row(kinds: tuple[type, ...], label: str, value: Any) -> Any:
    if not isinstance(value, str):
        raise ConfigError(f"is {kind_of(value)}: write the name of a {label}")
    return find_entry(value, kinds, label)


def _hardware(label: str, kind: type) -> Schema:
    """Return the schema of a row of the catalog, the path of its file, or a part of a server."""
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

    fleet_rule = {
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
            "node": fleet_rule,
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
    arguments, missing = {}, []
    for name, kind in task.parameters.items():
        schema = {"description": notes[name]} | _value(kind)
        if (default := task.defaults[name]) is inspect.Parameter.empty:
            missing.append(name)
        else:
            schema["default"] = default
        arguments[name] = schema | {"reads": partial(read_argument, kind, name)}
    return section(arguments, required=missing)


def _value(kind: Argument) -> Schema:
    """Return the schema of the values of a kind."""
    if kind.optional:
        value = _value(dataclasses.replace(kind, optional=False))
        return {"anyOf": [*value.get("anyOf", [value]), {"type": "null"}]}
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
    if unit:
        return {**text, "examples": [f"5 {unit}"]}
    return {"anyOf": [{"type": "number", "minimum": 0}, text]}


def _limits(metrics: Mapping[str, str]) -> Schema:
    """Return the schema of limits on metrics, which are given with their units."""
    return section(
        {
            metric: section(
                {
                    name: {**_amount(unit), "reads": partial(amount_of, name, unit)}
                    for name in _BOUNDS
                },
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


def _macro() -> Schema:
    numbers = {
        item.name: _number(item) for item in dataclasses.fields(Scenario) if "unit" in item.metadata
    }
    numbers["utilization"]["description"] = (
        "Position of the devices' power between idle (0) and design power (1). If left out, it is "
        "predicted from the workload for training and serving, and otherwise 1, an upper bound."
    )
    places: dict[str, Schema] = {
        "region": _rows("region", GridProfile, Datacenter),
        "facility": {"type": "boolean", "default": True},
    }
    return section({**numbers, **places, "limits": _limits(MACRO_METRICS)})


def _number(item: dataclasses.Field[Any]) -> Schema:
    """Return the schema of a number of a scenario, which declares its unit and its range."""
    declared = item.metadata

    def read(value: Any) -> Any:
        if not declared["plain"]:
            value = amount_of(item.name, declared["unit"], value)
        elif type(value) not in (int, float):
            raise ConfigError(f"is {kind_of(value)}: write a number")
        si_number(value, item.name, item.name, declared)
        return value

    if not declared["plain"]:
        return {**_amount(declared["unit"]), "reads": read}
    schema: Schema = {"type": "number", "minimum" if declared["zero"] else "exclusiveMinimum": 0}
    if declared["most"] < math.inf:
        schema["maximum"] = declared["most"]
    return schema | {"reads": read}
