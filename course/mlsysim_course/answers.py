"""Parts of an exercise: amounts, counts and choices, each with its answer and common mistakes.

An exercise is a function that computes the right answer, and those of common mistakes, when a
student answers. No answer is stored, and no hint contains one.
"""

from __future__ import annotations

import math
import re
import sys
import textwrap
from collections.abc import Callable, Iterator, Mapping
from dataclasses import KW_ONLY, dataclass, field
from fractions import Fraction
from functools import cached_property
from numbers import Real
from typing import Any

from mlsysim.core.errors import ConfigError, shown
from mlsysim.core.units import has_dimension, read_amount, real_number, strip

# Ratios of a wrong answer to the right one with a specific hint.
_PLAIN_SLIPS = (
    (100.0, "Your answer is off by a factor of a hundred. Is it a share or a percentage?"),
)
_UNIT_SLIPS = (
    (8.0, "Your answer is off by a factor of eight. Is it in bits or bytes?"),
    (1e3, "Your answer is off by a factor of a thousand. Check the prefix of the unit."),
    (1e6, "Your answer is off by a factor of a million. Check the prefix of the unit."),
    (1e9, "Your answer is off by a factor of a billion. Check the prefix of the unit."),
)
_BARE = re.compile(r"[-+]?[0-9]+(?:\.[0-9]+)?(?:[eE][-+]?[0-9]{1,3})?")
_TOO = "Too"


@dataclass(frozen=True)
class Verdict:
    """The verdict on an answer. It is true if the answer is right.

    Attributes
    ----------
    right : bool
        Whether every part of the answer is given and right.
    hint : str
        The step to check; empty if `right`.
    """

    right: bool
    hint: str = ""

    def __bool__(self) -> bool:
        return self.right

    def __repr__(self) -> str:
        lines = self._words().split("\n")
        return "\n".join(textwrap.fill(line, 80) for line in lines)

    def _repr_markdown_(self) -> str:
        return self._words().replace("\n", "\n\n")

    def _words(self) -> str:
        return "Right." if self.right else f"Not yet. {self.hint}"


@dataclass(frozen=True)
class Asked:
    """One part of an exercise.

    Attributes
    ----------
    name : str
        Its name, which is an argument of `check`.
    asks : str
        The question, in words.
    truth : object
        The answer; a quantity becomes a number in SI base units.
    hint : str
        The hint for a wrong answer that no common mistake explains.
    """

    name: str
    _: KW_ONLY
    asks: str
    truth: Any
    hint: str = ""

    def missing(self, answer: Any) -> str:
        """Return a hint for a number that lacks its unit, or an empty text."""
        return ""

    def admit(self, answer: Any) -> Any:
        """Return the answer in a form that can be compared, or raise if it is of another kind."""
        raise NotImplementedError

    def judge(self, answer: Any) -> str:
        """Return a hint for a valid answer; empty for a right one."""
        raise NotImplementedError


