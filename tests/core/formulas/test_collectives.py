"""Collectives: limiting cases, identities between them, and numbers worked out by hand."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlsysim.core.formulas import (
    all_gather_time,
    all_to_all_time,
    bus_bandwidth,
    group_ring_bandwidth,
    hierarchical_all_reduce_time,
    partial_attention_time,
    point_to_point_time,
    reduce_scatter_time,
    ring_all_reduce_time,
    tree_all_reduce_time,
    tree_broadcast_time,
)
from mlsysim.core.units import Q_

sizes = st.floats(1.0, 1e12)
rates = st.floats(1e6, 1e13)
latencies = st.floats(0.0, 1e-3)
ranks = st.integers(1, 1024)


def steps(count, part, bandwidth, latency):
    """Time of a number of equal steps: an independent way to write every ring."""
    return sum(part / bandwidth + latency for _ in range(count))


def test_ring_step_by_step():
    # Eight ranks, 1 GB: fourteen steps of an eighth of a gigabyte each.
    expected = steps(14, 0.125e9, 450e9, 1e-6)
    assert ring_all_reduce_time(1e9, 8, 450e9, 1e-6) == pytest.approx(expected)
    assert expected == pytest.approx(3.902_888_9e-3)
    assert reduce_scatter_time(1e9, 8, 450e9, 1e-6) == pytest.approx(expected / 2)
    assert all_to_all_time(1e9, 8, 450e9, 1e-6) == pytest.approx(steps(7, 0.125e9, 450e9, 1e-6))


@given(sizes, ranks, rates, latencies)
def test_all_reduce_is_reduce_scatter_and_all_gather(size, n, bandwidth, latency):
    parts = reduce_scatter_time(size, n, bandwidth, latency) + all_gather_time(
        size, n, bandwidth, latency
    )
    assert ring_all_reduce_time(size, n, bandwidth, latency) == pytest.approx(parts, rel=1e-12)


@pytest.mark.parametrize(
    "collective",
    [
        ring_all_reduce_time,
        reduce_scatter_time,
        all_gather_time,
        all_to_all_time,
        tree_broadcast_time,
    ],
)
def test_alone_there_is_nothing_to_send(collective):
    assert collective(1e9, 1, 450e9, 1e-6) == 0


def test_hierarchical_alone_there_is_nothing_to_send():
    assert hierarchical_all_reduce_time(1e9, 1, 1, 450e9, 1e-6, 50e9, 5e-6) == 0


@given(sizes, ranks, rates, latencies, rates, latencies)
def test_one_group_is_the_ring_inside(size, n, near, near_latency, far, far_latency):
    whole = hierarchical_all_reduce_time(size, n, n, near, near_latency, far, far_latency)
    ring = ring_all_reduce_time(size, n, near, near_latency)
    assert whole == pytest.approx(ring, rel=1e-12, abs=0)


@given(sizes, ranks, rates, latencies, rates, latencies)
def test_groups_of_one_are_the_ring_outside(size, n, near, near_latency, far, far_latency):
    whole = hierarchical_all_reduce_time(size, n, 1, near, near_latency, far, far_latency)
    assert whole == pytest.approx(ring_all_reduce_time(size, n, far, far_latency), rel=1e-12, abs=0)


@given(sizes, st.integers(1, 64), st.integers(1, 64), rates)
def test_equal_links_lose_nothing_to_the_hierarchy(size, local, groups, bandwidth):
    """With links of one kind and no latency, both move (n-1)/n of the data twice."""
    n = local * groups
    whole = hierarchical_all_reduce_time(size, n, local, bandwidth, 0.0, bandwidth, 0.0)
    assert whole == pytest.approx(ring_all_reduce_time(size, n, bandwidth, 0.0), rel=1e-9)


@given(sizes, st.integers(2, 64), st.integers(2, 64), rates, rates)
def test_a_faster_network_never_slows_the_hierarchy(size, local, groups, slow, fast):
    slow, fast = sorted((slow, fast))
    times = [
        hierarchical_all_reduce_time(size, local * groups, local, 450e9, 1e-6, rate, 5e-6)
        for rate in (slow, fast)
    ]
    assert times[0] >= times[1]


@pytest.mark.parametrize(
    ("bandwidth", "latency", "milliseconds"),
    [(12.5, 50, 3287.97), (25, 7, 1917.43), (50, 5, 1233.37)],
)
def test_gradients_of_a_70b_model_over_256_devices(bandwidth, latency, milliseconds):
    """141.2 GB over 32 nodes of eight: 7/8 of it twice at 450 GB/s, then a part per device."""
    time = hierarchical_all_reduce_time(
        Q_(141.2, "GB"),
        256,
        8,
        Q_(450, "GB/s"),
        Q_(0.5, "us"),
        Q_(bandwidth, "GB/s"),
        Q_(latency, "us"),
    )
    assert time.to("ms").magnitude == pytest.approx(milliseconds, abs=0.005)


def test_trees_win_where_latency_rules_and_not_where_bandwidth_does():
    small = (1e3, 1024, 50e9, 5e-6)
    assert tree_all_reduce_time(*small) < ring_all_reduce_time(*small) / 50
    large = (1e11, 1024, 50e9, 5e-6)
    assert tree_all_reduce_time(*large) == pytest.approx(ring_all_reduce_time(*large), rel=5e-3)


@pytest.mark.parametrize(("n", "rounds"), [(2, 1), (3, 2), (4, 2), (5, 3), (8, 3), (9, 4)])
def test_broadcast_doubles_the_holders_each_round(n, rounds):
    assert tree_broadcast_time(1e6, n, 1e9, 1e-6) == pytest.approx(rounds * (1e-6 + 1e-3))


def test_an_empty_message_takes_the_latency():
    assert point_to_point_time(0.0, 50e9, 5e-6) == 5e-6
    assert ring_all_reduce_time(0.0, 8, 50e9, 5e-6) == pytest.approx(14 * 5e-6)


@given(sizes, st.integers(2, 1024), rates)
def test_bus_bandwidth_of_a_perfect_ring_is_the_links(size, n, bandwidth):
    time = ring_all_reduce_time(size, n, bandwidth, 0.0)
    assert bus_bandwidth(size, n, time) == pytest.approx(bandwidth, rel=1e-9)


def test_bus_bandwidth_as_nccl_tests_define_it():
    # "algbw = S/t", "busbw = algbw * 2(n-1)/n": 1 GB in 5 ms on eight ranks.
    assert bus_bandwidth(1e9, 8, 5e-3) == pytest.approx(350e9)


def test_ring_through_nodes_uses_all_ports_up_to_the_links_inside():
    assert group_ring_bandwidth(450e9, 50e9, 1) == 50e9
    assert group_ring_bandwidth(450e9, 50e9, 8) == 400e9
    assert group_ring_bandwidth(300e9, 50e9, 8) == 300e9


def test_partial_attention_is_gathered_and_sent():
    """10 tokens and 16 heads on 4 devices: 2 ranks exchange 40 queries, and 40 partial outputs."""
    assert partial_attention_time(10, 16, 7, 2, 4, 1, 8, 5) == 0
    assert partial_attention_time(10, 16, 7, 2, 4, 2, 8, 5) == 2 * 5 + 40 * (7 + 7 + 2) * 2 / 8
    # All 4 ranks: each gathers and sends three times as much.
    assert partial_attention_time(10, 16, 7, 2, 4, 4, 8, 5) == 2 * 5 + 120 * 16 * 2 / 8
