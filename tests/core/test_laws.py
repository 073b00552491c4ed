"""The laws of formulas: every formula and every solver's kernel obeys all of them.

1. The documented parameters are the signature's; equation, units and references are there.
2. Called with quantities, the answer has the documented dimension.
3. The answer does not depend on the units in which the arguments are given.
4. The call on plain numbers in SI base units equals the call on quantities.
5. The call on arrays equals the loop of scalar calls.
"""

from __future__ import annotations

import inspect
import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mlsysim.core.docstring import read_docstring
from mlsysim.core.formula import FORMULAS
from mlsysim.core.units import Q_, ureg
from tests.core.inputs import (
    Subject,
    dimension,
    formula_subjects,
    kernel_names,
    kernel_subjects,
    other_units,
    si_unit,
    solver_classes,
    solver_plans,
)

FORMULA_SUBJECTS = formula_subjects()
KERNEL_SUBJECTS = kernel_subjects()

every_formula = pytest.mark.parametrize("name", FORMULAS)
every_plan = pytest.mark.parametrize(
    ("solver", "plan"), [pytest.param(s, p, id=p.kernel.__name__) for s, p in solver_plans()]
)
every_subject = pytest.mark.parametrize(
    "subject", [pytest.param(s, id=s.name) for s in FORMULA_SUBJECTS + KERNEL_SUBJECTS]
)
few = settings(max_examples=12)


def plain(value):
    """A value as a plain number in SI base units; words and truths stay as they are."""
    return value.to_base_units().magnitude if isinstance(value, Q_) else value


def assert_same(found, expected, *, rel):
    """Compare two answers of a subject, field by field."""
    assert found.keys() == expected.keys()
    for name in expected:
        a, b = plain(found[name]), plain(expected[name])
        if isinstance(b, str | bool):
            assert a == b, name
        else:
            assert a == pytest.approx(b, rel=rel, abs=0), name


# The subjects themselves


def test_there_are_subjects():
    assert len(FORMULA_SUBJECTS) >= 60
    assert {"training_step", "fixed_shape_pass", "transformer_pass"} <= {
        subject.name for subject in KERNEL_SUBJECTS
    }


def test_every_kernel_belongs_to_a_solver():
    assert kernel_names() == {subject.name for subject in KERNEL_SUBJECTS}


def test_every_solver_has_a_kernel():
    assert set(solver_classes()) == {solver for solver, _ in solver_plans()}


# Law 1


@every_formula
def test_documented_parameters_are_the_signatures(name):
    entry = FORMULAS[name]
    assert list(entry.documentation.parameters) == list(entry.signature.parameters)


@every_formula
def test_a_formula_has_an_equation_of_its_own_symbols(name):
    manual = FORMULAS[name].documentation
    assert manual.summary.endswith(".")
    assert "=" in manual.equation
    for symbol in (*manual.parameters.values(), manual.returns):
        assert not symbol.latex.startswith(r"\mathrm{" + symbol.name), "no symbol is documented"
        assert symbol.text, symbol.name
        assert symbol.latex in manual.equation, symbol.name


@every_formula
def test_symbols_are_distinct(name):
    manual = FORMULAS[name].documentation
    symbols = [symbol.latex for symbol in (*manual.parameters.values(), manual.returns)]
    assert len(set(symbols)) == len(symbols)


@every_formula
def test_units_are_known_and_si(name):
    manual = FORMULAS[name].documentation
    for symbol in (*manual.parameters.values(), manual.returns):
        assert symbol.unit, f"{symbol.name}: write 1 where there is no unit"
        unit = ureg.Unit(si_unit(symbol.unit))
        assert Q_(1.0, unit).to_base_units().magnitude == 1.0, symbol.unit


@every_formula
def test_a_formula_names_its_reference(name):
    references = FORMULAS[name].documentation.references
    assert references
    cites = re.search(r"\((19|20)\d\d\)|https://", references)
    argues = references.startswith(
        ("Definition", "Counting", "Conservation", "Sum of", "Placement")
    )
    assert cites or argues, references


@every_plan
def test_a_kernels_inputs_are_documented_and_planned(solver, plan):
    documented = list(read_docstring(plan.kernel).parameters)
    signature = inspect.signature(plan.kernel).parameters.values()
    named = [item.name for item in signature if item.kind is not item.VAR_KEYWORD]
    assert set(documented) == set(plan.origins)
    if len(named) == len(signature):
        assert documented == named
    else:  # the rest is passed on to a shared part
        assert set(named) < set(documented)


