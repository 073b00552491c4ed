"""Predicted against measured training steps: errors on runs that no constant was fitted to.

The bounds are those that the page "Accuracy" states, for rows marked ``check``.
"""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pytest

from mlsysim import Hardware
from mlsysim.core.errors import ConfigError
from mlsysim.fitting.runs import float_of
from mlsysim.registry.calibration.training import (
    Calibrations,
    Frameworks,
    Machines,
    calibration_for,
)
from mlsysim.validation import Comparison, Report, Statistics
from research.families import FAMILIES
from research.rows import read_rows
from research.validate import validate

ROOT = Path(__file__).resolve().parents[2]
DATA = ROOT / "research/measurements/training.csv"
LEFT_OUT = ROOT / "research/measurements/families.csv"
SELENE = ("megatron21_table1", "megatron21_table2_ptdp", "korthikanti_table5")
BOUNDS = {
    SELENE: 4,
    ("vtrain_multi",): 7,
    ("vtrain_single",): 8,
    ("mosaic_a100",): 5,
    ("mosaic_h100", "mosaic_h100_fp8"): 5,
    ("mcore_h100_weak",): 6,
    ("megatron_bridge_dense",): 9,
    ("megatron_bridge_moe",): 12,
    ("nemo_2407",): 5,
    ("nemo_long",): 12,
    ("mlperf50_405b",): 5,
    ("mlperf51_8b",): 9,
    ("mlperf41_lora70b", "mlperf50_lora70b", "mlperf51_lora70b"): 8,
    ("torchtitan_a100", "torchtitan_h100", "torchtitan_h200"): 12,
    ("fms_fsdp",): 13,
    ("tpu_ironwood", "tpu_trillium"): 6,
}


@pytest.fixture(scope="module")
def check(report_on) -> Report:
    return report_on("training", "check")


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
    assert len(known.skipped) <= 0.04 * (len(known.comparisons) + len(known.skipped))
    assert all(len(reason) > 10 for _, reason in check.skipped)


def test_the_band_holds_about_four_of_five_runs(known):
    for name, found in known.groups.items():
        if found.n >= 10 and found.band_coverage is not None:
            assert found.band_coverage >= 65, name
    assert 70 <= known.pooled.band_coverage <= 90


@pytest.fixture(scope="module")
def fit():
    """The fit of all machines and frameworks, and what the registry holds of it."""
    pytest.importorskip("scipy")
    from research.fits import training as fits

    posterior = fits.Posterior(fits.load("calibrate"))
    catalogs = (Machines, Frameworks)
    held = [
        float_of(getattr(next(c for c in catalogs if owner in c.names())[owner], field))
        for owner, field in posterior.names
    ]
    return posterior, np.array(held)


def test_the_registry_holds_what_the_fit_prints(fit):
    """From the registry's constants, another step of the fit gains next to nothing."""
    posterior, held = fit
    # What a framework lacks is not fitted, nor are devices of which the registry has no machine.
    own = np.array([owner != "Uncalibrated" for owner, _ in posterior.names]) & (held > 0)
    x = (np.log(np.where(own, held, 1)) - posterior.start) / posterior.width
    x = np.where(own, np.clip(x, *posterior.edges), 0.0)
    left, slopes = posterior.residuals(x), posterior.slopes(x)
    free = own & (x > posterior.edges[0] + 1e-3) & (x < posterior.edges[1] - 1e-3)
    step = np.linalg.lstsq(slopes[:, free], -left, rcond=None)[0]
    gained = left @ left - np.sum((left + slopes[:, free] @ step) ** 2)
    assert gained < 0.01 * (left @ left)


def test_a_step_of_all_owners_tells_the_slopes_of_each(fit):
    posterior, _ = fit
    x = np.zeros(len(posterior.names))
    slopes, here = posterior.slopes(x), posterior.residuals(x)
    for key in (("H100", "gemm_efficiency_fp8"), ("Megatron_Core", "layer_launch")):
        place, moved = posterior.names.index(key), x.copy()
        moved[place] += 1e-4
        own = (posterior.residuals(moved) - here) / 1e-4
        assert own == pytest.approx(slopes[:, place], abs=1e-6)
        assert np.abs(own[: -len(x)]).max() > 0


