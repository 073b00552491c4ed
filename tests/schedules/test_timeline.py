"""Timelines in letters."""

from fractions import Fraction

import pytest

from mlsysim import ConfigError, simulate_pipeline

ZB_H1 = """
stage 1  F1 F2 .  B1 W1 F3 B2 W2 B3 W3
stage 2  .  F1 B1 F2 B2 W1 F3 B3 W2 W3
"""


def test_split_backwards():
    step = simulate_pipeline("zb-h1", pp_size=2, microbatch_count=3)
    assert step.gantt() == ZB_H1.strip()


def test_chunks_have_letters_and_half_times_columns():
    step = simulate_pipeline(pp_size=2, microbatch_count=2, virtual_stages=2)
    assert step.gantt().splitlines()[0].split()[2:6] == ["F1a", "F2a", "F1b", "F2b"]
    assert len(step.gantt().splitlines()[0].split()) == 2 + step.makespan / Fraction(1, 2)


def test_columns_can_be_set():
    step = simulate_pipeline(pp_size=1, microbatch_count=1, forward_time=0.5, backward_time=1.5)
    assert step.gantt() == "stage 1  F1 B1 -- --"
    assert step.gantt(tick=1.5) == "stage 1  B1"  # the forward rounds to nothing
    assert step.gantt(tick=0.25) == "stage 1  F1 -- B1 -- -- -- -- --"


@pytest.mark.parametrize("tick", [0, -1, float("nan"), 1e-9])
def test_columns_refused(tick):
    step = simulate_pipeline(pp_size=2, microbatch_count=2)
    with pytest.raises(ConfigError, match="tick = "):
        step.gantt(tick)
