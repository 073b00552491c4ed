"""Constants drawn toward the runs of one cluster: what one run, three and bad ones do."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import mlsysim
from mlsysim import Calibrations, ConfigError, DistributedSolver, Models
from mlsysim.core.units import Q_
from mlsysim.fitting.calibrate import MAX_ROWS
from mlsysim.fitting.constants import SPREAD, constants_of
from mlsysim.fitting.posterior import fit, log_times, slopes
from mlsysim.fitting.runs import runs_of
from mlsysim.scenario.cluster import assemble
from mlsysim.validation.columns import Columns
from mlsysim.validation.rows import Row

BASE = Calibrations.H100_FSDP2


TIME = "step_latency_total (s)"


def plan(
    name: str, *, nodes: int = 1, batch_size: int = 16, tp_size: int = 1, **cells: object
) -> dict[str, object]:
    """A row without a time, with one sequence per microbatch."""
    replicas = 8 * nodes // (tp_size * int(str(cells.get("pp_size", 1))))
    return {
        "id": name,
        "model": "Llama3_8B",
        "fleet": fleet(nodes),
        "batch_size": batch_size,
        "microbatch_count": batch_size // replicas,
        "tp_size": tp_size,
        "seq_len": 8192,
        "precision": "bf16",
        "zero_stage": 3,
        **cells,
    }


def fleet(nodes: int) -> str:
    return f"{nodes}xDGX_H100@InfiniBand_NDR"


PLANS = (
    plan("short", seq_len=2048, batch_size=64),
    plan("long", seq_len=32768, batch_size=8),
    plan("wide", nodes=8, batch_size=64, seq_len=2048),
    plan("tensor", nodes=2, batch_size=16, tp_size=8, zero_stage=1),
)
OTHERS = (
    plan("between", seq_len=16384, batch_size=16),
    plan("large", nodes=16, batch_size=128),
    plan("narrow", precision="fp8"),
    plan("piped", nodes=4, pp_size=4, zero_stage=1, batch_size=64),
)


def arguments(row: dict[str, object]) -> dict[str, object]:
    """Arguments of the solver in a row."""
    one = Row.of(row | {TIME: 1})
    return Columns.of([one]).arguments_in(one)


def predicted(row: dict[str, object], calibration: mlsysim.Calibration = BASE) -> float:
    """Predicted step time in seconds."""
    result = DistributedSolver.solve(**arguments(row) | {"calibration": calibration})
    return float(result.step_latency_total.to("s").magnitude)


def timed(
    rows: tuple[dict[str, object], ...],
    calibration: mlsysim.Calibration = BASE,
    factor: float = 1.0,
) -> list[dict[str, object]]:
    """Rows as a cluster with these constants would have measured them, times a factor."""
    return [row | {TIME: factor * predicted(row, calibration)} for row in rows]


MOVED = {
    "gemm_efficiency": 0.88,
    "attention_efficiency": 1.3,
    "nic_efficiency": 0.85,
    "hidden_bytes": 1.4,
}


def moved() -> mlsysim.Calibration:
    """The base with constants of another cluster."""
    machine = replace(
        BASE.machine,
        gemm_efficiency=BASE.machine.gemm_efficiency * MOVED["gemm_efficiency"],
        gemm_efficiency_fp8=BASE.machine.gemm_efficiency_fp8 * MOVED["gemm_efficiency"],
        attention_efficiency=BASE.machine.attention_efficiency * MOVED["attention_efficiency"],
        nic_efficiency=BASE.machine.nic_efficiency * MOVED["nic_efficiency"],
    )
    software = replace(
        BASE.software, hidden_bytes=BASE.software.hidden_bytes * MOVED["hidden_bytes"]
    )
    return replace(BASE, machine=machine, software=software)


@settings(max_examples=15)
@given(st.sampled_from(PLANS), st.floats(0.8, 2.5))
def test_one_run_helps_and_ruins_nothing(row, factor):
    ours = mlsysim.calibrate(timed((row,), factor=factor), base=BASE)
    (used,) = ours.rows
    before, after = (abs(math.log(each / used.measured)) for each in (used.before, used.after))
    assert after <= before * 1.001 + 1e-4  # the artifact keeps four digits
    if before > 0.02:
        assert after < 0.9 * before
    # The loss can pay for no more than this: x'x / 2 <= loss of the base.
    paid = sum((math.log(each.factor) / each.prior) ** 2 for each in ours.factors)
    most = 2 * (math.sqrt(1 + (before / SPREAD) ** 2) - 1)
    assert paid <= most * 1.01 + 1e-3
    runs, _ = runs_of([Row.of(each) for each in timed(OTHERS)], BASE)
    constants = constants_of(BASE, [run.admitted for run in runs])
    _, slope = slopes(runs, constants, np.zeros(len(constants)))
    for other, sensitivity in zip(OTHERS, np.linalg.norm(slope, axis=1), strict=True):
        change = abs(math.log(predicted(other, ours) / predicted(other)))
        assert change <= 1.3 * sensitivity * math.sqrt(paid) + 1e-3


def test_runs_that_agree_with_the_base_change_nothing():
    ours = mlsysim.calibrate(timed(PLANS), base=BASE)
    assert all(each.factor == pytest.approx(1, abs=1e-3) for each in ours.factors)
    for other in OTHERS:
        assert predicted(other, ours) == pytest.approx(predicted(other), rel=1e-3)


@pytest.mark.parametrize("left_out", range(len(PLANS)))
def test_moved_constants_are_recovered_within_their_uncertainty(left_out):
    three = tuple(row for place, row in enumerate(PLANS) if place != left_out)
    ours = mlsysim.calibrate(timed(three, moved()), base=BASE)
    for each in ours.factors:
        error = math.log(each.factor) - math.log(MOVED.get(each.name, 1.0))
        assert abs(error) <= 2 * each.uncertainty, each.name
    assert ours.errors()[1] < 0.35 * ours.errors()[0]
    for other in OTHERS:
        ratio = predicted(other, moved()) / predicted(other, ours)
        assert ours.band.low <= ratio <= ours.band.high


def test_more_runs_narrow_the_band_and_identify_more():
    one, four = (mlsysim.calibrate(timed(rows, moved()), base=BASE) for rows in (PLANS[:1], PLANS))
    assert four.band.high < one.band.high
    assert four.band.low > one.band.low
    uncertainty = {each.name: each.uncertainty for each in one.factors}
    assert all(each.uncertainty <= uncertainty[each.name] + 1e-4 for each in four.factors)
    assert set(four.unidentified) < set(one.unidentified)
    assert "gemm_efficiency" not in four.unidentified
    # One node has no network, and a group of one no collectives.
    assert {"nic_efficiency", "tensor_overlap"} <= set(one.unidentified)


def test_a_run_measured_ten_times_is_one_plan():
    (run,) = timed(PLANS[:1], factor=1.3)
    once, often = mlsysim.calibrate([run], base=BASE), mlsysim.calibrate([run] * 10, base=BASE)
    for one, ten in zip(once.factors, often.factors, strict=True):
        assert ten.factor == pytest.approx(one.factor, rel=1e-3)
        assert ten.uncertainty == pytest.approx(one.uncertainty, rel=1e-3)


def test_factors_stay_possible():
    """A cluster twice as fast as the base's is not one whose products beat the peak rate."""
    ours = mlsysim.calibrate(timed(PLANS, factor=0.75), base=BASE)
    for share in ("gemm_efficiency", "attention_efficiency", "link_efficiency", "nic_efficiency"):
        assert 0 < getattr(ours.machine, share) < 1
    for share in ("gather_overlap", "gradient_overlap", "plain_overlap", "tensor_overlap"):
        assert 0 <= getattr(ours.software, share) <= 1


