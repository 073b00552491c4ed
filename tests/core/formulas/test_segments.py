"""Collectives as a library runs them: started, in segments, or in the switch."""

import pytest

from mlsysim.core.formulas import (
    all_to_all_time,
    bus_bandwidth,
    ring_all_reduce_time,
    segmented_collective_time,
    switch_all_reduce_time,
)


def test_a_switch_sends_the_message_and_a_part_of_it():
    assert switch_all_reduce_time(8e9, 8, 450e9) == pytest.approx(9e9 / 450e9)
    # Two ranks send more than in a ring, many nearly half.
    ring = ring_all_reduce_time(8e9, 2, 450e9, 0)
    assert switch_all_reduce_time(8e9, 2, 450e9) == pytest.approx(1.5 * ring)
    ring = ring_all_reduce_time(8e9, 72, 450e9, 0)
    assert switch_all_reduce_time(8e9, 72, 450e9) / ring == pytest.approx(73 / 142)


def test_bus_bandwidth_in_the_switch_passes_the_links():
    """As NVLink SHARP does: 480 GB/s on links of 450 in the Machine Learning Engineering book."""
    time = switch_all_reduce_time(16 * 2**30, 8, 450e9)
    assert bus_bandwidth(16 * 2**30, 8, time) == pytest.approx(450e9 * 14 / 9)


def test_segments_cost_least_at_the_best_number():
    transfer, segment = 1e-3, 4e-6
    best = segmented_collective_time(transfer, transfer, 5e-6, segment)
    costs = [5e-6 + transfer + k * segment + transfer / k for k in range(1, 60)]
    assert best == pytest.approx(min(costs), rel=1e-3)
    assert best <= min(costs)


def test_a_small_message_costs_its_start_and_a_large_one_its_data():
    ideal = all_to_all_time(1e12, 8, 400e9, 0)
    assert segmented_collective_time(ideal, ideal, 5e-6, 3e-6) == pytest.approx(ideal, rel=0.01)
    assert segmented_collective_time(0, 0, 5e-6, 3e-6) == 5e-6
