"""Rows are shared, and results derive themselves again from them: nothing changes either."""

import copy
import dataclasses
import pickle

import numpy as np
import pytest

from mlsysim import (
    Q_,
    EconomicsSolver,
    Hardware,
    Infra,
    Models,
    Scenario,
    ServingSolver,
    SimulationConfig,
    Source,
    Systems,
)
from mlsysim.core.fields import ReadOnlyMapping, Record
from mlsysim.core.forms import contents, plain_form
from mlsysim.core.types import ATTENTION, PRECISIONS, RECOMPUTE, SCHEDULES
from mlsysim.core.units import fixed
from mlsysim.registry import calibration

CATALOGS = (Hardware, Models, Systems, Infra, calibration.training.Calibrations)
ROWS = [row for catalog in CATALOGS for row in catalog]
CONFIG = """
name: Chat
task: serving
model: Llama3_8B
system: {hardware: H100}
arguments: {seq_len: 2048, batch_size: 16}
limits: {itl: {at_most: 20 ms}}
"""


def everything_in(row):
    """A record, and all records, containers and quantities that it holds."""
    yield row
    for item in dataclasses.fields(row):
        value = getattr(row, item.name)
        if isinstance(value, Record):
            yield from everything_in(value)
        else:
            yield value


def in_place(quantity):
    yield lambda: quantity.ito("1 " + str(quantity.units))
    yield quantity.ito_base_units
    yield quantity.ito_root_units
    yield quantity.ito_reduced_units


def test_quantities_of_rows_keep_their_units():
    quantities = [q for row in ROWS for q in everything_in(row) if isinstance(q, Q_)]
    assert len(quantities) > 500
    for quantity in quantities:
        before = str(quantity)
        for change in in_place(quantity):
            with pytest.raises(AttributeError, match="part of a record"):
                change()
        assert str(quantity) == before


def test_what_is_computed_from_a_row_is_ones_own():
    bandwidth = Hardware.H100.memory.bandwidth
    for own in (bandwidth * 2, bandwidth.to("GB/s"), copy.copy(bandwidth), Q_(bandwidth)):
        own.ito("GB/s")
        assert str(own.units) == str(Q_(1, "GB/s").units)
    assert str(bandwidth) == "3.35 TB/s"


def test_containers_of_rows_are_read_only():
    for row in ROWS:
        for value in everything_in(row):
            assert not isinstance(value, (dict, list, set, bytearray)), row
    assert not hasattr(Hardware.H100.field_sources, "clear")
    with pytest.raises(TypeError):
        Hardware.H100.field_sources["tdp"] = Source(title="mine")
    for known in (PRECISIONS, RECOMPUTE, SCHEDULES, ATTENTION):
        assert isinstance(known, ReadOnlyMapping)
    with pytest.raises(AttributeError):
        del Hardware.H100
    with pytest.raises(dataclasses.FrozenInstanceError):
        Hardware.H100.memory.bandwidth = Q_(1, "GB/s")


def test_rows_do_not_follow_what_they_were_made_of():
    power, sources = Q_(700.0, "W"), {"tdp": Source(title="A meter")}
    row = dataclasses.replace(Hardware.H100, tdp=power, field_sources=sources)
    power.ito("kW")
    sources.clear()
    assert str(row.tdp) == "700.0 W"
    assert str(row.source_of("tdp")) == "A meter"
    shape = [1, 28, 28]
    model = dataclasses.replace(Models.ResNet50, input_shape=shape)
    shape.append(3)
    assert model.input_shape == (1, 28, 28)


@pytest.mark.parametrize("again", [copy.deepcopy, lambda row: pickle.loads(pickle.dumps(row))])
def test_copies_are_equal_and_as_read_only(again):
    for row in (Hardware.H100, Models.Mixtral_8x7B, Systems.Research_256):
        twin = again(row)
        assert twin == row
        assert hash(twin) == hash(row)
        parts = list(everything_in(twin))
        assert all(fixed(value) is value for value in parts if isinstance(value, Q_))
        assert not any(isinstance(value, dict) for value in parts)


def test_configurations_and_scenarios_are_read_only():
    config = SimulationConfig.from_text(CONFIG)
    for part in (config.arguments, config.limits, config.limits["itl"], config.system):
        with pytest.raises(TypeError):
            part["batch_size"] = 1
    scenario = config.scenario()
    with pytest.raises(TypeError):
        scenario.arguments["batch_size"] = 1
    given = {"batch_size": 16}
    own = Scenario(
        name="own",
        task="serving",
        workload=Models.Llama3_8B,
        system=Hardware.H100,
        arguments=given,
    )
    before = own.solve().itl
    given["batch_size"] = 512
    assert own.solve().itl == before


def test_plain_data_of_a_configuration_is_ones_own():
    config = SimulationConfig.from_text(CONFIG)
    data = config.to_dict()
    data["arguments"]["batch_size"] = 1
    assert type(data["limits"]["itl"]) is dict
    assert config.to_dict()["arguments"]["batch_size"] == 16
    assert SimulationConfig.from_dict(config.to_dict()) == config
    assert pickle.loads(pickle.dumps(config)) == config


def test_explain_agrees_with_the_result_whatever_became_of_the_arguments():
    batch, price = np.array(16), Q_(2.5, "USD/h")
    served = ServingSolver.solve(
        model=Models.Llama3_8B, hardware=Hardware.H100, batch_size=batch, output_len=100
    )
    owned = EconomicsSolver.solve(fleet=Systems.Research_256, duration_days=30, rental_price=price)
    batch[...] = 512
    price.ito("USD/day")
    for result, field in ((served, "latency"), (owned, "rental_cost")):
        shown = result.explain(field).roots[field].value
        assert shown.to_base_units().magnitude == pytest.approx(
            result[field].to_base_units().magnitude, rel=1e-12
        )


@pytest.mark.parametrize(
    "row", [Systems.Clusters.Research_256, Models.Mixtral_8x7B, Hardware.H100], ids=repr
)
def test_what_is_worked_out_from_a_row_is_not_pickled(row):
    new = copy.copy(row)
    before = pickle.dumps(new)
    plain_form(new)
    assert pickle.dumps(new) == before
    again = pickle.loads(before)
    assert again == row
    assert vars(again).keys() == vars(copy.copy(row)).keys()
    # The form of a row that others have used may hold values that were worked out from it.
    assert dict(contents(plain_form(again))).keys() == dict(contents(plain_form(row))).keys()