@dataclass(frozen=True, kw_only=True)
class AmountAsked(Asked):
    """A quantity, or a number if `unit` is empty, right within a relative `tolerance`.

    `mistakes` maps the answers that common mistakes lead to, to hints. A worked answer on a page
    shows the truth in the format `form`.
    """

    unit: str = ""
    tolerance: float = 0.02
    form: str = ".3g"
    mistakes: Mapping[Any, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Convert the answers to numbers in SI base units."""
        mistakes = {self._number(wrong): hint for wrong, hint in self.mistakes.items()}
        object.__setattr__(self, "truth", self._number(self.truth))
        object.__setattr__(self, "mistakes", mistakes)

    def _number(self, amount: Any) -> Any:
        return strip(amount, self.unit, self.name) if hasattr(amount, "to") else amount

    def missing(self, answer: Any) -> str:
        """Return a hint that names the unit, for a bare number that needs one."""
        if not has_dimension(self.unit):
            return ""
        if isinstance(answer, str):
            bare = _BARE.fullmatch(answer.strip()) is not None
        else:
            bare = isinstance(answer, Real) and not isinstance(answer, bool)
        if not bare or not abs(float(answer) if isinstance(answer, str) else answer) < 1e30:
            return ""
        if isinstance(answer, str):
            return f'Add the unit, as in "{answer.strip()[:20]} {self.unit}".'
        return f'Add the unit, as in Q_({float(answer):g}, "{self.unit}").'

    def admit(self, answer: Any) -> float:
        """Return the answer in SI base units."""
        if isinstance(answer, str):
            answer = read_amount(answer, self.unit, self.name)
        if isinstance(answer, Fraction):  # pipeline schedules return fractions
            answer = float(answer)
        value = real_number(strip(answer, self.unit, self.name))
        if value is None:
            raise ConfigError(
                f"{self.name} = {shown(answer)} must be one number", argument=self.name
            )
        if not abs(value) <= sys.float_info.max:
            raise ConfigError(
                f"{self.name} = {shown(answer)} must be a finite number", argument=self.name
            )
        return float(value)

    def judge(self, answer: Any) -> str:
        """Compare with the right answer, then with the answers of common mistakes."""
        if self._near(answer, self.truth):
            return ""
        near = [
            (abs(answer - wrong), hint)
            for wrong, hint in self.mistakes.items()
            if self._near(answer, wrong)
        ]
        if near:
            return min(near)[1]
        for factor, hint in self._slips():
            if self._near(answer, self.truth * factor) or self._near(answer, self.truth / factor):
                return hint
        return f"{_TOO} {'large' if answer > self.truth else 'small'}. {self.hint}".rstrip()

    def _slips(self) -> tuple[tuple[float, str], ...]:
        return _UNIT_SLIPS if has_dimension(self.unit) else _PLAIN_SLIPS

    def _near(self, answer: float, value: float | Fraction) -> bool:
        return math.isclose(answer, value, rel_tol=self.tolerance)


@dataclass(frozen=True, kw_only=True)
class CountAsked(AmountAsked):
    """A whole number that must match exactly; ``"never"`` means that there is none."""

    tolerance: float = 0.0
    form: str = ",.0f"

    def admit(self, answer: Any) -> float:
        """Return the answer as a number; "never" is infinity."""
        if isinstance(answer, str) and answer.strip().lower() == "never":
            return math.inf
        return super().admit(answer)

    def judge(self, answer: float) -> str:
        """Require a whole number, then compare as amounts do."""
        if math.isfinite(answer) and answer != round(answer):
            for way, rounded in (("up", math.ceil), ("down", math.floor)):
                if rounded(answer) == self.truth:
                    return f"Almost. The answer is a whole number. Round {way}."
            return f"The answer is a whole number. {self.hint}".rstrip()
        hint = super().judge(answer)
        if hint.startswith(_TOO) and math.isinf(answer):
            return f"There is such a number. {self.hint}".rstrip()
        if hint.startswith(_TOO) and math.isinf(self.truth):
            return f"That number is not right. {self.hint}".rstrip()
        return hint

    def _slips(self) -> tuple[tuple[float, str], ...]:
        return ()


@dataclass(frozen=True, kw_only=True)
class ChoiceAsked(Asked):
    """One of several options. Wrong ones may have their own hints."""

    options: tuple[Any, ...]
    hints: Mapping[Any, str] | None = None
    catalog: Any = None

    def admit(self, answer: Any) -> Any:
        """Return the option; a registry row and its catalog name both count as its name."""
        row = answer
        if self.catalog is not None and isinstance(answer, str) and answer in dir(self.catalog):
            row = self.catalog[answer]
        named = getattr(row, "name", row)
        for option in self.options:
            if type(option) is type(named) and option == named:
                return option
        known = ", ".join(repr(option) for option in self.options)
        raise ConfigError(
            f"{self.name} = {shown(answer)} must be one of {known}", argument=self.name
        )

    def judge(self, answer: Any) -> str:
        """Compare with the right answer."""
        if answer == self.truth:
            return ""
        return (self.hints or {}).get(answer, self.hint)


Parts = Iterator[Asked]
"""What an exercise yields: its parts, with their right answers."""


@dataclass(frozen=True)
class Exercise:
    """An exercise: its name, and a function that yields the parts of its answer."""

    name: str
    answer: Callable[[], Parts]

    @cached_property
    def parts(self) -> Mapping[str, Asked]:
        """The parts by their names, with the right answers, which are computed now."""
        return {asked.name: asked for asked in self.answer()}

    def given(self, answer: Any, parts: Mapping[str, Any]) -> dict[str, Any]:
        """Return the answers by part, given alone or by name.

        Raises
        ------
        ConfigError
            If a part is unknown, or there are several and the answer names none.
        """
        wanted = "; ".join(f"{part}= ({asked.asks})" for part, asked in self.parts.items())
        for part in parts:
            if part not in self.parts:
                raise ConfigError(f"{self.name} has no part {shown(part)}: {wanted}", argument=part)
        if answer is None:
            return dict(parts)
        if parts or len(self.parts) > 1:
            raise ConfigError(
                f"{self.name} has several parts; give each by its name: {wanted}",
                argument="answer",
            )
        return {next(iter(self.parts)): answer}

    def hint(self, part: str, answer: Any) -> str:
        """Return a hint for the answer to a part; empty for a right one.

        Raises
        ------
        ConfigError
            If the answer is of the wrong kind.
        """
        asked = self.parts[part]
        return asked.missing(answer) or asked.judge(asked.admit(answer))

    def verdict(self, given: Mapping[str, Any], *, form: bool = False) -> Verdict:
        """Judge the answers by part, with the hints of all that are wrong or missing.

        Parameters
        ----------
        given
            The answers by part.
        form
            Whether the parts are the labeled fields of a form rather than arguments in Python.

        Raises
        ------
        ConfigError
            If an answer is of the wrong kind.
        """
        labels = {part: _capital(one.asks) if form else part for part, one in self.parts.items()}
        hints = self.joined({part: self.hint(part, x) for part, x in given.items()}, labels)
        hints += [
            f"{labels[part]}: no answer yet." if form else f"Give `{part}=`: {asked.asks}."
            for part, asked in self.parts.items()
            if part not in given
        ]
        return Verdict(not hints, "\n".join(hints))

    def joined(
        self, hints: Mapping[str, str], labels: Mapping[str, str] | None = None
    ) -> list[str]:
        """Return the nonempty hints, labeled if there are several parts: by default, by name."""
        alone = len(self.parts) == 1
        labels = labels or {part: part for part in self.parts}
        return [
            hint if alone else f"{labels[part]}: {hint}" for part, hint in hints.items() if hint
        ]


def exercise(answer: Callable[[], Parts]) -> Exercise:
    """Make an exercise of a function that computes its answer and is named after it."""
    return Exercise(answer.__name__.lstrip("_").replace("_", "-"), answer)


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
