"""Scorecards: statuses that follow from values, and no pass for what is not known."""

import dataclasses
import json

import pytest

from mlsysim import (
    Q_,
    ConfigError,
    EconomicsSolver,
    Hardware,
    InfeasibleError,
    Infra,
    Limit,
    Models,
    OOMError,
    Scenario,
    Scenarios,
    SLAViolation,
    SustainabilitySolver,
    Systems,
    evaluate,
)
from mlsysim.core.result import plain
from mlsysim.scenario.scorecard import worst

CAMERA = Scenario(name="Camera", task="inference", workload=Models.ResNet50, system=Hardware.T4)
TOO_LARGE = Scenario(
    name="Too large",
    task="serving",
    workload=Models.Llama3_70B,
    system=Hardware.H100,
    limits=(
        Limit(metric="itl", at_most=Q_(1, "s")),
        Limit(metric="ttft", at_most=Q_(1, "ms")),
    ),
)


def with_limits(*limits, **changes):
    return dataclasses.replace(CAMERA, limits=limits, **changes)


def status(scenario, metric):
    return next(c for c in evaluate(scenario).checks if c.metric == metric).status


def test_one_fail_fails_all_and_the_unknown_is_no_pass():
    assert worst(["pass", "unknown", "fail"]) == "fail"
    assert worst(["pass", "unknown"]) == "unknown"
    assert worst(["pass", "pass"]) == "pass"
    assert worst([]) is None


@pytest.mark.parametrize("bound", ["at_most", "at_least"])
def test_a_limit_at_the_value_itself_is_kept(bound):
    latency = CAMERA.solve().latency
    nearer = {"at_most": 0.999, "at_least": 1.001}[bound]
    assert status(with_limits(Limit(metric="latency", **{bound: latency})), "latency") == "pass"
    missed = with_limits(Limit(metric="latency", **{bound: latency * nearer}))
    assert status(missed, "latency") == "fail"
    assert evaluate(missed).status == "fail"


def test_each_bound_is_a_check():
    card = evaluate(with_limits(Limit(metric="latency", at_least=Q_(1, "us"), at_most=Q_(1, "us"))))
    assert [(c.bound, c.status) for c in card.performance.checks] == [
        ("at_most", "fail"),
        ("at_least", "pass"),
    ]


def test_a_value_that_is_not_known_is_unknown():
    unmetered = dataclasses.replace(Hardware.T4, tdp=None)
    card = evaluate(with_limits(Limit(metric="energy", at_most=Q_(1, "kWh")), system=unmetered))
    assert card.performance.status == card.status == "unknown"
    with pytest.raises(SLAViolation, match="energy is not known") as caught:
        card.require()
    assert caught.value.value is None


def test_what_does_not_fit_keeps_no_limit():
    card = evaluate(TOO_LARGE)
    assert card.feasibility.status == "fail"
    assert status(TOO_LARGE, "itl") == "unknown"
    assert status(TOO_LARGE, "ttft") == "fail"
    assert "not feasible" in next(c for c in card.checks if c.metric == "itl").reason


def test_what_does_not_fit_says_by_how_much():
    with pytest.raises(OOMError, match=r"has 85\.52 GB") as caught:
        evaluate(TOO_LARGE).require()
    assert caught.value.required > caught.value.available
    assert set(caught.value.by_component) == {"model_weights_size", "kv_cache_size"}


def test_a_training_step_says_which_part_of_the_memory_is_what():
    scenario = Scenario(
        name="Run",
        task="training",
        workload=Models.Llama3_70B,
        system=Systems.Research_256,
        arguments={"batch_size": 256},
    )
    with pytest.raises(OOMError) as caught:
        evaluate(scenario).require()
    assert "optimizer_memory" in caught.value.by_component


