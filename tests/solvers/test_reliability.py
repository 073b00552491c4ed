"""Failures, checkpoints and goodput, held against minimisation and simulation."""

import math

import numpy as np
import pytest

from mlsysim import Q_, ConfigError, Fleet, Models, ReliabilitySolver, Systems
from mlsysim.core.formulas import checkpoint_goodput, optimal_checkpoint_interval

FLEET = Systems.Clusters.Frontier_8K
ASKED = {"fleet": FLEET, "job_duration_hours": 720, "checkpoint_time_s": 60}


def solve(**changes):
    return ReliabilitySolver.solve(**ASKED | changes)


def golden_section(function, low, high):
    """Place of the smallest value, by no formula."""
    ratio = (math.sqrt(5) - 1) / 2
    for _ in range(200):
        left, right = high - ratio * (high - low), low + ratio * (high - low)
        low, high = (low, right) if function(left) < function(right) else (left, high)
    return (low + high) / 2


@pytest.mark.parametrize("write", [1.0, 10.0, 60.0, 600.0])
@pytest.mark.parametrize("mtbf", [1e4, 1e5, 1e6])
def test_young_minimises_the_expected_waste(write, mtbf):
    """To first order: a checkpoint per interval, and half an interval lost per failure."""
    best = golden_section(lambda tau: write / tau + tau / (2 * mtbf), write / 10, 10 * mtbf)
    assert optimal_checkpoint_interval(write, mtbf) == pytest.approx(best, rel=1e-6)


@pytest.mark.parametrize("ratio", [1e-6, 1e-4, 1e-2])
def test_young_comes_close_to_the_exact_optimum(ratio):
    """The exact optimum is shorter by two thirds of a checkpoint's time."""
    mtbf, write = 1.0, ratio
    exact = golden_section(lambda tau: -checkpoint_goodput(tau, write, 0.0, mtbf), write / 10, 3.0)
    young = optimal_checkpoint_interval(write, mtbf)
    assert young - exact == pytest.approx(2 / 3 * write, rel=0.05)
    best = checkpoint_goodput(exact, write, 0.0, mtbf)
    assert checkpoint_goodput(young, write, 0.0, mtbf) == pytest.approx(best, rel=2e-4)


def simulated_goodput(interval, write, restart, mtbf, segments=40_000):
    """Play out a job, failure by failure."""
    random = np.random.default_rng(20)
    clock = 0.0
    for _ in range(segments):
        while (survived := random.exponential(mtbf)) < interval + write:
            clock += survived
            while (survived := random.exponential(mtbf)) < restart:
                clock += survived
            clock += restart
        clock += interval + write
    return segments * interval / clock


@pytest.mark.parametrize(
    ("interval", "write", "restart", "mtbf"),
    [(30, 1, 10, 600), (100, 20, 5, 200), (10, 10, 60, 100)],
)
def test_goodput_is_that_of_a_simulated_job(interval, write, restart, mtbf):
    expected = simulated_goodput(interval, write, restart, mtbf)
    assert checkpoint_goodput(interval, write, restart, mtbf) == pytest.approx(expected, rel=0.02)


def test_goodput_is_a_share_however_bad_the_fleet():
    for mtbf in (1e-3, 1.0, 1e3, 1e9):
        assert 0 <= checkpoint_goodput(100.0, 10.0, 600.0, mtbf) < 1
    assert checkpoint_goodput(1e4, 1e-6, 0.0, 1e15) == pytest.approx(1)


def test_by_hand():
    answer = solve()
    mtbf = 16_384 * 54 * 24 / 419 / 8192
    assert answer.fleet_mtbf.to("h").magnitude == pytest.approx(mtbf)
    assert answer.expected_failures == pytest.approx(720 / mtbf)
    assert answer.optimal_checkpoint_interval.to("s").magnitude == pytest.approx(
        math.sqrt(2 * 60 * mtbf * 3600)
    )
    assert answer.checkpoint_interval == answer.optimal_checkpoint_interval
    assert answer.failure_probability == pytest.approx(1)
    assert answer.restart_time == Q_(10, "minute")
    assert answer.checkpoint_size is None


def test_short_jobs_on_few_devices_rarely_fail():
    one = Fleet(name="One", node=FLEET.node, count=1, fabric=FLEET.fabric)
    answer = solve(fleet=one, job_duration_hours=1)
    assert answer.failure_probability == pytest.approx(answer.expected_failures, rel=1e-3)


def test_the_parts_make_the_whole():
    answer = solve()
    assert answer.lost_time.to("h").magnitude == pytest.approx(720 * (1 - answer.goodput))
    parts = answer.checkpoint_overhead + answer.failure_loss
    assert parts.to("h").magnitude == pytest.approx(answer.lost_time.to("h").magnitude)


@pytest.mark.parametrize("factor", [0.25, 0.5, 2, 4])
def test_no_other_interval_does_better(factor):
    best = solve()
    other = solve(checkpoint_interval=factor * best.optimal_checkpoint_interval)
    assert other.optimal_checkpoint_interval == best.optimal_checkpoint_interval
    assert other.goodput < best.goodput


def test_checkpoints_of_a_model():
    given = {"checkpoint_time_s": None, "storage_bandwidth": Q_(273, "GB/s")}
    answer = solve(model=Models.Llama3_70B, **given)
    size = 14 * Models.Llama3_70B.parameters.to("param").magnitude
    assert answer.checkpoint_size.to("byte").magnitude == pytest.approx(size)
    assert answer.checkpoint_time.to("s").magnitude == pytest.approx(size / 273e9)
    # In single precision the weights are their own master copy.
    wide = solve(model=Models.Llama3_70B, precision="fp32", **given)
    assert wide.checkpoint_size.to("byte").magnitude == pytest.approx(size * 12 / 14)


def test_a_trillion_parameters_take_what_was_published():
    """Narayanan et al. (2021), section 5.10: 13.8 TB for 1,008 billion parameters."""
    answer = solve(model=Models.GPT_1T)
    assert answer.checkpoint_size.to("TB").magnitude == pytest.approx(13.8, rel=0.03)


def test_a_given_time_goes_before_the_models():
    answer = solve(model=Models.Llama3_70B, storage_bandwidth=Q_(1, "GB/s"))
    assert answer.checkpoint_time == Q_(60, "s")
    assert answer.checkpoint_size is not None


@pytest.mark.parametrize(
    "given", [{}, {"model": Models.GPT2}, {"storage_bandwidth": Q_(100, "GB/s")}]
)
def test_an_unknown_checkpoint_time_says_what_to_pass(given):
    with pytest.raises(ConfigError, match=r"pass checkpoint_time_s=60, or model= and") as caught:
        solve(checkpoint_time_s=None, **given)
    assert caught.value.argument == "checkpoint_time_s"


def test_a_fleet_that_fails_faster_than_it_saves():
    answer = solve(checkpoint_time_s=30_000)
    assert not answer.feasible
    (reason,) = answer.reasons
    assert "6.186 h" in reason
    assert "write checkpoints faster" in reason
    assert 0 < answer.goodput < 0.2
    assert solve().feasible
    assert solve().reasons == ()


def test_a_record_and_a_given_time_between_failures():
    sourced = {item.origin for item in solve().explain("goodput").inputs if item.source}
    assert "interruptions.interruptions" in sourced
    given = solve(device_mtbf=Q_(50_000, "h"))
    assert given.fleet_mtbf.to("h").magnitude == pytest.approx(50_000 / 8192)
    origins = {item.origin for item in given.explain("goodput").inputs}
    assert "interruptions.interruptions" not in origins
    assert "device_mtbf" in origins
