"""Predicted against measured serving: errors on rows that no constant was fitted to.

The bounds hold for rows marked ``check`` in research/measurements/serving.csv.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from mlsysim import ServingSolver
from mlsysim.validation import Report, Statistics
from research.readers import serving
from research.rows import Row, Skip, read_rows

ROOT = Path(__file__).resolve().parents[2]
DATA = ROOT / "research/measurements/serving.csv"
# Mean and median absolute error in percent.
BOUNDS = {
    "measured TPOT": (8, 6),
    "measured TTFT": (24, 18),
    "max output throughput": (9, 7),
    "decode rate": (16, 16),
}


@pytest.fixture(scope="module")
def report(report_on) -> Report:
    return report_on("serving")


@pytest.fixture(scope="module")
def check(report) -> Report:
    return report.only("check")


def test_a_server_with_one_place_fewer_than_clients():
    rows = [row for row in read_rows(DATA) if row.text("engine") == "trtllm 1.0.0rc3"]
    found = {(row.text("model"), row.whole("concurrency")): serving.arguments(row) for row in rows}
    assert {model for model, _ in found} > {"llama3.1-8b"}
    for (model, clients), given in found.items():
        short = model == "llama3.1-8b" and clients > 1
        assert given["max_sequences"] == (clients - 1 if short else None)


@pytest.mark.parametrize("quantity", BOUNDS)
def test_error_of_a_quantity(check, quantity):
    found = Statistics.of([row for row in check.comparisons if row.quantity.startswith(quantity)])
    mean, median = BOUNDS[quantity]
    assert found.n >= 4
    assert found.mape <= mean
    assert found.median_ape <= median


@pytest.mark.parametrize("engine", ["trtllm", "vllm", "sglang"])
def test_no_engine_is_far_off(check, engine):
    names = {row.name for row in read_rows(DATA) if row.text("engine").startswith(engine)}
    rows = [row for row in check.comparisons if row.id in names and "TPOT" in row.quantity]
    found = Statistics.of(rows)
    assert found.mape <= 9
    assert abs(found.bias) <= 5
    assert found.band_coverage >= 65


def test_few_rows_are_skipped_and_each_says_why(report):
    assert len(report.skipped) <= 0.03 * (len(report.comparisons) + len(report.skipped))
    assert all(len(reason) > 10 for _, reason in report.skipped)


def test_the_band_holds_about_four_of_five_runs(check):
    assert 70 <= check.pooled.band_coverage <= 95


def test_the_registry_holds_what_the_fit_prints():
    """The constants of one engine, fitted again, are those in the registry."""
    pytest.importorskip("scipy")
    from mlsysim.registry.calibration.serving import ServingCalibrations
    from research.fits.serving import fit, load, printed

    for name in ("Ampere",):
        for constant, value in fit(load(name, "calibrate")).constants.items():
            held = getattr(ServingCalibrations[name], constant)
            held = getattr(held, "magnitude", held)
            assert printed(constant, value) == pytest.approx(held, rel=0.02), (name, constant)


def row(**cells: str) -> Row:
    usual = {
        "id": "a",
        "model": "llama3.1-8b",
        "layers": "32",
        "hidden": "4096",
        "heads": "32",
        "kv_heads": "8",
        "ffn": "14336",
        "vocab": "128256",
        "isl": "1024",
        "osl": "256",
        "concurrency": "8",
        "tp": "1",
        "weight_precision": "fp8",
        "hardware": "h100_sxm",
        "engine": "trtllm",
        "quantity": "measured TPOT",
        "value": "8",
        "unit": "ms",
    }
    return Row(usual | cells)


@pytest.mark.parametrize(
    ("cells", "formats"),
    [
        ({"weight_precision": "fp8_block"}, ("fp8", "fp8", "fp8")),
        ({"weight_precision": "nvfp4", "hardware": "b200_sxm"}, ("fp4", "fp4", "fp8")),
        ({"weight_precision": "unstated", "note": "meta-llama/X"}, ("bf16", "bf16", "bf16")),
        ({"weight_precision": "unstated", "note": "nvidia/X-FP8"}, ("fp8", "fp8", "fp8")),
        ({"weight_precision": "int4-g32"}, ("fp16", "int4", "fp16")),
    ],
)
def test_formats_of_a_row(cells, formats):
    given = serving.arguments(row(**cells))
    assert tuple(given[f"{part}precision"] for part in ("", "weight_", "kv_")) == formats


@pytest.mark.parametrize(
    ("cells", "reason"),
    [
        ({"hardware": "abacus"}, "not in the registry"),
        ({"quantity": "mood"}, "not one that the solver predicts"),
        ({"value": ""}, "value is missing"),
        ({"concurrency": ""}, "concurrency is missing"),
        ({"hardware": "gb200", "weight_precision": "unstated"}, "neither number format"),
    ],
)
def test_rows_that_cannot_be_predicted_say_why(cells, reason):
    with pytest.raises(Skip, match=reason):
        serving.compare(row(**cells))


def test_what_is_compared_is_what_the_solver_says():
    found = serving.compare(row())
    result = ServingSolver.solve(**serving.arguments(row()))
    assert found.predicted == result.itl.to("s").magnitude
    assert found.measured == 0.008
    assert found.low < found.predicted < found.high
