"""Rows that contradict themselves are refused when they are made."""

import dataclasses
import math

import pytest

from mlsysim import (
    Q_,
    Band,
    ConfigError,
    Hardware,
    Models,
    ServingCalibrations,
    Systems,
)
from mlsysim.core.fields import units_of
from mlsysim.core.types import (
    Compute,
    FixedShapeModel,
    MoETransformerModel,
    TransformerModel,
)
from mlsysim.registry.calibration.training import Frameworks, Machines

MOE = Models.Qwen3_30B_A3B
SHARES = ("efficiency", "overlap", "share", "exposed", "reserved_output", "copies_per_node")


def refused(row, argument, **changes):
    with pytest.raises(ConfigError) as caught:
        dataclasses.replace(row, **changes)
    assert caught.value.argument == argument
    return str(caught.value)


def test_parameters_of_half_the_layers_are_not_those_of_all():
    # 16 layers of 2 x 4096 x 128 x 40 and 3 x 4096 x 14,336 weights, and 2 x 128,256 x 4096.
    counted = 16 * (41_943_040 + 176_160_768) + 1_050_673_152
    text = refused(Models.Llama3_8B, "parameters", layers=16)
    assert "4.54 Gparam" in text
    assert "parameters=None" in text
    half = dataclasses.replace(Models.Llama3_8B, layers=16, parameters=None)
    assert half.si("parameters") == counted
    assert half.parameters == Q_(counted, "param")
    assert half.source_of("parameters").title == "Counted from the shape"
    assert half.source_of("layers") is Models.Llama3_8B.source
    named = dataclasses.replace(half, name="half")
    assert named.source_of("parameters").title == "Counted from the shape"
    stated = dataclasses.replace(half, parameters=Q_(4.55, "Gparam"))
    assert stated.source_of("parameters") is stated.source


@pytest.mark.parametrize("factor", [0.5, 0.979, 1.021, 2, 1e6])
def test_parameters_are_those_of_the_shape_within_two_percent(factor):
    model = dataclasses.replace(Models.Llama3_8B, parameters=None)
    refused(model, "parameters", parameters=factor * model.parameters)
    for near in (0.985, 1, 1.019):
        kept = dataclasses.replace(model, parameters=near * model.parameters)
        assert kept.si("parameters") == pytest.approx(near * model.si("parameters"))


def test_parameters_are_no_fewer_than_those_of_the_layers():
    """So that what is left for the embedding, and for experts that are read, is not negative."""
    model = Models.GPT_1T
    tables = model.vocab_size * model.hidden_dim
    layers = 12 * model.layers * model.hidden_dim**2
    assert dataclasses.replace(model, parameters=Q_(layers, "param")).si("parameters") == layers
    refused(model, "parameters", parameters=Q_(layers - 1, "param"))
    assert tables / layers < 0.02


def test_every_row_counts_to_what_it_states():
    for name in [n for n, row in Models.items() if isinstance(row, TransformerModel)]:
        row = Models[name]
        counted = dataclasses.replace(row, parameters=None)
        assert row.si("parameters") == pytest.approx(counted.si("parameters"), rel=0.014), name


def test_experts_that_contradict_each_other():
    refused(MOE, "experts_per_token", experts_per_token=129)
    refused(MOE, "moe_layers", moe_layers=49)
    assert "moe_layers = 48 is more than layers = 1" in refused(
        MOE, "moe_layers", layers=1, ffn_dim=10**5
    )
    every = dataclasses.replace(MOE, experts_per_token=MOE.experts)
    assert isinstance(every, MoETransformerModel)


def test_a_sample_uses_no_more_parameters_than_there_are():
    refused(Models.DLRM, "dense_parameters", dense_parameters=None)
    refused(Models.ResNet50, "dense_parameters", dense_parameters=Q_(26, "Mparam"))
    refused(Models.DLRM, "dense_parameters", gathered_parameters=Models.DLRM.parameters)
    assert isinstance(Models.DLRM, FixedShapeModel)


def test_a_server_draws_no_less_than_its_devices():
    assert "8 x 700 W" in refused(Systems.DGX_H100, "power", power=Q_(5.5, "kW"))
    assert dataclasses.replace(Systems.DGX_H100, power=None).power is None


def test_a_device_computes_in_some_format():
    with pytest.raises(ConfigError, match="give one of fp64"):
        Compute()


@pytest.mark.parametrize(
    "row", [Machines.B200, Frameworks.Megatron_Core, ServingCalibrations.Ampere]
)
def test_shares_of_calibrations_are_at_most_one(row):
    units = units_of(type(row))
    names = [name for name, _, _ in units if name.endswith(SHARES) or "efficiency" in name]
    assert len(names) > 5
    for name in names:
        refused(row, name, **{name: 1.0001})
        assert getattr(dataclasses.replace(row, **{name: 1}), name) == 1


@pytest.mark.parametrize("change", [{"low": None}, {"high": None}, {"low": 1.1}, {"high": 0.9}])
def test_a_band_has_two_edges_around_the_prediction(change):
    refused(Band(low=0.8, high=1.2), *change, **change)


def test_edges_of_bands():
    narrow, late = Band(low=1.0, high=1.0), Band(low=0.9, high=1.5)
    assert narrow.around(20) == (20, 20)
    assert late.around(20) == (18, 30)
    assert Band().around(20) == (None, None)
    assert late.union(Band(low=0.5, high=1.2)) == Band(low=0.5, high=1.5)
    assert narrow.union(late) == late
    assert late.union(Band()) == Band().union(late) == Band()
    assert [band.known for band in (late, Band())] == [True, False]


def test_whole_numbers_end_where_floats_stop_counting():
    assert "at most 1e+15" in refused(Models.Llama3_8B, "vocab_size", vocab_size=10**15 + 1)
    assert "finite" in refused(Hardware.H100, "tdp", tdp=Q_(math.inf, "W"))