def test_what_a_recipe_switches_off_stays_off_in_a_fit(fit):
    runs = fit[0].runs
    off = np.zeros(runs.inputs.size, bool)
    for places, form in runs.inputs.parts:
        off[places] = form.calibration.software.expert_launch == 0
    own = runs.framework == "Megatron_Core"
    assert 0 < (off & own).sum() < own.sum()
    key = ("Megatron_Core", "expert_launch")
    slow, quick = runs.predict({key: 20.0}), runs.predict({key: 0.1})
    assert (slow[off] == quick[off]).all()
    assert (slow[~own] == quick[~own]).all()
    assert (slow[own & ~off] > quick[own & ~off]).sum() >= 10


def test_a_band_of_few_runs_lies_further_out():
    pytest.importorskip("scipy")
    from research.fits.training import edges_of

    # The edges among n are at (n + 1) / 10: the first and the last of nine.
    assert edges_of(np.arange(1.0, 10.0)) == pytest.approx((1, 9))
    assert edges_of(np.arange(1.0, 100.0)) == pytest.approx((10, 90))
    assert edges_of(np.arange(1.0, 5.0)) == (1, 4)


def families() -> dict[str, np.ndarray]:
    """Measured, predicted and constant-MFU times of each family, and whether they are kept."""
    found: dict[str, list[list[float]]] = {}
    for row in csv.DictReader(LEFT_OUT.read_text(encoding="utf-8").splitlines()):
        times = [float(row[name]) for name in ("measured_s", "predicted_s", "constant_mfu_s")]
        found.setdefault(row["family"], []).append([*times, row["split"] == "check"])
    return {name: np.array(rows) for name, rows in found.items()}


def test_the_band_of_unseen_systems_is_what_families_left_out_tell():
    pytest.importorskip("scipy")
    from research.fits.training import band

    found = families()
    assert len(found) >= 20
    assert set(found) <= set(FAMILIES)
    edges = band([m[kept == 0] / p[kept == 0] for m, p, _, kept in (r.T for r in found.values())])
    row = Calibrations.Uncalibrated.but()
    usual = calibration_for(Hardware.H100)
    assert usual.basis == row.basis == "unseen"
    assert usual.unseen_band.around(1) == pytest.approx(edges, abs=0.01)


def test_the_band_of_devices_without_runs_comes_from_leaving_machines_out(fit):
    from research.fits.training import band, machine_ratios

    ratios = machine_ratios(fit[0].runs)
    assert len({machine for machine, _ in ratios}) >= 10
    row = Calibrations.Uncalibrated
    assert row.unseen_band.low == pytest.approx(band([*ratios.values()])[0], abs=2e-3)
    amd = np.median(ratios["MI300X", "torchtitan MI300X"])
    assert row.unseen_band.high == pytest.approx(amd, abs=2e-3)


def test_a_device_without_runs_is_no_faster_than_measured_ones():
    measured = [row for row in Machines if "gemm_efficiency" not in row.estimated]
    assert len(measured) >= 6
    unknown = Machines.Uncalibrated
    assert unknown.gemm_efficiency <= min(row.gemm_efficiency for row in measured)
    assert Machines.H200.gemm_efficiency <= Machines.H100.gemm_efficiency
    assert Machines.B200_Limited.gemm_efficiency <= Machines.B200.gemm_efficiency


def test_runs_left_out_lie_within_the_band_and_nearer_than_by_a_constant_share():
    """Rows kept from every fit, of families that were left out: four of five lie in the band."""
    usual = calibration_for(Hardware.H100)
    low, high = usual.unseen_band.around(1)
    inside, better = [], []
    for measured, predicted, constant, kept in (rows.T for rows in families().values()):
        own = kept == 1
        if own.any():
            ratio = measured[own] / predicted[own]
            inside.append(np.mean((low <= ratio) & (ratio <= high)))
            errors = [np.mean(abs(time / measured - 1)) for time in (predicted, constant)]
            better.append(errors[0] < errors[1])
    assert 0.7 <= np.mean(inside) <= 0.95
    assert np.mean(better) >= 0.85


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
