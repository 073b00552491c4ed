"""Scenarios and limits: their checks, the parts that solvers receive, and the catalog."""

import dataclasses

import pytest

from mlsysim import (
    Q_,
    ConfigError,
    DistributedSolver,
    Hardware,
    Infra,
    Limit,
    Models,
    ParallelismError,
    Scenario,
    Scenarios,
    ServingSolver,
    SingleNodeSolver,
    Systems,
    UnknownEntryError,
    standalone_fleet,
)
from mlsysim.core.fields import units_of
from mlsysim.core.units import unit
from mlsysim.scenario.scenario import MACRO_SOLVERS, METRICS, TASKS

GOOD = {
    "name": "Camera",
    "task": "inference",
    "workload": Models.ResNet50,
    "system": Hardware.T4,
}
TRAINING = {
    "name": "Run",
    "task": "training",
    "workload": Models.Llama3_8B,
    "system": Systems.Research_256,
    "arguments": {"batch_size": 256},
}


def test_a_scenario_solves_what_its_task_asks():
    direct = SingleNodeSolver.solve(model=Models.ResNet50, hardware=Hardware.T4, batch_size=4)
    assert dict(Scenario(**GOOD, arguments={"batch_size": 4}).solve()) == dict(direct)
    direct = DistributedSolver.solve(
        model=Models.Llama3_8B, fleet=Systems.Research_256, batch_size=256
    )
    assert Scenario(**TRAINING).solve().step_latency_total == direct.step_latency_total


@pytest.mark.parametrize("system", [Hardware.H100, Systems.DGX_H100, Systems.Research_256])
def test_every_task_takes_every_kind_of_system(system):
    changed = {**GOOD, "system": system, "workload": Models.Llama3_8B}
    one = SingleNodeSolver.solve(model=Models.Llama3_8B, hardware=Hardware.H100)
    assert Scenario(**changed).solve().latency == one.latency
    part = system if system is Hardware.H100 else Systems.DGX_H100
    served = ServingSolver.solve(model=Models.Llama3_8B, hardware=part)
    assert Scenario(**{**changed, "task": "serving"}).solve().itl == served.itl
    devices = standalone_fleet(system).total_accelerators
    run = Scenario(**{**TRAINING, "system": system}).solve()
    assert run.parallelism.dp == devices


@pytest.mark.parametrize(
    ("changes", "error", "word"),
    [
        ({"task": "inferense"}, UnknownEntryError, "did you mean inference"),
        ({"workload": Hardware.T4}, ConfigError, "is not a Workload"),
        ({"system": Models.GPT2}, ConfigError, "is not a Accelerator or Node or Fleet"),
        ({"task": "serving"}, ConfigError, "takes a transformer"),
        ({"arguments": {"batchsize": 1}}, UnknownEntryError, "did you mean batch_size"),
        ({"arguments": {"hardware": Hardware.T4}}, UnknownEntryError, "not an argument of"),
        ({"arguments": {"batch_size": 0}}, ConfigError, "whole number of 1 or more"),
        ({"arguments": {"precision": "fp12"}}, ConfigError, "choose one of"),
        ({"arguments": {"seq_len": 5}}, ConfigError, "no meaning"),
        ({"limits": (Limit(metric="itl", at_most=Q_(1, "s")),)}, UnknownEntryError, "metric"),
        ({"limits": ("latency",)}, ConfigError, "pass Limit"),
        (
            {"macro_limits": (Limit(metric="latency", at_most=Q_(1, "s")),)},
            UnknownEntryError,
            "metric",
        ),
        ({"region": "Quebec"}, ConfigError, "GridProfile or Datacenter"),
        ({"region": Infra.Air_Cooled}, ConfigError, "GridProfile or Datacenter"),
        ({"utilization": 2}, ConfigError, "at most 1"),
        ({"duration_days": -1}, ConfigError, "out of range"),
        ({"kwh_price": 5}, ConfigError, "needs a unit"),
        ({"kwh_price": Q_(5, "USD")}, ConfigError, "wrong dimension"),
    ],
)
def test_what_makes_no_sense_is_refused_when_it_is_made(changes, error, word):
    with pytest.raises(error, match=word):
        Scenario(**{**GOOD, **changes})


def test_sizes_must_agree_when_it_is_made():
    with pytest.raises(ParallelismError, match="does not divide"):
        Scenario(**{**TRAINING, "arguments": {"batch_size": 256, "tp_size": 3}})
    with pytest.raises(ConfigError, match="batch_size is missing"):
        Scenario(**{**TRAINING, "arguments": {}})


