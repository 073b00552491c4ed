"""Collectives do what their names say, and send what the formulas of their time count."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlsysim import ConfigError, ParallelismError
from mlsysim.core import formulas as f
from mlsysim_course.ranks import Group

sizes = st.integers(1, 9)
widths = st.integers(1, 5)
FORMULAS = {
    "all_reduce": f.ring_all_reduce_time,
    "reduce_scatter": f.reduce_scatter_time,
    "all_gather": f.all_gather_time,
}


def held(size, rows, width, dtype=np.float64):
    """Small whole numbers, whose sums are exact in every order; different on every rank."""
    random = np.random.default_rng(rows)
    return [random.integers(-99, 99, (rows, width)).astype(dtype) for _ in range(size)]


@given(sizes, sizes, widths)
def test_every_rank_has_the_sum(size, rows, width):
    arrays = held(size, rows, width)
    for result in Group(size).all_reduce(arrays):
        np.testing.assert_array_equal(result, np.sum(arrays, axis=0))


@given(sizes, widths, widths)
def test_scatter_and_gather(size, rows, width):
    group = Group(size)
    arrays = held(size, size * rows, width)
    parts = group.reduce_scatter(arrays)
    total = np.sum(arrays, axis=0)
    for rank, part in enumerate(parts):
        np.testing.assert_array_equal(part, total[rank * rows : (rank + 1) * rows])
    for result in group.all_gather(parts):
        np.testing.assert_array_equal(result, total)


@given(sizes, widths)
def test_every_rank_has_what_the_first_had(size, rows):
    (array,) = held(1, rows, 2)
    for result in Group(size).broadcast(array):
        np.testing.assert_array_equal(result, array)


@pytest.mark.parametrize("collective", FORMULAS)
@given(sizes, widths, widths, st.sampled_from([np.float32, np.float64]))
def test_bytes_and_steps_are_those_of_the_formula(collective, size, rows, width, dtype):
    group = Group(size)
    getattr(group, collective)(held(size, size * rows, width, dtype))
    (call,) = group.calls
    whole = rows * size * width * np.dtype(dtype).itemsize
    assert call.message_size == whole * (size if collective == "all_gather" else 1)
    time = FORMULAS[collective]
    for sent in call.sent:
        # At one byte per second and without latency, the time is the bytes.
        assert sent == pytest.approx(time(call.message_size, size, 1.0, 0.0))
    assert call.steps == time(0, size, 1.0, 1.0)


@given(sizes, sizes, widths)
def test_what_does_not_divide_is_sent_all_the_same(size, rows, width):
    group = Group(size)
    arrays = held(size, rows, width)
    group.all_reduce(arrays)
    assert sum(group.calls[0].sent) == 2 * (size - 1) * arrays[0].nbytes


@given(sizes, widths)
def test_a_broadcast_by_rounds(size, rows):
    group = Group(size)
    (array,) = held(1, rows, 1)
    group.broadcast(array)
    (call,) = group.calls
    assert sum(call.sent) == (size - 1) * array.nbytes
    assert call.steps * array.nbytes == call.sent[0]
    assert call.sent[0] == f.tree_broadcast_time(array.nbytes, size, 1.0, 0.0)


def test_an_all_reduce_is_its_two_halves():
    one, two = Group(6), Group(6)
    arrays = held(6, 12, 5)
    one.all_reduce(arrays)
    two.all_gather(two.reduce_scatter(arrays))
    assert one.sent() == two.sent()
    assert one.steps() == two.steps()
    assert (one.count("all_reduce"), two.count("all_reduce")) == (1, 0)


def test_ranks_share_no_memory():
    """What one rank changes, no other sees."""
    for run in ("all_reduce", "all_gather", "reduce_scatter"):
        arrays = held(3, 3, 2)
        before = [array.copy() for array in arrays]
        first, *others = getattr(Group(3), run)(arrays)
        seen = [other.copy() for other in others]
        first += 1
        for now, then in zip([*arrays, *others], [*before, *seen], strict=True):
            np.testing.assert_array_equal(now, then)


@pytest.mark.parametrize("size", [0, -1, 1.5, "two", None])
def test_sizes_that_are_none(size):
    with pytest.raises(ConfigError, match="size = "):
        Group(size)


def test_errors_name_the_limit_and_the_way_out():
    group = Group(3)
    with pytest.raises(ConfigError, match="2 items for 3 ranks; give one for each"):
        group.all_reduce(held(2, 3, 3))
    with pytest.raises(ConfigError, match=r"must agree .* \(3, 3\) float64, \(3, 4\) float64"):
        group.all_reduce([*held(2, 3, 3), *held(1, 3, 4)])
    with pytest.raises(ParallelismError, match=r"3 ranks do not divide the 4 .* use a group"):
        group.reduce_scatter(held(3, 4, 3))
    with pytest.raises(ConfigError, match="1 items for 3 ranks"):
        group.each(abs, [1])
    assert group.calls == []
