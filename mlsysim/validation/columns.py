"""Columns of a table of measurements: a solver's arguments, and the fields of its result."""

from __future__ import annotations

import inspect
import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from mlsysim.core.errors import ConfigError, shown
from mlsysim.core.fields import units_of
from mlsysim.core.units import is_quantity, read_amount, si_factor
from mlsysim.scenario.files import scalar_of
from mlsysim.scenario.names import read_argument
from mlsysim.solvers import QUESTIONS
from mlsysim.solvers.arguments import Amount, Choice, Switch
from mlsysim.solvers.base import Solver
from mlsysim.validation.report import Comparison, combined_band, comparison
from mlsysim.validation.rows import Row, Skip, above_zero

KINDS = QUESTIONS
"""The solver that predicts each kind of measurement."""
LABELS = ("id", "group", "split", "source")
"""Columns of every kind, which describe a row."""
_HEAD = re.compile(r"(\w+)(?: *\((.+)\))?")
_RENAMED = Path(__file__).with_name("renamed.toml")
_MARKS = {"disaggregated": "decode_workers"}
"""The column without which a table that fits a kind is taken to be of another one."""
_NEAR = 0.85
"""Likeness of a column's name to a known one from which it counts as misspelled."""


class Head(NamedTuple):
    """The head of a column: the name of an argument or of a field, and the unit of its cells."""

    text: str
    name: str
    unit: str

    @classmethod
    def of(cls, text: Any) -> Head:
        """Split a head such as "ttft (ms)"."""
        match = _HEAD.fullmatch(str(text).strip())
        return cls(text, match[1], match[2] or "") if match else cls(text, str(text), "")


@cache
def fields_of(kind: str) -> Mapping[str, str]:
    """Return the numbers of a kind's result, and the unit of each."""
    return {name: unit for name, unit, _ in units_of(KINDS[kind].result)}


@cache
def _needed(kind: str) -> frozenset[str]:
    """Return the arguments without a default."""
    solver = KINDS[kind]
    given = inspect.signature(solver.solve).parameters
    return frozenset(n for n in solver.parameters if given[n].default is inspect.Parameter.empty)


@cache
def _known() -> frozenset[str]:
    """Return the names of all columns of all kinds."""
    return frozenset().union(
        *({*solver.parameters, *fields_of(kind)} for kind, solver in KINDS.items())
    )


@dataclass(frozen=True)
class Columns:
    """The columns of a table of one kind."""

    kind: str
    arguments: tuple[Head, ...]
    measured: tuple[Head, ...]

    @property
    def solver(self) -> type[Solver[Any, Any]]:
        """The solver that predicts the rows."""
        return KINDS[self.kind]

    @classmethod
    def of(cls, rows: Sequence[Row], kind: str | None = None) -> Columns:
        """Read the heads of a table of one kind, which follows from them if it is not given."""
        texts = dict.fromkeys(text for row in rows for text in row.cells if text)
        heads = [head for head in map(Head.of, texts) if head.name not in LABELS]
        _refuse_earlier(heads)
        name = _kind_of(heads) if kind is None or (isinstance(kind, str) and not kind) else kind
        solver = KINDS[Choice.among(KINDS).admit("kind", name)]
        _refuse_unknown(heads, name)
        arguments = tuple(head for head in heads if head.name in solver.parameters)
        fields = fields_of(name).keys() - solver.parameters.keys()
        measured = tuple(head for head in heads if head.name in fields)
        _refuse_repeated([*arguments, *measured])
        lacking = sorted(_needed(name) - {head.name for head in arguments})
        if lacking:
            raise ConfigError(
                f"source has no column {', '.join(lacking)}, which {name} needs: add it",
                argument="source",
            )
        if not measured:
            raise ConfigError(
                f"source has no measured value of {name}: add a column with the name of a field "
                f"of {solver.result.__name__}, and its unit, such as {_example(name)}",
                argument="source",
            )
        _check_units(name, (*arguments, *measured))
        return cls(name, arguments, measured)

    def arguments_in(self, row: Row) -> dict[str, Any]:
        """Return the solver's arguments in a row; an empty cell leaves the default."""
        given = {}
        for head in self.arguments:
            value = row.cells.get(head.text)
            kind = self.solver.parameters[head.name]
            if isinstance(value, str) or head.unit:
                text = f"{row.text(head.text)} {head.unit}".strip()
                if not row.text(head.text):
                    continue
                # Spreadsheets write TRUE and FALSE.
                text = text.lower() if isinstance(kind, Switch) else text
                value = read_argument(kind, head.name, scalar_of(text))
            if value is not None:
                given[head.name] = value
        empty = sorted(_needed(self.kind) - given.keys())
        if empty:
            raise Skip(f"{', '.join(empty)} is empty, and {self.kind} needs it")
        return given

    def measured_in(self, row: Row) -> dict[str, float]:
        """Return the measured values in a row, each as a number in the unit of `unit_of`."""
        values = {}
        for head in self.measured:
            cell: Any = row.cells.get(head.text)
            unit = self.unit_of(head)
            if is_quantity(cell):
                values[head.name] = above_zero(head.text, cell.to(unit).magnitude)
            elif not row.text(head.text):
                continue
            elif head.unit or not unit:
                values[head.name] = row.measured(head.text)
            else:
                amount = read_amount(row.text(head.text), unit, head.name)
                values[head.name] = above_zero(head.text, amount.to(unit).magnitude)
        if not values:
            names = ", ".join(head.text for head in self.measured)
            raise Skip(f"{names} is empty: nothing was measured")
        return values

    def unit_of(self, head: Head) -> str:
        """Return the unit of a measured column: that of its head, or the usual one of the field."""
        return head.unit or fields_of(self.kind)[head.name]

    def in_si(self, name: str, value: float) -> float:
        """Convert a value of a measured column to SI units."""
        head = next(head for head in self.measured if head.name == name)
        return value * si_factor(self.unit_of(head))

    def compare(self, row: Row, changes: Mapping[str, Any]) -> tuple[Comparison, ...]:
        """Predict the measured values of a row, with some of its arguments changed."""
        values = self.measured_in(row)
        return self.compare_with(
            row, values, self.solver.solve(**{**self.arguments_in(row), **changes})
        )

    def compare_with(
        self, row: Row, values: Mapping[str, float], result: Any
    ) -> tuple[Comparison, ...]:
        """Compare the measured values of a row with a result, which must predict each of them."""
        faults = "; ".join(getattr(result, "reasons", ()))
        compared = []
        for head in self.measured:
            if head.name not in values:
                continue
            if result[head.name] is None:
                why = faults or "the solver returns none for these arguments"
                raise Skip(f"{head.name} has no prediction: {why}; leave its cell empty")
            compared.append(
                comparison(
                    row,
                    result,
                    head.name,
                    self.unit_of(head),
                    values[head.name],
                    group=f"{row.group}: {head.name}" if len(self.measured) > 1 else row.group,
                    note="" if getattr(result, "feasible", True) else f"not feasible: {faults}",
                    band=combined_band(result, head.name, self.unit_of(head)),
                )
            )
        return tuple(compared)