def test_the_posterior_is_that_of_a_linear_model_solved_by_hand():
    """Near the base the loss is quadratic: Bayes' rule for a linear model gives the factors."""
    row = timed(PLANS[:1], factor=1.01)
    runs, _ = runs_of([Row.of(each) for each in row], BASE)
    constants = constants_of(BASE, [run.admitted for run in runs])
    _, slope = slopes(runs, constants, np.zeros(len(constants)))
    found = fit(runs, constants, BASE)
    pull = slope[0] / (slope[0] @ slope[0] + SPREAD**2)
    assert found.x == pytest.approx(math.log(1.01) * pull, rel=0.05, abs=1e-3)
    covariance = np.eye(len(constants)) - np.outer(slope[0], pull)
    assert found.covariance == pytest.approx(covariance, abs=0.02)


def test_bad_rows_are_named_and_the_rest_is_used():
    good = timed(PLANS)
    bad = [
        good[0] | {"id": "typo", TIME: 0.01},
        good[0] | {"id": "empty", TIME: ""},
        good[0] | {"id": "unknown", "fleet": "H999"},
        good[0] | {"id": "odd", "tp_size": 3},
        good[1] | {"id": "straggler", TIME: 2.5 * good[1][TIME]},
    ]
    ours = mlsysim.calibrate([*bad, *good], base=BASE)
    assert [row.id for row in ours.rows] == [row["id"] for row in good]
    assert sorted(row.id for row in ours.refused) == sorted(str(row["id"]) for row in bad)
    reasons = {row.id: row.reason for row in ours.refused}
    assert "peak rate" in reasons["typo"]
    assert "2.5" in reasons["straggler"]
    assert all(each.factor == pytest.approx(1, abs=1e-2) for each in ours.factors)


