"""Exercises of the tutorial "A network on two AA cells": energy of small devices."""

from __future__ import annotations

from mlsysim.core.types import Accelerator, FixedShapeModel
from mlsysim.registry import Hardware, Models
from mlsysim.solvers import SingleNodeResult, SingleNodeSolver
from mlsysim_course.answers import AmountAsked, CountAsked, Parts, exercise, si

# The assumptions of the page, in SI base units.
_BATTERY = 20e3
_SLEEP = 30e-6
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


def _joule(chip: Accelerator, model: FixedShapeModel = Models.MobileNetV1_Quarter) -> float:
    return si(_run(chip, model).energy)


def _life(chip: Accelerator, seconds: float, sleep: float = _SLEEP) -> float:
    return _BATTERY / (_joule(chip) / seconds + sleep)


def _listening(per_second: float = 2, sleep: float = _SLEEP) -> float:
    return per_second * _joule(Hardware.NDP120_30MHz, Models.DS_CNN) + sleep


@exercise
def _edge_1() -> Parts:
    yield AmountAsked(
        "energy",
        asks="the energy of a picture",
        unit="mJ",
        truth=_joule(Hardware.STM32H7A3),
        hint="Multiply its time by the chip's power, or read the energy from the result.",
        mistakes={
            _joule(Hardware.STM32L4R5): "That is the energy on another chip with a Cortex-M core.",
        },
    )


@exercise
def _edge_2() -> Parts:
    yield AmountAsked(
        "life",
        asks="the life of the cells",
        unit="day",
        truth=_life(Hardware.STM32U575, 2),
        hint="Add the mean power of the pictures to the sleep power, then divide the energy "
        "by the sum.",
        mistakes={
            _life(Hardware.STM32U575, 0.5): "A picture every two seconds is half a picture "
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
        truth=_joule(Hardware.STM32L4R5) / _SLEEP,
        hint="Set the two terms of the denominator equal.",
        mistakes={_joule(Hardware.STM32U575) / _SLEEP: "That is the value for another chip."},
    )


@exercise
def _edge_4() -> Parts:
    chips_in_time = [chip for chip in _CHIPS if si(_run(chip, Models.DS_CNN).latency) < 1 / 2]
    yield CountAsked(
        "chips",
        asks="how many of the chips keep up",
        truth=len(chips_in_time),
        hint="Compare the time of one run with the time until the next run starts.",
    )
    yield AmountAsked(
        "power",
        asks="the mean power",
        unit="uW",
        truth=_listening(),
        hint="Add the energy of the runs in one second to the sleep power.",
        mistakes={
            _listening(sleep=0.0): "You left out the sleep power.",
            _listening(1): "It runs more often than once per second.",
        },
    )


@exercise
def _edge_5() -> Parts:
    longer = _life(Hardware.STM32L4R5, 60, _SLEEP / 10) / _life(Hardware.STM32L4R5, 60)
    yield AmountAsked(
        "factor",
        asks="the ratio of the new life to the old one",
        truth=longer,
        hint="Compute the mean power before and after.",
        mistakes={
            10.0: "Only the sleep power falls by that factor. The pictures take as much "
            "energy as before.",
            1 / longer: "Invert the ratio.",
        },
    )
