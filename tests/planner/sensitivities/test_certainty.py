"""How sure a choice is: against sampled constants, and by solving both plans where it flips."""

import math
from dataclasses import replace

import numpy as np
import pytest

from mlsysim import (
    ConfigError,
    DistributedSolver,
    Machine,
    Models,
    Software,
    Systems,
    advise,
    odds,
)
from mlsysim.core.fields import priors
from mlsysim.planner.sensitivities.questions import question_of

CLUSTER = Systems.Clusters.Research_256
JOB = {
    "model": Models.Llama3_70B,
    "fleet": CLUSTER,
    "batch_size": 256,
    "seq_len": 2048,
    "precision": "bf16",
}
DEEP = {"tp_size": 2, "pp_size": 8, "microbatch_count": 16, "zero_stage": 1}
WIDE = {"tp_size": 8, "pp_size": 2, "microbatch_count": 8, "zero_stage": 1}


def solved(**more):
    return DistributedSolver.solve(**JOB | more)


def seconds(result):
    return result.step_latency_total.to("s").magnitude


def test_the_probability_is_that_of_sampled_constants():
    """Draw every constant within a narrow band, solve both plans, and count who wins."""
    one, other = solved(**DEEP), solved(**WIDE)
    if seconds(one) > seconds(other):
        one, other = other, one
    answer = odds(one, other)
    assert answer.margin == pytest.approx(math.log(seconds(other) / seconds(one)))
    ours, theirs = (question_of(DistributedSolver, r.__dict__["_origin"][1]) for r in (one, other))
    constants = [
        (f"calibration.{part}.{name}", prior.spread)
        for part, kind in (("machine", Machine), ("software", Software))
        for name, prior in priors(kind).items()
        if prior.spread is not None
    ]
    rng = np.random.default_rng(1)
    small = 0.02  # so that the times are linear
    places = [(ours.place(path), doubt) for path, doubt in constants]
    margins, own = [], []
    for _ in range(80):
        draw = np.exp(small * rng.standard_normal(len(places)) * [d for _, d in places])
        times = []
        for question in (ours, theirs):
            for (place, _), factor in zip(places, draw, strict=True):
                if place.value:
                    question = question.changed(place, place.value * factor)
            times.append(float(question.outputs()["step_latency_total"]))
        margins.append(math.log(times[1] / times[0]))
        own.append(math.log(times[0]))
    # The same scale turns the spread of the times into that of the band.
    low, high = one.step_latency_low, one.step_latency_high
    width = math.log((high / low).to("").magnitude) / 2.5632
    assert answer.spread == pytest.approx(width * np.std(margins) / np.std(own), rel=0.25)
    chance = 0.5 * (1 + math.erf(answer.margin / answer.spread / math.sqrt(2)))
    assert answer.probability == pytest.approx(chance)


def test_the_choice_flips_where_it_is_said_to():
    one, other = solved(**DEEP), solved(**WIDE)
    answer = odds(one, other)
    assert answer.hinge
    assert answer.hinge in str(answer)
    value = answer.flips_at
    value = float(
        getattr(value, "to_base_units", lambda: value)().magnitude
        if hasattr(value, "magnitude")
        else value
    )

    def difference(at):
        times = []
        for result in (one, other):
            question = question_of(DistributedSolver, result.__dict__["_origin"][1])
            changed = question.changed(question.place(answer.hinge), at)
            times.append(float(changed.outputs()["step_latency_total"]))
        return times[1] - times[0]

    now = question_of(DistributedSolver, JOB | DEEP).place(answer.hinge).value
    assert difference(value) == pytest.approx(0, abs=1e-9)
    before = value * (value / now) ** -0.1
    assert difference(before) * difference(now) > 0


def test_without_a_band_there_is_no_probability_but_a_faster_plan():
    one, other = (solved(efficiency=0.5, **plan) for plan in (DEEP, WIDE))
    answer = odds(one, other)
    assert answer.probability is None
    assert answer.margin == pytest.approx(math.log(seconds(other) / seconds(one)))
    assert len(answer.notes) == 1
    assert answer.notes[0] in str(answer)
    share = abs(seconds(one) / seconds(other) - 1)
    assert f"{share:.1%} {'less' if answer.margin > 0 else 'more'} time" in str(answer)
    back = odds(other, one)
    assert ("less time" in str(answer)) != ("less time" in str(back))
    assert "as fast" in str(odds(one, one))


def test_plans_that_cannot_run_are_said_not_to():
    fits, large = solved(**DEEP), solved(tp_size=1)
    assert (fits.feasible, large.feasible) == (True, False)
    for plans, names in (
        ((fits, fits), ()),
        ((large, fits), ("first",)),
        ((fits, large), ("second",)),
        ((large, large), ("first", "second")),
    ):
        answer = odds(*plans)
        assert answer.feasible == (not names)
        assert len(answer.notes) == len(names)
        for name, note in zip(names, answer.notes, strict=True):
            assert note.startswith(f"the {name} plan")
            assert large.reasons[0] in note
            assert note in str(answer)


def test_advice_says_how_sure_it_is():
    small = replace(CLUSTER, name="two nodes", count=2)
    job = {"model": Models.Llama3_8B, "fleet": small, "batch_size": 32, "seq_len": 2048}
    few = {"cp_size": 1, "virtual_stages": 1, "schedule": "1f1b", "recompute": "selective"}
    advice = advise(**job, **few)
    assert set(advice.odds) <= {item.lever for item in advice.alternatives}
    for lever, sure in advice.odds.items():
        nearest = min(
            (i for i in advice.alternatives if i.lever == lever and i.loss is not None),
            key=lambda item: item.loss,
        )
        assert sure.margin == pytest.approx(math.log(1 + nearest.loss), abs=1e-9)
        assert str(sure) in advice.why
        if 0.01 < sure.probability < 0.99:
            assert f"{sure.probability:.0%} of the band" in str(sure)


def test_only_results_of_the_solver_have_odds():
    with pytest.raises(ConfigError) as caught:
        odds(solved(**DEEP), "another")
    assert caught.value.argument == "against"