def test_a_fast_run_is_not_an_outlier():
    good = timed(PLANS)
    fast = good[1] | {TIME: 0.7 * good[1][TIME]}
    ours = mlsysim.calibrate([good[0], fast, good[2], good[3]], base=BASE)
    assert not ours.refused
    assert len(ours.rows) == 4


def test_runs_that_all_are_slow_are_the_machine():
    ours = mlsysim.calibrate(timed(PLANS, factor=1.5), base=BASE)
    assert not ours.refused


def test_factors_far_from_all_published_constants_are_named():
    usual = mlsysim.calibrate(timed(PLANS), base=BASE)
    assert usual.surprising == ()
    slow = mlsysim.calibrate(timed(PLANS, factor=2), base=BASE)
    assert slow.surprising
    for each in slow.factors:
        assert each.deviations == pytest.approx(math.log(each.factor) / each.prior)
        assert each.surprising == (abs(each.deviations) > 2)
        line = next(line for line in str(slow).splitlines() if "published constants" in line)
        assert (each.name in line) == each.surprising
    assert "published constants" not in str(usual)
    assert list(slow.table()["deviations"]) == [round(each.deviations, 2) for each in slow.factors]
    assert len(slow.table().columns) == len(set(slow.table().columns))


SHORT, LONG = PLANS[:2]


@pytest.mark.parametrize("swapped", [False, True])
def test_two_runs_of_one_plan_that_contradict_each_other_are_both_named(swapped):
    (good,) = timed((SHORT,))
    bad = good | {"id": "bad", TIME: 2.5 * good[TIME]}
    ours = mlsysim.calibrate([bad, good] if swapped else [good, bad], base=BASE)
    assert len(ours.rows) == 2
    assert ours.refused == ()
    (conflict,) = ours.conflicts
    assert (conflict.fast, conflict.slow) == ("short", "bad")
    assert conflict.ratio == pytest.approx(2.5, rel=1e-3)
    assert "short" in str(conflict)
    assert str(conflict) in str(ours)
    assert config_round_trip(ours) == ours


def config_round_trip(ours):
    return assemble(ours.to_dict())


def test_two_runs_of_different_plans_contradict_each_other_where_no_machine_explains_both():
    good, other = timed((SHORT, PLANS[2]))
    bad = other | {TIME: 2.5 * other[TIME]}
    assert mlsysim.calibrate([good, other], base=BASE).conflicts == ()
    (conflict,) = mlsysim.calibrate([good, bad], base=BASE).conflicts
    assert (conflict.fast, conflict.slow) == ("short", "wide")
    assert conflict.ratio == pytest.approx(2.5, rel=1e-3)


