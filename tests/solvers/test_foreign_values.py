"""Values of other libraries and of odd magnitudes: refused by name, never by another's error."""

import dataclasses
import itertools
from fractions import Fraction

import numpy as np
import pytest

from mlsysim import (
    ConfigError,
    Hardware,
    MLSysError,
    Models,
    ServingCalibrations,
    ServingSolver,
    Systems,
    advise,
    simulate_pipeline,
)
from mlsysim.core.units import real_number
from tests.solvers.test_bad_input import FOREIGN

ROWS = [
    Hardware.H100,
    Hardware.H100.memory,
    Models.Llama3_8B,
    Models.Mixtral_8x7B,
    Models.DLRM,
    Systems.DGX_H100,
    Systems.Research_256,
    ServingCalibrations.Hopper_vLLM,
]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: type(row).__name__)
def test_records_name_the_field(row):
    for value, item in itertools.product(FOREIGN, dataclasses.fields(row)):
        text = isinstance(value, str) or getattr(value, "dtype", object) == np.array("3").dtype
        if not item.init or (text and item.name in {"name", "note", "stack", "engine"}):
            continue
        with pytest.raises(ConfigError) as caught:
            dataclasses.replace(row, **{item.name: value})
        assert caught.value.argument == item.name or item.name in str(caught.value)
        assert len(str(caught.value)) < 600


@pytest.mark.parametrize("value", FOREIGN, ids=range(len(FOREIGN)))
def test_schedules_and_advice_name_the_argument(value):
    for name in ("pp_size", "microbatch_count", "virtual_stages", "forward_time", "transfer_time"):
        if value == Fraction(3, 2) and name.endswith("time"):
            continue  # times may be fractions
        with pytest.raises(ConfigError) as caught:
            simulate_pipeline(**{"pp_size": 2, "microbatch_count": 2, name: value})
        assert caught.value.argument == name
    job = {"model": Models.Llama3_8B, "fleet": Systems.Research_256, "batch_size": 8}
    for name in ("batch_size", "seq_len", "tp_size", "efficiency", "training_tokens", "datacenter"):
        with pytest.raises(ConfigError) as caught:
            advise(**job | {name: value})
        assert caught.value.argument == name


def test_numbers_of_numpy_are_numbers():
    values = (np.int8(3), np.uint64(3), np.float16(3), np.float64(3), np.longdouble(3), np.array(3))
    assert [real_number(value) for value in values] == [3] * 6
    assert {type(real_number(value)) for value in values} <= {int, float}
    assert real_number(np.array([3])) is real_number(np.bool_(True)) is real_number(True) is None
    load = {"model": Models.Llama3_8B, "hardware": Hardware.H100}
    plain = ServingSolver.solve(**load, batch_size=3)
    assert all(ServingSolver.solve(**load, batch_size=v).itl == plain.itl for v in values)


def test_explain_refuses_what_is_not_a_name():
    result = ServingSolver.solve(model=Models.Llama3_8B, hardware=Hardware.H100)
    for value in FOREIGN:
        with pytest.raises(MLSysError):
            result.explain(value)
        if not isinstance(value, int):
            with pytest.raises(MLSysError):
                result.explain("itl", depth=value)
        with pytest.raises(MLSysError):
            Hardware.H100.source_of(value)
