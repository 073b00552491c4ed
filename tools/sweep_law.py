"""The law of sweeps: every row is what `solve` answers for its arguments, or refuses.

`question` makes up a sweep by a function that chooses among options, such as `random.choice` or a
draw of Hypothesis, and `check` holds every cell of it against `solve`. Axes are of all kinds that
a solver takes, in all containers, with values that contradict each other or are wrong.
"""

from __future__ import annotations

import inspect
import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from decimal import Decimal
from typing import Any

import numpy as np

from mlsysim import (
    Q_,
    Calibrations,
    ConfigError,
    DistributedSolver,
    EconomicsSolver,
    Fleet,
    Hardware,
    Infra,
    Models,
    PowerCalibrations,
    ReliabilitySolver,
    ServingCalibrations,
    ServingSolver,
    SingleNodeSolver,
    SustainabilitySolver,
    Systems,
    standalone_fleet,
    sweep,
)
from mlsysim.core.types import PRECISIONS
from mlsysim.solvers.amounts import Amount, Factor, Portion
from mlsysim.solvers.arguments import Argument, Choice, Noun, PrecisionName, Share, Switch, Whole
from mlsysim.solvers.base import Solver

__all__ = ["SOLVERS", "Question", "check", "question"]

Choose = Callable[[Sequence[Any]], Any]
SOLVERS: tuple[type[Solver[Any]], ...] = (
    DistributedSolver,
    ServingSolver,
    SingleNodeSolver,
    ReliabilitySolver,
    EconomicsSolver,
    SustainabilitySolver,
)
_TOLERANCE = 1e-12
_MOST_ROWS = 64


def _fleet(node: Any, count: int) -> Fleet:
    return Fleet(
        name=f"{count} {node.name}", node=node, count=count, fabric=Systems.Fabrics.InfiniBand_NDR
    )


_FLEETS = (
    Systems.Clusters.Research_256,
    Systems.Clusters.Frontier_8K,
    *(_fleet(node, count) for node, count in zip(Systems.Nodes, (1, 4, 2, 32, 6, 3, 2), strict=True)),
    _fleet(Systems.Nodes.DGX_H100, 10**6),
    replace(Systems.Clusters.Research_256, node=replace(Systems.Nodes.DGX_H100, unit_price=None)),
    standalone_fleet(Hardware.H100),
    standalone_fleet(Hardware.TPUv5p),
    standalone_fleet(Hardware.Tiny.ESP32_S3),
)
_NOUNS: Mapping[str, Sequence[Any]] = {
    "model": list(Models),
    "fleet": _FLEETS,
    "hardware": [*Hardware, *Systems.Nodes],
    "datacenter": [item for item in Infra if not hasattr(item, "racks")],
    "grid": list(Infra.Grids),
    "calibration": [*Calibrations, *ServingCalibrations],
    "power_calibration": list(PowerCalibrations),
}
_ONE: Mapping[type[Solver[Any]], Mapping[str, Any]] = {
    DistributedSolver: {"model": Models.Llama3_8B, "fleet": _FLEETS[0], "batch_size": 512},
    ServingSolver: {"model": Models.Llama3_8B, "hardware": Systems.Nodes.DGX_H100},
    SingleNodeSolver: {"model": Models.Llama3_8B, "hardware": Hardware.H100},
    ReliabilitySolver: {
        "fleet": _FLEETS[0], "job_duration_hours": 720, "checkpoint_time_s": 60
    },
    EconomicsSolver: {"fleet": _FLEETS[0], "duration_days": 30},
    SustainabilitySolver: {
        "fleet": _FLEETS[0], "duration_days": 30, "datacenter": Infra.Quebec
    },
}
"""Arguments that each solver needs, and answers."""

_SIZES = (1, 2, 4, 8, 3, 16, 32, 64, 5, 72, 100, 128, 1000, 2048, 8192, 2**20, 10**9, 10**15)
_SMALL = _SIZES[:10]
_SHARES = (0.5, 1, 0.25, 0.33, 1e-9)
_FACTORS = (1, 4, 1.5, 2**53 + 1, 1e30)
_AMOUNTS = (1, 2.5, 30, 365, 0.1, 1e-6, 1e12, 2**53 + 1, 10**20)
_WRONG = (0, -1, 1.5, math.nan, math.inf, 10**400, "8", True, 1j, Q_(1, "GB"), object())
_CONTAINERS = (list, tuple, np.array)
_WIDTHS = ("int8", "uint8", "int16", "int32", "uint32", "int64", "uint64", "float32", "float64")


