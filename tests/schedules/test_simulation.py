"""The loop that plays orders through: laws of any timeline, and orders that make no sense."""

import itertools
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlsysim import Q_, ConfigError, Timeline, simulate_pipeline
from mlsysim.schedules import Pass, pipeline_orders, play


@st.composite
def calls(draw):
    """Arguments of a simulation, with uneven stages and transfers."""
    p = draw(st.integers(1, 5))
    schedule = draw(st.sampled_from(["gpipe", "1f1b", "zb-h1"]))
    v = draw(st.integers(1, 3)) if schedule == "1f1b" else 1
    m = p * draw(st.integers(1, 3)) if v > 1 else draw(st.integers(1, 8))
    times = st.lists(st.integers(1, 9), min_size=p, max_size=p)
    return {
        "schedule": schedule,
        "pp_size": p,
        "microbatch_count": m,
        "virtual_stages": v,
        "forward_time": draw(times),
        "backward_time": draw(times),
        "transfer_time": draw(st.integers(0, 5)),
    }


@given(calls())
def test_laws_of_a_timeline(call):
    step = simulate_pipeline(**call)
    p, v, transfer = call["pp_size"], call["virtual_stages"], call["transfer_time"]
    ends = {}
    for event in step.events:
        ends[event.kind, event.microbatch, event.chunk * p + event.stage] = event.end
    for event in step.events:
        position = event.chunk * p + event.stage
        before = None
        if event.kind == "F" and position:
            before = "F", event.microbatch, position - 1
        if event.kind == "B" and position < p * v - 1:
            before = "B", event.microbatch, position + 1
        if before:
            assert event.start >= ends[before] + (transfer if p > 1 else 0)
        if event.kind != "F":
            assert (
                event.start >= ends["F" if event.kind == "B" else "B", event.microbatch, position]
            )
    for stage in range(p):
        ran = step.stage(stage)
        assert all(a.end <= b.start for a, b in itertools.pairwise(ran))
        work = (call["forward_time"][stage] + call["backward_time"][stage]) * step.microbatch_count
        assert step.busy_times[stage] == work
        assert step.idle_times[stage] == step.makespan - work
    assert min(event.start for event in step.events) == 0
    assert 0 <= step.bubble_fraction < 1


@given(calls())
def test_no_pass_could_start_sooner(call):
    """A pass starts when the one before it on its stage ends, or when something arrives."""
    step = simulate_pipeline(**call)
    causes = {0} | {event.end for event in step.events}
    causes |= {event.end + call["transfer_time"] for event in step.events}
    assert all(event.start in causes for event in step.events)


@given(calls(), st.integers(2, 5))
def test_twice_the_times_take_twice_as_long(call, factor):
    longer = dict(call)
    for name in ("forward_time", "backward_time"):
        longer[name] = [factor * time for time in call[name]]
    longer["transfer_time"] = factor * call["transfer_time"]
    assert simulate_pipeline(**longer).makespan == factor * simulate_pipeline(**call).makespan


def test_whole_numbers_stay_whole_and_fractions_exact():
    step = simulate_pipeline(pp_size=3, microbatch_count=6)
    assert all(type(event.end) is int for event in step.events)
    step = simulate_pipeline(pp_size=3, microbatch_count=6, virtual_stages=3)
    assert step.makespan == 20
    assert type(step.makespan) is int
    assert step.events[0].end == Fraction(1, 3)
    step = simulate_pipeline("zb-h1", pp_size=2, microbatch_count=2, backward_time=3)
    assert {event.duration for event in step.events} == {1, Fraction(3, 2)}


def test_times_of_numpy():
    times = np.array([1.0, 2.0])
    step = simulate_pipeline(
        pp_size=2, microbatch_count=2, forward_time=times, backward_time=np.int64(2)
    )
    assert step.makespan == 1 + 2 + 2 + 2 + 2 + 2


def test_orders_of_your_own():
    step = play(pipeline_orders("1f1b", pp_size=2, microbatch_count=4))
    assert isinstance(step, Timeline)
    assert (step.schedule, step.makespan) == ("own", 15)


