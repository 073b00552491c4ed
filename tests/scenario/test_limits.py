"""Limits: what they refuse when they are made, and what they allow."""

from __future__ import annotations

import pytest

from mlsysim import Q_, ConfigError, Limit, UnknownEntryError
from mlsysim.core.fields import units_of
from mlsysim.core.units import unit
from mlsysim.scenario.scenario import MACRO_SOLVERS, METRICS, TASKS


def test_a_metric_has_one_dimension_whatever_result_it_is_in():
    results = [task.solver.result for task in TASKS.values()]
    results += [solver.result for solver in MACRO_SOLVERS]
    for result in results:
        for name, symbol, _ in units_of(result):
            assert unit(symbol).dimensionality == unit(METRICS[name]).dimensionality, name


@pytest.mark.parametrize(
    ("bounds", "word"),
    [
        ({"at_most": Q_(5, "GB")}, "wrong dimension"),
        ({"at_most": 5}, "needs a unit"),
        ({"at_least": "200 ms"}, "needs a unit"),
        ({"at_most": Q_(-1, "ms")}, "out of range"),
        ({"at_most": Q_(float("nan"), "ms")}, "out of range"),
        ({"at_most": Q_(float("inf"), "ms")}, "out of range"),
        ({}, "no bound"),
        ({"at_most": Q_(1, "ms"), "at_least": Q_(1, "s")}, "above at_most"),
    ],
)
def test_a_bound_that_makes_no_sense_is_refused(bounds, word):
    with pytest.raises(ConfigError, match=word):
        Limit(metric="latency", **bounds)


def test_a_share_takes_a_plain_number_or_percent():
    assert Limit(metric="mfu", at_least=0.4).allows(0.41)
    assert not Limit(metric="mfu", at_least=Q_(40, "percent")).allows(0.39)
    with pytest.raises(ConfigError, match="not a number"):
        Limit(metric="mfu", at_least=True)


def test_an_unknown_metric_names_the_nearest():
    with pytest.raises(UnknownEntryError, match="did you mean latency"):
        Limit(metric="latncy", at_most=Q_(1, "s"))


def test_what_is_not_known_keeps_no_limit():
    assert not Limit(metric="energy", at_most=Q_(1, "J")).allows(None)


def test_both_bounds_hold():
    limit = Limit(metric="latency", at_least=Q_(1, "ms"), at_most=Q_(1, "s"))
    allowed = [limit.allows(Q_(value, "ms")) for value in (0.5, 1, 20, 1000, 1001)]
    assert allowed == [False, True, True, True, False]
    assert str(limit) == "latency at most 1 s and at least 1 ms"
