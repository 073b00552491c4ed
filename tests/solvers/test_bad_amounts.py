"""Amounts and portions, given badly, are refused in words that help."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest

from mlsysim import (
    Q_,
    ConfigError,
    EconomicsSolver,
    Infra,
    Models,
    ReliabilitySolver,
    SustainabilitySolver,
    Systems,
)
from mlsysim.solvers.arguments import Amount, Portion

FLEET = Systems.Clusters.Research_256
GOOD = {
    SustainabilitySolver: {"fleet": FLEET, "duration_days": 30, "datacenter": Infra.Quebec},
    EconomicsSolver: {"fleet": FLEET, "duration_days": 30, "token_throughput": 1e5},
    ReliabilitySolver: {"fleet": FLEET, "job_duration_hours": 720, "checkpoint_time_s": 60},
}
NEVER_A_NUMBER = ["8", b"8", True, [1], (1,), {}, 1j, object, Q_(1, "GB"), Q_(1, "1/byte")]
NEVER = [*NEVER_A_NUMBER, -1, -0.5, math.nan, math.inf, -math.inf, np.nan, 10**400]
OTHERS = {
    "fleet": ["Research_256", None, FLEET.node, Models.GPT2],
    "datacenter": ["Quebec", FLEET, Infra.Air_Cooled],
    "grid": ["Quebec", Infra.Hyperscale_US],
    "rental_offer": ["Lambda_H100", Infra.Quebec, 2.5],
    "model": ["GPT2", FLEET],
    "precision": ["fp17", None],
}
WAYS_OUT = re.compile(r"\b(give|choose|pass one such as)\b")


def cases():
    for solver, good in GOOD.items():
        for name, kind in solver.parameters.items():
            values = OTHERS.get(name, list(NEVER))
            if isinstance(kind, Amount):
                values = [*values, Q_(-1, kind.unit), Q_(math.nan, kind.unit)]
                values += [] if kind.zero else [Q_(0, kind.unit), 0]
                values += [] if kind.plain else [1, 2.5]
                values += [] if kind.optional else [None]
            if isinstance(kind, Portion):
                values = [*values, 1.001, 50]
            for value in values:
                shown = str(value)[:12] if isinstance(value, int) else repr(value)[:24]
                yield pytest.param(
                    solver, good, name, value, id=f"{solver.__name__}-{name}-{shown}"
                )


@pytest.mark.parametrize(("solver", "good", "name", "value"), list(cases()))
def test_refused_in_words(solver, good, name, value):
    with pytest.raises(ConfigError) as caught:
        solver.solve(**good | {name: value})
    assert caught.value.argument == name
    text = str(caught.value)
    assert text.startswith(name)
    assert WAYS_OUT.search(text), text


def test_every_argument_is_tried():
    for solver in GOOD:
        for name, kind in solver.parameters.items():
            assert name in OTHERS or isinstance(kind, Amount | Portion), name


def amounts():
    for solver, good in GOOD.items():
        for name, kind in solver.parameters.items():
            if isinstance(kind, Amount):
                yield pytest.param(solver, good, name, kind, id=f"{solver.__name__}-{name}")


@pytest.mark.parametrize(("solver", "good", "name", "kind"), list(amounts()))
def test_arrays_are_sent_to_sweep(solver, good, name, kind):
    values = [Q_(np.array([1.0, 2.0]), kind.unit)]
    values += [np.array([1.0, 2.0])] if kind.plain else []
    for value in values:
        with pytest.raises(ConfigError, match=rf"^{name} = .*has several values.*use sweep"):
            solver.solve(**good | {name: value})


@pytest.mark.parametrize(("solver", "good", "name", "kind"), list(amounts()))
def test_a_plain_number_is_one_of_the_unit(solver, good, name, kind):
    dressed = kind.admit(name, Q_(2, kind.unit))
    assert dressed == pytest.approx(Q_(2, kind.unit).to_base_units().magnitude)
    if kind.plain:
        assert kind.admit(name, 2) == pytest.approx(dressed)
        numbers, accepted = kind.admit_array(np.array([2, -2]))
        assert numbers.tolist() == [kind.admit(name, 2), -kind.admit(name, 2)]
        assert accepted.tolist() == [True, False]
    assert solver.solve(**good | {name: Q_(2, kind.unit)})


@pytest.mark.parametrize(("solver", "good", "name", "kind"), list(amounts()))
def test_a_name_that_states_a_unit_takes_plain_numbers(solver, good, name, kind):
    if name.endswith(("_days", "_hours", "_s", "_price")):
        assert kind.plain
