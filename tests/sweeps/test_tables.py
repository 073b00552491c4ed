"""Sweeps say what solve says: on every kind of axis, and when an axis is wrong."""

import dataclasses
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from pint import UnitRegistry

from mlsysim import (
    Q_,
    ConfigError,
    DistributedSolver,
    EconomicsSolver,
    Hardware,
    Models,
    ParallelismError,
    ServingSolver,
    SingleNodeSolver,
    Systems,
    sweep,
)
from tests.samples import JOB


def step(**changes):
    return DistributedSolver.solve(**JOB | changes).step_latency_total.to("s").magnitude


def swept(**changes):
    return sweep(DistributedSolver, **JOB | changes)


WIDTHS = ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"]


@pytest.mark.parametrize("width", [*WIDTHS, "float16", "float32", "float64"])
def test_narrow_arrays_do_not_wrap_around(width):
    sizes = {"batch_size": 64, "seq_len": 96, "tp_size": 8, "microbatch_count": 8}
    arrays = {name: np.array([value], dtype=width) for name, value in sizes.items()}
    assert swept(**arrays)["step_latency_total"][0].magnitude == pytest.approx(step(**sizes))


def test_long_sequences_do_not_wrap_around():
    model = dataclasses.replace(JOB["model"], context=2**20)
    for width in ("int32", "int64"):
        size = np.array([2**20], dtype=width)
        table = swept(model=model, batch_size=size, seq_len=size)
        expected = step(model=model, batch_size=2**20, seq_len=2**20)
        assert table["step_latency_total"][0].magnitude == pytest.approx(expected)


@pytest.mark.parametrize(
    "axis",
    [
        (256, 512),
        np.array([256.0, 512.0]),
        [np.int8(64) * 1, 512],
        Q_(np.array([256, 512]), ""),
        [Q_(256, ""), 512],
    ],
    ids=str,
)
def test_axes_of_many_makes(axis):
    first = float(getattr(axis[0], "magnitude", axis[0]))
    assert swept(batch_size=axis)["step_latency_total"][0].magnitude == step(batch_size=first)


def test_columns_of_a_data_frame_are_axes():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"size": [256, 512], "format": ["fp16", "bf16"]}, index=[7, 9])
    table = swept(batch_size=frame["size"], precision=frame["format"], how="zip")
    assert table["step_latency_total"][1].magnitude == step(batch_size=512, precision="bf16")


@pytest.mark.parametrize(
    ("axis", "words"),
    [
        ([], "at least one value"),
        ([[256, 512]], "flat axis"),
        ([[256], [512, 1]], "flat axis"),
        (np.array([[256, 512]]), "flat axis"),
        ([256, True], "True must be a number"),
        (np.array([True, False]), "must be a number"),
        ([256, None], "None"),
        ([256, "512"], "'512' must be a number"),
        (np.array(["256"]), "'256'"),
        ([256j], "256j"),
        ([10**400, 1], "whole number"),
        ([2**63, 1], "too many"),
        ([256, 0.5], "0.5 is out of range"),
        ([256, float("nan")], "nan is out of range"),
        (Q_(np.array([1, 2]), "GB"), "wrong dimension"),
        ([Q_(1, "GB")], "wrong dimension"),
        ([Decimal(256), 512], "must be a number"),
        ([Fraction(512), 512], "must be a number"),
        (np.ma.array([256, 512], mask=[False, True]), "masked"),
        (np.array([1, 2], "m8[ns]"), "dates or times"),
        ([np.timedelta64(1, "ns"), np.timedelta64(2, "ns")], "must be a number"),
        (UnitRegistry().Quantity(np.array([1.0, 2.0]), ""), "another unit registry"),
        (Q_(np.array([1, 100], np.int8), "hour"), "wrong dimension"),
    ],
    ids=str,
)
def test_wrong_axes_are_refused(axis, words):
    with pytest.raises(ConfigError, match=words) as caught:
        swept(batch_size=axis)
    assert caught.value.argument == "batch_size"


def test_a_table_keeps_the_values_that_it_was_asked_for():
    sizes, array = [256, 512], np.array([1, 2])
    table = swept(batch_size=sizes, virtual_stages=array)
    expected = [table.row(index) for index in range(4)]
    sizes[0], array[0] = 1024, 4
    assert [table.row(index) for index in range(4)] == expected
    assert table.result(0).step_latency_total == table.row(0)["step_latency_total"]
    with pytest.raises(ValueError, match="read-only"):
        table["batch_size"][0] = 99


def test_numbers_of_numpy_are_numbers_with_a_unit_too():
    rate = swept(batch_size=[256, 512])["token_throughput"].max()
    asked = {"fleet": Systems.Clusters.Research_256, "duration_days": Q_(np.float32(30), "day")}
    answer = EconomicsSolver.solve(**asked, token_throughput=rate)
    table = sweep(EconomicsSolver, **asked, token_throughput=[rate])
    assert table.result(0).cost_per_token == answer.cost_per_token
    assert dict(swept(sequence_parallel=np.array([True])).result(0)) == dict(
        DistributedSolver.solve(**JOB, sequence_parallel=np.True_)
    )


