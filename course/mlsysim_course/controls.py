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


@dataclass(frozen=True)
class Control:
    """Something that a reader can set: `id` is the key of its value in a state."""

    id: str

    @property
    def start(self) -> Any:
        """Value before the reader touches it; `None` is no answer to a question."""
        return None

    @property
    def choices(self) -> tuple[Any, ...]:
        """The values that it can have."""
        raise NotImplementedError

    @property
    def wanted(self) -> str:
        """What to give, in words."""
        return f"one of {', '.join(map(str, self.choices))}"

    def accepts(self, value: Any) -> bool:
        """Return whether the control can have a value."""
        return any(type(value) is type(choice) and value == choice for choice in self.choices)

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
class Setting(Control):
    """A control of an instrument, with its label and its first value."""

    label: str
    first: Any

    @property
    def start(self) -> Any:
        """Its first value."""
        return self.first

    def declaration(self) -> dict[str, Any]:
        """Return the control as plain data, for a form."""
        return {"id": self.id, "label": self.label, "value": self.first}


@dataclass(frozen=True)
class Slider(Setting):
    """One of a few numbers, in order."""

    values: tuple[int, ...]
    unit: str = ""

    @property
    def choices(self) -> tuple[int, ...]:
        """The numbers."""
        return self.values

    def declaration(self) -> dict[str, Any]:
        """Return the control as plain data, for a form."""
        kind_fields = {"kind": "slider", "values": list(self.values), "unit": self.unit}
        return super().declaration() | kind_fields


@dataclass(frozen=True)
class Selector(Setting):
    """One of several named options, with the label of each by its value."""

    options: Mapping[str, str]

    @property
    def choices(self) -> tuple[str, ...]:
        """The values of the options."""
        return tuple(self.options)

    def declaration(self) -> dict[str, Any]:
        """Return the control as plain data, for a form."""
        kind_fields = {"kind": "choice", "options": [*map(list, self.options.items())]}
        return super().declaration() | kind_fields


@dataclass(frozen=True)
class Paste(Setting):
    """A text that a reader enters."""

    most: int = 65_536

    @property
    def wanted(self) -> str:
        """What to give, in words."""
        return f"a text of at most {self.most:,} characters"

    def accepts(self, value: Any) -> bool:
        """Return whether it is a text that is not too long."""
        return isinstance(value, str) and len(value) <= self.most

    def declaration(self) -> dict[str, Any]:
        """Return the control as plain data, for a form."""
        return super().declaration() | {"kind": "text"}


@dataclass(frozen=True, kw_only=True)
class Question(Control):
    """A question of a page, which has its words.

    Attributes
    ----------
    truth : Callable
        Computes the right answer.
    """

    truth: Callable[[], Any]

    def is_right(self, answer: Any) -> bool:
        """Return whether an answer is right."""
        return bool(answer == self.truth())

    def verdict(self, answer: Any) -> str | None:
        """Tell ``"right"`` from ``"wrong"``; `None` without an answer."""
        if answer is None:
            return None
        return "right" if self.is_right(answer) else "wrong"

    def judged(self, answer: Any) -> dict[str, Any]:
        """Return an answer with its verdict as plain data, for a page."""
        return {"answer": answer, "verdict": self.verdict(answer), "right": None, "reply": ""}


@dataclass(frozen=True, kw_only=True)
class Choice(Question):
    """A question with one right option.

    Attributes
    ----------
    options : tuple of str
        The names of the options.
    locks : bool
        Whether the first answer is final.
    """

    options: tuple[str, ...]
    locks: bool = False

    @property
    def choices(self) -> tuple[str | None, ...]:
        """The options, or no answer."""
        return (*self.options, None)

    @property
    def wanted(self) -> str:
        """What to give, in words."""
        return f"one of {', '.join(self.options)}, or None for no answer"

    def declaration(self) -> dict[str, Any]:
        """Return the names of the options as plain data, for a form."""
        return {"options": list(self.options), "locks": self.locks}

    def judged(self, answer: Any) -> dict[str, Any]:
        """Return an answer with its verdict, and the right option once it is locked."""
        final = self.locks and answer is not None
        return super().judged(answer) | {"right": self.truth() if final else None}


@dataclass(frozen=True, kw_only=True)
class Estimate(Question):
    """A number to predict. The first answer is final.

    Attributes
    ----------
    unit : str
        Its unit as a student sees it.
    low, high : float
        The smallest and the largest number that it accepts; `low` is positive.
    factor : float
        An answer is right within this factor of the truth.
    reply : Callable
        Returns a sentence about an answer, which the page shows with the verdict.
    """

    unit: str
    low: float
    high: float
    factor: float
    reply: Callable[[float], str]

    @property
    def locks(self) -> bool:
        """Whether its first value is final."""
        return True

    @property
    def wanted(self) -> str:
        """What to give, in words."""
        return f"a number from {self.low:g} to {self.high:,g}, or None for no answer"

    def accepts(self, value: Any) -> bool:
        """Return whether it is a number in the range, or no answer."""
        return value is None or (type(value) in (int, float) and self.low <= value <= self.high)

    def is_right(self, answer: float) -> bool:
        """Return whether an answer is within the factor of the truth."""
        return abs(math.log(answer / self.truth())) <= math.log(self.factor)

    def declaration(self) -> dict[str, Any]:
        """Return the unit, the range and the tolerance as plain data, for a form."""
        tolerance = f"Your answer counts as right within a factor of {self.factor:g}."
        limits = {"unit": self.unit, "low": self.low, "high": self.high}
        return limits | {"tolerance": tolerance, "locks": self.locks}

    def judged(self, answer: Any) -> dict[str, Any]:
        """Return an answer with its verdict and the sentence about it."""
        return super().judged(answer) | {"reply": "" if answer is None else self.reply(answer)}


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
        """Return the value of every control: the one that the student set, or its first."""
        first = {name: control.start for name, control in self.by_id.items()}
        return first | self.check(state)