def test_twice_as_many_forwards_ahead_hide_transfers():
    m, p, transfer = 12, 4, Fraction(1, 4)
    orders = []
    for stage in range(p):
        ahead = 2 * (p - 1 - stage)
        order = [Pass("F", i) for i in range(ahead)]
        for i in range(m):
            order += [Pass("F", ahead + i)] * (ahead + i < m) + [Pass("B", i)]
        orders.append(order)
    eager = play(orders, transfer_time=transfer)
    assert eager.makespan == 3 * (m + p - 1) + 2 * (p - 1) * transfer
    assert eager.peak_activations == (7, 5, 3, 1)
    usual = simulate_pipeline(pp_size=p, microbatch_count=m, transfer_time=transfer)
    assert usual.makespan > eager.makespan


F1, B1, W1, F2, B2 = Pass("F", 0), Pass("B", 0), Pass("W", 0), Pass("F", 1), Pass("B", 1)


@pytest.mark.parametrize(
    ("orders", "words"),
    [
        # The second stage wants its second microbatch first, which the first stage holds back.
        ([[F1, B1, F2, B2], [F2, B2, F1, B1]], "stage 1 to run B1, stage 2 to run F2"),
        ([[B1, F1]], "forever: stage 1 to run B1"),
        ([], "hold no pass"),
        ([[]], "hold no pass"),
        ([[F1, B1], [F1]], "stage 2 lacks B1"),
        ([[F1, B1, W1], [F1, B1]], "stage 2 lacks W1"),
        ([[F1, B1, F1]], "stage 1 repeats F1"),
        ([[F1, B1], []], "stage 2 lacks B1"),
        ([["F1", "B1"]], "orders hold 'F1': give passes"),
        ([[("X", 0)]], "orders hold"),
        ([[("F", -1)]], "orders hold"),
        ([[(np.array(["F", "B"]), 0)]], "orders hold"),
        (None, "orders hold None: give one list"),
        ([5], "orders hold 5: give one list"),
        ([[Pass("F", 10**9)]], "microbatch 1000000000 and chunk 0, .* 1,000,000 passes"),
        ([[Pass("F", 1000, 1000), Pass("B", 0)]], "microbatch 1000 and chunk 1000"),
        ([[Pass("F", 10**5000)]], "more than the 1,000,000 passes"),
        ([itertools.repeat(F1)], "hold more than the 1,000,000 passes"),
        (itertools.repeat([]), "hold more than the 1,000,000 passes"),
        ([[F1, B1] * 100_000], "stage 1 repeats B1"),
        ([[B1, F1]] * 100, "stage 4 to run B1 and 96 more"),
    ],
)
def test_orders_refused(orders, words):
    with pytest.raises(ConfigError, match=words) as caught:
        play(orders)
    assert caught.value.argument == "orders"
    assert len(str(caught.value)) < 400


@pytest.mark.parametrize(
    ("argument", "value", "words"),
    [
        ("forward_time", 0, "finite number above zero"),
        ("forward_time", -1.0, "above zero"),
        ("forward_time", float("nan"), "finite"),
        ("forward_time", True, "finite"),
        ("forward_time", "1", "finite"),
        ("forward_time", None, "finite"),
        ("forward_time", [1, 2], "2 values for 3 stages"),
        ("forward_time", Q_(1, "ms"), "has a unit"),
        ("backward_time", float("inf"), "finite"),
        ("backward_time", [1, 2, 0], "above zero"),
        ("weight_time", 2, "must be smaller"),
        ("weight_time", -1, "zero or more"),
        ("transfer_time", -1, "zero or more"),
        ("transfer_time", [1, 2], "2 values for 1 stage"),
    ],
)
def test_times_refused(argument, value, words):
    with pytest.raises(ConfigError, match=words) as caught:
        simulate_pipeline(pp_size=3, microbatch_count=4, **{argument: value})
    assert caught.value.argument == argument


def test_no_weights_to_put_off_is_1f1b():
    sizes = {"pp_size": 4, "microbatch_count": 6}
    split = simulate_pipeline("zb-h1", **sizes, weight_time=0)
    assert split.makespan == simulate_pipeline("1f1b", **sizes).makespan


def test_a_timeline_says_what_it_is():
    step = simulate_pipeline("gpipe", pp_size=4, microbatch_count=6)
    assert repr(step) == "<Timeline gpipe: pp_size=4, microbatch_count=6, virtual_stages=1>"
