"""Exercises of the tutorial "From the roofline to real kernels"."""

from __future__ import annotations

from itertools import count

from mlsysim import Q_, Hardware, Quantity
from mlsysim.core import formulas as f
from mlsysim_course.answers import AmountAsked, CountAsked, Parts, exercise

_PEAK = Hardware.H100.compute.si("bf16")
_BANDWIDTH = Hardware.H100.memory.si("bandwidth")
_WIDTH = 8192
# NVIDIA's times by rows, as the page quotes them, and the fixed time of the exercise.
_MEASURED = {1: Q_(49.184, "us"), 4096: Q_(672.768, "us"), 8192: Q_(1404.784, "us")}
_FIXED = Q_(4.3, "us")


def _compute(rows: int, width: int = _WIDTH) -> Quantity:
    return Q_(float(f.gemm_compute_time(rows, width, width, _PEAK, 2)), "s")


def _memory(rows: int, width: int = _WIDTH, each: int = 2) -> Quantity:
    return Q_(float(f.gemm_memory_time(rows, width, width, 1, _BANDWIDTH, each, each)), "s")


def _first(width: int) -> int:
    return next(rows for rows in count(1) if _compute(rows, width) > _memory(rows, width))


@exercise
def _kernels_1() -> Parts:
    yield AmountAsked(
        "time",
        asks="the time of the product",
        unit="us",
        truth=_memory(1),
        hint="Divide the bytes of the weights by the bandwidth.",
        mistakes={
            _compute(1): "That is the compute time, but compute is not the limit.",
            _memory(1, each=1): "A weight in bf16 takes more than one byte.",
        },
    )


@exercise
def _kernels_2() -> Parts:
    yield AmountAsked(
        "share",
        asks="the share of the peak rate",
        truth=float(_compute(4096) / _MEASURED[4096]),
        hint="Divide operations by time, and by the dense peak.",
        mistakes={
            0.5 * _compute(4096) / _MEASURED[4096]: "A multiply-accumulate is more than one "
            "operation, or you took the peak with sparsity.",
        },
    )


@exercise
def _kernels_3() -> Parts:
    yield CountAsked(
        "rows",
        asks="the first number of rows at which compute is the limit",
        truth=_first(4096),
        hint="Set both times of the equation equal and solve for the rows.",
        mistakes={
            _first(_WIDTH): "That is for the larger matrix.",
            round(_PEAK / _BANDWIDTH): "That is the ridge point. It leaves out the traffic of "
            "the activations.",
        },
    )


@exercise
def _kernels_4() -> Parts:
    yield AmountAsked(
        "eta",
        asks="the share of the peak rate",
        truth=float(_compute(8192) / (_MEASURED[8192] - _FIXED)),
        hint="With many rows, compute is the limit: subtract the fixed time and divide.",
    )
    yield AmountAsked(
        "beta",
        asks="the share of the bandwidth",
        truth=float(_memory(1) / (_MEASURED[1] - _FIXED)),
        hint="With a single row, memory is the limit: subtract the fixed time and divide.",
        mistakes={_memory(1) / _MEASURED[1]: "Subtract the fixed time first."},
    )
