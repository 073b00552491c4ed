"""The law of sweeps: every row equals what `solve` returns for its arguments, errors included.

Values must have the same type and agree to a relative 1e-12. The tally also counts those that are
equal to the last bit. Refusals must have the same class, argument and message.
"""

from __future__ import annotations

import math
import random
import re
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields
from typing import Any
from unittest.mock import patch

import numpy as np

from mlsysim import Q_, ConfigError, sweep
from mlsysim.solvers.arguments import Number
from mlsysim.solvers.base import Solver
from mlsysim.sweeps import slices
from tools.sweep_questions import Question, question, values_of

_TOLERANCE = 1e-12
_SKIPPED = frozenset(
    (
        "calibration",
        "kwh_price_source",
        "power_calibration",
        "band",
        "offer_name",
        "outside",
        "reasons",
        "region_name",
        "parallelism",
        "node_performance",
    )
)
"""Fields that tables do not have: texts, and nested results. `Sweep.result` has them."""
_OWN = frozenset(
    (
        "model",
        "fleet",
        "hardware",
        "precision",
        "recompute",
        "optimizer",
        "loss",
        "schedule",
        "attention",
    )
)
"""Arguments whose columns show the given names."""
_COUNT = re.compile(
    r" \(([0-9]+ of [0-9]+ configurations|one of [0-9]+ values of this axis); .*\)$"
)
"""What a sweep adds to the message of `solve`."""


@dataclass
class Tally:
    """How much was compared: sweeps, rows, fields of results, and fields equal to the last bit."""

    sweeps: int = 0
    rows: int = 0
    cells: int = 0
    exact: int = 0


def try_sweeps(
    cells: int, seed: int, report: Callable[[Tally], None], every: float = 10.0
) -> Tally:
    """Check random sweeps until so many cells are compared; report from time to time.

    Raises
    ------
    AssertionError
        If the law is broken.
    """
    tally, shown = Tally(), time.monotonic()
    while tally.cells < cells:
        check(question(random.Random(f"{seed} {tally.sweeps}").choice), tally)
        if time.monotonic() - shown > every:
            shown = time.monotonic()
            report(tally)
    return tally


def check(asked: Question, tally: Tally) -> None:
    """Compare a sweep with `solve`, cell by cell.

    Raises
    ------
    AssertionError
        If the law is broken. The message shows the sweep and the difference.
    """
    rows = list(asked.rows())
    answers = [_answer(asked.solver, row) for row in rows]
    faults = [answer for answer in answers if isinstance(answer, ConfigError)]
    tally.sweeps, tally.rows = tally.sweeps + 1, tally.rows + len(rows)
    hopeless = _wrong_in_itself(asked)
    try:
        with patch.object(slices, "_CACHED", asked.cached):
            table = sweep(asked.solver, how=asked.how, invalid=asked.invalid, **asked.arguments)
    except ConfigError as fault:
        allowed = faults if hopeless else faults[:1] if asked.invalid == "raise" else []
        if _words(fault) not in map(_words, allowed):
            raise _breach(asked, f"refused: {fault!r}, but solve: {allowed}") from fault
        return
    if hopeless or (asked.invalid == "raise" and faults):
        raise _breach(asked, f"not refused, but solve: {faults[0]!r}")
    if asked.invalid == "drop":
        kept = [i for i, answer in enumerate(answers) if not isinstance(answer, ConfigError)]
        rows, answers = [rows[i] for i in kept], [answers[i] for i in kept]
    if len(table) != len(rows):
        raise _breach(asked, f"{len(table)} rows instead of {len(rows)}")
    for number, (given, answer, row) in enumerate(zip(rows, answers, table, strict=True)):
        for name, got, wanted in _pairs(asked, given, answer, row):
            tally.cells += 1
            if not _same(got, wanted):
                raise _breach(asked, f"row {number}: {name} is {got!r}, not {wanted!r}")
            tally.exact += getattr(got, "magnitude", got) == getattr(wanted, "magnitude", wanted)


def _pairs(
    asked: Question, given: Mapping[str, Any], answer: Any, row: Mapping[str, Any]
) -> Iterator[tuple[str, Any, Any]]:
    """Yield the name of each field, its value in the row, and the value that it should have."""
    refused = isinstance(answer, ConfigError)
    yield "valid", row["valid"], not refused
    for name in asked.axes:
        kind = asked.solver.parameters[name]
        if name in _OWN & set(row):
            wanted = getattr(given[name], "name", given[name])
            yield name, row[name], wanted.item() if isinstance(wanted, np.generic) else wanted
        elif name in row and isinstance(kind, Number) and given[name] is not None:
            # A quantity may come back in another unit.
            yield name, math.isclose(*(kind.admit(name, v) for v in (row[name], given[name]))), True
    for item in fields(asked.solver.result):
        name = item.name
        if name in _SKIPPED or (refused and (name in given or name not in row)):
            continue
        unknown = False if item.type == "bool" else None
        yield name, row.get(name), unknown if refused else answer[name]


def _answer(solver: type[Solver[Any, Any]], row: Mapping[str, Any]) -> Any:
    try:
        return solver.solve(**row)
    except ConfigError as fault:
        return fault


def _words(fault: ConfigError) -> tuple[Any, ...]:
    return type(fault), vars(fault)["argument"], _COUNT.sub("", fault.message)


def _wrong_in_itself(asked: Question) -> bool:
    """Return whether a value is wrong whatever the other arguments are."""
    for name, value in asked.arguments.items():
        several = values_of(value)
        for one in [value] if several is None else several:
            try:
                asked.solver.parameters[name].admit(name, one)
            except ConfigError:
                return True
    return False


def _same(got: Any, wanted: Any) -> bool:
    if type(got) is not type(wanted):
        return False
    if isinstance(got, Q_):
        return got.units == wanted.units and _same(got.magnitude, wanted.magnitude)
    if isinstance(got, float):
        return math.isclose(got, wanted, rel_tol=_TOLERANCE, abs_tol=0)
    return bool(got == wanted)


def _breach(asked: Question, words: str) -> AssertionError:
    return AssertionError(f"{asked}\n{words}")