@dataclass(frozen=True)
class Question:
    """A sweep: what is swept, over which arguments, and how."""

    solver: type[Solver[Any]]
    arguments: Mapping[str, Any]
    how: str
    invalid: str

    def __str__(self) -> str:
        given = "".join(f"    {name}={value!r},\n" for name, value in self.arguments.items())
        return (
            f"sweep(\n    {self.solver.__name__},\n{given}"
            f"    how={self.how!r},\n    invalid={self.invalid!r},\n)"
        )

    def rows(self) -> Iterator[dict[str, Any]]:
        """Yield the arguments of every row, without the sweep's own help."""
        values = {
            name: _values(self.arguments[name])
            for name in inspect.signature(self.solver.solve).parameters
            if name in self.arguments
        }
        axes = {name: several for name, several in values.items() if several is not None}
        combine = itertools.product if self.how == "product" else _side_by_side
        for row in combine(*axes.values()):
            yield {**self.arguments, **dict(zip(axes, row, strict=True))}


def _side_by_side(*axes: Sequence[Any]) -> Iterator[tuple[Any, ...]]:
    return zip(*axes, strict=True) if axes else iter([()])


def _values(value: Any) -> list[Any] | None:
    """Return the values of an axis as `solve` takes them; `None` if it is no axis."""
    if isinstance(value, (list, tuple, range)):
        return list(value)
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, Q_) and np.ndim(value.magnitude):
        return [Q_(number, value.units) for number in value.magnitude.tolist()]
    return None


def question(choose: Choose) -> Question:
    """Make up a sweep."""
    solver = choose(SOLVERS)
    how = choose(("product", "zip"))
    invalid = choose(("mark", "drop", "raise"))
    arguments = dict(_ONE[solver])
    wrong = choose((False,) * 9 + (True,))
    room = _MOST_ROWS
    length = choose((3, 2, 1, 8, 30))
    for _ in range(choose((2, 3, 1, 4, 0))):
        name = choose(list(solver.parameters))
        if _values(arguments.get(name)) is not None:
            continue
        kind = solver.parameters[name]
        size = choose([n for n in (2, 3, 1, 4, 6) if n <= room]) if how == "product" else length
        room = room // size if how == "product" else room
        arguments[name] = _axis(choose, name, kind, size, wrong)
    for _ in range(choose((0, 1, 2))):
        name = choose(list(solver.parameters))
        if _values(arguments.get(name)) is None:
            value = _value(choose, name, solver.parameters[name])
            if value is not None or name not in _ONE[solver]:
                arguments[name] = value
    return Question(solver, arguments, how, invalid)


def _axis(choose: Choose, name: str, kind: Argument, size: int, wrong: bool) -> Any:
    values = [_value(choose, name, kind) for _ in range(size)]
    if wrong:
        values[choose(range(size))] = choose(_WRONG)
    if all(type(value) in (int, float) and abs(value) < 2**63 for value in values):
        if choose((False, True)):
            return _array(choose, values)
        if isinstance(kind, Amount) and not wrong:
            return Q_(np.array(values), kind.unit)
    elif kind.numeric:
        return choose((list, tuple))(values)
    return choose(_CONTAINERS if all(isinstance(v, str) for v in values) else (list, tuple))(values)


def _array(choose: Choose, values: list[Any]) -> Any:
    """Return an array of the narrowest types that hold the values, or of others."""
    with np.errstate(invalid="ignore"):
        widths = [w for w in _WIDTHS if np.array_equal(np.array(values, float).astype(w), values)]
    return np.array(values).astype(choose(widths)) if widths else np.array(values)


def _value(choose: Choose, name: str, kind: Argument) -> Any:
    """Return one value that an argument may have."""
    if kind.optional and choose((False, False, False, True)):
        return None
    if isinstance(kind, Noun):
        return choose([item for item in _NOUNS[name] if isinstance(item, kind.kinds)])
    if isinstance(kind, Choice):
        return choose(list(kind.options or {}))
    if isinstance(kind, PrecisionName):
        return choose(list(PRECISIONS))
    if isinstance(kind, Switch):
        return choose((False, True))
    return _number(choose, name, kind)


def _number(choose: Choose, name: str, kind: Argument) -> Any:
    if isinstance(kind, Whole):
        if kind.maximum < 10:
            return choose(range(kind.minimum, int(kind.maximum) + 1))
        plain = choose(_SMALL if name.endswith(("_size", "_stages", "_count")) else _SIZES)
        return choose((plain, plain, plain, plain, float(plain), Decimal(plain), Q_(plain, "")))
    if isinstance(kind, Amount):
        plain = choose((*_AMOUNTS, 0) if kind.zero else _AMOUNTS)
        return choose((plain, Q_(plain, kind.unit))) if kind.plain else Q_(plain, kind.unit)
    if isinstance(kind, Factor):
        return choose(_FACTORS)
    return choose((*_SHARES, 0) if isinstance(kind, Portion) else _SHARES)


