"""Products split by columns and by rows equal the whole product, forward and backward."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlsysim import ConfigError, ParallelismError
from mlsysim_course.ranks import (
    ColumnParallelLinear,
    Group,
    Replicated,
    RowParallelLinear,
    SequenceSharded,
)

small = st.integers(1, 3)
LAYOUTS = [
    pytest.param(Replicated, id="replicated"),
    pytest.param(SequenceSharded, id="sequence"),
    pytest.param(lambda group: SequenceSharded(group, regather=True), id="regather"),
]


def numbers(*shape, seed=0):
    return np.random.default_rng([seed, *shape]).standard_normal(shape)


def equal(found, expected):
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("make", LAYOUTS)
@given(st.integers(1, 5), small, small, small, small, st.booleans())
def test_columns(make, ranks, tokens, sequences, inputs, outputs, biased):
    layout = make(Group(ranks))
    x = numbers(tokens * ranks, sequences, inputs)
    weight = numbers(inputs, 3 * outputs * ranks)
    bias = numbers(3 * outputs * ranks) if biased else None
    over = numbers(tokens * ranks, sequences, 3 * outputs * ranks, seed=1)
    sections = [2 * outputs * ranks, outputs * ranks]
    layer = ColumnParallelLinear(layout, weight, bias, sections=sections)
    y = layer.forward(layout.place(x))
    equal(layer.whole(y), x @ weight + (bias if biased else 0))
    # Each rank is handed the gradient of its columns: of those of each section, that is.
    dealt = [np.split(part, ranks, axis=-1) for part in np.split(over, sections[:1], axis=-1)]
    own = [np.concatenate(parts, axis=-1) for parts in zip(*dealt, strict=True)]
    equal(layout.whole(layer.backward(own)), over @ weight.T)
    equal(layer.whole(layer.weight_gradient), np.einsum("tbi,tbo->io", x, over))
    if biased:
        equal(layer.whole(layer.bias_gradient), over.sum((0, 1)))


@pytest.mark.parametrize("make", LAYOUTS)
@given(st.integers(1, 5), small, small, small, small, st.booleans())
def test_rows(make, ranks, tokens, sequences, inputs, outputs, biased):
    layout = make(Group(ranks))
    x = numbers(tokens * ranks, sequences, inputs * ranks)
    weight, bias = numbers(inputs * ranks, outputs), numbers(outputs) if biased else None
    over = numbers(tokens * ranks, sequences, outputs, seed=1)
    layer = RowParallelLinear(layout, weight, bias)
    y = layer.forward(np.split(x, ranks, axis=-1))
    equal(layout.whole(y), x @ weight + (bias if biased else 0))
    own = layer.backward(layout.place(over))
    equal(np.concatenate(own, axis=-1), over @ weight.T)
    equal(layer.whole(layer.weight_gradient), np.einsum("tbi,tbo->io", x, over))
    if biased:
        for gradient in layout.finish(layer.bias_gradient):
            equal(gradient, over.sum((0, 1)))


def test_weights_are_shared_out():
    layout = Replicated(Group(4))
    column = ColumnParallelLinear(layout, numbers(8, 12), numbers(12))
    row = RowParallelLinear(layout, numbers(12, 8), numbers(8))
    assert [w.shape for w in column.weight] == [(8, 3)] * 4
    assert [b.shape for b in column.bias] == [(3,)] * 4
    assert [w.shape for w in row.weight] == [(3, 8)] * 4
    assert [b.shape for b in row.bias] == [(8,)] * 4


@pytest.mark.parametrize(
    ("make", "forward", "backward"),
    [
        (Replicated, ["all_reduce"], ["all_reduce"]),
        (SequenceSharded, ["all_gather", "reduce_scatter"], ["all_gather", "reduce_scatter"]),
    ],
)
def test_one_block_communicates_on_its_way_in_and_out(make, forward, backward):
    group = Group(2)
    layout = make(group)
    column = ColumnParallelLinear(layout, numbers(4, 6))
    row = RowParallelLinear(layout, numbers(6, 4))
    y = row.forward(column.forward(layout.place(numbers(2, 1, 4))))
    assert [call.collective for call in group.calls] == forward
    group.calls.clear()
    column.backward(row.backward(y))
    assert [call.collective for call in group.calls] == backward


def test_errors_name_the_limit_and_the_way_out():
    layout = Replicated(Group(4))
    with pytest.raises(ParallelismError, match=r"4 ranks do not divide columns \(6, 6\)"):
        ColumnParallelLinear(layout, numbers(4, 12), sections=(6, 6))
    with pytest.raises(ParallelismError, match="4 ranks do not divide the 6 of axis 0"):
        RowParallelLinear(layout, numbers(6, 4))
    with pytest.raises(ConfigError, match=r"sections = \(4, 4\) are 8 columns, the weight has 12"):
        ColumnParallelLinear(layout, numbers(4, 12), sections=(4, 4))
    for kind in (ColumnParallelLinear, RowParallelLinear):
        with pytest.raises(ConfigError, match=r"bias of shape \(3,\) for a weight with 8 columns"):
            kind(layout, numbers(8, 8), numbers(3))
        with pytest.raises(ConfigError, match="give a matrix"):
            kind(layout, numbers(8))
