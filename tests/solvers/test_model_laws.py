"""The laws of models: what every model of every solver obeys, on questions made up at random.

2. On quantities, every output has the dimension that the result declares.
3. The answer does not depend on the units in which the inputs are given.
4. The answer on plain numbers equals that on quantities.
6. Every output reaches its inputs through the recording.

Law 5, that arrays equal a loop, is that of sweeps: `tests/test_sweep_law.py`.
"""

from __future__ import annotations

import inspect
import math
import random
import re
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import pytest

from mlsysim import DisaggregatedSolver, OpenLoopSolver
from mlsysim.core.derivation import Derivation, Input, Step
from mlsysim.core.errors import ConfigError
from mlsysim.core.fields import units_of
from mlsysim.core.forms import mapped
from mlsysim.core.inputs import Inputs
from mlsysim.core.recording import Recorded, value_of, watching
from mlsysim.core.units import Q_, ureg
from mlsysim.solvers.base import Solver
from tests.core.inputs import OTHER_UNITS
from tools.sweep_questions import SOLVERS, question

QUESTIONS = {OpenLoopSolver: 3, DisaggregatedSolver: 4}
"""Of these solvers, whose engines are those of `ServingSolver`; of each other one, eight."""


@dataclass(frozen=True)
class Answer:
    """Random inputs of a solver, and its outputs on plain and on recorded numbers."""

    solver: type[Solver[Any, Any]]
    inputs: Inputs
    plain: dict[str, Any]
    outputs: dict[str, Any]

    @cached_property
    def origins(self):
        """The origins of the inputs that each recorded output was made of."""
        outputs = self.outputs.items()
        return {n: origins(value) for n, value in outputs if isinstance(value, Recorded)}

    @cached_property
    def derivation(self):
        return Derivation(self.outputs).unpruned()


def asked(solver):
    """Random questions that the solver answers, as admitted inputs."""
    known = inspect.signature(solver.solve).parameters
    defaults = {name: item.default for name, item in known.items()}
    found, seed = [], 0
    while len(found) < QUESTIONS.get(solver, 8):
        seed += 1
        made = question(random.Random(f"{solver.__name__} {seed}").choice)
        if made.solver is not solver:
            continue
        try:
            inputs = solver.admit(defaults | next(made.rows()))
        except ConfigError:
            continue
        if not list(solver.faults(inputs)):
            found.append(inputs)
    return found


def si(value):
    return value.to_base_units().magnitude if isinstance(value, Q_) else value


@pytest.fixture(scope="module", params=SOLVERS, ids=lambda solver: solver.__name__)
def answers(request):
    """Answers to some questions."""
    found = []
    for inputs in asked(request.param):
        model = request.param.model(inputs)
        with watching("mlsysim.solvers"):
            outputs = model(inputs.recorded())
        found.append(Answer(request.param, inputs, model(inputs.plain()), outputs))
    return found


def test_outputs_have_the_declared_dimension(answers):
    for answer in answers:
        declared = {name: unit for name, unit, _ in units_of(answer.solver.result)}
        for name, value in answer.outputs.items():
            if isinstance(value, Recorded):
                unit = ureg.Unit(declared[name] if declared[name] != "1" else "")
                assert value.value.dimensionality == unit.dimensionality, name
            else:
                # Without a steady state a time is not a number, of any dimension.
                assert isinstance(value, str | bool) or math.isnan(value), name


def close_to(outputs):
    """The numbers of `outputs` in SI units, with the rounding that a change of units may leave.

    What remains of almost equal numbers has the digits of those numbers, not its own; and pint may
    convert by another path in another process.
    """
    found = {name: v.value for name, v in outputs.items() if isinstance(v, Recorded)}
    expected = {}
    for name, value in found.items():
        alike = [abs(si(v)) for v in found.values() if v.dimensionality == value.dimensionality]
        least = 1e-12 * max([v for v in alike if math.isfinite(v)], default=0.0)
        least = max(least, 1e-12) if value.dimensionless else least
        expected[name] = pytest.approx(si(value), rel=1e-9, abs=least, nan_ok=True)
    return expected


