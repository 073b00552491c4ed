"""Pipelines: published tables, and a schedule played through step by step."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlsysim.core.formulas import (
    interleaving_factor,
    layers_per_stage,
    microbatches_in_flight,
    pipeline_bubble_fraction,
    pipeline_bubble_time,
    stage_imbalance,
)

FORWARD, BACKWARD = 1, 2


def one_forward_one_backward(stages: int, microbatches: int) -> tuple[int, int]:
    """Play a 1F1B schedule through; return its length and the first stage's peak of microbatches.

    Each stage warms up with as many forward passes as there are stages from it to the end, then
    alternates, then drains.
    """
    orders = []
    for stage in range(stages):
        warm = min(stages - stage, microbatches)
        order = [("F", i) for i in range(warm)]
        for i in range(microbatches):
            order.append(("B", i))
            if warm + i < microbatches:
                order.append(("F", warm + i))
        orders.append(order)
    ends: dict[tuple[str, int, int], int] = {}
    clock, position = [0] * stages, [0] * stages
    while any(position[s] < len(orders[s]) for s in range(stages)):
        for s in range(stages):
            if position[s] == len(orders[s]):
                continue
            kind, i = orders[s][position[s]]
            before = ("F", i, s - 1) if kind == "F" else ("B", i, s + 1)
            if kind == "B" and s == stages - 1:
                before = ("F", i, s)
            if before[2] >= 0 and before not in ends:
                continue
            start = max(clock[s], ends.get(before, 0))
            clock[s] = start + (FORWARD if kind == "F" else BACKWARD)
            ends[kind, i, s] = clock[s]
            position[s] += 1
    held = peak = 0
    for kind, _ in orders[0]:
        held += 1 if kind == "F" else -1
        peak = max(peak, held)
    return max(clock), peak


@pytest.mark.parametrize("stages", [1, 2, 3, 4, 8])
@pytest.mark.parametrize("microbatches", [1, 2, 4, 7, 8, 16])
def test_formulas_equal_the_schedule(stages, microbatches):
    length, peak = one_forward_one_backward(stages, microbatches)
    busy = microbatches * (FORWARD + BACKWARD)
    bubble = pipeline_bubble_time(busy, stages, microbatches, 1)
    assert busy + bubble == pytest.approx(length)
    assert pipeline_bubble_fraction(stages, microbatches, 1) == pytest.approx(1 - busy / length)
    assert microbatches_in_flight(stages, microbatches) == peak


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


def test_the_bubble_vanishes_with_many_microbatches():
    assert pipeline_bubble_fraction(8, 10**9, 1) < 1e-8
    assert pipeline_bubble_time(1.0, 8, 10**9, 1) < 1e-8


@pytest.mark.parametrize(
    ("layers", "stages", "longest", "imbalance"),
    [(80, 4, 20, 1.0), (96, 64, 2, 4 / 3), (10, 4, 3, 1.2), (5, 5, 1, 1.0), (7, 1, 7, 1.0)],
)
def test_the_longest_stage(layers, stages, longest, imbalance):
    assert layers_per_stage(layers, stages, 1) == longest
    assert stage_imbalance(layers, stages, longest) == pytest.approx(imbalance)


def test_chunks_are_as_long_as_the_longest():
    # 126 layers in 8 stages of 4 chunks: chunks of 4, where 3.94 would be even.
    assert layers_per_stage(126, 8, 4) == 16
    assert layers_per_stage(80, 4, 5) == 20


def test_growth_of_activations_under_interleaving():
    # Korthikanti et al. (2022): 1 + (p - 1) / (p v); 8 stages of 3 chunks hold 29 % more.
    assert interleaving_factor(8, 3) == pytest.approx(1 + 7 / 24)
    assert interleaving_factor(35, 3) == pytest.approx(1 + 34 / 105)
