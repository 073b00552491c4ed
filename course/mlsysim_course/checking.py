"""Check an answer to an exercise."""

from __future__ import annotations

from typing import Any

from mlsysim.core.errors import UnknownEntryError
from mlsysim_course.answers import Verdict
from mlsysim_course.exercises import EXERCISES

__all__ = ["check"]


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
    if not isinstance(name, str) or name not in EXERCISES:
        raise UnknownEntryError.build(name, "exercise", EXERCISES)
    exercise = EXERCISES[name]
    return exercise.verdict(exercise.given(answer, parts))
