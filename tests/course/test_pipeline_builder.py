"""The lab on pipelines: that its claims follow from the package, and its tiers from the rule."""

import dataclasses
import json

import pytest

from mlsysim import ConfigError
from mlsysim.core.formulas import pipeline_bubble_fraction
from mlsysim.registry import Systems
from mlsysim_course.labs import pipeline_builder as lab
from mlsysim_course.labs.pipeline_builder import (
    LAB,
    MAIL,
    MICROBATCHES,
    SCHEDULES,
    TARGET,
    Line,
    Pipeline,
    accepted,
    best,
    idle,
    simulate,
    solve,
)
from tests.course.instruments import readings

DESIGNS = [Pipeline(p, key, m) for p in (1, 2, 4, 8) for key in SCHEDULES for m in MICROBATCHES]


def test_the_prediction_is_the_closed_form():
    assert lab.PREDICTION_1.truth() == pytest.approx(100 * pipeline_bubble_fraction(8, 16, 1))
    assert lab.PREDICTION_1.truth() == pytest.approx(100 * 7 / 23)


@pytest.mark.parametrize("stages", [2, 4, 8])
@pytest.mark.parametrize("count", [8, 16, 32])
def test_1f1b_saves_memory_and_no_time(stages, count):
    old, new = Line(stages, "gpipe", count), Line(stages, "1f1b", count)
    assert idle(old) == idle(new)
    assert simulate(old).peak_activations[0] == count
    assert simulate(new).peak_activations[0] == min(stages, count)


def test_the_right_schedule_is_the_fastest_that_fits():
    speed = {key: best(key)[1].mfu for key in lab.PREDICTION_2.options if best(key)[1].feasible}
    assert max(speed, key=lambda key: speed[key]) == "zb-h1"
    assert set(lab.PREDICTION_2.options) - set(speed) == {"gpipe"}
    assert all(not solve(Pipeline(8, "gpipe", m)).feasible for m in MICROBATCHES)


def test_five_chunks_have_the_smallest_bubble_and_send_five_times_as_much():
    bubbles = {key: best(key)[1].bubble_fraction for key in SCHEDULES}
    assert min(bubbles, key=lambda key: bubbles[key]) == "interleaved_5"
    deep, plain = (best(key)[1].pp_communication_latency for key in ("interleaved_5", "1f1b"))
    assert (deep / plain).m_as("") == pytest.approx(5, rel=0.02)


def test_only_eight_stages_meet_the_requirements():
    good = [design for design in DESIGNS if accepted(design)]
    assert {design.stages for design in good} == {8}
    assert {(design.schedule, design.microbatches) for design in good} == {
        ("zb-h1", 32),
        ("zb-h1", 64),
    }
    assert max(solve(one).mfu for one in good) > TARGET + 0.005


def test_on_a_fast_network_the_order_changes(monkeypatch):
    fast = dataclasses.replace(lab.FLEET, fabric=Systems.Fabrics.InfiniBand_NDR)
    monkeypatch.setattr(lab, "FLEET", fast)
    solve.cache_clear()
    try:
        speed = {design: solve(design) for design in DESIGNS}
    finally:
        monkeypatch.undo()
        solve.cache_clear()
    fit = {d: r.mfu for d, r in speed.items() if not isinstance(r, str) and r.feasible}
    eight = {design: mfu for design, mfu in fit.items() if design.stages == 8}
    assert max(eight, key=lambda one: eight[one]).schedule == "interleaved_5"
    assert max(fit, key=lambda one: fit[one]).stages < 8


@pytest.mark.parametrize(
    ("explorer", "state"),
    [
        ("schedule", {"schedule": "interleaved_2", "microbatches": 4}),
        ("plan", {"plan_stages": 1, "plan_schedule": "interleaved_2"}),
    ],
)
def test_sizes_that_do_not_work_are_refused_and_the_ledger_is_kept(explorer, state):
    with pytest.raises(ConfigError):
        LAB.explorer(f"pipeline_builder/{explorer}").view(state)
    assert LAB.restore(json.dumps(LAB.ledger(state))) == state


def test_the_readings_are_those_of_the_simulation_and_the_solver():
    shown = readings("pipeline_builder/schedule", {"schedule": "zb-h1"})
    played = simulate(Line(8, "zb-h1", 16))
    assert shown["Idle"] == pytest.approx(100 * float(played.bubble_fraction))
    assert shown["Step"] == played.makespan
    assert shown["Activations kept"] == max(played.peak_activations)
    shown = readings("pipeline_builder/plan", {"plan_stages": 8, "plan_schedule": "zb-h1"})
    assert shown["MFU"] == pytest.approx(100 * solve(Pipeline(8, "zb-h1", 8)).mfu)


def test_stages_of_a_schedule_that_does_not_exist_have_no_idle_share():
    assert isinstance(simulate(Line(8, "interleaved_2", 4)), str)
    assert idle(Line(8, "interleaved_2", 4)) is None
    assert idle(MAIL) is not None
