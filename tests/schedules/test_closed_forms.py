"""Formulas equal the schedules they are about; where they do not, by how much."""

import itertools
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlsysim import DistributedSolver, Models, Systems, simulate_pipeline
from mlsysim.core.formulas import (
    chunks_in_flight,
    microbatches_in_flight,
    pipeline_bubble_fraction,
    pipeline_bubble_time,
    split_backward_bubble_time,
)

STAGES = st.integers(1, 9)
MICROBATCHES = st.integers(1, 30)
WHOLE = st.integers(1, 12)
REAL = st.floats(1e-3, 1e3)


def same_bubble(step, stages, microbatches, virtual, busy):
    """Both faces of the bubble, and every stage waits as long as any other."""
    bubble = pipeline_bubble_time(busy, stages, microbatches, virtual)
    assert float(step.bubble_time) == pytest.approx(bubble, abs=1e-9 * busy)
    share = pipeline_bubble_fraction(stages, microbatches, virtual)
    assert step.bubble_fraction == pytest.approx(share, abs=1e-9)
    assert step.bubble_over_busy == pytest.approx(bubble / busy, abs=1e-9)
    for idle in step.idle_times:
        assert float(idle) == pytest.approx(bubble, abs=1e-9 * busy)


@given(st.sampled_from(["gpipe", "1f1b"]), STAGES, MICROBATCHES, WHOLE | REAL, WHOLE | REAL)
def test_the_bubble_of_equal_stages(schedule, p, m, forward, backward):
    step = simulate_pipeline(
        schedule, pp_size=p, microbatch_count=m, forward_time=forward, backward_time=backward
    )
    same_bubble(step, p, m, 1, m * (forward + backward))


@given(STAGES, st.integers(1, 5), st.integers(2, 5), WHOLE | REAL, WHOLE | REAL)
def test_the_bubble_of_interleaved_stages(p, rounds, v, forward, backward):
    m = rounds * p
    step = simulate_pipeline(
        pp_size=p,
        microbatch_count=m,
        virtual_stages=v,
        forward_time=forward,
        backward_time=backward,
    )
    same_bubble(step, p, m, v, m * (forward + backward))


@given(STAGES, MICROBATCHES, WHOLE, WHOLE, st.integers(0, 24))
def test_the_bubble_of_split_backwards(p, m, forward, inputs, weights):
    """Exact in whole numbers, also beyond the range of the published form."""
    step = simulate_pipeline(
        "zb-h1",
        pp_size=p,
        microbatch_count=m,
        forward_time=forward,
        backward_time=inputs + weights,
        weight_time=weights,
    )
    bubble = split_backward_bubble_time(forward, inputs, weights, p, m)
    assert step.bubble_time == bubble
    assert set(step.idle_times) == {bubble}
    if weights <= min(forward, inputs) and m >= p:
        assert bubble == (p - 1) * (forward + inputs - weights)


@given(STAGES, MICROBATCHES)
def test_peak_activations(p, m):
    held = {
        schedule: simulate_pipeline(schedule, pp_size=p, microbatch_count=m).peak_activations
        for schedule in ("gpipe", "1f1b", "zb-h1")
    }
    assert held["gpipe"] == (m,) * p
    assert held["1f1b"] == tuple(microbatches_in_flight(p, m, i) for i in range(p))
    # Qi et al. (2023), section 2.3: with what waits for weights, as many on every stage.
    assert held["zb-h1"] == (microbatches_in_flight(p, m),) * p


@given(STAGES, st.integers(1, 5), st.integers(2, 5))
def test_peak_activations_of_interleaved_stages(p, rounds, v):
    m = rounds * p
    step = simulate_pipeline(pp_size=p, microbatch_count=m, virtual_stages=v)
    assert step.peak_activations == tuple(chunks_in_flight(p, m, v, i) for i in range(p))


def test_the_solver_says_the_same():
    job = {"model": Models.Llama3_70B, "fleet": Systems.Clusters.Research_256, "batch_size": 256}
    for v in (1, 5):
        sizes = {"pp_size": 4, "microbatch_count": 16, "virtual_stages": v}
        solved = DistributedSolver.solve(**job, tp_size=8, efficiency=0.5, **sizes)
        step = simulate_pipeline(**sizes)
        assert solved.bubble_fraction == pytest.approx(step.bubble_fraction)


@given(st.lists(WHOLE, min_size=1, max_size=8), MICROBATCHES, st.integers(1, 5))
def test_gpipe_of_uneven_stages(forwards, m, ratio):
    """The longest stage sets the pace; filling and draining take every stage once."""
    step = simulate_pipeline(
        "gpipe",
        pp_size=len(forwards),
        microbatch_count=m,
        forward_time=forwards,
        backward_time=[ratio * f for f in forwards],
    )
    assert step.makespan == (1 + ratio) * (sum(forwards) + (m - 1) * max(forwards))


@given(st.lists(WHOLE, min_size=1, max_size=8), MICROBATCHES)
def test_the_longest_stage_bounds_1f1b(forwards, m):
    p = len(forwards)
    step = simulate_pipeline(
        pp_size=p,
        microbatch_count=m,
        forward_time=forwards,
        backward_time=[2 * f for f in forwards],
    )
    longest = 3 * max(forwards)
    assert m * longest <= step.makespan <= (m + p - 1) * longest


@given(STAGES, MICROBATCHES, st.integers(0, 12))
def test_gpipe_pays_for_transfers_once(p, m, transfer):
    sizes = {"pp_size": p, "microbatch_count": m}
    late = simulate_pipeline("gpipe", **sizes, transfer_time=transfer)
    soon = simulate_pipeline("gpipe", **sizes)
    assert late.makespan - soon.makespan == 2 * (p - 1) * transfer


def test_1f1b_pays_for_transfers_again_and_again():
    """As many microbatches as stages are under way, so each round trip is waited for."""
    p, transfer = 4, Fraction(1, 10)
    added = []
    for m in (8, 16, 32):
        late = simulate_pipeline(pp_size=p, microbatch_count=m, transfer_time=transfer)
        added.append(late.makespan - 3 * (m + p - 1))
    assert [more - less for less, more in itertools.pairwise(added)] == [
        2 * (p - 1) * transfer * rounds for rounds in (2, 4)
    ]


def test_interleaving_hides_transfers():
    sizes = {"pp_size": 4, "virtual_stages": 2, "transfer_time": Fraction(1, 10)}
    added = [
        simulate_pipeline(**sizes, microbatch_count=m).makespan - 3 * m - Fraction(9, 2)
        for m in (8, 16, 64)
    ]
    assert added == [Fraction(14, 10)] * 3
