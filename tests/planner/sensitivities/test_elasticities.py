"""Elasticities are derivatives: they agree with finite differences wherever those exist."""

import math
import random
from dataclasses import replace

import matplotlib.pyplot as plt
import pytest

from mlsysim import (
    Q_,
    ConfigError,
    DistributedSolver,
    ReliabilitySolver,
    Systems,
    UnknownEntryError,
    plot_sensitivity,
    sensitivity,
)
from mlsysim.core.errors import MLSysError
from mlsysim.core.forms import replaced
from mlsysim.core.gradient import plain, slopes
from mlsysim.core.numeric import ceil, exp, expm1, floor, gcd, log2, maximum, minimum, sqrt
from mlsysim.core.recording import Input, Recorded
from mlsysim.planner.sensitivities.questions import question_of
from tests.samples import JOB
from tools.sweep_questions import SOLVERS, question

STEP = 1e-6


@pytest.fixture(scope="module")
def step():
    return DistributedSolver.solve(**JOB)


def leaf(value, name="x"):
    return Recorded(value, origin=Input(name, value, "", name))


@pytest.mark.parametrize(
    ("function", "at", "slope"),
    [
        (lambda x: x + x * 3, 2.0, 4.0),
        (lambda x: 7 - x, 2.0, -1.0),
        (lambda x: -x, 2.0, -1.0),
        (lambda x: 6 / x, 2.0, -1.5),
        (lambda x: x / 4, 2.0, 0.25),
        (lambda x: x**3, 2.0, 12.0),
        (lambda x: 2**x, 3.0, 8 * math.log(2)),
        (lambda x: x % 3, 7.0, 1.0),
        (lambda x: 10 % x, 4.0, -2.0),
        (lambda x: x // 3, 7.0, 0.0),
        (lambda x: maximum(x, 1), 2.0, 1.0),
        (lambda x: maximum(x, 3), 2.0, 0.0),
        (lambda x: minimum(2 * x, x + 5), 2.0, 2.0),
        (lambda x: ceil(x), 2.5, 0.0),
        (lambda x: x * floor(x), 2.5, 2.0),
        (lambda x: gcd(x, 6), 4.0, 0.0),
        (lambda x: log2(x), 2.0, 0.5 / math.log(2)),
        (lambda x: exp(x), 1.0, math.e),
        (lambda x: expm1(2 * x), 0.5, 2 * math.e),
        (lambda x: sqrt(x), 4.0, 0.25),
        (lambda x: x * x * x, 2.0, 12.0),
    ],
)
def test_every_operation_has_its_derivative(function, at, slope):
    (found,) = slopes(function(leaf(at)))
    assert found.slope == pytest.approx(slope, rel=1e-12)


def test_steps_and_ties_are_marked():
    x, y = leaf(2.0), leaf(2.0, "y")
    found = {item.input.name: item for item in slopes(maximum(x, y) + ceil(y))}
    assert found["x"].slope == 1
    assert found["y"].slope == 0
    assert found["x"].tied
    assert found["y"].stepped
    assert not found["x"].stepped


def with_number(form, path, value):
    """Return a plain form with another number down a path."""
    name, *rest = path.split(".")
    name, _, spot = name.rstrip("]").partition("[")
    held = getattr(form, name)
    if rest:
        value = with_number(held[int(spot)] if spot else held, ".".join(rest), value)
    if spot:  # an item of a tuple, such as one group of layers
        value = (*held[: int(spot)], value, *held[int(spot) + 1 :])
    return replaced(form, **{name: value})


def asked(seed):
    """Return the first row of a random sweep, if it has an answer."""
    sweep = question(random.Random(seed).choice)
    try:
        row = next(sweep.rows(), None)
        return None if row is None else sweep.solver.solve(**row)
    except MLSysError:
        return None


def numbers(inputs, model, path, value, field):
    try:
        return float(model(with_number(inputs.plain(), path, value))[field])
    except (ValueError, OverflowError, ZeroDivisionError):
        return math.nan


def test_elasticities_agree_with_finite_differences():
    compared, kinks, solvers = 0, 0, set()
    for seed in range(40):
        result = asked(seed)
        if result is None:
            continue
        solver, given = result.__dict__["_origin"]
        put = question_of(solver, given)
        model = solver.model(put.inputs)
        derivation = result.explain()
        rng = random.Random(seed)
        fields = [name for name, item in derivation.numbers.items() if math.isfinite(plain(item))]
        for field in rng.sample(fields, min(3, len(fields))):
            size = plain(derivation.numbers[field])
            if size == 0:
                continue
            table = sensitivity(derivation, field)
            # Between steps a slope may be shorter than any finite difference.
            rows = [r for r in table if r["value"] not in (None, 0) and "steps" not in r["note"]]
            for row in rng.sample(rows, min(6, len(rows))):
                path = row["input"]
                at = next(
                    i.value for i in slopes(derivation.numbers[field]) if i.input.origin == path
                )
                here, more, less = (
                    numbers(put.inputs, model, path, at * factor, field)
                    for factor in (1, 1 + STEP, 1 - STEP)
                )
                assert here == pytest.approx(size, rel=1e-9), (field, path)
                right, left = (more - here) / here / STEP, (here - less) / here / STEP
                bend = 1e-6 if "kink" in row["note"] else 1e-3
                if not abs(right - left) <= bend * (0.1 + abs(right)):
                    kinks += 1
                    continue
                central = pytest.approx((more - less) / here / STEP / 2, rel=1e-3, abs=1e-5)
                # Where two choices are tied, their kinks may cancel, and each takes its own side.
                if "kink" in row["note"] and row["elasticity"] != central:
                    kinks += 1
                    continue
                assert row["elasticity"] == central, (
                    solver,
                    field,
                    path,
                    row["note"],
                )
                compared += 1
                solvers.add(solver)
    assert solvers == set(SOLVERS)
    assert compared > 150
    assert kinks < 0.05 * compared, (kinks, compared)


def test_rows_are_sorted_and_know_where_they_come_from(step):
    table = sensitivity(step, "step_latency_total")
    smooth = [abs(row["elasticity"]) for row in table if "steps" not in row["note"]]
    assert smooth == sorted(smooth, reverse=True)
    stepped = [index for index, row in enumerate(table) if "steps" in row["note"]]
    assert stepped == list(range(len(smooth), len(table)))
    row = next(r for r in table if r["input"] == "fleet.fabric.bandwidth")
    assert (row["value"], row["unit"]) == (pytest.approx(12.5), "GB/s")
    assert row["source"]
    assert table.elasticity("fleet.fabric.bandwidth") == row["elasticity"] < 0
    assert plain(table.answer) == pytest.approx(step.step_latency_total.to("s").magnitude)


def test_a_time_is_of_first_degree_in_times_and_rates():
    """Twice all rates and half all latencies halve every time: elasticities add up to -1."""
    step = DistributedSolver.solve(**JOB)
    table = sensitivity(step, "step_latency_total")
    rates = {
        "fleet.node.accelerator.compute.fp16",
        "fleet.node.accelerator.memory.bandwidth",
        "fleet.fabric.bandwidth",
        "fleet.node.scale_up.bandwidth",
    }
    times = [row["input"] for row in table if row["unit"] in ("s", "us", "ms")]
    total = sum(table.elasticity(name) for name in rates)
    total -= sum(table.elasticity(name) for name in times)
    assert total == pytest.approx(-1, abs=1e-9)


def test_errors_name_the_way_out(step):
    with pytest.raises(UnknownEntryError, match="step_latency_total"):
        sensitivity(step, "step_latency_totl")
    with pytest.raises(UnknownEntryError):
        sensitivity(step, "reasons")
    with pytest.raises(UnknownEntryError):
        sensitivity(step)
    with pytest.raises(ConfigError, match="solve") as caught:
        sensitivity({"step": 1}, "step")
    assert caught.value.argument == "result"
    with pytest.raises(ConfigError) as caught:
        sensitivity(step, "cp_communication_latency")
    assert caught.value.argument == "field"
    with pytest.raises(UnknownEntryError):
        sensitivity(step, "memory").elasticity("fleet.fabric")


def test_constants_that_no_argument_names_count_too():
    fleet = replace(Systems.Clusters.Frontier_8K)
    r = ReliabilitySolver.solve(fleet=fleet, job_duration_hours=720, checkpoint_time_s=60)
    table = sensitivity(r, "fleet_mtbf")
    assert table.elasticity("interruptions.interruptions") == pytest.approx(-1)
    assert table.elasticity("fleet.count") == pytest.approx(-1)
    given = ReliabilitySolver.solve(
        fleet=fleet, job_duration_hours=720, checkpoint_time_s=60, device_mtbf=Q_(5, "year")
    )
    assert sensitivity(given, "fleet_mtbf").elasticity("device_mtbf") == pytest.approx(1)


def test_the_tornado_shows_the_strongest(step):
    table = sensitivity(step, "step_latency_total")
    figure, ax = table.plot(most=5)
    bars = [patch.get_width() for patch in ax.patches]
    assert bars == list(table["elasticity"][:5])
    assert ax.get_title() == "step_latency_total"
    plt.close(figure)
    with pytest.raises(ConfigError):
        plot_sensitivity(step)
    with pytest.raises(ConfigError):
        table.plot(most=0)
