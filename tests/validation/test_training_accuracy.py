"""Predicted against measured training steps: errors on runs that no constant was fitted on.

The bounds are those that the page "Accuracy" states, for rows marked ``check``.
"""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from mlsysim.core.errors import ConfigError
from mlsysim.validation import Comparison, Report, Statistics, validate
from mlsysim.validation.rows import read_rows

ROOT = Path(__file__).resolve().parents[2]
DATA = ROOT / "measurements/training.csv"
SELENE = ("megatron21_table1", "megatron21_table2_ptdp", "korthikanti_table5")
BOUNDS = {
    SELENE: 5,
    ("vtrain_multi",): 8,
    ("vtrain_single",): 8,
    ("mosaic_a100",): 5,
    ("mosaic_h100", "mosaic_h100_fp8"): 6,
    ("mcore_h100_weak",): 8,
    ("megatron_bridge_dense",): 8,
    ("megatron_bridge_moe",): 12,
}


@pytest.fixture(scope="module")
def check() -> Report:
    return validate(DATA, split="check")


@pytest.fixture(scope="module")
def known(check) -> Report:
    """What is predicted of the families that constants were fitted to."""
    groups = {name for names in BOUNDS for name in names}
    rows = {row.name: row for row in read_rows(DATA)}
    return Report(
        [found for found in check.comparisons if found.group in groups],
        [(name, reason) for name, reason in check.skipped if rows[name].group in groups],
    )


@pytest.mark.parametrize("groups", BOUNDS, ids=lambda groups: groups[0])
def test_error_of_a_family(check, groups):
    rows = [row for row in check.comparisons if row.group in groups]
    assert len(rows) >= 2
    assert Statistics.of(rows).mape <= BOUNDS[groups]


def test_few_rows_are_skipped_and_each_says_why(check, known):
    assert len(known.skipped) <= 0.03 * (len(known.comparisons) + len(known.skipped))
    assert all(len(reason) > 10 for _, reason in check.skipped)


def test_the_band_holds_about_four_of_five_runs(known):
    for name, found in known.groups.items():
        if found.n >= 10 and found.band_coverage is not None:  # 30 of 33 experts
            assert 70 <= found.band_coverage <= 91, name
    assert 70 <= known.pooled.band_coverage <= 90


def test_no_check_row_is_fitted():
    source = (ROOT / "tools/calibrate.py").read_text(encoding="utf-8")
    fitted = [line for line in source.splitlines() if "solve(" in line and "check" in line]
    assert not fitted
    splits = {row.split for row in validate(DATA).comparisons}
    assert splits == {"calibrate", "check"}


def test_the_registry_holds_what_the_fit_prints():
    """The constants of calibrations, fitted again, are those in the registry."""
    pytest.importorskip("scipy")
    from mlsysim.registry.calibration.training import Calibrations
    from tools.calibrate import load, solve
    from tools.calibration_fits import FITS

    # All but the largest. Constants that a fit takes as given are held as well.
    for name in FITS.keys() - {"A100_Megatron"}:
        fit = FITS[name]
        for constant, value in solve(fit, load(fit, "calibrate")).items():
            # What recipes switch on, the calibration of those that do has.
            row = "Blackwell_Graphs" if constant == "exchange_overlap" else name
            held = getattr(Calibrations[row], constant)
            held = getattr(held, "magnitude", held)
            assert value == pytest.approx(held, rel=0.02), (name, constant)


def test_constants_without_a_family_are_those_that_the_page_reads():
    pytest.importorskip("scipy")
    from tools.calibrate import TRANSFER, without

    with TRANSFER.open(encoding="utf-8", newline="") as file:
        lines = [line for line in csv.DictReader(file) if line["left_out"] == "Selene A100"]
    found = without("Selene A100")
    assert {line["constant"] for line in lines} == set(found)
    for line in lines:
        assert float(line["value"]) == pytest.approx(found[line["constant"]], rel=0.05)


def test_what_a_recipe_switches_off_stays_off_in_a_fit():
    pytest.importorskip("scipy")
    import numpy as np

    from tools.calibrate import load
    from tools.calibration_fits import FITS

    runs = load(FITS["Blackwell"], "calibrate")
    off = np.zeros(runs.inputs.size, bool)
    for places, form in runs.inputs.parts:
        off[places] = form.calibration.expert_launch == 0
    assert 0 < off.sum() < len(off)
    slow, quick = runs.predict({"expert_launch": 20.0}), runs.predict({"expert_launch": 0.1})
    experts = runs.experts
    assert (slow[off] == quick[off]).all()
    assert (slow[experts & ~off] > quick[experts & ~off]).all()


def test_a_band_of_few_runs_lies_further_out():
    pytest.importorskip("scipy")
    import numpy as np

    from tools.calibrate import edges_of

    # The edges among n are at (n + 1) / 10: the first and the last of nine.
    assert edges_of(np.arange(1.0, 10.0), 9) == pytest.approx((1, 9))
    assert edges_of(np.arange(1.0, 100.0), 99) == pytest.approx((10, 90))
    assert edges_of(np.arange(1.0, 5.0), 4) == (1, 4)
    # Nine plans of eleven runs each tell what nine runs do, not what ninety-nine do.
    low, high = edges_of(np.repeat(np.arange(1.0, 10.0), 11), 9)
    assert (low, high) == (1, 9)


def test_experts_on_h100_are_predicted_by_constants_of_blackwell(check):
    """No run of a model with experts on H100 takes part in a fit."""
    from tools.calibration_fits import FITS

    assert FITS["H100_FP8"].groups == ("megatron_bridge_dense",)
    rows = {row.name: row for row in read_rows(DATA)}
    found = [
        row
        for row in validate(DATA).comparisons
        if row.group == "megatron_bridge_moe" and rows[row.id].text("hardware") == "DGX-H100"
    ]
    assert len(found) >= 10
    assert Statistics.of(found).median_ape <= 12


def comparison(measured, predicted, low=None, high=None):
    return Comparison("a", "g", "check", "s", measured, predicted, low, high)


def test_statistics_by_hand():
    found = Statistics.of(
        [comparison(10, 11, 9, 12), comparison(10, 8, 7, 9), comparison(10, 10.5)]
    )
    assert (found.n, found.band_coverage) == (3, 50)
    assert found.mape == pytest.approx(35 / 3)
    assert found.median_ape == pytest.approx(10)
    assert found.bias == pytest.approx(-5 / 3)
    assert found.within_10 == pytest.approx(200 / 3)


def test_the_report_as_data():
    report = Report([comparison(10, 11)], [("b", "no step time")])
    data = json.loads(report.to_json())
    assert data["groups"]["g"] == {
        "n": 1,
        "mape": 10.0,
        "median_ape": 10.0,
        "bias": 10.0,
        "within_10": 100.0,
        "band_coverage": None,
    }
    assert data["pooled"]["n"] == 1
    assert data["skipped"] == [{"id": "b", "reason": "no step time"}]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "no measurements"),
        ("a,b\n1,2\n", "kind"),
        ("id,global_batch\nx,1\n", None),
    ],
)
def test_tables_that_are_none(tmp_path, text, words):
    path = tmp_path / "rows.csv"
    path.write_text(text, encoding="utf-8")
    if words is None:
        assert validate(path).skipped
    else:
        with pytest.raises(ConfigError, match=words):
            validate(path)


def test_an_unknown_kind_names_the_nearest():
    with pytest.raises(ConfigError, match="training"):
        validate(DATA, kind="trainning")
