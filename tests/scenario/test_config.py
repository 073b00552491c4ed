"""Configurations: what is read is what was written, and the JSON Schema agrees with the checks."""

import copy
import inspect
import json
import pickle

import jsonschema
import pytest

from mlsysim import (
    Q_,
    ConfigError,
    Infra,
    Models,
    PowerCalibrations,
    Scenario,
    ServingCalibrations,
    SimulationConfig,
    Systems,
    evaluate,
)
from mlsysim.scenario.files import read_text
from mlsysim.scenario.names import read_argument
from mlsysim.scenario.scenario import TASKS
from mlsysim.solvers.arguments import Noun
from tests.scenario.malformed import JSON, YAML
from tests.scenario.samples import CAMERA, TRAINING

TEXTS = {"training": TRAINING, "camera": CAMERA}
every_text = pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)


@every_text
def test_round_trips(text, tmp_path):
    config = SimulationConfig.from_text(text)
    assert SimulationConfig.from_dict(config.to_dict()) == config
    assert SimulationConfig.from_text(config.to_yaml()) == config
    assert SimulationConfig.from_text(json.dumps(config.to_dict()), kind="json") == config
    assert SimulationConfig(**config.to_dict()) == config
    assert pickle.loads(pickle.dumps(config)) == config
    for name, content in (
        ("a.yaml", text),
        ("a.YML", text),
        ("a.json", json.dumps(config.to_dict())),
    ):
        (tmp_path / name).write_text(content, encoding="utf-8")
        assert SimulationConfig.from_file(tmp_path / name) == config


def test_a_byte_order_mark_is_no_fault(tmp_path):
    for name, content in (
        ("a.yaml", CAMERA),
        ("a.json", json.dumps(SimulationConfig.from_text(CAMERA).to_dict())),
    ):
        (tmp_path / name).write_bytes(b"\xef\xbb\xbf" + content.encode())
        assert SimulationConfig.from_file(tmp_path / name).name == "Camera"


def test_the_scenario_is_the_one_that_was_described():
    scenario = SimulationConfig.from_text(TRAINING).scenario()
    assert isinstance(scenario, Scenario)
    assert scenario.workload is Models.Llama3_70B
    assert scenario.system.node is Systems.Nodes.DGX_H100
    assert scenario.system.count == 32
    assert scenario.system.fabric is Systems.Fabrics.InfiniBand_NDR
    assert scenario.region is Infra.Quebec
    assert scenario.kwh_price == Q_(0.06, "USD/kWh")
    assert {limit.metric for limit in scenario.limits} == {"mfu", "step_latency_total"}
    assert scenario.macro_limits[0].at_most == Q_(100, "tonne")


def test_a_file_states_rent_upkeep_and_life():
    data = SimulationConfig.from_text(TRAINING).to_dict()
    stated = {"rental_price": "2.5 USD/h", "maintenance_rate": "0.1 1/year"}
    data["macro"] |= stated | {"service_life": "4 year", "unit_price": "400000 USD"}
    config = SimulationConfig.from_dict(data)
    assert SimulationConfig.from_text(config.to_yaml()) == config
    costs = evaluate(config.scenario()).economics
    devices, hours = 256, 30 * 24
    assert costs.rental_cost.to("USD").magnitude == pytest.approx(2.5 * devices * hours)
    year = 365.25
    assert costs.capex_share.to("USD").magnitude == pytest.approx(32 * 400_000 * 30 / (4 * year))


@pytest.mark.parametrize(
    ("key", "value", "words"),
    [
        ("rental_price", "-1 USD/h", "zero or more"),
        ("rental_price", 2.5, "5 USD/h"),
        ("maintenance_rate", "5 USD", "wrong dimension"),
        ("service_life", "0 year", "above zero"),
        ("service_life", "-1 year", "above zero"),
    ],
)
def test_costs_that_make_no_sense_name_their_key(key, value, words):
    data = SimulationConfig.from_text(TRAINING).to_dict()
    data["macro"][key] = value
    with pytest.raises(ConfigError, match=words) as caught:
        SimulationConfig.from_dict(data)
    assert caught.value.faults[0].path == f"macro.{key}"


@pytest.mark.parametrize(
    ("system", "row"),
    [
        ({"hardware": "H100"}, "NVIDIA H100 SXM5 80GB"),
        ({"node": "DGX_H100"}, "DGX H100"),
        ({"cluster": "Research_256"}, "Research 256"),
    ],
)
def test_systems(system, row):
    data = {"name": "x", "task": "inference", "model": "ResNet50", "system": system}
    assert SimulationConfig.from_dict(data).scenario().system.name == row


def test_what_stands_in_no_facility_has_no_overhead():
    text = CAMERA + "macro: {duration_days: 1, region: Poland, facility: false}\n"
    region = SimulationConfig.from_text(text).scenario().region
    assert (region.pue, region.grid) == (1, Infra.Poland)
    assert SimulationConfig.from_text(text.replace("false", "true")).scenario().region is (
        Infra.Poland
    )


def test_what_is_handed_out_is_a_copy():
    config = SimulationConfig.from_text(CAMERA)
    config.to_dict()["arguments"]["batch_size"] = 7
    assert config.arguments["batch_size"] == 1
    data = config.to_dict()
    made = SimulationConfig.from_dict(data)
    data["arguments"]["batch_size"] = 7
    assert made == config


def test_what_is_made_by_hand_is_checked_as_well():
    with pytest.raises(ConfigError, match="did you mean T4"):
        SimulationConfig(name="x", task="inference", model="ResNet50", system={"hardware": "T44"})


def test_an_amount_may_be_a_bound_where_there_is_no_unit():
    for bound in ("0.2", "20 %", 0.2):
        data = SimulationConfig.from_text(TRAINING).to_dict()
        data["limits"]["mfu"]["at_least"] = bound
        assert SimulationConfig.from_dict(data).scenario().limits[0].at_least == pytest.approx(0.2)


SERVING = """
name: Chat
task: serving
model: Llama3_8B
system: {hardware: H100}
arguments: {seq_len: 2048, batch_size: 16, calibration: Hopper_vLLM, power_calibration: Ampere}
"""


def test_a_calibration_is_written_by_its_name():
    config = SimulationConfig.from_text(SERVING)
    arguments = config.scenario().arguments
    assert arguments["calibration"] is ServingCalibrations.Hopper_vLLM
    assert arguments["power_calibration"] is PowerCalibrations.Ampere
    assert SimulationConfig.from_text(config.to_yaml()) == config
    usual = SimulationConfig.from_text(SERVING.replace("Hopper_vLLM", "null"))
    assert usual.scenario().solve().itl != config.scenario().solve().itl
    assert evaluate(config.scenario()).to_dict()


@pytest.mark.parametrize("name", ["Hopper_vLM", "H100_FSDP", "3", "[Hopper_vLLM]"])
def test_a_calibration_of_another_kind_is_refused_with_the_names_that_are_taken(name):
    with pytest.raises(ConfigError, match="Hopper_vLLM") as caught:
        SimulationConfig.from_text(SERVING.replace("Hopper_vLLM", name))
    assert [fault.path for fault in caught.value.faults] == ["arguments.calibration"]


# The JSON Schema

SCHEMA = SimulationConfig.json_schema()
VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)


def test_it_is_a_schema_that_json_can_hold():
    jsonschema.Draft202012Validator.check_schema(json.loads(json.dumps(SCHEMA)))


@every_text
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
