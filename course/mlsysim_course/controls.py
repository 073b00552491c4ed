"""The controls of a page: questions, sliders, choices and texts, and the values of each.

A state is a plain mapping from the identifier of a control to its value. It holds only what the
student set; `Controls.complete` fills in the rest.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from mlsysim.core.errors import ConfigError, UnknownEntryError, shown

__all__ = [
    "Choice",
    "Controls",
    "Estimate",
    "Paste",
    "Selector",
    "Slider",
    "true_claim",
]


@dataclass(frozen=True)
class Control:
    """Base class of controls: `id` is the key in the state."""

    id: str

    @property
    def start(self) -> Any:
        """Value before the student touches it."""
        raise NotImplementedError

    @property
    def wanted(self) -> str:
        """What to give, in words."""
        raise NotImplementedError

    def accepts(self, value: Any) -> bool:
        """Return whether the control can have a value."""
        raise NotImplementedError

    def admit(self, value: Any) -> Any:
        """Return the value, or raise if it is invalid.

        Raises
        ------
        ConfigError
            If the control cannot have it; the message names the control and its valid values.
        """
        if not self.accepts(value):
            raise ConfigError(
                f"{self.id} = {shown(value)} is out of range: give {self.wanted}", argument=self.id
            )
        return value


@dataclass(frozen=True)
class Slider(Control):
    """One of a few numbers, in order."""

    label: str
    values: tuple[int, ...]
    first: int
    unit: str = ""

    @property
    def start(self) -> int:
        """Value before the student touches it."""
        return self.first

    @property
    def wanted(self) -> str:
        """What to give, in words."""
        return f"one of {', '.join(str(value) for value in self.values)}"

    def accepts(self, value: Any) -> bool:
        """Return whether it is one of the values."""
        return type(value) is int and value in self.values


@dataclass(frozen=True)
class Selector(Control):
    """One of several named options, with the label of each by its value."""

    label: str
    options: Mapping[str, str]
    first: str

    @property
    def start(self) -> str | None:
        """Value before the student touches it."""
        return self.first

    @property
    def wanted(self) -> str:
        """What to give, in words."""
        return f"one of {', '.join(self.options)}"

    def accepts(self, value: Any) -> bool:
        """Return whether it is one of the options."""
        return isinstance(value, str) and value in self.options


@dataclass(frozen=True)
class Paste(Control):
    """A text that a reader enters."""

    label: str
    first: str
    most: int = 65_536

    @property
    def start(self) -> str:
        """Text before the reader changes it."""
        return self.first

    @property
    def wanted(self) -> str:
        """What to give, in words."""
        return f"a text of at most {self.most:,} characters"

    def accepts(self, value: Any) -> bool:
        """Return whether it is a text that is not too long."""
        return isinstance(value, str) and len(value) <= self.most


@dataclass(frozen=True, kw_only=True)
class Choice(Control):
    """A question with one right option. The page has its words, and those of each option.

    Attributes
    ----------
    options : tuple of str
        The names of the options.
    truth : Callable
        Computes the name of the right option.
    locks : bool
        Whether the first answer is final.
    """

    options: tuple[str, ...]
    truth: Callable[[], str]
    locks: bool = False

    @property
    def start(self) -> None:
        """No answer yet."""
        return

    @property
    def wanted(self) -> str:
        """What to give, in words."""
        return f"one of {', '.join(self.options)}, or None for no answer"

    def accepts(self, value: Any) -> bool:
        """Return whether it is one of the options, or no answer."""
        return value is None or (isinstance(value, str) and value in self.options)

    def verdict(self, answer: str | None) -> str | None:
        """Tell ``"right"`` from ``"wrong"``; `None` without an answer."""
        if answer is None:
            return None
        return "right" if answer == self.truth() else "wrong"


def true_claim(claims: Mapping[str, bool]) -> str:
    """Return the name of the only claim that is true.

    Raises
    ------
    ConfigError
        If none or several are.
    """
    true = [name for name, holds in claims.items() if holds]
    if len(true) != 1:
        raise ConfigError(
            f"claims = {shown(dict(claims))} must have exactly one that is true", argument="claims"
        )
    return true[0]


@dataclass(frozen=True, kw_only=True)
class Estimate(Control):
    """A number to predict. The first answer is final.

    Attributes
    ----------
    truth : Callable
        Computes the number with the package.
    unit : str
        Its unit as a student sees it.
    low, high : float
        The smallest and the largest number that it accepts; `low` is positive.
    factor : float
        An answer is right within this factor of the truth.
    reply : Callable or None
        Returns a sentence about an answer, which the page shows with the verdict.
    """

    truth: Callable[[], float]
    unit: str
    low: float
    high: float
    factor: float
    reply: Callable[[float], str] | None = None

    @property
    def start(self) -> None:
        """No answer yet."""
        return

    @property
    def locks(self) -> bool:
        """Whether its first value is final."""
        return True

    @property
    def wanted(self) -> str:
        """What to give, in words."""
        return f"a number from {self.low:g} to {self.high:,g}, or None for no answer"

    @property
    def tolerance(self) -> str:
        """How close an answer has to be, in words."""
        return f"Your answer counts as right within a factor of {self.factor:g}."

    def accepts(self, value: Any) -> bool:
        """Return whether it is a number in the range, or no answer."""
        return value is None or (type(value) in (int, float) and self.low <= value <= self.high)

    def verdict(self, answer: float | None) -> str | None:
        """Tell ``"right"`` from ``"wrong"``; `None` without an answer."""
        if answer is None:
            return None
        near = abs(math.log(answer / self.truth())) <= math.log(self.factor)
        return "right" if near else "wrong"


class Controls:
    """All controls of a lab."""

    def __init__(self, controls: Iterable[Control]) -> None:
        self.by_id = {control.id: control for control in controls}

    def check(self, state: Mapping[str, Any]) -> dict[str, Any]:
        """Return the values that the student set, each validated by its control.

        Raises
        ------
        ConfigError
            If the state is not a mapping, has an unknown key, or has a value that its control does
            not accept.
        """
        if not isinstance(state, Mapping):
            raise ConfigError(
                f"state = {shown(state)} must be a mapping from the names of controls to values",
                argument="state",
            )
        for name in state:
            if name not in self.by_id:
                raise UnknownEntryError.build(name, "control", self.by_id)
        return {name: self.by_id[name].admit(value) for name, value in state.items()}

    def complete(self, state: Mapping[str, Any]) -> dict[str, Any]:
        """Return the value of every control: the one that the student set, or its start."""
        start = {name: control.start for name, control in self.by_id.items()}
        return start | self.check(state)
