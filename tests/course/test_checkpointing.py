"""The lab on checkpoints: that its claims follow from the package, and its tiers from the rule."""

import math
from dataclasses import replace

import pytest

from mlsysim_course.labs.checkpointing import (
    BANDWIDTHS,
    BUDGET,
    CHANGES,
    INTERVALS,
    MAIL,
    TARGET,
    Plan,
    accepted,
    solve,
    waste,
    young,
)
from tests.course.instruments import readings


def test_the_best_interval_is_young_s():
    best = solve(MAIL.best)
    # 16 bytes a parameter would be 32 bits of everything; here weights take 2 and the state 12.
    write = 405_853_388_800 * 14 / 100e9
    mtbf = 54 * 24 / 419
    assert best.checkpoint_time.to("s").magnitude == pytest.approx(write)
    assert best.fleet_mtbf.to("h").magnitude == pytest.approx(mtbf)
    assert young(MAIL) == pytest.approx(math.sqrt(2 * write / 60 * mtbf * 60))


def test_no_other_interval_is_much_better():
    best = solve(MAIL.best).goodput
    others = [solve(replace(MAIL, interval=young(MAIL) * 1.02**k)).goodput for k in range(-40, 41)]
    assert max(others) < best + 0.001


def test_the_right_change_gains_most():
    gains = {name: solve(change()).goodput for name, change in CHANGES.items()}
    assert max(gains, key=lambda name: gains[name]) == "lifetime"
    assert gains["often"] < solve(MAIL.best).goodput < min(gains["storage"], gains["restart"])


def test_twice_the_fleet_shortens_the_interval_by_the_root_of_two():
    more = replace(MAIL, gpus=2 * MAIL.gpus)
    assert young(MAIL) / young(more) == pytest.approx(math.sqrt(2))
    options = [young(MAIL) / 2, young(MAIL), 2 * young(MAIL)]
    assert all(
        solve(replace(more, interval=one)).goodput < solve(more.best).goodput for one in options
    )


def test_some_plans_meet_the_requirements_and_neither_end_does():
    plans = [Plan(bandwidth=b, interval=i) for b in BANDWIDTHS for i in INTERVALS]
    good = [plan for plan in plans if accepted(plan)]
    assert 3 <= len(good) <= 10
    assert {plan.bandwidth for plan in good} == {200, 300}
    # Each requirement rules out plans that the other admits.
    assert any(solve(plan).goodput >= TARGET and waste(plan).total > BUDGET for plan in plans)


def test_the_readings_are_those_of_the_solver():
    shown = readings("checkpointing/plan", {"plan_bandwidth": 200})
    plan = Plan(bandwidth=200, interval=120)
    cost = waste(plan)
    assert shown["Goodput"] == pytest.approx(100 * solve(plan).goodput)
    assert shown["Lost time and storage"] == pytest.approx(cost.total / 1e6)
    assert shown["Lost time"] == pytest.approx(cost.lost / 1e6)
    assert shown["Storage"] == pytest.approx(0.8)
