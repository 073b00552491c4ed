"""Formulas: registered by name, unchanged when called, recorded when traced."""

from __future__ import annotations

import inspect

import pytest

from mlsysim.core.docstring import read_docstring
from mlsysim.core.errors import MLSysError
from mlsysim.core.formula import FORMULAS, formula, trace
from mlsysim.core.formulas import (
    all_gather_time,
    hierarchical_all_reduce_time,
    microbatches_in_flight,
    roofline_time,
    token_count,
)
from mlsysim.core.units import Q_

RING = (1e9, 8, 4, 450e9, 1e-6, 50e9, 5e-6)


def test_every_formula_is_exported():
    from mlsysim.core import formulas

    assert sorted(FORMULAS) == sorted(formulas.__all__)
    for name in formulas.__all__:
        assert inspect.unwrap(getattr(formulas, name)) is FORMULAS[name].function


def test_a_formula_keeps_its_face():
    assert token_count.__name__ == "token_count"
    assert list(inspect.signature(token_count).parameters) == ["sequences", "seq_len"]
    assert token_count.__doc__.startswith("Tokens in a batch")


def test_names_are_unique():
    with pytest.raises(ValueError, match="token_count"):

        @formula
        def token_count(sequences):
            return sequences


def test_nothing_is_recorded_without_a_trace():
    with trace() as calls:
        pass
    token_count(1, 2)
    assert calls == []


def test_calls_are_recorded_in_order_with_names():
    with trace() as calls:
        token_count(4, seq_len=2048)
        roofline_time(1.0, 2.0)
    assert [call.formula.name for call in calls] == ["token_count", "roofline_time"]
    assert calls[0].arguments == {"sequences": 4, "seq_len": 2048}
    assert calls[0].value == 8192


def test_calls_within_a_formula_nest():
    with trace() as calls:
        value = hierarchical_all_reduce_time(*RING)
    (outer,) = calls
    assert [call.formula.name for call in outer.calls] == [
        "reduce_scatter_time",
        "ring_all_reduce_time",
        "all_gather_time",
    ]
    assert sum(call.value for call in outer.calls) == pytest.approx(value)
    assert outer.calls[1].arguments["ranks"] == 2
    assert all(call.calls == [] for call in outer.calls)


def test_traces_nest_and_end():
    with trace() as outer:
        token_count(1, 1)
        with trace() as inner:
            token_count(2, 2)
        token_count(3, 3)
    token_count(4, 4)
    assert [call.value for call in outer] == [1, 9]
    assert [call.value for call in inner] == [4]


def test_a_trace_ends_with_an_error_too():
    with pytest.raises(ZeroDivisionError), trace():
        all_gather_time(1.0, 0, 1.0, 1.0)
    with trace() as calls:
        token_count(1, 1)
    assert len(calls) == 1


def test_a_formula_that_fails_leaves_the_trace_at_its_level():
    with trace() as calls:
        with pytest.raises(ZeroDivisionError):
            hierarchical_all_reduce_time(1.0, 2, 0, 1.0, 1.0, 1.0, 1.0)
        token_count(1, 1)
    assert [call.formula.name for call in calls] == ["hierarchical_all_reduce_time", "token_count"]


def test_a_value_handed_through_becomes_an_object_of_its_own():
    # A derivation follows values by identity: the maximum must not be taken for its argument.
    compute, memory = Q_(1.0, "s"), Q_(2.0, "s")
    with trace():
        longest = roofline_time(compute, memory)
        held = microbatches_in_flight(Q_(4, ""), Q_(16, ""))
    assert longest == memory
    assert longest is not memory
    assert held == 4


def test_data_sheet_of_a_formula():
    manual = FORMULAS["all_gather_time"].documentation
    assert manual.summary.startswith("Time of a ring all-gather")
    assert manual.equation == r"t = \frac{n-1}{n}\,\frac{m}{B} + (n-1)\,\alpha"
    assert manual.parameters["bandwidth"].latex == "B"
    assert manual.parameters["bandwidth"].unit == "byte/s"
    assert manual.parameters["bandwidth"].text.startswith("bandwidth of a rank")
    assert manual.returns.unit == "s"
    assert "Thakur" in manual.references


def test_a_docstring_with_less_in_it():
    def bare(x):
        """Bare.

        Parameters
        ----------
        x : [byte/s]
            Some rate.
        y : int
            Not a quantity.
        """

    manual = read_docstring(bare)
    assert manual.summary == "Bare."
    assert manual.equation == manual.references == ""
    assert manual.returns is None
    assert manual.parameters["x"].latex == r"\mathrm{x}"
    assert "y" not in manual.parameters
    with pytest.raises(MLSysError, match="no docstring"):
        read_docstring(lambda: None)
