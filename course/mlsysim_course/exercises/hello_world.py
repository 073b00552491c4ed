"""Exercises of the tutorial "Hello, roofline": images and tokens on one device."""

from __future__ import annotations

import math
from itertools import count
from typing import Any

from mlsysim import Q_, Accelerator, Hardware, Models, SingleNodeResult, SingleNodeSolver
from mlsysim_course.answers import AmountAsked, ChoiceAsked, CountAsked, Parts, exercise

_MODEL = Models.ResNet50
_BEYOND = 2**40  # images: if this batch is not compute-bound, none is
# NVIDIA's mean times for ResNet-50 on one V100, as in the tutorial, by batch size.
_MEASURED = {1: Q_(12.78, "ms"), 256: Q_(84.14, "ms")}


def _solve(
    hardware: Accelerator = Hardware.A100, efficiency: float = 0.5, **given: Any
) -> SingleNodeResult:
    return SingleNodeSolver.solve(model=_MODEL, hardware=hardware, efficiency=efficiency, **given)


def _chat(batch_size: int) -> SingleNodeResult:
    return SingleNodeSolver.solve(
        model=Models.Llama3_8B,
        hardware=Hardware.A100,
        batch_size=batch_size,
        seq_len=1,
        efficiency=0.5,
    )


def _first_bound(hardware: Accelerator, efficiency: float = 0.5) -> float:
    """Return the first compute-bound batch, or infinity."""

    def bound(batch: int) -> bool:
        answer = _solve(hardware, batch_size=batch, efficiency=efficiency)
        return answer.bottleneck == "compute"

    return next(filter(bound, count(1))) if bound(_BEYOND) else math.inf


def _on_paper(traffic_of_activations: int) -> int:
    """Solve the ridge equation for the batch, with activations moved a number of times."""
    flops_per_number = 0.5 * Hardware.H100.ridge_point("fp16") * Q_(2, "byte")
    weights = flops_per_number * _MODEL.parameters
    moved = flops_per_number * traffic_of_activations * _MODEL.activations_per_sample
    return math.ceil(float(weights / (_MODEL.flops_per_sample - moved)))


def _fitted(batch: int) -> float:
    modeled = _solve(Hardware.V100, batch_size=batch, efficiency=0.5).latency
    return 0.5 * float(modeled / _MEASURED[batch])


@exercise
def _hello_world_1() -> Parts:
    yield CountAsked(
        "batch",
        asks="the first batch that is compute-bound, a whole number",
        truth=_first_bound(Hardware.H100),
        hint="Set the intensity equal to the ridge point at half of the peak, and round up.",
        mistakes={
            _on_paper(0): "That is the answer for the A100, or one that leaves out the "
            "traffic of activations.",
            _on_paper(1): "Activations move twice, because each layer writes what the next "
            "one reads.",
            math.inf: "At half of the peak, the ridge point is half of the one that the "
            "datasheet implies.",
        },
    )


@exercise
def _hello_world_2() -> Parts:
    yield CountAsked(
        "batch",
        asks='the first batch that is compute-bound, a whole number, or `"never"` if no batch is',
        truth=_first_bound(Hardware.H100, 1.0),
        hint="Compare the full ridge point with the ceiling that the intensity approaches.",
        mistakes={
            _first_bound(Hardware.H100): "That is at half of the peak. A perfect program has "
            "a higher ridge point.",
            _first_bound(Hardware.A100, 1.0): "That is the answer for the A100. The H100 has "
            "a different ridge point.",
        },
    )


@exercise
def _hello_world_3() -> Parts:
    wide, narrow = (_solve(batch_size=32, precision=p) for p in ("fp16", "int8"))
    throughput = float(narrow.throughput / wide.throughput)
    yield AmountAsked(
        "throughput",
        asks="the factor by which images per second grow",
        truth=throughput,
        hint="How do the compute time and the memory time change?",
        mistakes={
            throughput
            ** 2: "You multiplied two gains, but only one resource is the limit at a time.",
            1.0: "One of the two times is the limit. What happens to it?",
            1 / throughput: "That is the factor for the time, not for the rate.",
        },
    )
    yield ChoiceAsked(
        "bottleneck",
        asks='whether the bottleneck `"changes"` or `"stays"`',
        options=("changes", "stays"),
        truth="stays" if narrow.bottleneck == wide.bottleneck else "changes",
        hint="Compare the factors of the intensity and of the ridge point.",
    )


@exercise
def _hello_world_4() -> Parts:
    full_ridge = math.ceil(Hardware.A100.ridge_point("fp16").to("FLOP/B").magnitude)
    intensity = _chat(1).arithmetic_intensity
    yield AmountAsked(
        "intensity",
        asks="the intensity of one user's token",
        unit="FLOP/B",
        tolerance=0.05,
        truth=intensity,
        hint="How many operations use each weight, and how many bytes does it have?",
        mistakes={
            2 * intensity: "A weight in fp16 takes two bytes.",
            0.5 * intensity: "A multiplication and an addition are two operations.",
        },
    )
    yield CountAsked(
        "users",
        asks="the fewest users whose batch is compute-bound",
        truth=next(b for b in count(1) if _chat(b).bottleneck == "compute"),
        hint="Users share the weights, so intensity grows with their number up to the ridge point.",
        mistakes={full_ridge: "Take the ridge point at half of the peak."},
    )


@exercise
def _hello_world_5() -> Parts:
    yield AmountAsked(
        "efficiency",
        asks="the efficiency, a share of the peak",
        truth=_fitted(256),
        hint="The time is proportional to one over the efficiency. Which of the two times is "
        "longer?",
        mistakes={
            0.25 / _fitted(256): "Invert the ratio. The measurement takes longer, so the "
            "share falls.",
            2 * _fitted(256): "That is the ratio of the times. The model already assumed half "
            "of the peak.",
            _fitted(1): "That efficiency fits batch size 1.",
        },
    )