def test_a_schedule_that_cannot_run_is_infeasible_but_not_out_of_memory():
    scenario = Scenario(
        name="Run",
        task="training",
        workload=Models.BERT_Base,
        system=Systems.Research_256,
        arguments={"batch_size": 100},
    )
    card = evaluate(scenario)
    assert [c.status for c in card.feasibility.checks] == ["pass", "fail"]
    with pytest.raises(InfeasibleError, match="multiple of 256") as caught:
        card.require()
    assert not isinstance(caught.value, OOMError)


def test_a_broken_limit_names_metric_value_and_limit():
    scenario = with_limits(Limit(metric="latency", at_most=Q_(1, "us")))
    with pytest.raises(SLAViolation, match=r"Camera: latency is .* us, and at most 1 us") as caught:
        evaluate(scenario).require()
    assert caught.value.metric == "latency"
    assert caught.value.limit == Q_(1, "us")
    assert caught.value.value == scenario.solve().latency


def test_a_kept_promise_returns_the_card():
    card = evaluate(Scenarios.Local_Training)
    assert card.require() is card


def test_without_promises_the_levels_have_no_status_and_feasibility_decides():
    card = evaluate(CAMERA)
    assert (card.performance.status, card.macro.status) == (None, None)
    assert card.status == "pass"
    assert card.macro.figures == ()


def test_figures_are_told_where_nothing_is_promised():
    card = evaluate(dataclasses.replace(CAMERA, duration_days=30, region=Infra.Poland))
    figures = {c.metric: c for c in card.macro.figures}
    assert all(c.status is None for c in figures.values())
    direct = SustainabilitySolver.solve(
        fleet=card.scenario.fleet, duration_days=30, datacenter=Infra.Poland
    )
    assert figures["carbon_footprint"].value == direct.carbon_footprint
    assert figures["water_usage"].value == direct.water_usage


@pytest.mark.parametrize(
    ("given", "metric", "word"),
    [
        ({}, "carbon_footprint", "duration_days"),
        ({}, "period_cost", "duration_days"),
        ({"duration_days": 30}, "carbon_footprint", "region"),
        ({"duration_days": 30, "region": Infra.Poland}, "period_cost", "unit_price"),
    ],
)
def test_a_macro_limit_without_the_inputs_it_needs_is_unknown(given, metric, word):
    amount = Q_(1, "tonne") if metric == "carbon_footprint" else Q_(1, "MUSD")
    scenario = dataclasses.replace(
        CAMERA,
        system=dataclasses.replace(Hardware.T4, unit_price=None),
        macro_limits=(Limit(metric=metric, at_most=amount),),
        **given,
    )
    check = evaluate(scenario).macro.checks[0]
    assert check.status == "unknown"
    assert word in check.reason


def test_the_energy_has_a_price_where_the_hardware_has_none():
    device = dataclasses.replace(Hardware.T4, unit_price=None)
    card = evaluate(dataclasses.replace(CAMERA, system=device, duration_days=30))
    assert card.economics.opex_energy.magnitude > 0
    assert card.economics.tco is None
    assert card.economics.rental_cost is None
    assert "kwh_price" in str(card.economics.explain("opex_energy"))
    priced = dataclasses.replace(CAMERA, duration_days=30, unit_price=Q_(2000, "USD"))
    assert evaluate(priced).economics.capex == Q_(2000, "USD")


def test_unknown_power_leaves_the_macro_level_unknown():
    device = dataclasses.replace(Hardware.T4, tdp=None)
    scenario = dataclasses.replace(
        CAMERA,
        system=device,
        duration_days=30,
        region=Infra.Poland,
        macro_limits=(Limit(metric="total_energy", at_most=Q_(1, "MWh")),),
    )
    card = evaluate(scenario)
    assert card.macro.status == "unknown"
    assert "power" in card.macro.checks[0].reason


