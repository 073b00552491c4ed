"""Predicted against measured passes on microcontrollers: MLPerf Tiny v1.2."""

from dataclasses import replace
from pathlib import Path

import pytest

from mlsysim import (
    Q_,
    ConfigError,
    Hardware,
    Models,
    NetworkCalibrations,
    SingleNodeSolver,
)
from research.readers import tiny
from research.rows import Row, Skip, read_rows

DATA = Path(__file__).parents[2] / "research/measurements/tiny.csv"
ROWS = {row.name: row for row in read_rows(DATA)}
U575 = "tiny12_closed_STMicroelectronics_NUCLEO_U575ZI_Q_kws"


@pytest.fixture(scope="module")
def report(report_on):
    return report_on("tiny")


@pytest.mark.parametrize(("quantity", "count", "bound"), [("latency", 17, 9), ("energy", 5, 15)])
def test_error_on_check_rows(report, quantity, count, bound):
    found = report.only("check").groups[f"mlperf_tiny_v1.2: {quantity}"]
    assert found.n == count
    assert found.mape <= bound


def test_no_row_is_lost(report):
    predicted = {row.id for row in report.comparisons}
    skipped = {name for name, _ in report.skipped}
    assert len(ROWS) == 56
    assert predicted | skipped == set(ROWS)
    assert not predicted & skipped
    assert len(skipped) == 6


def test_a_row_by_hand():
    row = ROWS[U575]
    given = tiny.arguments(row)
    assert given == {"model": Models.DS_CNN, "hardware": Hardware.STM32U575, "precision": "int8"}
    latency, energy = tiny.compare(row)
    c = NetworkCalibrations.Cortex_M33_XCubeAI
    work = 2 * 2_656_768 + c.output_flops.magnitude * 72_012 + c.weight_flops.magnitude * 23_756
    seconds = work / (c.efficiency * 4 * 160e6)
    assert latency.predicted == pytest.approx(1000 * seconds)
    assert latency.measured == 29.05625
    assert latency.low == pytest.approx(c.pass_band.low * latency.predicted)
    assert energy.measured == 656.163
    assert energy.predicted == pytest.approx(1e6 * seconds * 23.0e-3, rel=1e-6)


def test_formats_and_builds_have_their_own_constants():
    found = {name: tiny.arguments(row)["precision"] for name, row in ROWS.items() if "H7A3" in name}
    assert sorted(set(found.values())) == ["fp32", "int8"]
    engines = {tiny.engine_of(row) for row in ROWS.values() if "H7A3" in row.name}
    assert engines == {"X-CUBE-AI", "HALE", "HALE, max performance"}


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"board": "Abacus"}, "board"),
        ({"frequency": "80 MHz"}, "160 MHz, not at 80 MHz"),
        ({"frequency": "fast"}, "is not a clock"),
        ({"framework": "Slide rule"}, "no fitted constants"),
        ({"benchmark": "chess"}, "benchmark"),
        ({"division": "open"}, "open division"),
        ({"system": "U575_float"}, "no fitted constants .* in fp32"),
        ({"latency_ms": ""}, "latency_ms is missing"),
    ],
)
def test_rows_that_cannot_be_predicted_say_why(changed, reason):
    with pytest.raises(Skip, match=reason):
        tiny.compare(Row({**ROWS[U575].cells, **changed}))


def test_work_around_the_products_adds_to_the_roofline():
    given = {"model": Models.ResNet8, "hardware": Hardware.STM32L4R5, "precision": "int8"}
    r = SingleNodeSolver.solve(**given)
    assert r.calibration == NetworkCalibrations.Cortex_M4_XCubeAI.name
    assert r.latency == max(r.compute_time, r.memory_time) + r.overhead_time
    plain = SingleNodeSolver.solve(**given, efficiency=0.33)
    assert plain.overhead_time is None
    assert plain.latency < r.latency
    twice = SingleNodeSolver.solve(**given, batch_size=2)
    assert twice.overhead_time.magnitude == pytest.approx(2 * r.overhead_time.magnitude)
    heavy = replace(NetworkCalibrations.Cortex_M4_XCubeAI, output_flops=Q_(1e6, "flop"))
    assert SingleNodeSolver.solve(**given, network_calibration=heavy).bottleneck == "overhead"


@pytest.mark.parametrize(
    ("changed", "part"),
    [({"model": Models.Llama3_8B, "hardware": Hardware.H100}, "fixed shape"), ({}, "fp32")],
)
def test_constants_for_something_else_are_refused(changed, part):
    given = {"model": Models.DS_CNN, "hardware": Hardware.STM32H7A3, "precision": "fp32"}
    with pytest.raises(ConfigError, match=part) as error:
        SingleNodeSolver.solve(
            **{**given, **changed}, network_calibration=NetworkCalibrations.Cortex_M7_XCubeAI
        )
    assert error.value.argument == "network_calibration"


