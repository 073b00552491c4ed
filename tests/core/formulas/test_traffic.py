"""Passes of an engine that never decodes: limits, and the fixed point itself."""

import math

import numpy as np
import pytest

from mlsysim.core import formulas as f


@pytest.mark.parametrize("rate", [1e-6, 1.0, 10.0, 20.0, 24.0])
@pytest.mark.parametrize("empty", [1e-4, 5e-3, 50e-3])
def test_prompts_in_a_pass_are_the_fixed_point(rate, empty):
    prompts = f.prompts_in_busy_pass(rate, empty, 40e-3)
    arriving = rate * (empty + prompts * 40e-3)
    assert prompts == pytest.approx(arriving + math.exp(-arriving), rel=1e-9)


def test_a_lone_prompt_has_a_pass_to_itself():
    assert f.prompts_in_busy_pass(1e-9, 5e-3, 40e-3) == pytest.approx(1)
    assert f.busy_pass_seen(45e-3, 1, 1e-9, 40e-3, 1, 0) == pytest.approx(45e-3)
    # Nor if a prompt takes ages and a pass takes only a small part of it.
    assert f.busy_pass_seen(1, 1, 1e-17, 1e15, 1, 0) == pytest.approx(1, rel=1e-3)


def test_a_full_engine_reads_what_arrives():
    """Near saturation every pass is followed by another: prompts per pass are rate times time."""
    prompts = f.prompts_in_busy_pass(24.9, 5e-3, 40e-3)
    assert prompts == pytest.approx(24.9 * 5e-3 / (1 - 24.9 * 40e-3), rel=1e-6)


def test_even_arrivals_and_prompts_leave_passes_alike():
    assert f.busy_pass_seen(60e-3, 1.3, 20, 40e-3, 0, 0) == pytest.approx(60e-3)
    uneven = f.busy_pass_seen(60e-3, 1.5, 20, 40e-3, 0, 1)
    assert uneven == pytest.approx(60e-3 + 40e-3**2 / 60e-3 * 1.5)


def test_a_backlog_is_spread_over_decode_steps():
    """Three passes at a load of 0.4 become five with what arrives meanwhile."""
    assert f.steps_with_backlog(3, 0.4, 100) == pytest.approx(0.05)
    assert f.steps_with_backlog(3, 0.4, 1e10) == pytest.approx(0, abs=1e-9)


@pytest.mark.parametrize("burstiness", [0, 0.5, 1, 4, 100])
def test_near_saturation_few_requests_find_an_idle_server(burstiness):
    """At u = 1 - x, the share is 2 x / (1 + c²), which is the wait of Kingman."""
    for room in (1e-4, 1e-6, 1e-8):
        idle = 1 - f.share_found_busy(1 - room, burstiness)
        assert idle == pytest.approx(2 * room / (1 + burstiness), rel=0.02)


@pytest.mark.parametrize("burstiness", [0, 0.5, 2, 10])
@pytest.mark.parametrize("load", [0.01, 0.3, 0.9, 0.999])
def test_the_share_that_finds_a_server_busy_solves_its_equation(load, burstiness):
    share = f.share_found_busy(load, burstiness)
    spread = max(burstiness, 1e-6)
    assert (1 + spread * (1 - share) / load) ** (-1 / spread) == pytest.approx(share, abs=1e-9)
    assert f.share_found_busy(load, 1) == pytest.approx(load, rel=1e-12)


@pytest.mark.parametrize("burstiness", [0, 1, 4])
def test_no_backlog_without_load(burstiness):
    for load in (1e-9, 1e-6):
        backlog = f.budget_wait(f.share_found_busy(load, burstiness), 1.0, burstiness, 0.5)
        assert f.steps_with_backlog(backlog, load, 1) <= 3 * load


@pytest.mark.parametrize("decodes", [1, 5, 50])
@pytest.mark.parametrize("load", [0.01, 0.5, 0.99])
def test_no_more_steps_have_a_backlog_than_requests(load, decodes):
    backlog = f.budget_wait(f.share_found_busy(load, 4), 1.0, 4, 1)
    assert 0 < f.steps_with_backlog(backlog, load, decodes) <= load


def test_edges_of_independent_errors_join():
    """3 and 4 tenths make 5: as a triangle with a right angle."""
    up, down = (f.joint_edge(2, math.exp(s * 0.3), math.exp(s * 0.4)) for s in (1, -1))
    assert up == pytest.approx(2 * math.exp(0.5))
    assert down == pytest.approx(2 * math.exp(-0.5))
    assert f.joint_edge(2, 1, 0.9) == pytest.approx(1.8)


def test_queued_prompts_follow_each_other_at_the_rate_of_full_passes():
    """A prompt of two and a half passes on one rank, and two prompts to a pass on four."""
    long = f.queued_prompt_time(0.01, 0.2, 0.4, 1)
    assert long == pytest.approx(0.2 + 2.5 * 0.01)
    assert long == pytest.approx(0.2 + 2.5 * 0.01)  # a decode step in each of its passes
    assert f.queued_prompt_time(0.01, 0.2, 2, 4) == pytest.approx((0.01 + 0.2) / 8)


def gamma_gaps(burstiness, count):
    random = np.random.default_rng(1)
    return random.gamma(1 / burstiness, burstiness, count)


@pytest.mark.parametrize("burstiness", [0.5, 1, 2, 4])
@pytest.mark.parametrize("time", [0.03, 0.3, 3, 30])
def test_prompts_alongside_next_to_counted_ones(burstiness, time):
    """Arrivals with a Gamma distribution, counted in passes of equal length."""
    passes = np.floor(np.cumsum(gamma_gaps(burstiness, 300_000)) / time)
    together = np.unique(passes, return_counts=True)[1]
    others = (together * (together - 1)).sum() / together.sum()
    assert f.prompts_alongside(1, time, burstiness) == pytest.approx(others, rel=0.25, abs=0.25)


@pytest.mark.parametrize("burstiness", [0.25, 1, 2, 4, 8])
@pytest.mark.parametrize("load", [0.1, 0.5, 0.9])
@pytest.mark.parametrize("variation", [0, 1])
def test_the_wait_of_prompts_next_to_a_played_queue(burstiness, load, variation):
    """One server, arrivals with a Gamma distribution: Lindley's recursion."""
    gaps = gamma_gaps(burstiness, 200_000) / load
    random = np.random.default_rng(2)
    service = random.exponential(1, len(gaps)) if variation else np.ones(len(gaps))
    steps = np.cumsum(service[:-1] - gaps[1:])
    waits = np.append(0, steps - np.minimum(np.minimum.accumulate(steps), 0))
    found = f.budget_wait(f.share_found_busy(load, burstiness), 1.0, burstiness, variation)
    near = 0.1 if variation else 0.35  # exact for exponential times of service
    assert found == pytest.approx(waits.mean(), rel=near, abs=0.04)
