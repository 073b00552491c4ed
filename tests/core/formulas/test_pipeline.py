"""Pipelines: published tables. `tests/schedules` holds the formulas against schedules."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlsysim.core.formulas import (
    chunks_in_flight,
    interleaving_factor,
    layers_per_stage,
    pipeline_bubble_fraction,
    pipeline_bubble_time,
    split_backward_bubble_time,
)


@pytest.mark.parametrize(
    ("stages", "microbatches", "virtual", "percent"),
    [
        # A lesson's table of stages and microbatches
        (4, 4, 1, 42.9),
        (4, 16, 1, 15.8),
        (4, 64, 1, 4.5),
        (16, 16, 1, 48.4),
        (16, 64, 1, 19.0),
        (16, 256, 1, 5.5),
        (4, 1, 1, 75.0),
        (4, 8, 1, 27.3),
        # The same with interleaved stages
        (4, 8, 2, 15.8),
        (4, 8, 4, 8.6),
        # The first edition's sweep
        (1, 1, 1, 0.0),
        (2, 1, 1, 50.0),
        (2, 4, 1, 20.0),
        (2, 16, 1, 5.9),
        (8, 1, 1, 87.5),
        (8, 4, 1, 63.6),
        (8, 16, 1, 30.4),
    ],
)
def test_published_bubbles(stages, microbatches, virtual, percent):
    share = pipeline_bubble_fraction(stages, microbatches, virtual)
    assert 100 * share == pytest.approx(percent, abs=0.051)


@given(st.integers(1, 64), st.integers(1, 512), st.integers(1, 8))
def test_share_and_added_time_tell_the_same(stages, microbatches, virtual):
    bubble = pipeline_bubble_time(1.0, stages, microbatches, virtual)
    share = pipeline_bubble_fraction(stages, microbatches, virtual)
    assert share == pytest.approx(bubble / (1 + bubble), abs=1e-12)
    assert 0 <= share < 1


def test_megatrons_rule_of_the_bubble():
    # Narayanan et al. (2021), section 2.2.1: (p - 1) / m of the ideal time; v chunks divide it.
    assert pipeline_bubble_time(10.0, 8, 64, 1) == pytest.approx(10 * 7 / 64)
    assert pipeline_bubble_time(10.0, 8, 64, 4) == pytest.approx(10 * 7 / 256)


@pytest.mark.parametrize(
    ("layers", "stages", "longest", "imbalance"),
    [(80, 4, 20, 1.0), (96, 64, 2, 4 / 3), (10, 4, 3, 1.2), (5, 5, 1, 1.0), (7, 1, 7, 1.0)],
)
def test_the_longest_stage(layers, stages, longest, imbalance):
    assert layers_per_stage(layers, stages, 1) == longest
    assert stages * longest / layers == pytest.approx(imbalance)


def test_chunks_are_as_long_as_the_longest():
    # 126 layers in 8 stages of 4 chunks: chunks of 4, where 3.94 would be even.
    assert layers_per_stage(126, 8, 4) == 16
    assert layers_per_stage(80, 4, 5) == 20


def test_growth_of_activations_under_interleaving():
    # Korthikanti et al. (2022): 1 + (p - 1) / (p v); 8 stages of 3 chunks hold 29 % more.
    assert interleaving_factor(8, 3) == pytest.approx(1 + 7 / 24)
    assert interleaving_factor(35, 3) == pytest.approx(1 + 34 / 105)


@pytest.mark.parametrize(("stages", "chunks"), [(8, 3), (35, 3), (4, 2), (2, 5)])
def test_chunks_in_flight_are_the_published_growth(stages, chunks):
    growth = interleaving_factor(stages, chunks)
    held = chunks_in_flight(stages, 2 * stages, chunks)
    assert held == pytest.approx(growth * stages * chunks)


def test_the_bubble_of_split_backwards():
    # Qi et al. (2023), section 2.1: with equal passes, a third of 1F1B's bubble.
    ours = split_backward_bubble_time(1.0, 1.0, 1.0, 8, 24)
    assert ours == pytest.approx(7 * (1 + 1 + 1) / 3)
    # Table 2: (p - 1)(F + B - W).
    assert split_backward_bubble_time(18.5, 18.1, 9.3, 8, 24) == pytest.approx(7 * 27.3)