def check(asked: Question) -> tuple[int, int]:
    """Compare a sweep with `solve`, cell by cell.

    Returns
    -------
    cells, exact : int
        How many fields of results were compared, and how many were equal to the last bit.

    Raises
    ------
    AssertionError
        If the law is broken; the message is the sweep, and what differs.
    """
    rows = list(asked.rows())
    answers = [_answer(asked.solver, row) for row in rows]
    faults = [answer for answer in answers if isinstance(answer, ConfigError)]
    hopeless = _wrong_in_itself(asked)
    try:
        table = sweep(asked.solver, how=asked.how, invalid=asked.invalid, **asked.arguments)
    except ConfigError as fault:
        refused = _words(fault)
        if hopeless:
            _hold(refused in map(_words, faults), asked, f"refused with {fault!r}, unlike solve")
        else:
            _hold(asked.invalid == "raise" and bool(faults), asked, f"refused: {fault!r}")
            _hold(refused == _words(faults[0]), asked, f"{fault!r} instead of {faults[0]!r}")
        return len(faults), len(faults)
    _hold(not hopeless and not (asked.invalid == "raise" and faults), asked, "not refused")
    if asked.invalid == "drop":
        kept = [i for i, answer in enumerate(answers) if not isinstance(answer, ConfigError)]
        rows, answers = [rows[i] for i in kept], [answers[i] for i in kept]
    _hold(len(table) == len(rows), asked, f"{len(table)} rows instead of {len(rows)}")
    cells = exact = 0
    for number, (given, answer, row) in enumerate(zip(rows, answers, table, strict=True)):
        for name in _OWN & set(row):
            shown = getattr(given.get(name), "name", given.get(name))
            _hold(row[name] == shown, asked, f"row {number}: {name} is {row[name]!r}")
        found, equal = _compare(asked, number, row, answer)
        cells, exact = cells + found, exact + equal
    return cells, exact


_OWN = frozenset({"model", "fleet", "hardware", "precision", "recompute", "schedule", "attention"})
"""Arguments whose columns are compared: those of which no result has a field."""


def _answer(solver: type[Solver[Any]], row: Mapping[str, Any]) -> Any:
    try:
        return solver.solve(**row)
    except ConfigError as fault:
        return fault


def _words(fault: ConfigError) -> tuple[Any, ...]:
    return type(fault), fault.argument, fault.message.partition(" (")[0]


def _wrong_in_itself(asked: Question) -> bool:
    """Tell whether a value is wrong whatever the others are, and refused in any sweep."""
    for name, value in asked.arguments.items():
        several = _values(value)
        for one in [value] if several is None else several:
            try:
                asked.solver.parameters[name].admit(name, one)
            except ConfigError:
                return True
    return False


_WORDS = frozenset({"calibration", "power_calibration", "reasons", "region_name"})
_NESTED = frozenset({"parallelism", "node_performance"})


def _compare(
    asked: Question, number: int, row: Mapping[str, Any], answer: Any
) -> tuple[int, int]:
    refused = isinstance(answer, ConfigError)
    _hold(row["valid"] is (not refused), asked, f"row {number}: valid is {row['valid']}")
    cells = exact = 0
    for item in fields(asked.solver.result):
        name = item.name
        if name in _WORDS | _NESTED or (refused and name in asked.arguments):
            continue
        missing = False if item.type == "bool" and refused else None
        wanted = missing if refused else answer[name]
        got = row.get(name, missing if refused else None)
        _hold(_same(got, wanted), asked, f"row {number}: {name} is {got!r}, not {wanted!r}")
        cells += 1
        exact += getattr(got, "magnitude", got) == getattr(wanted, "magnitude", wanted)
    return cells, exact


def _same(got: Any, wanted: Any) -> bool:
    if type(got) is not type(wanted):
        return False
    if isinstance(got, Q_):
        return got.units == wanted.units and _same(got.magnitude, wanted.magnitude)
    if isinstance(got, float):
        return math.isclose(got, wanted, rel_tol=_TOLERANCE, abs_tol=0)
    return bool(got == wanted)


def _hold(holds: bool, asked: Question, words: str) -> None:
    if not holds:
        raise AssertionError(f"{asked}\n{words}")
