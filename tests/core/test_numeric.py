"""Zeros and unknown values, in every form of a number."""

import math

import numpy as np
import pytest

from mlsysim import Q_
from mlsysim.core.forms import recorded
from mlsysim.core.numeric import first_known, is_known, is_unknown, when, zero_like


def test_zeros_keep_unit_shape_and_record():
    assert zero_like(3.5) == 0
    assert zero_like(Q_("2 s")) == Q_("0 s")
    assert zero_like(np.ones((2, 3))).shape == (2, 3)
    time = recorded(2.0, "time", "s", "time")
    assert zero_like(time).value == Q_("0 s")
    assert time in zero_like(time).operands


def test_unknown_values_are_nan():
    assert is_known(0.0)
    assert not is_known(math.nan)
    assert is_unknown(math.nan)
    assert not is_unknown(Q_("1 s"))
    values = np.array([1.0, math.nan])
    assert is_known(values).tolist() == [True, False]
    assert is_unknown(values).tolist() == [False, True]
    assert first_known(values, 7.0).tolist() == [1.0, 7.0]


@pytest.mark.parametrize("value", [2.5, Q_("2 s"), np.array([2.0, 3.0])])
def test_when_is_the_value_or_zero(value):
    assert np.all(when(True, value) == value)
    assert np.all(when(False, value) == zero_like(value))
    assert when(np.array([True, False]), np.array([4.0, 5.0])).tolist() == [4.0, 0.0]
