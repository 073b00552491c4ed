"""The inverse question: which value of one input brings a result to a target?"""

from __future__ import annotations

import dataclasses
import itertools
import math
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from mlsysim.core.errors import ConfigError, MLSysError, UnknownEntryError, shown
from mlsysim.core.fields import record
from mlsysim.core.files import printable
from mlsysim.core.gradient import slopes
from mlsysim.core.numeric import zero_like
from mlsysim.core.result import Result
from mlsysim.core.units import dress, format_number, si_factor, strip, told
from mlsysim.planner.sensitivities.elasticities import Sensitivity
from mlsysim.planner.sensitivities.questions import Place, Question, question_behind

_DECADES = 6
_PER_DECADE = 8
_MOST_WHOLE = 256
_HALVINGS = 200
_PRECISION = 1e-12
_SAME = 1e-3
"""Relative difference below which results count as equal."""


@record
class Requirement:
    """Answer of `required`.

    Attributes
    ----------
    field : str
        The field of the result.
    by : str
        The input that was changed.
    target : object
        The target value of the field.
    value : object or None
        The value of the input nearest to the present one at which the field reaches the target;
        `None` if there is none. Whole numbers reach it or pass it.
    reached : object
        The field at that value; if none reaches the target, the best value of the field.
    best_value : object
        The input at which `reached` occurs.
    monotone : bool
        Whether the field only rises, or only falls, with the input in all samples. If not, other
        values may reach the target too.
    limited_by : str
        If the target is out of reach, the input that the field depends on most there.
    words : str
        The same in words.
    """

    field: str
    by: str
    target: Any = dataclasses.field()
    value: Any = dataclasses.field()
    reached: Any = dataclasses.field()
    best_value: Any = dataclasses.field()
    monotone: bool
    limited_by: str
    words: str

    def __str__(self) -> str:
        return printable(self.words, lines=True)


def required(result: Result, field: str, target: Any, *, by: str) -> Requirement:
    """Find the value of one input at which a result reaches a target, with all others fixed.

    Parameters
    ----------
    result
        A result of a solver's `solve`.
    field
        A numeric field of it.
    target
        The target value of the field, such as ``Q_(4, "s")``; a plain number is in the field's
        unit.
    by
        The input: an argument's name, or a path such as ``"fleet.fabric.bandwidth"``, as `explain`
        and `sensitivity` print it.

    Returns
    -------
    Requirement
        The value; or, if no value reaches the target, how close it comes and what limits it.

    Raises
    ------
    UnknownEntryError
        If there is no such field or input.
    ConfigError
        If the field or the input is not a number, or the target is negative or has another
        dimension than the field.

    Notes
    -----
    The solver is evaluated at values over twelve decades, then bisection refines the interval
    nearest to the present value in which the result crosses the target. Values that the solver
    rejects are skipped, so whole numbers such as group sizes only take values that fit the other
    arguments. Values at which the job is infeasible are skipped too, if it is feasible now. If a
    shape of the model changes, its parameters change with it.

    Examples
    --------
    >>> from mlsysim import DistributedSolver, Models, Q_, Systems, required
    >>> r = DistributedSolver.solve(
    ...     model=Models.Llama3_8B,
    ...     fleet=Systems.Clusters.Research_256,
    ...     batch_size=512,
    ...     efficiency=0.5,
    ... )
    >>> r.step_latency_total.to("s").magnitude > 2
    True
    >>> needed = required(r, "step_latency_total", Q_(2, "s"), by="fleet.fabric.bandwidth")
    >>> needed.reached.to("s").magnitude <= 2
    True
    """
    if not isinstance(result, Result) or "_origin" not in result.__dict__:
        raise ConfigError(
            f"result = {shown(result)} is not a result: give what a solver's solve returns",
            argument="result",
        )
    field, plain_target, made = _field(result, field, target)
    question = question_behind(result)
    if not isinstance(by, str):
        raise UnknownEntryError.build(by, "input", question.solver.parameters)
    place = question.place(by)
    search = _Search(question, place, field)
    found = search.reach(plain_target)
    monotone = search.monotone
    if found is not None:
        value, reached = found
        words = (
            f"{field} reaches {format_number(made(reached))} at {by} = "
            f"{format_number(place.dressed(value))}"
        )
        if not math.isnan(place.value):
            words += f" (now {format_number(place.dressed(place.value))})"
        if not monotone:
            words += "; the dependence is not monotone, so other values may also reach it"
        return Requirement(
            field=field,
            by=by,
            target=made(plain_target),
            value=place.dressed(value),
            reached=made(reached),
            best_value=place.dressed(value),
            monotone=monotone,
            limited_by="",
            words=words,
        )
    value, reached = search.nearest(plain_target)
    limit, strength = _limit(question.changed(place, value), field, by)
    stopped = f"; there it depends most on {limit} (elasticity {strength:.2g})" if limit else ""
    if len(search.samples) == 1:
        stopped = "; every other value that was tried is invalid or infeasible"
    elif search.flat:
        stopped = "; it does not depend on this input here"
    elif search.refused:
        stopped += "; infeasible values do not count"
    return Requirement(
        field=field,
        by=by,
        target=made(plain_target),
        value=None,
        reached=made(reached),
        best_value=place.dressed(value),
        monotone=monotone,
        limited_by=limit,
        words=f"no value of {by} brings {field} to {format_number(made(plain_target))}: the best "
        f"is {format_number(made(reached))}, at {format_number(place.dressed(value))}{stopped}",
    )