def test_runs_that_are_slow_alike_do_not_contradict_each_other():
    assert mlsysim.calibrate(timed((SHORT, LONG), factor=2), base=BASE).conflicts == ()


def test_no_run_is_refused_because_of_two_that_contradict_each_other():
    good, bad = timed((SHORT, LONG))
    bad = bad | {TIME: 2.5 * bad[TIME]}
    also = good | {"id": "also", TIME: 2.5 * good[TIME]}
    ours = mlsysim.calibrate([good, bad, also], base=BASE)
    assert [row.id for row in ours.rows] == ["short", "long", "also"]
    assert {(each.fast, each.slow) for each in ours.conflicts} >= {("short", "also")}


def test_of_three_runs_the_one_that_two_agree_against_is_refused():
    good, other = timed((SHORT, LONG))
    bad = good | {"id": "bad", TIME: 2.5 * good[TIME]}
    ours = mlsysim.calibrate([good, other, bad], base=BASE)
    assert [row.id for row in ours.refused] == ["bad"]
    assert ours.conflicts == ()


@pytest.mark.parametrize(
    ("rows", "argument"),
    [
        ([], "source"),
        ([PLANS[0]], "source"),
        ([*timed(PLANS), plan("other") | {"fleet": "DGX_A100", TIME: 9.0}], "source"),
        (timed(PLANS[:1]) * (MAX_ROWS + 1), "source"),
    ],
    ids=["none", "no time", "two devices", "too many"],
)
def test_what_cannot_be_calibrated_is_an_error(rows, argument):
    with pytest.raises(ConfigError) as caught:
        mlsysim.calibrate(rows)
    assert caught.value.argument == argument


def test_frameworks_are_not_mixed_unless_a_base_is_named():
    rows = timed(PLANS[:2])
    mixed = [rows[0] | {"calibration": "H100_FSDP"}, rows[1] | {"calibration": "H100_FSDP2"}]
    with pytest.raises(ConfigError) as caught:
        mlsysim.calibrate(mixed)
    assert caught.value.argument == "source"
    assert len(mlsysim.calibrate(mixed, base="H100_FSDP").rows) == 2


@pytest.mark.parametrize("base", ["H100_Nothing", 3])
def test_an_unknown_base_is_an_error(base):
    with pytest.raises(ConfigError):
        mlsysim.calibrate(timed(PLANS[:1]), base=base)


def test_the_base_is_what_the_rows_choose():
    rows = timed(PLANS[:1])
    own = mlsysim.calibrate(rows)
    assert own.base_machine == "H100"
    assert own.base_software == Calibrations.H100_Megatron.software.name
    labeled = mlsysim.calibrate([rows[0] | {"calibration": "H100_FSDP"}])
    assert labeled.base_software == Calibrations.H100_FSDP.software.name


def test_constants_that_do_not_apply_are_left_out():
    names = {each.name for each in mlsysim.calibrate(timed(PLANS[:1]), base=BASE).factors}
    assert not names & {"expert_launch", "expert_efficiency", "routing_bytes", "exchange_overlap"}
    assert not names & {"cast_bytes", "score_bytes"}
    narrow = mlsysim.calibrate(timed(OTHERS[2:3]), base=BASE)
    assert "cast_bytes" in {each.name for each in narrow.factors}
    off = replace(BASE, software=replace(BASE.software, layer_launch=Q_(0, "ms")))
    ours = mlsysim.calibrate(timed(PLANS[:1], off), base=off)
    assert "layer_launch" not in {each.name for each in ours.factors}


def test_numbers_and_names_of_a_row_may_be_text_or_empty():
    """Cells of a file are text, and an empty cell is the default: here the model's length."""
    stated = PLANS[0] | {"seq_len": Models.Llama3_8B.seq_len}
    (run,) = timed((stated,), factor=1.1)
    written = {name: str(cell) for name, cell in run.items()} | {"seq_len": ""}
    given, read = (mlsysim.calibrate([row], base=BASE, name="ours") for row in (run, written))
    assert given.to_dict() == read.to_dict()


