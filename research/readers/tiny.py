"""Measured passes on microcontrollers (MLPerf Tiny) as calls of `SingleNodeSolver`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from mlsysim.core.errors import shown
from mlsysim.core.types import Accelerator, FixedShapeModel, NetworkCalibration
from mlsysim.registry import Hardware, Models
from mlsysim.registry.calibration.networks import CORES, network_calibration_for
from mlsysim.registry.calibration.power import power_calibration_for
from mlsysim.solvers import SingleNodeSolver
from mlsysim.validation.report import Comparison, comparison
from research.rows import Row, Skip

_NETWORKS: Mapping[str, FixedShapeModel] = {
    "ad": Models.AnomalyDetector,
    "ic": Models.ResNet8,
    "kws": Models.DS_CNN,
    "vww": Models.MobileNetV1_Quarter,
}
# The device of a board, by the clock in MHz for which its rates are counted.
_BOARDS: Mapping[str, Mapping[float, Accelerator]] = {
    "NUCLEOL4R5ZI": {120: Hardware.STM32L4R5},
    "NUCLEOU575ZIQ": {160: Hardware.STM32U575},
    "NUCLEOH7A3ZI": {280: Hardware.STM32H7A3},
    "NUCLEOH7A3ZIQ": {280: Hardware.STM32H7A3},
    "DISCOF746NG": {216: Hardware.STM32F746},
    "NUCLEOG0B1RE": {64: Hardware.STM32G0B1},
    "CY8CPROTO0624343W": {150: Hardware.PSoC_62},
    "EKRA8D1": {480: Hardware.RA8D1},
    "RENESASRH850F1KMS4R7F701649": {240: Hardware.RH850_F1KM},
    "ESP32S3": {240: Hardware.ESP32_S3},
    "NDP9120": {30.7: Hardware.NDP120_30MHz, 98.7: Hardware.NDP120_98MHz},
}
_ENGINES = {"X-CUBE-AI": "X-CUBE-AI", "Bosch Hardware-Aware": "HALE", "ESP-NN": "ESP-NN"}
_OWN_ENGINES = {"Renesas": "Renesas", "syntiant": "Syntiant"}


def _device(row: Row) -> Accelerator:
    board = re.sub(r"[\W_]", "", row.text("board").upper())
    clocks = _BOARDS.get(board)
    if clocks is None:
        raise Skip(f"board {shown(row.text('board'))} is not in the registry: no published peak")
    text = row.text("accelerator_frequency") or row.text("frequency")
    found = re.match(r"([\d.]+) ?(M|G)(?:Hz)?$", text)
    if found is None:
        raise Skip(f"frequency = {shown(text)} is not a clock such as 120 MHz")
    clock = float(found[1]) * {"M": 1, "G": 1000}[found[2]]
    if clock not in clocks:
        rates = " or ".join(f"{rate:g}" for rate in clocks)
        raise Skip(f"the registry has this board at {rates} MHz, not at {clock:g} MHz")
    return clocks[clock]


def engine_of(row: Row) -> str:
    """Return the program that ran the network, as the calibrations name it.

    Raises
    ------
    Skip
        If there are no constants for it.
    """
    label = row.text("framework") or row.text("submitter")
    for start, engine in (_ENGINES | _OWN_ENGINES).items():
        if label.startswith(start):
            fast = "max_performance" in row.text("system")
            return f"{engine}, max performance" if fast else engine
    raise Skip(f"framework = {shown(label)} has no fitted constants")


def _constants(row: Row, device: Accelerator, precision: str) -> NetworkCalibration:
    engine = engine_of(row)
    found = network_calibration_for(device, precision, engine)
    if found is None:
        raise Skip(
            f"there are no fitted constants for {engine} on a {CORES[device.name]} in {precision}"
        )
    return found


def arguments(row: Row) -> dict[str, Any]:
    """Return the solver's arguments for a measured pass, without the engine's constants.

    Raises
    ------
    Skip
        If the row lacks required data.
    """
    benchmark = row.word("benchmark", _NETWORKS, "")
    if row.text("division") == "open":
        raise Skip("open division: the network may differ from the benchmark's")
    return {
        "model": _NETWORKS[benchmark],
        "hardware": _device(row),
        "precision": "fp32" if "float" in row.text("system") else "int8",
    }


def compare(row: Row) -> tuple[Comparison, ...]:
    """Predict the latency of a measured pass, and its energy if that was measured.

    Raises
    ------
    Skip
        If the row lacks required data.
    """
    given = arguments(row)
    constants = _constants(row, given["hardware"], given["precision"])
    result = SingleNodeSolver.solve(**given, network_calibration=constants)
    latency = row.measured("latency_ms")
    times = comparison(row, result, "latency", "ms", latency, group=f"{row.group}: latency")
    if not row.text("energy_uJ") or result.energy is None:
        return (times,)
    measured, power = row.measured("energy_uJ"), power_calibration_for(given["hardware"])
    energy = comparison(row, result, "energy", "uJ", measured, group=f"{row.group}: energy")
    low, high = power.energy_band.around(energy.predicted)
    return times, replace(energy, low=low, high=high)
