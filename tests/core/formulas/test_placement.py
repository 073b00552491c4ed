"""Placement and the training step: who sits beside whom, and sums that must add up."""

import pytest

from mlsysim.core.formulas import (
    data_parallel_size,
    layer_all_reduce_time,
    local_ranks,
    microbatch_size,
    node_slots,
    pipeline_transfer_time,
    scaling_efficiency,
)


def neighbours_by_placing(devices_per_node, tp_size, dp_size):
    """Place ranks one by one, tensor innermost, then data; count one replica group's ranks in
    its first node."""
    nodes = [(dp * tp_size) // devices_per_node for dp in range(dp_size)]
    return nodes.count(nodes[0])


@pytest.mark.parametrize("devices_per_node", [1, 4, 8])
@pytest.mark.parametrize("tp_size", [1, 2, 4, 8, 16])
@pytest.mark.parametrize("dp_size", [1, 2, 4, 8, 32])
def test_data_parallel_neighbours(devices_per_node, tp_size, dp_size):
    placed = neighbours_by_placing(devices_per_node, tp_size, dp_size)
    assert local_ranks(dp_size, node_slots(devices_per_node, tp_size)) == placed


@pytest.mark.parametrize(("tp_size", "inside"), [(1, 1), (2, 2), (8, 8), (16, 8), (32, 8)])
def test_tensor_parallel_neighbours(tp_size, inside):
    assert local_ranks(tp_size, 8) == inside


def test_sizes_multiply_to_the_fleet():
    assert data_parallel_size(256, 8, 4, 1) == 8
    assert data_parallel_size(256, 8, 4, 2) == 4
    assert data_parallel_size(256, 1, 1, 1) == 256


def test_sequences_of_a_microbatch():
    # Narayanan et al. (2021): m = B / (b d).
    assert microbatch_size(256, 8, 16) == 2
    assert microbatch_size(256, 128, 16) == 0.125


def test_tensor_parallelism_reduces_four_times_a_layer():
    assert layer_all_reduce_time(1e-3, 4, 20, 16) == pytest.approx(1.28)


def test_a_single_stage_hands_nothing_on():
    assert pipeline_transfer_time(1e-3, 16, 1, 1) == 0
    # Forward and backward, for every microbatch and chunk; the depth beyond two adds nothing.
    assert pipeline_transfer_time(1e-3, 16, 1, 2) == pytest.approx(0.032)
    assert pipeline_transfer_time(1e-3, 16, 1, 8) == pytest.approx(0.032)
    assert pipeline_transfer_time(1e-3, 16, 3, 8) == pytest.approx(0.096)


def test_perfect_scaling_is_one():
    assert scaling_efficiency(256.0, 256, 1.0) == 1.0
    assert scaling_efficiency(256.0, 256, 2.0) == 0.5
