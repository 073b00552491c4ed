"""The lab on the roofline: that its claims follow from the package, and its tiers from the rule."""

import math
from dataclasses import replace

import pytest

from mlsysim_course.labs.roofline import (
    BATCHES,
    BUDGET,
    DEVICES,
    MAIL,
    MODELS,
    NIGHT,
    PRECISIONS,
    RATE,
    Setup,
    cheapest,
    crossing,
    devices,
    dollars_per_hour,
    dollars_per_million,
    per_dollar,
    roof,
    solve,
    tokens,
)
from tests.course.instruments import DESIGNS, readings, shown

PLAN = DESIGNS["roofline"]
SETUPS = [
    Setup(device, model, precision)
    for device in DEVICES
    for model in MODELS
    for precision in PRECISIONS
]


def test_the_prediction_follows_on_paper():
    """Two operations and two bytes per parameter: the batch is about the ridge."""
    ridge = 0.5 * 989.4e12 / 3.35e12
    assert pytest.approx(ridge, rel=0.1) == crossing(MAIL)


@pytest.mark.parametrize("setup", SETUPS)
def test_the_crossing_is_where_the_limit_changes(setup):
    at = crossing(setup)
    assert 1 < at < 1000
    assert solve(replace(setup, batch=at - 1)).bottleneck == "memory"
    assert solve(replace(setup, batch=at)).bottleneck == "compute"
    assert solve(replace(setup, batch=4 * at)).bottleneck == "compute"


@pytest.mark.parametrize("batch", BATCHES)
def test_every_setup_is_on_its_roof(batch):
    for setup in SETUPS:
        result = solve(replace(setup, batch=batch))
        rate = (result.flops / result.latency).m_as("TFLOP/s")
        intensity = result.arithmetic_intensity.m_as("FLOP/byte")
        assert roof(setup, intensity) == pytest.approx(rate)


def test_eight_bits_move_the_crossing_far_less_than_the_other_answers_say():
    moved = crossing(replace(MAIL, precision="int8")) / crossing(MAIL)
    assert 0.8 < moved < 1.25


def test_prices_are_of_one_provider_on_one_day():
    assert len({(offer.date, offer.commitment) for offer in DEVICES.values()}) == 1
    assert all(offer.name.startswith("Modal") for offer in DEVICES.values())


def test_the_right_device_costs_least_for_the_rate():
    costs = {key: dollars_per_hour(found) for key in DEVICES if (found := cheapest(key))}
    assert min(costs, key=lambda key: costs[key]) == "h100"
    assert {key for key, cost in costs.items() if cost <= BUDGET} == {"h100"}
    assert set(DEVICES) - set(costs) == {"t4", "l4"}


def test_at_night_bandwidth_per_dollar_ranks_the_devices_and_nothing_else_does():
    cost = {key: dollars_per_million(Setup(key, MAIL.model, "int8", NIGHT)) for key in DEVICES}
    ranked = sorted(DEVICES, key=lambda key: cost[key])
    for what in ("bandwidth", "arithmetic", "capacity", "price"):
        order = sorted(DEVICES, key=lambda key: -per_dollar(key, what))
        assert (order == ranked) is (what == "bandwidth"), what


def test_devices_add_up_to_the_rate_and_one_fewer_does_not():
    for setup in SETUPS:
        number = devices(setup)
        assert number * tokens(setup) >= RATE > (number - 1) * tokens(setup)


def test_the_readings_are_those_of_the_plan():
    setup = Setup("h100", "8b", "int8", 256)
    plan = readings("roofline/plan", PLAN)
    assert plan["All devices"] == pytest.approx(dollars_per_hour(setup))
    assert plan["Devices"] == devices(setup)
    assert plan["Tokens per second"] == pytest.approx(tokens(setup))
    assert plan["A million tokens"] == pytest.approx(dollars_per_million(setup))


def test_the_slope_of_the_chart_is_a_straight_line():
    """On two logarithmic axes, the rate below the ridge is proportional to the intensity."""
    (chart,) = shown("roofline/plan", PLAN)["charts"]
    assert chart["x"]["log"]
    assert chart["y"]["log"]
    (low, slow), (next_, faster), *_ = chart["series"][0]["points"]
    assert math.log(faster / slow) / math.log(next_ / low) == pytest.approx(1)
