"""Predicted against measured forward passes: errors on rows that no constant was fitted to."""

from pathlib import Path

import pytest

from mlsysim import SingleNodeSolver
from mlsysim.registry.calibration.serving import ServingCalibrations
from mlsysim.validation import Statistics
from research.readers import passes
from research.rows import Row, Skip, read_rows

DATA = Path(__file__).parents[2] / "research/measurements/passes.csv"
ROWS = {row.name: row for row in read_rows(DATA)}
# Groups, rows to check, and the mean absolute error that they may have, in percent.
BOUNDS = {
    "tensorrt_bert_a100": (13, 9),
    "trtllm_first_token_hopper": (4, 5),
    "trtllm_first_token_ampere": (2, 20),
    "tensorrt_bert_t4": (40, 36),
}


@pytest.fixture(scope="module")
def check(report_on):
    return report_on("passes", "check")


@pytest.mark.parametrize("group", BOUNDS)
def test_error_of_a_group(check, group):
    rows, bound = BOUNDS[group]
    found = Statistics.of([row for row in check.comparisons if row.group == group])
    assert found.n == rows
    assert found.mape <= bound


def test_operators_come_closer_than_the_textbook(check):
    for group in BOUNDS:
        own = [row for row in check.comparisons if row.group == group]
        textbook = [
            SingleNodeSolver.solve(**passes.arguments(ROWS[row.id]), efficiency=0.5)
            .latency.to("s")
            .magnitude
            / row.measured
            - 1
            for row in own
        ]
        assert Statistics.of(own).mape < 100 * sum(map(abs, textbook)) / len(own)


def test_the_band_holds_about_four_of_five_passes(check):
    passes = [row for row in check.comparisons if row.group in BOUNDS]
    held = [row.low <= row.measured <= row.high for row in passes if row.low]
    assert len(held) == 15
    assert 0.65 <= sum(held) / len(held) <= 0.95


def test_a_third_of_every_fitted_group_is_kept_for_checking():
    for group in BOUNDS:
        splits = [row.text("split") for row in ROWS.values() if row.group == group]
        kept = splits.count("check") / len(splits)
        assert kept == 1 if group.endswith("t4") else 0.3 <= kept <= 0.34


def test_the_registry_holds_what_the_fit_prints():
    pytest.importorskip("scipy")
    from research.fits.passes import FITS, band, fit_constants, load, printed

    for name in FITS:
        runs = load(name, "calibrate")
        held = ServingCalibrations[name]
        for constant, value in fit_constants(name, runs).items():
            found = getattr(held, constant)
            found = getattr(found, "magnitude", found)
            assert printed(constant, value) == pytest.approx(found, rel=0.02), (name, constant)
        edges = band(name, runs).around(1)
        assert edges == pytest.approx(held.pass_band.around(1), abs=2e-3)


def test_rows_that_cannot_be_predicted_say_why():
    with pytest.raises(Skip, match="not in the registry"):
        passes.arguments(Row({"hardware": "Cray-1"}))
    with pytest.raises(Skip, match="value is missing"):
        passes.measured(Row({}))
