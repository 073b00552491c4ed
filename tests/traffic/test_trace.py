"""Traces: what is read, and errors that name the row."""

from __future__ import annotations

import numpy as np
import pytest

from mlsysim import Q_, ConfigError, Hardware, Models, OpenLoopSolver, Traffic
from mlsysim.traffic import read_trace

HEAD = "arrival_s,input_tokens,output_tokens"


@pytest.fixture
def trace(tmp_path):
    def write(*lines, head=HEAD):
        path = tmp_path / "trace.csv"
        path.write_text("\n".join([head, *lines]) + "\n", encoding="utf-8")
        return path

    return write


def test_a_trace_by_hand(trace):
    found = Traffic.from_trace(trace("10,100,8", "11,300,8", "14,200,32"))
    assert found.arrival_rate == Q_(0.5, "1/s")  # two gaps in four seconds
    assert found.burstiness == pytest.approx((1 / 2) ** 2)  # gaps of 1 and 3 s
    assert found.seq_len == 200
    assert found.input_variation == pytest.approx(np.sqrt(2 / 3) / 2)
    assert found.output_len == 16
    assert found.output_variation == pytest.approx(np.sqrt(2) / 2)


def test_what_a_trace_tells_is_what_the_solver_takes(trace):
    found = Traffic.from_trace(trace("0,100,8", "1,301,8", "4,200,32"))
    answer = OpenLoopSolver.solve(
        model=Models.Llama3_8B, hardware=Hardware.H100, **found.arguments()
    )
    assert answer.feasible


def test_one_of_several_traces(trace):
    lines = ("0,10,1,a", "1,10,1,a", "0,20,2,b", "4,20,2,b")
    path = trace(*lines, head=f"{HEAD},trace")
    assert len(read_trace(path, only={"trace": "b"})) == 2
    assert Traffic.from_trace(path, only={"trace": "b"}).arrival_rate == Q_(0.25, "1/s")
    with pytest.raises(ConfigError, match=r"line 4.*only="):
        read_trace(path)
    with pytest.raises(ConfigError, match="0 request"):
        read_trace(path, only={"trace": "c"})
    with pytest.raises(ConfigError, match="no column service"):
        read_trace(path, only={"service": "c"})


@pytest.mark.parametrize(
    ("row", "words"),
    [
        ("-1,10,1", "arrival_s = -1"),
        ("0.5,10,1", "is before 1"),
        (",10,1", "arrival_s is empty"),
        ("2,,1", "input_tokens is empty"),
        ("2,10", "fewer cells"),
        ("2,10,1,1", "more or fewer cells"),
        ("2 s,10,1", "'2 s' is not a number.*without a unit"),
        ("2023-11-16 18:17:03,10,1", "is not a number: give seconds"),
        ("1700158623,10,1", "since 1970"),
        ("nan,10,1", "finite"),
        ("inf,10,1", "finite"),
        ("2,0,1", "input_tokens = 0"),
        ("2,10,0", "output_tokens = 0"),
        ("2,10,-3", "output_tokens = -3"),
        ("2,10.5,1", "whole number of tokens"),
        ("2,1e12,1", "out of range"),
        ("2,1.5k,1", "'1.5k' is not a number: give a whole number"),
    ],
)
def test_a_wrong_row_is_named(trace, row, words):
    with pytest.raises(ConfigError, match=rf"line 4: .*{words}") as caught:
        read_trace(trace("0,10,1", "1,10,1", row, "3,10,1"))
    assert caught.value.argument == "trace"


def test_a_trace_that_is_mostly_one_gap_is_refused(trace):
    lines = [f"{at},10,1" for at in range(10)] + [f"{at},10,1" for at in range(100, 110)]
    with pytest.raises(ConfigError, match=r"line 12: .*91 s"):
        read_trace(trace(*lines))


@pytest.mark.parametrize(
    ("head", "lines", "words"),
    [
        ("time,input_tokens,output_tokens", ["0,1,1"], "no column arrival_s"),
        (HEAD, [], "0 request"),
        (HEAD, ["0,1,1"], "1 request"),
    ],
)
def test_a_file_that_is_no_trace(trace, head, lines, words):
    with pytest.raises(ConfigError, match=words):
        read_trace(trace(*lines, head=head))


def test_requests_that_all_arrive_at_once_have_no_rate(trace):
    with pytest.raises(ConfigError, match="no duration"):
        Traffic.from_trace(trace("3,1,1", "3,1,1"))


@pytest.mark.parametrize("burstiness", [0, 0.5, 1, 4])
def test_samples_have_the_moments_that_were_asked_for(burstiness):
    asked = Traffic(
        arrival_rate=Q_(5, "1/s"),
        seq_len=800,
        output_len=200,
        burstiness=burstiness,
        input_variation=0.5,
        output_variation=1,
    )
    found = Traffic.of(asked.sample(200_000, seed=3))
    assert found.arrival_rate.magnitude == pytest.approx(5, rel=0.02)
    assert found.burstiness == pytest.approx(burstiness, rel=0.05, abs=1e-9)
    assert found.seq_len == pytest.approx(800, rel=0.01)
    assert found.output_len == pytest.approx(200, rel=0.02)
    assert found.input_variation == pytest.approx(0.5, rel=0.03)
    assert found.output_variation == pytest.approx(1, rel=0.05)


@pytest.mark.parametrize("requests", [0, -1, 10**9])
def test_a_number_of_requests_is_refused(requests):
    asked = Traffic(arrival_rate=Q_(5, "1/s"), seq_len=800, output_len=200)
    with pytest.raises(ConfigError) as caught:
        asked.sample(requests)
    assert caught.value.argument == "requests"