def _field(result: Result, field: str, target: Any) -> tuple[str, float, Callable[[float], Any]]:
    """Return a field's name, the target in SI base units, and what makes values of the field."""
    name = result._derived(field)
    declared = {
        item.name: item.metadata for item in dataclasses.fields(result) if "unit" in item.metadata
    }
    if name not in declared:
        raise UnknownEntryError.build(name, f"numeric field of {type(result).__name__}", declared)
    given, plain = declared[name]["unit"], declared[name]["plain"]
    if isinstance(target, int) and abs(target) > sys.float_info.max:
        target = math.inf
    if not plain and not hasattr(target, "magnitude") and isinstance(target, int | float):
        target = dress(float(target) * si_factor(given), given)
    number = strip(target, given, "target")
    if isinstance(number, bool) or not isinstance(number, int | float) or not math.isfinite(number):
        raise ConfigError(
            f"target = {shown(target)} is not a finite number: give one in {given or 'no unit'}",
            argument="target",
        )
    present = getattr(result, name)
    if number < 0 and not (present is not None and present < zero_like(present)):
        raise ConfigError(
            f"target = {told(target)} is out of range: {name} is never negative; give zero or more",
            argument="target",
        )
    return name, float(number), (lambda v: v) if plain else (lambda v: dress(v, given))


