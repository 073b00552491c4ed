"""The number of microbatches that makes a bubble small, an exercise of two tutorials."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count

from mlsysim.core.formulas import pipeline_bubble_fraction
from mlsysim_course.answers import CountAsked, Mistake

__all__ = ["MICROBATCHES"]


def _first(bubble: Callable[[float], float] = lambda idle: idle, *, stages: int = 8) -> int:
    """Return the first number of microbatches at which a bubble, made of the idle share, is small.

    A tenth is not below a tenth, whatever the rounding.
    """
    return next(
        parts
        for parts in count(1)
        if bubble(pipeline_bubble_fraction(stages, parts, 1)) < 0.1 - 1e-12
    )


def _added(idle: float) -> float:
    """Return the time added over the busy time."""
    return idle / (1 - idle)


MICROBATCHES = CountAsked(
    asks="the first number of microbatches whose idle share is below a tenth",
    truth=_first,
    hint="Solve for the number of microbatches, and round up.",
    mistakes=(
        Mistake(
            lambda: _first() - 1,
            "At that number the share is exactly a tenth, which is not below it.",
        ),
        Mistake(
            lambda: _first(_added),
            "You took the time added, a multiple of the busy time. The idle share is a "
            "part of the whole.",
        ),
        Mistake(
            lambda: _first(_added) - 1,
            "You took the time added, a multiple of the busy time. The idle share is a "
            "part of the whole.",
        ),
        Mistake(
            lambda: _first(stages=9),
            "A bubble has one slot fewer than the pipeline has stages.",
        ),
    ),
)
"""How many microbatches eight stages need for an idle share below a tenth."""
