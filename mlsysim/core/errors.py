"""The exception tree.

::

    MLSysError
      ConfigError(ValueError)          inputs that contradict each other or are out of range
        ParallelismError               sizes that do not tile the fleet, or do not divide
        UnknownEntryError(KeyError)    a name that no registry row has
      InfeasibleError                  consistent inputs, impossible physics
        OOMError                       memory
        SLAViolation                   a promised limit
      ExecutorError                    a slice that workers lost repeatedly

Every message states the value given, the limit, and what to change.
"""

from __future__ import annotations

import re
import reprlib
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from typing import Any

__all__ = [
    "ConfigError",
    "ExecutorError",
    "InfeasibleError",
    "MLSysError",
    "OOMError",
    "ParallelismError",
    "SLAViolation",
    "UnknownEntryError",
]

# Control characters, marks that reverse the direction of text, and unpaired surrogates, which
# cannot be printed.
UNPRINTABLE = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]"
)
_IN_A_LINE = re.compile(rf"[\t\n]|{UNPRINTABLE.pattern}")

_QUANTITY = re.compile(r"""Q_\(([^,()]+), (["'])([^"']+)\2\)""")

_BRIEF = reprlib.Repr()
_BRIEF.maxlevel = 2
_BRIEF.maxstring = _BRIEF.maxother = 80
_BRIEF.maxlong = 40
_LONGEST = 200
"""Limit on the length of a whole value; the limits above apply to its parts."""
_LONGEST_LINE = 2000
"""Limit on the length of a line of a message."""


def shown(value: object) -> str:
    """Write a value for an error message: in full if it is short, and safely if its repr fails."""
    try:
        text = _BRIEF.repr(value)
        half = (_LONGEST - 3) // 2
        return text if len(text) <= _LONGEST else f"{text[:half]}...{text[-half:]}"
    except Exception:  # a repr that fails, or an integer with too many digits
        return f"<{type(value).__name__}>"


def printable(text: str, *, lines: bool = False) -> str:
    """Return text without terminal control: such characters become escapes, as in `repr`.

    Parameters
    ----------
    text
        Text to show in a terminal.
    lines
        Whether to keep line breaks and tabs, as outside of table cells.
    """
    pattern = UNPRINTABLE if lines else _IN_A_LINE
    return pattern.sub(lambda found: repr(found[0])[1:-1], text)


def in_shell(message: str) -> str:
    """Return a message with quantities as a command line takes them, without Python."""
    return _QUANTITY.sub(r'"\1 \3"', message)


def hint(name: object, known: Iterable[str], otherwise: str = "") -> str:
    """Suggest the most similar of the known names; without one, return other words."""
    near = get_close_matches(str(name), list(known), n=1)
    return f"did you mean {near[0]}?" if near else otherwise


def article(noun: str) -> str:
    """Return the indefinite article before a name."""
    return "an" if noun[:1] in "AEIOaeiou" else "a"


class MLSysError(Exception):
    """Base of every error that mlsysim raises on purpose.

    Its message can be printed safely, even if it quotes a file from elsewhere.
    """

    def __init__(self, message: str, **details: Any) -> None:
        lines = [
            line if len(line) <= _LONGEST_LINE else f"{line[:_LONGEST_LINE]}..."
            for line in printable(message, lines=True).split("\n")
        ]
        message = "\n".join(lines)
        super().__init__(message)
        self.message = message
        for name, value in details.items():
            setattr(self, name, value)

    def __str__(self) -> str:
        return self.message

    def __reduce__(self) -> tuple[Any, ...]:
        # Keyword details do not survive the default pickling of exceptions.
        return _rebuild, (type(self), self.message, dict(self.__dict__))


def _rebuild(kind: type[MLSysError], message: str, state: dict[str, Any]) -> MLSysError:
    error = kind.__new__(kind, message)
    Exception.__init__(error, message)
    error.__dict__.update(state)
    return error


class ConfigError(MLSysError, ValueError):
    """Inputs that are out of range or contradict each other.

    Attributes
    ----------
    argument : str or None
        Name of the argument that is wrong.
    faults : tuple
        Every fault of a configuration, if several are reported at once.
    """

    def __init__(
        self, message: str, *, argument: str | None = None, faults: Iterable[Any] = ()
    ) -> None:
        super().__init__(message, argument=argument, faults=tuple(faults))


class ParallelismError(ConfigError):
    """Parallel sizes that do not tile the fleet or do not divide the model."""


_MOST_NAMES = 30
"""Most names that a message lists."""


class UnknownEntryError(ConfigError, KeyError):
    """A name that the registry or result does not have. The message lists similar names."""

    @classmethod
    def build(cls, name: object, kind: str, known: Iterable[str]) -> UnknownEntryError:
        """Compose the message from the requested name and the existing names."""
        names = sorted(known)
        text = name if isinstance(name, str) and len(name) <= 100 else shown(name)
        near = get_close_matches(text, names, n=3, cutoff=0.5)
        listed = ", ".join(names[:_MOST_NAMES])
        if len(names) > _MOST_NAMES:
            listed += f" and {len(names) - _MOST_NAMES} more"
        hint = f"did you mean {' or '.join(near)}?" if near else f"known: {listed}"
        return cls(f"{kind} {shown(name)} does not exist; {hint}", argument=text)


def spelled(name: str, known: Iterable[str], kind: str) -> str:
    """Return the known name that differs at most in case, hyphens, underscores, dots or spaces.

    Raises
    ------
    UnknownEntryError
        If there is none, or if there are several and none is equal to the name.
    """
    names = list(known)
    if name in names:
        return name
    alike = [other for other in names if _letters(other) == _letters(name)]
    if len(alike) > 1:
        raise UnknownEntryError(
            f"{kind} {shown(name)} may be {' or '.join(sorted(alike))}: give one of them",
            argument=name,
        )
    if not alike:
        raise UnknownEntryError.build(name, kind, names)
    return alike[0]


def _letters(name: str) -> str:
    return re.sub(r"[-_. ]", "", name).casefold()


class InfeasibleError(MLSysError):
    """Consistent inputs that describe something physically impossible."""


class OOMError(InfeasibleError):
    """A device's memory is too small.

    Attributes
    ----------
    required, available : Quantity
        Memory needed and memory available, per device.
    by_component : Mapping[str, Quantity]
        The memory needed, by purpose.
    """

    def __init__(
        self, message: str, *, required: Any, available: Any, by_component: Mapping[str, Any]
    ) -> None:
        super().__init__(
            message, required=required, available=available, by_component=dict(by_component)
        )


class SLAViolation(InfeasibleError):  # noqa: N818 - the field says "SLA violation"
    """A result breaks a promised limit.

    Attributes
    ----------
    metric : str
        Name of the result field.
    value, limit : Quantity
        The value predicted and the limit promised.
    """

    def __init__(self, message: str, *, metric: str, value: Any, limit: Any) -> None:
        super().__init__(message, metric=metric, value=value, limit=limit)


class ExecutorError(MLSysError):
    """The executor of a sweep lost a slice on every attempt.

    Attributes
    ----------
    rows : tuple of int
        First row of the slice, and the row after its last one.
    attempts : int
        Number of attempts.
    """

    def __init__(self, message: str, *, rows: tuple[int, int], attempts: int) -> None:
        super().__init__(message, rows=rows, attempts=attempts)
