"""The exercises of the tutorials: one module for each page, one declaration for each exercise."""

from __future__ import annotations

from typing import Any

from mlsysim.core.errors import UnknownEntryError
from mlsysim_course.answers import Exercise, Verdict
from mlsysim_course.exercises import (
    cost,
    distributed,
    edge,
    error_museum,
    failures,
    hello_world,
    kernels,
    long_context,
    mixtures,
    pipelines,
    quantization,
    serving_fleet,
    serving_one_gpu,
    serving_under_load,
    strategy,
    sustainability,
    tensor_parallel,
    training_memory,
)

__all__ = ["EXERCISES", "check", "find"]

_PAGES = (
    hello_world,
    serving_fleet,
    serving_one_gpu,
    serving_under_load,
    distributed,
    pipelines,
    tensor_parallel,
    strategy,
    sustainability,
    failures,
    training_memory,
    mixtures,
    quantization,
    long_context,
    edge,
    cost,
    kernels,
    error_museum,
)

EXERCISES: dict[str, Exercise] = {
    one.name: one for page in _PAGES for one in vars(page).values() if isinstance(one, Exercise)
}
"""Every exercise that has a checker, by its name."""


def find(name: str) -> Exercise:
    """Return the exercise of that name.

    Raises
    ------
    UnknownEntryError
        If there is no such exercise.
    """
    if not isinstance(name, str) or name not in EXERCISES:
        raise UnknownEntryError.build(name, "exercise", EXERCISES)
    return EXERCISES[name]


def check(name: str, answer: Any = None, /, **parts: Any) -> Verdict:
    """Check your answer to an exercise of a tutorial.

    Parameters
    ----------
    name
        Name of the exercise: its tutorial and its number, such as ``"hello-world-1"``.
    answer
        Your answer: a quantity, such as ``Q_(3, "ms")`` or ``"3 ms"``, a number, or one of the
        options. Without an answer, the verdict lists what to give.
    **parts
        Your answers by name, if the exercise has several parts.

    Returns
    -------
    Verdict
        True if everything is right. If not, its `hint` points to the step to check without giving
        the answer.

    Raises
    ------
    UnknownEntryError
        If there is no such exercise.
    ConfigError
        If an answer is of the wrong kind.

    Examples
    --------
    >>> from mlsysim_course import check
    >>> check("hello-world-3", throughput=4, bottleneck="stays")
    Not yet. throughput: You multiplied two gains, but only one resource is the limit at a time.
    """
    exercise = find(name)
    return exercise.verdict(exercise.given(answer, parts))
