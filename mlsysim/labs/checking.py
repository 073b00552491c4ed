"""Check an answer to an exercise."""

from __future__ import annotations

from typing import Any

from mlsysim.core.errors import ConfigError, UnknownEntryError, shown
from mlsysim.labs.answers import Exercise, Verdict
from mlsysim.labs.exercises import EXERCISES

__all__ = ["check"]


def check(name: str, answer: Any = None, /, **parts: Any) -> Verdict:
    """Check your answer to an exercise of a tutorial.

    Parameters
    ----------
    name
        Name of the exercise: its tutorial and its number, such as ``"hello-world-1"``.
    answer
        Your answer; without one, the verdict says what is needed. A quantity, such as
        ``Q_(3, "ms")`` or ``"3 ms"``, a number, or one of the options.
    **parts
        Your answers by name, if the exercise has several parts.

    Returns
    -------
    Verdict
        True if everything is right. If not, its `hint` says where to look, without giving the
        answer.

    Raises
    ------
    UnknownEntryError
        If there is no such exercise.
    ConfigError
        If an answer is of the wrong kind.

    Examples
    --------
    >>> from mlsysim.labs import check
    >>> check("hello-world-3", throughput=4, bottleneck="stays")
    Not yet. throughput: You multiplied two gains, and only one of them is the limit at a time.
    """
    if not isinstance(name, str) or name not in EXERCISES:
        raise UnknownEntryError.build(name, "exercise", EXERCISES)
    exercise = EXERCISES[name]
    given = _given(exercise, answer, parts)
    hints = {part: exercise.parts[part].missing(value) for part, value in given.items()}
    admitted = {
        part: exercise.parts[part].admit(part, value)
        for part, value in given.items()
        if not hints[part]
    }
    hints |= {part: exercise.parts[part].judge(value) for part, value in admitted.items()}
    alone = len(exercise.parts) == 1
    said = [hint if alone else f"{part}: {hint}" for part, hint in hints.items() if hint]
    said += [
        f"Give `{part}=`: {exercise.parts[part].asks}."
        for part in exercise.parts
        if part not in given
    ]
    return Verdict(not said, "\n".join(said))


def _given(exercise: Exercise, answer: Any, parts: dict[str, Any]) -> dict[str, Any]:
    """Return the answers by part, whichever way they were given."""
    known = list(exercise.parts)
    wanted = "; ".join(f"{part}= ({exercise.parts[part].asks})" for part in known)
    for part in parts:
        if part not in known:
            raise ConfigError(f"{exercise.name} has no part {shown(part)}: {wanted}", argument=part)
    if answer is None:
        return parts
    if parts or len(known) > 1:
        raise ConfigError(
            f"{exercise.name} has several parts; give each by its name: {wanted}",
            argument="answer",
        )
    return {known[0]: answer}
