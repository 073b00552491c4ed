"""Predicted against published and measured memory; no constant is fitted to any of it."""

from pathlib import Path

import pytest

from mlsysim.validation import Statistics
from research.readers.memory import predict
from research.rows import Row, Skip, read_rows

DATA = Path(__file__).parents[2] / "research/measurements/memory.csv"
ROWS = {row.name: row for row in read_rows(DATA)}


@pytest.fixture(scope="module")
def report(report_on):
    return report_on("memory")


def rows(report, group):
    return [row for row in report.comparisons if row.group == group]


def test_every_row_is_predicted(report):
    assert not report.skipped
    assert len(report.comparisons) == len(ROWS)


def test_figure_1_of_korthikanti_is_an_identity(report):
    found = rows(report, "korthikanti_fig1")
    assert len(found) == 16
    for row in found:
        assert row.predicted == pytest.approx(row.measured, rel=1e-12), row.id


def test_figure_7_of_korthikanti_to_what_a_plot_shows(report):
    found = rows(report, "korthikanti_fig7")
    assert len(found) == 20
    for row in found:
        assert row.predicted == pytest.approx(row.measured, abs=0.15), row.id


def test_zero_to_the_printed_decimal(report):
    found = rows(report, "zero_paper")
    assert len(found) == 4
    for row in found:
        assert row.predicted == pytest.approx(row.measured, abs=0.05), row.id


@pytest.mark.parametrize("split", ["calibrate", "check"])
def test_peak_memory_of_measured_runs(report, split):
    """Megatron-LM on eight B200: dense and mixed models, all kinds of parallelism."""
    found = [row for row in rows(report, "simumax_b200") if row.split == split]
    statistics = Statistics.of(found)
    assert statistics.n >= 11
    assert statistics.mape < 0.6
    assert all(abs(row.error) < 0.015 for row in found)


def test_steps_of_the_same_runs_that_no_constant_was_fitted_on(report):
    found = [r for r in rows(report, "simumax_b200_steptime") if r.split == "check"]
    statistics = Statistics.of(found)
    assert statistics.n >= 11
    assert statistics.mape < 9
    # The band is meant to hold four of five.
    assert statistics.band_coverage >= 70


def test_a_row_that_is_no_memory_is_passed_over():
    with pytest.raises(Skip, match="bananas"):
        predict(Row({"id": "x", "quantity": "bananas"}))


def test_a_model_that_is_not_known_is_passed_over():
    name, row = next((n, r) for n, r in ROWS.items() if r.group == "simumax_b200")
    with pytest.raises(Skip, match="bert"):
        predict(Row({**row.cells, "id": name, "model": "bert"}))