def test_tokens_are_priced_for_training_and_for_all_copies_served():
    run = Scenarios.Frontier_Training
    card = evaluate(run)
    direct = EconomicsSolver.solve(
        fleet=run.system,
        duration_days=30,
        kwh_price=run.kwh_price,
        datacenter=run.region,
        utilization=card.result.power_utilization,
        token_throughput=card.result.token_throughput,
    )
    assert card.economics.cost_per_token == direct.cost_per_token
    cost = evaluate(SERVED).economics.cost_per_token
    one = EconomicsSolver.solve(
        fleet=SERVED.fleet,
        duration_days=30,
        grid=Infra.US_Avg,
        utilization=SERVED.solve().power_utilization,
        token_throughput=8 * SERVED.solve().output_throughput,
    )
    assert cost == one.cost_per_token


SERVED = Scenario(
    name="Chat",
    task="serving",
    workload=Models.Llama3_8B,
    system=Systems.DGX_H100,
    arguments={"output_len": 256, "batch_size": 16},
    duration_days=30,
    region=Infra.US_Avg,
)


def used(card):
    return next(c for c in card.macro.figures if c.metric == "utilization")


@pytest.mark.parametrize("scenario", [SERVED, Scenarios.Frontier_Training])
def test_a_task_that_goes_on_all_the_time_draws_what_its_work_draws(scenario):
    card = evaluate(scenario)
    assert 0 < used(card).value == card.result.power_utilization < 1
    assert used(card).reason == "predicted from the workload (power calibration: Hopper)"
    drawn = card.result.device_power.to("W").magnitude
    for answer in (card.sustainability, card.economics):
        assert answer.device_power.to("W").magnitude == pytest.approx(drawn)


def test_a_given_utilization_goes_before_a_predicted_one():
    card = evaluate(dataclasses.replace(SERVED, utilization=0.25))
    assert (used(card).value, used(card).reason) == (0.25, "given")
    assert card.sustainability.device_power.to("W").magnitude == pytest.approx(700 * 0.325)
    idle = evaluate(dataclasses.replace(SERVED, utilization=0))
    assert (used(idle).value, used(idle).reason) == (0, "given")


def test_a_pass_does_not_say_how_often_it_is_asked_for():
    card = evaluate(Scenarios.Smart_Doorbell)
    assert card.result.power_utilization < 1
    assert (used(card).value, used(card).reason) == (1, "assumed: an upper bound")
    assert card.sustainability.device_power == Hardware.ESP32_S3.tdp


def test_without_a_predicted_power_the_default_is_taken_and_the_energy_is_unknown():
    node = dataclasses.replace(
        Systems.DGX_H100, accelerator=dataclasses.replace(Hardware.H100, tdp=None)
    )
    card = evaluate(dataclasses.replace(SERVED, system=node))
    assert used(card).reason.startswith("assumed")
    assert card.sustainability is None


def test_plain_data_is_json_and_keeps_the_units():
    data = json.loads(json.dumps(evaluate(Scenarios.Smart_Doorbell).to_dict(), allow_nan=False))
    assert data["status"] == "fail"
    check = data["levels"]["performance"]["checks"][0]
    assert check["limit"] == {"value": 200, "unit": "ms"}
    assert check["value"]["unit"] == "ms"
    assert check["ratio"] == pytest.approx(1.376, rel=0.01)
    assert data["result"]["bottleneck"] == "compute"
    assert plain(float("inf")) is None
    assert plain(Q_(float("nan"), "s"))["value"] is None


def test_text_table_and_pages_tell_the_same():
    card = evaluate(Scenarios.Smart_Doorbell)
    text, markdown, page = str(card), card._repr_markdown_(), card._repr_html_()
    for shown in (text, markdown, page):
        assert "Smart doorbell: fail" in shown
        assert "275.2 ms" in shown
        assert "at most 200 ms" in shown
    table = card.table()
    assert list(table["status"]) == ["pass", "fail", "pass", "–", "–", "–", "–"]
    assert "mls-table" in page


def test_a_name_cannot_break_out_of_the_page():
    card = evaluate(dataclasses.replace(CAMERA, name="<script>"))
    assert "<script>" not in card._repr_html_()


def test_only_scenarios_are_evaluated():
    with pytest.raises(ConfigError, match="not a Scenario"):
        evaluate(CAMERA.solve())