def test_a_device_alone_has_no_peers():
    fleet = standalone_fleet(Hardware.MacBook_M3_Max)
    assert (fleet.count, fleet.total_accelerators) == (1, 1)
    assert fleet.node.power == Hardware.MacBook_M3_Max.tdp
    assert fleet.node.unit_price == Hardware.MacBook_M3_Max.unit_price
    assert fleet.node.is_estimated("unit_price") == Hardware.MacBook_M3_Max.is_estimated(
        "unit_price"
    )
    run = DistributedSolver.solve(model=Models.BERT_Base, fleet=fleet, batch_size=8)
    assert run.communication_latency.magnitude == 0
    assert run.pipeline_bubble_latency.magnitude == 0


def test_a_device_without_known_power_becomes_a_fleet_too():
    assert standalone_fleet(Hardware.TPUv5p).node.power == Hardware.TPUv5p.tdp


def test_a_fleet_stays_itself_and_nothing_else_is_one():
    assert standalone_fleet(Systems.Research_256) is Systems.Research_256
    assert standalone_fleet(Systems.DGX_H100).total_accelerators == 8
    with pytest.raises(ConfigError, match="not a system"):
        standalone_fleet(Models.GPT2)


@pytest.mark.parametrize("name", Scenarios.names())
def test_catalog_scenarios_run_and_say_what_they_are(name):
    scenario = Scenarios[name]
    assert scenario.solve().feasible
    assert scenario.description
    assert len(Scenarios.notes()[name]) > 60
    assert scenario.limits


def test_the_doorbell_misses_its_limit_at_the_share_that_was_measured():
    latency = Scenarios.Smart_Doorbell.solve().latency
    # 54 ms for 7,157,888 multiply-accumulates, 35,923,872 here: the same rate.
    assert latency.to("ms").magnitude == pytest.approx(54 * 35.924 / 7.158, rel=0.02)


def test_the_frontier_needs_its_interleaved_pipeline():
    scenario = Scenarios.Frontier_Training
    plain = dataclasses.replace(scenario, arguments={**scenario.arguments, "virtual_stages": 1})
    needed = scenario.limits[1]
    assert needed.allows(scenario.solve().mfu)
    assert not needed.allows(plain.solve().mfu)


def test_a_duration_may_have_a_unit():
    scenario = next(item for item in Scenarios if item.duration_days is not None)
    hours = dataclasses.replace(scenario, duration_days=Q_(72, "h"))
    assert hours.duration_days == 3
    assert hours == dataclasses.replace(scenario, duration_days=3)
    for bad in (Q_(3, "GB"), Q_(-3, "day"), Q_(float("nan"), "day"), Q_(10**400, "day")):
        with pytest.raises(ConfigError) as caught:
            dataclasses.replace(scenario, duration_days=bad)
        assert caught.value.argument == "duration_days"


def test_a_metric_has_one_dimension_whatever_result_it_is_in():
    results = [task.solver.result for task in TASKS.values()]
    results += [solver.result for solver in MACRO_SOLVERS]
    for result in results:
        for name, symbol, _ in units_of(result):
            assert unit(symbol).dimensionality == unit(METRICS[name]).dimensionality, name


@pytest.mark.parametrize(
    ("bounds", "word"),
    [
        ({"at_most": Q_(5, "GB")}, "wrong dimension"),
        ({"at_most": 5}, "needs a unit"),
        ({"at_least": "200 ms"}, "needs a unit"),
        ({"at_most": Q_(-1, "ms")}, "out of range"),
        ({"at_most": Q_(float("nan"), "ms")}, "out of range"),
        ({"at_most": Q_(float("inf"), "ms")}, "out of range"),
        ({}, "no bound"),
        ({"at_most": Q_(1, "ms"), "at_least": Q_(1, "s")}, "above at_most"),
    ],
)
def test_a_bound_that_makes_no_sense_is_refused(bounds, word):
    with pytest.raises(ConfigError, match=word):
        Limit(metric="latency", **bounds)


def test_a_share_takes_a_plain_number_or_percent():
    assert Limit(metric="mfu", at_least=0.4).allows(0.41)
    assert not Limit(metric="mfu", at_least=Q_(40, "percent")).allows(0.39)
    with pytest.raises(ConfigError, match="not a number"):
        Limit(metric="mfu", at_least=True)


def test_an_unknown_metric_names_the_nearest():
    with pytest.raises(UnknownEntryError, match="did you mean latency"):
        Limit(metric="latncy", at_most=Q_(1, "s"))


def test_what_is_not_known_keeps_no_limit():
    assert not Limit(metric="energy", at_most=Q_(1, "J")).allows(None)


def test_both_bounds_hold():
    limit = Limit(metric="latency", at_least=Q_(1, "ms"), at_most=Q_(1, "s"))
    allowed = [limit.allows(Q_(value, "ms")) for value in (0.5, 1, 20, 1000, 1001)]
    assert allowed == [False, True, True, True, False]
    assert str(limit) == "latency at most 1 s and at least 1 ms"
