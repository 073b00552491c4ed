"""The JSON Schema: valid itself, and of one mind with the checks on what it can express."""

from __future__ import annotations

import copy
import inspect
import json

import jsonschema
import pytest

from mlsysim import ConfigError, SimulationConfig
from mlsysim.scenario.files import read_text
from mlsysim.scenario.names import read_argument
from mlsysim.scenario.scenario import TASKS
from mlsysim.solvers.arguments import Noun
from tests.scenario.malformed import JSON, YAML
from tests.scenario.samples import CAMERA, TRAINING

SCHEMA = SimulationConfig.json_schema()
VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)


def test_it_is_a_schema_that_json_can_hold():
    jsonschema.Draft202012Validator.check_schema(json.loads(json.dumps(SCHEMA)))


@pytest.mark.parametrize("text", [TRAINING, CAMERA])
def test_it_takes_what_we_take(text):
    VALIDATOR.validate(SimulationConfig.from_text(text).to_dict())


# What a schema cannot say, or what it says less strictly: sizes that agree, units, bounds.
BEYOND = {
    "sizes that do not tile",
    "more stages than layers",
    "odd precision",
    "no generator",
    "more ranks than devices",
    "format without support",
    "crossed bounds",
    "bound of another kind",
    "negative bound",
    "bound out of range",
    "unit on a share",
    "price per day",
    "price below zero",
    "price of fantasy",
    "mass as energy",
    "facility without grid",
    "facility in a facility",
    "long text",
}


@pytest.mark.parametrize("name", [*YAML, *JSON])
def test_what_it_refuses_we_refuse_and_nearly_the_other_way_round(name):
    text, kind = (YAML[name][0], "yaml") if name in YAML else (JSON[name][0], "json")
    try:
        document = read_text(text, kind)
    except ConfigError:
        return
    beyond = name in BEYOND or name.startswith("10 ms: 9") or name == "10 ms: 10 parsec"
    if document.faults or beyond:
        return
    assert not VALIDATOR.is_valid(copy.deepcopy(document.data))


def test_every_argument_is_described_and_has_its_default():
    for branch in SCHEMA["allOf"]:
        task = TASKS[branch["if"]["properties"]["task"]["const"]]
        arguments = branch["then"]["properties"]["arguments"]
        assert set(arguments["properties"]) == set(task.defaults)
        for name, schema in arguments["properties"].items():
            assert schema["description"], name
            default = task.defaults[name]
            if default is inspect.Parameter.empty:
                assert name in arguments["required"]
            else:
                assert schema["default"] == default


@pytest.mark.parametrize("name", TASKS)
def test_an_argument_that_is_an_entry_lists_the_names_that_are_taken(name):
    task = TASKS[name]
    branch = next(
        one for one in SCHEMA["allOf"] if one["if"]["properties"]["task"]["const"] == name
    )
    arguments = branch["then"]["properties"]["arguments"]["properties"]
    for argument, kind in task.parameters.items():
        if isinstance(kind, Noun):
            (names,) = (one["enum"] for one in arguments[argument]["anyOf"] if "enum" in one)
            assert names
            for one in names:
                assert isinstance(read_argument(kind, argument, one), kind.kinds)