@every_plan
def test_a_kernels_units_are_known_and_si(solver, plan):
    for name, symbol in read_docstring(plan.kernel).parameters.items():
        assert symbol.unit, name
        assert Q_(1.0, si_unit(symbol.unit)).to_base_units().magnitude == 1.0, name


@every_plan
def test_a_kernel_starts_from_arguments_of_its_solver(solver, plan):
    known = set(solver.parameters) | set(solver.constants)
    for name, origin in plan.origins.items():
        paths = origin if isinstance(origin, tuple) else (origin,)
        assert {path.split(".")[0] for path in paths} <= known, name


# Laws 2 to 5


@every_subject
@few
@given(data=st.data())
def test_dimension_of_the_answer(subject: Subject, data):
    answer = subject(subject.quantities(subject.draw(data)))
    for name, value in answer.items():
        unit = subject.returns.get(name)
        if unit is None:
            assert isinstance(value, str | bool), f"{name} has no declared unit"
        elif isinstance(value, Q_):
            assert value.dimensionality == dimension(unit), name
        else:
            assert not dimension(unit), f"{name} = {value!r} lost its unit"


@every_subject
@few
@given(data=st.data())
def test_units_of_the_arguments_do_not_matter(subject: Subject, data):
    arguments = subject.quantities(subject.draw(data))
    converted = {
        name: value.to(data.draw(other_units(name, subject.units[name]), label=f"unit of {name}"))
        for name, value in arguments.items()
    }
    assert_same(subject(converted), subject(arguments), rel=1e-9)


@every_subject
@few
@given(data=st.data())
def test_plain_numbers_equal_quantities(subject: Subject, data):
    arguments = subject.draw(data)
    answer = subject(arguments)
    assert not any(isinstance(value, Q_) for value in answer.values())
    assert_same(subject(subject.quantities(arguments)), answer, rel=1e-12)


@every_subject
@pytest.mark.parametrize("dtype", ["as drawn", "float64"])
@few
@given(data=st.data())
def test_arrays_equal_a_loop(subject: Subject, dtype, data):
    # Some arguments are arrays and some are not, as on the axes of a sweep.
    rows = [subject.draw(data) for _ in range(3)]
    varied = {name for name in subject.units if data.draw(st.booleans(), label=f"vary {name}")}
    if subject.name in {"training_step", "hierarchical_all_reduce_time"}:
        varied |= {"ranks", "local", "nodes", "devices_per_node", "tp_size", "pp_size"}
    rows = [{n: (row if n in varied else rows[0])[n] for n in subject.units} for row in rows]
    arguments = {
        name: np.array([row[name] for row in rows], None if dtype == "as drawn" else dtype)
        if name in varied
        else rows[0][name]
        for name in subject.units
    }
    expected = [subject(row) for row in rows]
    for name, value in subject(arguments).items():
        cells = np.broadcast_to(value, (3,)).tolist()
        assert_same(
            dict(enumerate(cells)), dict(enumerate(row[name] for row in expected)), rel=1e-12
        )


# What the laws rest on


@every_formula
def test_a_formula_is_pure_arithmetic(name):
    """No branch on a value, no rounding, no unit: the body must run on whatever comes in."""
    source = inspect.getsource(FORMULAS[name].function).split('"""')[-1]
    words = set(re.findall(r"[A-Za-z_.]+", source))
    assert not words & {"if", "else", "max", "min", "round", "float", "int", "math", "np", "numpy"}
    assert ".magnitude" not in source
    assert ".to(" not in source


def test_large_arrays_of_whole_numbers_do_not_wrap_around():
    """Counts arrive as int64 in a sweep; operations of a large step exceed it."""
    from mlsysim import Calibrations, Models, Systems
    from mlsysim.solvers import DistributedSolver

    signature = inspect.signature(DistributedSolver.solve).parameters
    given = {name: item.default for name, item in signature.items()} | {"recompute": "full"}
    given |= {"model": Models.GPT_1T, "fleet": Systems.Clusters.Frontier_8K, "batch_size": 2**20}
    given |= {"seq_len": 8192, "calibration": Calibrations.H100_Megatron}
    arguments = DistributedSolver.inputs(DistributedSolver.admit(given))
    kernel = next(s for s in KERNEL_SUBJECTS if s.name == "operator_step")
    arrays = arguments | {"batch_size": np.array([2**20]), "seq_len": np.array([8192])}
    expected = kernel(arguments)
    assert expected["model_flops"] > 2**63
    found = {name: np.broadcast_to(value, (1,))[0] for name, value in kernel(arrays).items()}
    assert_same(found, expected, rel=1e-12)
