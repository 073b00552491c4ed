"""Exercises of the tutorial "A network on two AA cells": energy of small devices."""

from __future__ import annotations

from typing import Any

from mlsysim import (
    Q_,
    Accelerator,
    FixedShapeModel,
    Hardware,
    Models,
    Quantity,
    SingleNodeResult,
    SingleNodeSolver,
)
from mlsysim_course.answers import AmountAsked, CountAsked, Parts, exercise

# The assumptions of the page.
_BATTERY = Q_(20, "kJ")
_SLEEP = Q_(30, "uW")
_CHIPS = (
    Hardware.STM32L4R5,
    Hardware.STM32U575,
    Hardware.STM32H7A3,
    Hardware.NDP120_98MHz,
    Hardware.NDP120_30MHz,
)


def _run(
    chip: Accelerator, model: FixedShapeModel = Models.MobileNetV1_Quarter
) -> SingleNodeResult:
    return SingleNodeSolver.solve(model=model, hardware=chip, precision="int8")


def _battery_life(chip: Accelerator, seconds: float, sleep: Quantity = _SLEEP) -> Any:
    """Return how long the cells last with a picture every so many seconds."""
    return _BATTERY / (_run(chip).energy / Q_(seconds, "s") + sleep)


def _listening(per_second: float = 2, sleep: Quantity = _SLEEP) -> Any:
    word = _run(Hardware.NDP120_30MHz, Models.DS_CNN)
    return Q_(per_second, "1/s") * word.energy + sleep


@exercise
def _edge_1() -> Parts:
    yield AmountAsked(
        "energy",
        asks="the energy of a picture",
        unit="mJ",
        truth=_run(Hardware.STM32H7A3).energy,
        hint="Multiply its time by the chip's power, or read the energy from the result.",
        mistakes={
            _run(Hardware.STM32L4R5).energy: "That is the energy on another chip with a "
            "Cortex-M core.",
        },
    )


@exercise
def _edge_2() -> Parts:
    yield AmountAsked(
        "life",
        asks="the life of the cells",
        unit="day",
        truth=_battery_life(Hardware.STM32U575, 2),
        hint="Add the mean power of the pictures to the sleep power, then divide the energy "
        "by the sum.",
        mistakes={
            _battery_life(Hardware.STM32U575, 0.5): "A picture every two seconds is half a picture "
            "per second.",
            _BATTERY / _SLEEP: "That is the life of a box that only sleeps.",
        },
    )


@exercise
def _edge_3() -> Parts:
    yield AmountAsked(
        "time",
        asks="the time between pictures",
        unit="s",
        truth=_run(Hardware.STM32L4R5).energy / _SLEEP,
        hint="Set the two terms of the denominator equal.",
        mistakes={
            _run(Hardware.STM32U575).energy / _SLEEP: "That is the value for another chip.",
        },
    )


@exercise
def _edge_4() -> Parts:
    chips = sum(_run(chip, Models.DS_CNN).latency < Q_(1 / 2, "s") for chip in _CHIPS)
    yield CountAsked(
        "chips",
        asks="how many of the chips keep up",
        truth=chips,
        hint="Compare the time of one run with the time until the next run starts.",
    )
    yield AmountAsked(
        "power",
        asks="the mean power",
        unit="uW",
        truth=_listening(),
        hint="Add the energy of the runs in one second to the sleep power.",
        mistakes={
            _listening(sleep=Q_(0, "uW")): "You left out the sleep power.",
            _listening(1): "It runs more often than once per second.",
        },
    )


@exercise
def _edge_5() -> Parts:
    before, after = (
        _battery_life(Hardware.STM32L4R5, 60, sleep) for sleep in (_SLEEP, _SLEEP / 10)
    )
    factor = float(after / before)
    yield AmountAsked(
        "factor",
        asks="the ratio of the new life to the old one",
        truth=factor,
        hint="Compute the mean power before and after.",
        mistakes={
            10.0: "Only the sleep power falls by that factor. The pictures take as much "
            "energy as before.",
            1 / factor: "Invert the ratio.",
        },
    )