def test_axes_of_different_lengths_are_not_zipped():
    with pytest.raises(ConfigError, match="equal length"):
        swept(how="zip", batch_size=[256, 512, 768], tp_size=[4, 8])


def test_what_makes_no_sense_is_raised_marked_or_dropped():
    axes = {"batch_size": 256, "tp_size": [8, 3, 16], "pp_size": [2, 4]}
    with pytest.raises(ParallelismError, match=r"3 x 2 = 6 .* \(2 of 6 configurations") as caught:
        swept(**axes)
    assert caught.value.argument == "tp_size"
    marked, dropped = swept(**axes, invalid="mark"), swept(**axes, invalid="drop")
    assert marked["valid"].tolist() == [True, True, False, False, True, True]
    assert np.isnan(marked["dp_size"][2:4]).all()
    assert np.isnan(marked["mfu"][2:4]).all()
    assert not marked["feasible"][2:4].any()
    assert dropped["tp_size"].tolist() == [8, 8, 16, 16]
    assert [dropped.result(index).parallelism.tp for index in range(4)] == [8, 8, 16, 16]


@pytest.mark.parametrize("mask", [[True], [True] * 9, "x", [1, 0], [[True, False]]], ids=str)
def test_a_mask_has_one_value_per_row(mask):
    with pytest.raises(ConfigError, match="mask must have"):
        swept(batch_size=[256, 512]).where(mask)


@pytest.mark.parametrize("indices", [[2], [-3], [0.5], 0, ["0"], [True]], ids=str)
def test_rows_are_taken_by_number(indices):
    with pytest.raises(ConfigError, match="2 rows"):
        swept(batch_size=[256, 512]).take(indices)


def test_the_best_row_is_chosen_by_a_number():
    table = swept(batch_size=[256, 512], precision=["fp16", "bf16"])
    with pytest.raises(ConfigError, match="precision has no numbers"):
        table.best("precision")
    assert table.best("mfu", feasible=False)["mfu"] == max(table["mfu"])


@pytest.mark.parametrize("solver", ["DistributedSolver", None, int])
def test_only_solvers_are_swept(solver):
    with pytest.raises(ConfigError, match="pass one such as DistributedSolver"):
        sweep(solver, batch_size=[1])


def test_names_that_contradict_each_other_can_be_passed_over():
    """A TPU has no fp16: it is marked or dropped beside a device that has."""
    given = {"model": Models.ResNet50, "hardware": [Hardware.H100, Hardware.TPUv5p]}
    with pytest.raises(ConfigError, match="fp16"):
        sweep(SingleNodeSolver, **given)
    marked = sweep(SingleNodeSolver, **given, batch_size=[1, 8], invalid="mark")
    assert marked["valid"].tolist() == [True, True, False, False]
    assert np.isnan(marked["latency"].magnitude[2:]).all()
    dropped = sweep(SingleNodeSolver, **given, batch_size=[1, 8], invalid="drop")
    assert len(dropped) == 2
    with pytest.raises(ConfigError, match="batch_size"):
        sweep(SingleNodeSolver, **given, batch_size=[0], invalid="drop")


DEVICE = {"model": Models.Llama3_8B, "hardware": [Hardware.H100]}
CHAT = {"model": [Models.Llama3_8B], "hardware": Hardware.H100}
REFUSED = [
    (SingleNodeSolver, DEVICE, {"hardware": [Hardware.TPUv5p]}),
    (DistributedSolver, JOB | {"precision": ["fp16"]}, {"precision": ["int4"]}),
    (DistributedSolver, JOB | {"tp_size": [8]}, {"tp_size": [3]}),
    (ServingSolver, CHAT, {"model": [Models.BERT_Base]}),
]


@pytest.mark.parametrize(("solver", "good", "bad"), REFUSED)
def test_a_table_without_a_valid_row_has_all_columns(solver, good, bad):
    whole, none = sweep(solver, **good), sweep(solver, **good | bad, invalid="mark")
    assert set(none.columns) == set(whole.columns)
    assert none.units == whole.units
    assert none["valid"].tolist() == none["feasible"].tolist() == [False]
    unknown = none.select(*(name for name in none.columns if name not in good)).row(0)
    assert set(unknown.values()) == {None, False}
    assert {name for name, value in unknown.items() if value is False} >= {"valid", "feasible"}
    assert len(sweep(solver, **good | bad, invalid="drop")) == 0


def test_a_result_spreads_no_column():
    table = swept(tp_size=[1, 2, 4, 8], pp_size=[1, 4])
    assert table.result(5).parallelism.tp == 4
    assert all("values" not in vars(table._columns[name]) for name in ("mfu", "memory"))