def test_the_next_run_narrows_the_band_as_promised():
    rows = timed(PLANS[:1], moved())
    first = mlsysim.calibrate(rows, base=BASE)
    following = first.next_run
    assert following.like == "short"
    assert following.band.high < first.band.high
    changes = dict(following.changes)
    nodes = changes.pop("nodes", None)
    row = PLANS[0] | changes | ({"fleet": fleet(nodes)} if nodes else {})
    (run,) = timed((row,), moved())
    result = DistributedSolver.solve(**arguments(run) | {"calibration": BASE})
    assert result.feasible
    second = mlsysim.calibrate([*rows, run | {"id": "next"}], base=BASE)
    assert second.band.high < first.band.high


SERVED = {"model": "Llama3_8B", "hardware": "H100", "tp_size": 1, "ttft (ms)": 9}


def test_validate_takes_the_calibration():
    rows = timed(PLANS, moved())
    ours = mlsysim.calibrate(rows, base=BASE)
    report = mlsysim.validate(rows, calibration=ours)
    assert report.pooled.mape == pytest.approx(ours.errors()[1], abs=0.05)
    assert report.pooled.band_coverage == 100
    for row, comparison in zip(PLANS, report.comparisons, strict=True):
        assert comparison.predicted == predicted(row, ours)
    with pytest.raises(ConfigError) as caught:
        mlsysim.validate([SERVED], calibration=ours)
    assert caught.value.argument == "calibration"
    for wrong in ("ours", 3):
        with pytest.raises(ConfigError) as caught:
            mlsysim.validate(rows, calibration=wrong)
        assert caught.value.argument == "calibration"


def test_a_name_or_a_file_is_a_calibration_where_rows_are_read(tmp_path):
    rows = timed(PLANS)
    named = mlsysim.validate(rows, calibration="H100_FSDP2")
    assert named.pooled.mape == mlsysim.validate(rows, calibration=BASE).pooled.mape
    ours = mlsysim.calibrate(timed(PLANS, moved()), base=BASE)
    file = tmp_path / "ours.yaml"
    ours.save(file)
    own = mlsysim.validate(rows, calibration=ours).pooled.mape
    for path in (file, str(file)):
        assert mlsysim.validate(rows, calibration=path).pooled.mape == own
        assert mlsysim.calibrate(rows, base=path).base_machine == ours.machine.name


@pytest.mark.parametrize("call", ["solve", "sweep", "advise"])
def test_solvers_take_objects_and_say_how_to_read_a_file(call):
    given = arguments(PLANS[0]) | {"calibration": "ours.yaml"}
    few = {n: given[n] for n in ("model", "fleet", "batch_size", "calibration")}
    ask = {
        "solve": DistributedSolver.solve,
        "sweep": partial(mlsysim.sweep, DistributedSolver),
        "advise": mlsysim.advise,
    }[call]
    with pytest.raises(ConfigError, match="load_calibration") as caught:
        ask(**few)
    assert caught.value.argument == "calibration"


def test_predictions_do_not_depend_on_the_order_of_the_runs():
    forth, back = (
        mlsysim.calibrate(rows, base=BASE) for rows in (timed(PLANS), timed(PLANS)[::-1])
    )
    assert forth.machine.gemm_efficiency == pytest.approx(back.machine.gemm_efficiency, rel=1e-5)
    assert forth.band.high == pytest.approx(back.band.high, rel=1e-3)


def test_times_of_many_factors_are_those_of_each():
    runs, _ = runs_of([Row.of(row) for row in timed(PLANS)], BASE)
    constants = constants_of(BASE, [run.admitted for run in runs])
    logs = np.random.default_rng(1).normal(0, 0.1, (5, len(constants)))
    together = log_times(runs, constants, logs)
    apart = np.hstack([log_times(runs, constants, row[None]) for row in logs])
    assert together == pytest.approx(apart, rel=1e-12)
