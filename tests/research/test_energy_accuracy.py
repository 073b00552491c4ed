"""Predicted against measured power and energy: errors on rows that no constant was fitted to."""

from pathlib import Path

import pytest

from mlsysim.registry.calibration.power import PowerCalibrations
from research.rows import Row, Skip, read_rows

DATA = Path(__file__).parents[2] / "research/measurements/energy.csv"
ROWS = read_rows(DATA)


@pytest.fixture(scope="module")
def report(report_on):
    return report_on("energy")


@pytest.fixture(scope="module")
def check(report):
    return report.only("check")


@pytest.mark.parametrize(
    ("group", "least", "bound"),
    [
        ("H100 serving: device power", 27, 10),
        ("B200 serving: device power", 44, 11),
        ("H100 serving, vLLM of 2024: device power", 17, 13),
        ("A100 serving: device power", 11, 8),
        ("H100 training: device power", 2, 9),
        ("H100 serving: energy per token", 27, 12),
        ("H100 training: energy per token", 2, 12),
        # Among them runs that wait for their host most of the time, which the solver does not know
        ("B200 serving: energy per token", 44, 18),
    ],
)
def test_error_of_a_family(check, group, least, bound):
    found = check.groups[group]
    assert found.n >= least
    assert found.mape <= bound


def test_every_row_is_predicted(report):
    assert report.skipped == []


def test_design_power_alone_would_be_further_off(check):
    """The bound that model cards use: every device at its design power all the time."""
    design = {"H100": 700, "B200": 1000, "A100-40GB": 400}
    devices = {row.name: row.text("hardware") for row in ROWS}
    powers = [row for row in check.comparisons if row.quantity == "device power (W)"]
    ours = sum(abs(row.error) for row in powers) / len(powers)
    theirs = sum(abs(design[devices[row.id]] / row.measured - 1) for row in powers) / len(powers)
    assert ours < 0.11 < 0.4 < theirs


def test_check_rows_are_of_other_models():
    models = {
        split: {row.text("model") for row in ROWS if row.text("split") == split}
        for split in ("calibrate", "check")
    }
    assert models["calibrate"]
    assert not models["calibrate"] & models["check"]


def test_the_registry_is_what_the_fit_finds():
    pytest.importorskip("scipy")
    from research.fits.power import BANDED, band, fit, of, runs, tiny_band

    found = runs()
    assert set(found) == set(PowerCalibrations.names()) - {"Uncalibrated", "Microcontroller"}
    for name, rows in found.items():
        held = PowerCalibrations[name]
        for constant, value in fit(rows).items():
            assert held.si(constant) == pytest.approx(value, rel=6e-3), name
        for field, quantity in BANDED.items():
            edges, stated = band(rows, quantity), getattr(held, field)
            assert stated.known == edges.known
            if edges.known:
                assert stated.around(1) == pytest.approx(edges.around(1), rel=2e-3)
        count = len(of(rows, "device power"))
        assert held.source.locator.startswith(f"{count} calibrate rows")
    tiny = PowerCalibrations.Microcontroller
    assert tiny.energy_band.around(1) == pytest.approx(tiny_band().around(1), rel=2e-3)


def test_the_band_holds_most_measurements(check):
    """Four of five by construction on the rows of the fit; host-bound runs fall out of it."""
    assert check.groups["H100 serving: energy per token"].band_coverage >= 75
    assert check.groups["B200 serving: energy per token"].band_coverage >= 60
    assert check.groups["H100 training: energy per token"].band_coverage is None


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"hardware": "TPU v9"}, "not in the registry"),
        ({"quantity": "noise"}, "neither device power nor energy"),
        ({"work": "mining"}, "neither training nor serving"),
        ({"tokens_per_s": ""}, "tokens_per_s is missing"),
        ({"value": ""}, "value is missing"),
    ],
)
def test_rows_that_lack_something_are_passed_over(changed, reason):
    from research.readers.energy import compare

    row = next(row for row in ROWS if row.text("quantity") == "device power")
    with pytest.raises(Skip, match=reason):
        compare(Row({**row.cells, **changed}))
