"""Tokens on their way to experts: copies counted by hand and by drawing lots."""

import random
from statistics import fmean

import pytest

from mlsysim.core import formulas as f


def test_copies_by_hand():
    # Eight experts over four nodes of eight: six copies leave the node, 1.75 pass its links.
    assert f.copies_by_expert(8, 4) == 6
    assert f.local_copies(8, 32, 8) == 1.75
    assert f.local_copies(8, 8, 8) == 7
    assert f.copies_by_expert(8, 1) == 0
    # One expert is a copy for its node; of two over two nodes, one in four shares neither.
    assert f.copies_by_node(1, 4, 4) == f.copies_by_expert(1, 4) == 0.75
    assert f.copies_by_node(2, 2, 2) == 0.75
    assert f.copies_by_node(8, 1, 1) == 0


@pytest.mark.parametrize(("experts", "nodes"), [(2, 3), (8, 4), (8, 16)])
def test_nodes_visited_are_those_of_independent_draws(experts, nodes):
    lots = random.Random(0)
    drawn = fmean(len({lots.randrange(nodes) for _ in range(experts)} - {0}) for _ in range(20_000))
    assert f.copies_by_node(experts, nodes, nodes) == pytest.approx(drawn, rel=0.02)


def test_the_slower_of_both_ways_decides():
    assert f.expert_dispatch_time(100, 2, 0, 50, 10, 1) == 5
    assert f.expert_dispatch_time(100, 2, 3, 50, 10, 1) == 31


def test_no_more_is_hidden_than_there_is_to_hide_under():
    assert f.covered_time(10, 0.8, 100) == pytest.approx(2)
    assert f.covered_time(10, 0.8, 3) == pytest.approx(7)
    assert f.covered_time(10, 0, 100) == 10