def test_plain_numbers_equal_quantities(answers):
    for answer in answers:
        assert answer.plain.keys() == answer.outputs.keys()
        numbers = close_to(answer.outputs)
        for name, value in answer.plain.items():
            other = value_of(answer.outputs[name])
            assert value == numbers.get(name, other) or str(value) == str(other) == "nan", name


def test_units_of_the_inputs_do_not_matter(answers):
    chance = random.Random(0)

    def in_another_unit(number):
        if not isinstance(number, Recorded):
            return number
        units = [u for u in OTHER_UNITS if ureg.Unit(u).is_compatible_with(number.value.units)]
        if not units or not number.value.dimensionality:
            return number
        return Recorded(number.value.to(chance.choice(OTHER_UNITS[units[0]])), origin=number.origin)

    for answer in answers:
        model = answer.solver.model(answer.inputs)
        again = model(mapped(answer.inputs.recorded(), in_another_unit))
        for name, expected in close_to(answer.outputs).items():
            assert si(again[name].value) == expected, name


def origins(number):
    """The origins of the inputs that a recorded number was made of."""
    seen, stack, found = set(), [number], set()
    while stack:
        node = stack.pop()
        if id(node) in seen or not isinstance(node, Recorded):
            continue
        seen.add(id(node))
        if node.origin is not None:
            found.add(node.origin.origin)
        stack += [*node.operands, *node.arguments.values()]
    return found


def test_every_output_reaches_its_inputs(answers):
    for answer in answers:
        known = {*answer.solver.parameters, *vars(type(answer.inputs))}
        for base in type(answer.inputs).__mro__:
            known |= {*getattr(base, "__annotations__", ())}
        for name, reached in answer.origins.items():
            assert reached, name
            assert {origin.split(".")[0] for origin in reached} <= known, name


def test_a_derivation_follows_the_recording_to_the_end(answers):
    """Step by step: nothing between an output and its inputs is lost, or has no origin."""
    for answer in answers:
        derivation = answer.derivation
        reached = set().union(*answer.origins.values())
        assert {item.origin for item in derivation.inputs} == reached
        for step in derivation.steps:
            assert step.parents, step.name
            for name, argument in step.arguments.items():
                parent = step.parents.get(name)
                if parent is None:
                    assert step.formula, f"{step.name}.{name} is a literal of a line"
                    assert not isinstance(argument, Q_), f"{step.name}.{name} has no origin"
                else:
                    assert isinstance(parent, Step | Input)
                    assert parent.value is argument, f"{step.name}.{name}"


def test_every_formula_of_a_derivation_follows_from_its_arguments(answers):
    """Each use of a formula alone, worked out again on plain numbers."""
    for answer in answers:
        for step in answer.derivation.steps:
            if step.formula:
                again = step.formula.function(**{k: si(v) for k, v in step.arguments.items()})
                assert again == pytest.approx(si(step.value), rel=1e-9, abs=0, nan_ok=True)


def test_every_line_of_arithmetic_follows_from_its_terms(answers):
    """Read again as Python, with its terms put in."""
    for answer in answers:
        for step in Derivation(answer.outputs).steps:
            # Layers of a stage are counted, not computed.
            if step.formula is None and not step.line.startswith("stage_layers("):
                # A line shows six digits of a constant such as 1.28155.
                digits = 1e-5 if re.search(r"\d\.\d{4}", step.line) else 1e-9
                again = evaluated(step)
                assert again == pytest.approx(si(step.value), rel=digits, abs=0, nan_ok=True), (
                    step.line
                )


def evaluated(step):
    from mlsysim.core import numeric

    text = step.line
    terms = sorted(step.arguments, key=len, reverse=True)
    for place, name in enumerate(terms):
        text = text.replace(name, f"\0{place}\0")
    for place in range(len(terms)):
        text = text.replace(f"\0{place}\0", f"term_{place}")
    values = {f"term_{place}": si(step.arguments[name]) for place, name in enumerate(terms)}
    return eval(text, vars(numeric) | {"nan": float("nan"), "inf": float("inf")}, values)