@dataclass
class _Search:
    """The field as a function of one number."""

    question: Question
    place: Place
    field: str

    def __post_init__(self) -> None:
        self.runs = bool(self.question.outputs().get("feasible", True))
        self.refused = False
        self._known: dict[float, float | None] = {}
        self.samples = sorted(
            (value, answer) for value in {*self._grid()} if (answer := self(value)) is not None
        )
        if not self.samples:
            raise ConfigError(
                f"{self.field} has no value at any tried value of {self.place.path}: choose "
                "another input with sensitivity()",
                argument="by",
            )

    def __call__(self, value: float) -> float | None:
        """Return the field at a value; `None` if the value is invalid or infeasible."""
        if value not in self._known:
            answer = math.nan
            try:
                outputs = self.question.changed(self.place, value).outputs()
                runs = bool(outputs.get("feasible", True)) or not self.runs
                self.refused |= not runs
                answer = float(outputs[self.field]) if runs else math.nan
            except (MLSysError, OverflowError, ZeroDivisionError):
                pass
            self._known[value] = answer if math.isfinite(answer) else None
        return self._known[value]

    def _grid(self) -> Iterator[float]:
        now = self.place.value
        if self.place.whole:
            start = 1 if math.isnan(now) else max(1, int(now))
            yield from range(_MOST_WHOLE + 1)
            yield from (start * 2**power for power in range(41))
            yield from (start // n for n in range(1, _MOST_WHOLE + 1))
            yield from (start * n for n in range(1, 65))
            return
        if not math.isnan(now):
            yield now
        base = self.place.step if math.isnan(now) or now == 0 else now
        steps = _DECADES * _PER_DECADE
        yield from (base * 10 ** (n / _PER_DECADE) for n in range(-steps, steps + 1))
        yield 0.0
        # Upper end of shares
        yield from (share for share in (0.25, 0.5, 0.75, 0.9, 1.0) if self.place.step == 1)

    @property
    def monotone(self) -> bool:
        """Whether the samples only rise, or only fall, up to rounding."""
        answers = [answer for _, answer in self.samples]
        slack = 1e-9 * max(map(abs, answers))
        pairs = list(itertools.pairwise(answers))
        rises = any(b > a + slack for a, b in pairs)
        return not (rises and any(b < a - slack for a, b in pairs))

    @property
    def flat(self) -> bool:
        """Whether all samples are equal, up to rounding."""
        answers = [answer for _, answer in self.samples]
        return max(answers) - min(answers) <= _PRECISION * max(map(abs, answers))

    def far(self, item: tuple[float, float]) -> float:
        """Return how far the value of a sample is from the present one."""
        now = self.place.value
        if item[0] > 0 and now > 0:
            return abs(math.log(item[0] / now))
        return abs(item[0]) if math.isnan(now) else abs(item[0] - now)

    def reach(self, target: float) -> tuple[float, float] | None:
        """Return the value nearest to the present one that reaches the target, and the answer.

        Reaching the target means crossing from the side of the present result to the target or
        beyond.
        """
        now = self.place.value
        present = None if math.isnan(now) else self(now)
        if present is None:
            now, present = self.samples[0]
        if present == target:
            return now, present
        sign = 1.0 if present > target else -1.0

        def good(answer: float) -> bool:
            return sign * (answer - target) <= 0

        below = [item for item in self.samples if item[0] < now]
        above = [item for item in self.samples if item[0] > now]
        found = []
        for side in (reversed(below), above):
            last = now
            for value, answer in side:
                if good(answer):
                    found.append(self._refined(last, value, good))
                    break
                last = value
        return min(found, key=self.far, default=None)

    def _refined(
        self, bad: float, good: float, is_good: Callable[[float], bool]
    ) -> tuple[float, float]:
        """Halve the interval between a value that misses the target and one that reaches it."""
        for _ in range(_HALVINGS):
            if self.place.whole:
                inside = _whole_between(bad, good, self)
                if inside is None:
                    break
                middle = inside
            else:
                positive = bad > 0 and good > 0
                middle = math.sqrt(bad * good) if positive else (bad + good) / 2
                if abs(good - bad) <= _PRECISION * max(abs(good), abs(bad)):
                    break
            answer = self(middle)
            if answer is not None and is_good(answer):
                good = middle
            else:
                bad = middle
        reached = self(good)
        return good, math.nan if reached is None else reached

    def nearest(self, target: float) -> tuple[float, float]:
        """Return the sample closest to the target; among several, the least extreme one."""
        best = min(abs(answer - target) for _, answer in self.samples)
        near = [item for item in self.samples if abs(item[1] - target) <= best * (1 + _SAME)]
        return min(near, key=self.far)


def _whole_between(bad: float, good: float, search: _Search) -> float | None:
    """Return a whole number near the middle of two that the solver accepts."""
    low, high = sorted((int(bad), int(good)))
    middle = (low + high) // 2
    for distance in range(min(high - low, _MOST_WHOLE)):
        for value in (middle - distance, middle + distance):
            if low < value < high and search(value) is not None:
                return value
    return None


def crossing(
    difference: Callable[[float], float | None], value: float, way: float, *, factor: float = 1e3
) -> float | None:
    """Return where a function of a positive number changes sign, in one direction from a value.

    `way` is +1 to look at larger values and -1 to look at smaller ones, up to a `factor`. The
    answer is `None` if there is no such value, or if the function has no value on the way there.
    """
    good = bad = value
    start = difference(value)
    if start is None or start == 0:
        return None
    steps = 24
    for step in range(1, steps + 1):
        good = value * factor ** (way * step / steps)
        there = difference(good)
        if there is None:
            return None
        if there * start <= 0:
            for _ in range(60):
                middle: float = math.sqrt(bad * good)
                at = difference(middle)
                if at is not None and at * start <= 0:
                    good = middle
                else:
                    bad = middle
            return good
        bad = good
    return None


def _limit(question: Question, field: str, by: str) -> tuple[str, float]:
    """Return the input that a field depends on most, except one; of the same record if possible."""
    number = question.recorded(field)
    rows = [
        (row["input"], row["elasticity"])
        for row in Sensitivity(field, number.value, slopes(number))
        if row["input"] != by and row["elasticity"]
    ]
    kin = [row for row in rows if "." in by and row[0].split(".")[0] == by.split(".")[0]]
    return next(iter(kin or rows), ("", 0.0))
