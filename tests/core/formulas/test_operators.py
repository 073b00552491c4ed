"""Operators of a layer, and what they send, counted by hand and at their limits."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlsysim.core import formulas as f

times = st.floats(1e-6, 1e3)


def test_a_product_counts_its_matrices_once():
    # 6 x 10 times 10 x 4: 240 multiply-accumulates; 60 and 24 activations, 40 weights.
    assert f.gemm_compute_time(6, 10, 4, 120, 2) == 4
    assert f.gemm_memory_time(6, 10, 4, 1, 8, 2, 4) == (2 * 40 + 4 * (60 + 24)) / 8
    # Three experts have a matrix each, and share the rows.
    assert f.gemm_memory_time(6, 10, 4, 3, 8, 2, 4) == (2 * 120 + 4 * (60 + 24)) / 8


def test_traffic_between_products():
    # 5 tokens: norms on 16 elements of a half, an activation on 64 of an eighth.
    assert f.elementwise_traffic(5, 16, 64, 8, 2, 20, 6, 0) == 5 * (20 * 8 + 6 * 8)
    # What is cast is read and written, once before it and once after.
    assert f.elementwise_traffic(5, 16, 64, 8, 2, 20, 6, 3) == 5 * (26 * 8 + 12 * 8)
    assert f.routing_traffic(7, 16, 8, 0, 0) == 7 * 16 * 8
    assert f.routing_traffic(7, 16, 8, 3, 5) == 7 * 16 * (8 + 6 + 5)
    # Scores of 3 sequences of 10 tokens: 300 for each of 4 heads, of which a device has 2.
    assert f.score_traffic(3, 4, 10, 2, 1, 14) == 600 * 14
    assert f.score_traffic(3, 4, 10, 2, 0, 14) == 0
    assert f.loss_traffic(5, 100, 4, 30) == 5 * 25 * 30


def test_passes_of_a_layer():
    """A product forward and for two gradients, and again where it is recomputed."""
    assert f.layer_time(1, 0, 0, 0, 2.5, 1.5, 0, 0) == 3
    assert f.layer_time(1, 0, 0, 0, 2.5, 1.5, 1, 0) == 4
    assert f.layer_time(0, 1, 0, 0, 2.5, 1.5, 1, 0) == 3.5
    assert f.layer_time(0, 1, 0, 0, 2.5, 1.5, 0, 1) == 4.5
    assert f.layer_time(0, 0, 1, 0, 2.5, 1.5, 1, 0) == 2.5
    assert f.layer_time(0, 0, 1, 0, 2.5, 1.5, 0, 1) == 3.5
    assert f.layer_time(0, 0, 0, 1, 2.5, 1.5, 0, 1) == 2.5
    assert f.layer_time(0, 0, 0, 1, 2.5, 1.5, 1, 0) == 3.5
    assert f.layer_launch_time(2, 0, 1.5, 0) == 5
    assert f.layer_launch_time(2, 3, 1.5, 1) == 3.5 * 5


@given(times, times, st.floats(0, 1))
def test_two_that_overlap_take_between_the_longer_and_both(one, other, part):
    """From all of the shorter hidden to none of it."""
    longer, shorter = max(one, other), min(one, other)
    assert f.launch_limited_time(one, other, part) == pytest.approx(longer + part * shorter)
    hidden = f.gathered_layer_time(one, other, part)
    assert hidden == pytest.approx(longer + shorter - part * shorter)


def test_keys_and_values_go_round_three_times_and_again():
    # Forward, 2 of 5 are covered. Backward, keys, values and their gradients go round in 10, and
    # attention covers 2.5 times as much of that as forward.
    assert f.uncovered_time(5, 2, 2.5, 0) == 3 + 5
    assert f.uncovered_time(5, 2, 2.5, 1) == 3 + 3 + 5
    # 4.5 cover all but a half forward, and all backward.
    assert f.uncovered_time(5, 4.5, 2.5, 0) == 0.5
    assert f.uncovered_time(5, 7, 2.5, 1) == 0
    assert f.uncovered_time(5, 0, 2.5, 0) == 15
    # Each of four ranks passes its part on three times.
    assert f.context_exchange_time(100, 4, 10, 0.5) == 3 * 10.5
    assert f.context_exchange_time(100, 1, 10, 0.5) == 0


def test_shards_are_gathered_and_scattered():
    # Two gathers of 3 and a scatter of 1.5; with sharded gradients alone, only the scatter.
    assert f.shard_traffic_time(3, 2, 1.5) == 7.5
    assert f.shard_traffic_time(3, 0, 1.5) == 1.5


def test_attention_speeds_up_with_the_sequence():
    assert f.attention_share(600, 0.5, 600) == 0.25
    assert f.attention_share(5400, 0.5, 600) == 0.45
    assert f.attention_share(600, 0.5, 0) == 0.5


def test_a_collective_in_one_shot_moves_what_a_ring_does():
    assert f.one_shot_all_reduce_time(8e9, 8, 450e9, 0) == pytest.approx(
        f.ring_all_reduce_time(8e9, 8, 450e9, 0)
    )
    # It starts once, however many take part; one alone does not start it.
    assert f.one_shot_all_reduce_time(0, 2, 450e9, 9e-6) == 9e-6
    assert f.one_shot_all_reduce_time(0, 8, 450e9, 9e-6) == 9e-6
    assert f.one_shot_all_reduce_time(8e9, 1, 450e9, 9e-6) == 0


def test_experts_on_devices_of_a_tensor_parallel_group():
    assert f.expert_group_size(4, 32) == 32
    assert f.expert_group_size(8, 2) == 8
    # 4,096 tokens of two experts each; four devices deal with a quarter of the rows, or, where two
    # of them share each expert, with half.
    assert f.rows_per_device(4096, 2, 4, 1) == 2048
    assert f.rows_per_device(4096, 2, 4, 2) == 4096


def test_experts_that_draws_with_equal_chances_visit():
    # A token visits two of four; with two tokens each expert is missed by both with (1/2)^2.
    assert f.experts_visited(4, 2, 1) == 2
    assert f.experts_visited(4, 2, 2) == 3
    assert f.experts_visited(4, 4, 9) == 4


# Means of 1,500 draws of the visited experts.
@pytest.mark.parametrize(
    ("experts", "per_token", "groups", "tokens", "drawn"),
    [(128, 8, 8, 8, 9.27), (128, 8, 2, 8, 28.05), (256, 8, 32, 16, 6.07), (16, 1, 4, 8, 2.64)],
)
def test_experts_of_the_busiest_group(experts, per_token, groups, tokens, drawn):
    visited = f.experts_visited(experts, per_token, tokens)
    assert f.busiest_visited(experts, visited, groups) == pytest.approx(drawn, rel=0.01)
    assert f.busiest_visited(experts, visited, 1) == pytest.approx(visited)
    assert f.busiest_visited(experts, experts, groups) == experts / groups


def test_two_formats_are_used_to_the_full_one_after_the_other():
    # 60 operations at 10 a second and 20 at 5: ten seconds of work in twenty, on one device of two.
    assert f.format_flops_utilization(80, 20, 20, 10, 5, 1) == 0.5
    assert f.format_flops_utilization(80, 20, 20, 10, 5, 2) == 0.25
