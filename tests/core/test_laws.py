"""The laws of formulas: every formula obeys all of them.

1. The documented parameters are the signature's; equation, units and references are there.
2. Called with quantities, the answer has the documented dimension.
3. The answer does not depend on the units in which the arguments are given.
4. The call on plain numbers in SI base units equals the call on quantities.
5. The call on arrays equals the loop of scalar calls.
"""

from __future__ import annotations

import inspect
import math
import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mlsysim.core.formula import FORMULAS
from mlsysim.core.numeric import exp, expm1, log, maximum, minimum, vectorized
from mlsysim.core.units import Q_, ureg
from tests.core.inputs import (
    WHOLE_GROUPS,
    Subject,
    dimension,
    formula_subjects,
    other_units,
    si_unit,
)

SUBJECTS = formula_subjects()

every_subject = pytest.mark.parametrize("subject", [pytest.param(s, id=s.name) for s in SUBJECTS])
few = settings(max_examples=12)


def plain(value):
    """A value as a plain number in SI base units."""
    return value.to_base_units().magnitude if isinstance(value, Q_) else value


def same(value, *, rel):
    return pytest.approx(plain(value), rel=rel, abs=0)


def test_there_are_subjects():
    assert len(SUBJECTS) >= 100


# Law 1


def test_a_formula_documents_its_parameters_equation_and_reference():
    for name, entry in FORMULAS.items():
        manual = entry.documentation
        assert list(manual.parameters) == list(entry.signature.parameters), name
        assert manual.summary.endswith("."), name
        assert "=" in manual.equation, name
        references = manual.references
        cites = re.search(r"@[a-z]\w+|\((19|20)\d\d\)", references)
        argues = references.startswith(
            ("Definition", "Counting", "Conservation", "Sum of", "Placement")
        )
        assert cites or argues, name


def test_symbols_are_distinct_parts_of_the_equation_in_si_units():
    for name, entry in FORMULAS.items():
        manual = entry.documentation
        symbols = (*manual.parameters.values(), manual.returns)
        assert len({symbol.latex for symbol in symbols}) == len(symbols), name
        for symbol in symbols:
            assert not symbol.latex.startswith(r"\mathrm{" + symbol.name), "no symbol is documented"
            assert symbol.text, (name, symbol.name)
            assert symbol.latex in manual.equation, (name, symbol.name)
            assert symbol.unit, f"{symbol.name}: write 1 where there is no unit"
            unit = ureg.Unit(si_unit(symbol.unit))
            assert Q_(1.0, unit).to_base_units().magnitude == 1.0, symbol.unit


# Laws 2 to 5


@every_subject
@few
@given(data=st.data())
def test_quantities_in_any_units_give_the_answer_of_plain_numbers(subject: Subject, data):
    arguments = subject.draw(data)
    number = subject(arguments)
    assert not isinstance(number, Q_)
    quantities = subject.quantities(arguments)
    answer = subject(quantities)
    if isinstance(answer, Q_):
        assert answer.dimensionality == dimension(subject.returns)
    else:
        assert not dimension(subject.returns), f"{answer!r} lost its unit"
    assert plain(answer) == same(number, rel=1e-12)
    converted = {
        name: value.to(data.draw(other_units(name, subject.units[name]), label=f"unit of {name}"))
        for name, value in quantities.items()
    }
    # A difference of two equal times need not stay zero in other units.
    alike = [name for name, unit in subject.units.items() if unit == subject.returns]
    least = 1e-12 * max((abs(plain(quantities[name])) for name in alike), default=0)
    assert plain(subject(converted)) == pytest.approx(plain(answer), rel=1e-9, abs=least)


@every_subject
@few
@given(data=st.data())
def test_arrays_equal_a_loop(subject: Subject, data):
    # Some arguments are arrays and some are not, as on the axes of a sweep.
    rows = [subject.draw(data) for _ in range(3)]
    varied = {name for name in subject.units if data.draw(st.booleans(), label=f"vary {name}")}
    if subject.name in WHOLE_GROUPS:
        varied |= {"ranks", "local"}
    rows = [{n: (row if n in varied else rows[0])[n] for n in subject.units} for row in rows]
    single = [subject(row) for row in rows]
    for dtype in (None, "float64"):  # as drawn, and as sweeps have them
        arguments = {
            name: np.array([row[name] for row in rows], dtype) if name in varied else rows[0][name]
            for name in subject.units
        }
        cells = np.broadcast_to(subject(arguments), (3,)).tolist()
        assert cells == pytest.approx(single, rel=1e-12, abs=0)


# What the laws rest on


@pytest.mark.parametrize("function", [maximum, minimum])
@pytest.mark.parametrize("pair", [(math.nan, 5.0), (5.0, math.nan), (math.nan, 5), (2.0, 5.0)])
def test_what_is_unknown_stays_unknown_as_in_arrays(function, pair):
    array = function(np.array(pair[:1]), pair[1])[0]
    for answer in (function(*pair), function(Q_(pair[0], "s"), Q_(pair[1], "s")).magnitude):
        assert answer == pytest.approx(array, nan_ok=True)


@pytest.mark.parametrize("function", [exp, expm1, log])
def test_vectorized_functions_differ_in_the_last_digits_only(function):
    values = np.geomspace(1e-6, 50, 999)
    exact = np.array([getattr(math, function.__name__)(value) for value in values.tolist()])
    with vectorized():
        assert function(values) == pytest.approx(exact, rel=1e-15, abs=1e-16)
        assert function(2.0) == getattr(math, function.__name__)(2.0)
    assert (function(values) == exact).all()


BRANCHES = {"if", "else", "max", "min", "round", "float", "int", "math", "np", "numpy"}


def test_a_formula_is_pure_arithmetic():
    """No branch on a value, no rounding, no unit: the body must run on whatever comes in."""
    for name, entry in FORMULAS.items():
        source = inspect.getsource(entry.function).split('"""')[-1]
        assert not BRANCHES & set(re.findall(r"[A-Za-z_.]+", source)), name
        assert ".magnitude" not in source, name
        assert ".to(" not in source, name


def test_numbers_without_a_logarithm_are_nan_in_an_array():
    """Rows that a rule excludes are computed as well; a single number raises as usual."""
    found = log(np.array([1.0, -1.0, 0.0, math.e]))
    assert found[[0, 3]].tolist() == [0.0, 1.0]
    assert np.isnan(found[1:3]).all()
    assert exp(np.array([0.0, 1e4]))[0] == 1.0
    with pytest.raises(ValueError, match="domain"):
        log(-1.0)