def _example(kind: str) -> str:
    name, unit = next((name, unit) for name, unit in fields_of(kind).items() if unit)
    return f"{name} ({unit})"


def _check_units(kind: str, heads: Iterable[Head]) -> None:
    """Refuse a unit of another dimension in a head, and any unit of a plain argument."""
    for head in heads:
        argument = KINDS[kind].parameters.get(head.name)
        if head.unit and argument is not None and not isinstance(argument, Amount):
            raise ConfigError(
                f"the column {shown(head.text)} has a unit, but {head.name} is a plain value: "
                f"write {head.name}",
                argument="source",
            )
        if head.unit:
            expected = fields_of(kind)[head.name] if argument is None else argument.unit
            read_amount(f"1 {head.unit}", expected, head.text)


def _refuse_earlier(heads: Iterable[Head]) -> None:
    """Refuse the columns of earlier tables, and name the new ones."""
    unknown = [head.name for head in heads if head.name not in _known()]
    if not unknown:
        return
    renamed = tomllib.loads(_RENAMED.read_text(encoding="utf-8"))
    earlier: dict[str, list[str]] = {}
    for name in unknown:
        if name in renamed:
            earlier.setdefault(renamed[name], []).append(name)
    if not earlier:
        return
    # A checkout of the repository can read such tables.
    research = Path(__file__).parents[2] / "research" / "validate.py"
    other = "\npython -m research.validate FILE reads them unchanged" if research.exists() else ""
    names = "".join(f"\n  {', '.join(old)}: {new}" for new, old in earlier.items())
    raise ConfigError(
        "source has columns of earlier tables. Rename them to the argument or the result that they "
        f"hold:{names}{other}",
        argument="source",
    )


def _refuse_unknown(heads: Iterable[Head], kind: str) -> None:
    """Refuse columns of other kinds, and misspelled ones; others may hold remarks."""
    names = {*KINDS[kind].parameters, *fields_of(kind), *LABELS}
    for head in heads:
        if head.name in names:
            continue
        near = get_close_matches(head.name, names, n=1, cutoff=_NEAR)
        if near:
            raise ConfigError(
                f"the column {shown(head.text)} is unknown; did you mean {near[0]}?",
                argument="source",
            )
        if head.name in _known():
            others = [name for name, solver in KINDS.items() if head.name in solver.parameters]
            raise ConfigError(
                f"the column {shown(head.text)} does not belong to {kind}, but to "
                f"{', '.join(others) or 'the results of other kinds'}: remove it, or name the kind",
                argument="source",
            )


def _refuse_repeated(heads: Sequence[Head]) -> None:
    """Refuse two columns for one argument or field, such as ttft (s) and ttft (ms)."""
    for place, head in enumerate(heads):
        if any(head.name == other.name for other in heads[:place]):
            raise ConfigError(
                f"source has {head.name} at the head of two columns: keep one of them",
                argument="source",
            )


def _kind_of(heads: Sequence[Head]) -> str:
    """Return the one kind that has every column that any kind has."""
    names = {head.name for head in heads} & _known()
    fitting = [
        kind
        for kind, solver in KINDS.items()
        if _needed(kind) <= names <= {*solver.parameters, *fields_of(kind)}
        and _MARKS.get(kind, "") in {"", *names}
        and names & fields_of(kind).keys() - solver.parameters.keys()
    ]
    if len(fitting) == 1:
        return fitting[0]
    what = (
        f"fit {', '.join(fitting)}" if fitting else f"fit no kind of measurement{_nearest(names)}"
    )
    raise ConfigError(
        f"the columns {what}: name the kind with kind= (--kind on the command line), one of "
        f"{', '.join(fitting or KINDS)}, whose arguments and results the columns are named after",
        argument="kind",
    )


def _nearest(names: Set[str]) -> str:
    """Return what is wrong with some columns as those of the kind that has most of them."""

    def differences(kind: str) -> tuple[Set[str], Set[str]]:
        return _needed(kind) - names, names - {*KINDS[kind].parameters, *fields_of(kind)}

    kind = min(KINDS, key=lambda kind: sum(map(len, differences(kind))))
    lacking, strange = (", ".join(sorted(part)) for part in differences(kind))
    faults = [f"{lacking} is missing"] if lacking else []
    faults += [f"{strange} is unknown"] if strange else []
    return f" (in {kind}, {' and '.join(faults)})" if names and faults else ""