def test_the_registry_holds_what_the_fit_prints():
    pytest.importorskip("scipy")
    from research.fits.networks import FAST, Fit, band, runs, single_runs

    data = runs()
    single, fitted = single_runs(data)
    keys = sorted({run.key for run in data if run not in single})
    fit = Fit(fitted, keys)
    edges = band(fitted, keys).around(1)
    held = {(c.engine, c.core, c.precision): c for c in NetworkCalibrations if "GPU" not in c.core}
    for run in single:
        c = held.pop(run.key)
        constants = (c.efficiency, c.output_flops.magnitude, c.weight_flops.magnitude)
        assert fit.of_one_run(run) == pytest.approx(constants, rel=0.01)
        assert not c.pass_band.known
    assert {(k[0].removesuffix(FAST), *k[1:]) for k in held} == set(keys)
    for (engine, core, precision), c in held.items():
        key, fast = (engine.removesuffix(FAST), core, precision), engine.endswith(FAST)
        found = (c.efficiency, c.output_flops.magnitude, c.weight_flops.magnitude)
        assert fit.constants(key, fast=fast) == pytest.approx(found, rel=0.01)
        assert edges == pytest.approx(c.pass_band.around(1), abs=2e-3)


def test_the_constants_of_gpus_are_those_of_the_fit():
    pytest.importorskip("scipy")
    from research.fits.networks import gpu_band, gpu_constants, gpu_passes

    fitted = [run for run in gpu_passes() if run.split == "calibrate"]
    c = NetworkCalibrations.GPU_TensorRT
    share, layer_time = gpu_constants(fitted)
    assert c.efficiency == pytest.approx(share, abs=6e-4)
    assert c.layer_time.to("s").magnitude == pytest.approx(layer_time, rel=1e-3)
    assert c.pass_band.around(1) == pytest.approx(gpu_band(fitted).around(1), abs=1e-3)


def test_error_of_resnet_on_gpus(report_on):
    found = report_on("passes", "check").groups["mlperf_resnet50"]
    assert found.n >= 11
    assert found.mape <= 30
    assert 60 <= found.band_coverage <= 100


def test_a_small_network_takes_time_to_launch():
    """Published: 0.45 ms for one image and 48 ms for 2,048 in int8 on an A100 (MLPerf v3.0)."""
    given = {"model": Models.ResNet50, "hardware": Hardware.A100, "precision": "int8"}
    one, many = (SingleNodeSolver.solve(**given, batch_size=b) for b in (1, 2048))
    c = NetworkCalibrations.GPU_TensorRT
    assert one.overhead_time == many.overhead_time == 54 * c.layer_time
    assert (one.bottleneck, many.bottleneck) == ("overhead", "compute")
    assert one.latency_low.to("ms").magnitude < 0.4547 < one.latency_high.to("ms").magnitude
    assert many.latency_low.to("ms").magnitude < 48.33 < many.latency_high.to("ms").magnitude


@pytest.mark.parametrize(
    "changed",
    [
        {"precision": "fp16"},
        {"model": Models.MobileNetV2},
        {"hardware": Hardware.MI300X},
        {"hardware": Hardware.Himax_WE_I_Plus},
    ],
)
def test_what_has_no_run_is_not_validated(changed):
    given = {"model": Models.ResNet50, "hardware": Hardware.A100, "precision": "int8", **changed}
    r = SingleNodeSolver.solve(**given)
    assert r.calibration.startswith("not validated")
    assert r.latency_low is r.latency_high is None


def test_person_detection_on_an_esp32():
    """Published: 54 ms."""
    r = SingleNodeSolver.solve(
        model=Models.MobileNetV1_Quarter, hardware=Hardware.ESP32_S3, precision="int8"
    )
    assert r.latency.to("ms").magnitude == pytest.approx(54, rel=0.01)
    assert r.latency_low is None


def test_the_power_of_a_device_is_the_mean_of_its_calibrate_rows():
    powers = {}
    for row in ROWS.values():
        if row.text("energy_uJ") and row.text("split") == "calibrate":
            power = row.number("energy_uJ") / row.number("latency_ms")
            powers.setdefault(tiny.arguments(row)["hardware"].name, []).append(power)
    assert len(powers) == 5
    for device in Hardware.Tiny:
        if device.name in powers:
            mean = sum(powers[device.name]) / len(powers[device.name])
            assert device.tdp.to("mW").magnitude == pytest.approx(mean, rel=5e-3)
