"""Recorded arithmetic: numbers that store how they were computed.

A derivation runs the model once on `Recorded` numbers. Each number stores the operation and the
operands that produced it. While `watching`, it also gets a name: a number returned by a formula
records that formula and its arguments, and a number bound to a variable records the name of the
variable. Models and formulas are ordinary functions without any code for this, so recording costs
time only during a derivation.
"""

from __future__ import annotations

import functools
import operator
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import CodeType, FrameType
from typing import Any

from mlsysim.core.formula import Formula, formula_of
from mlsysim.core.units import Q_

_COMPREHENSIONS = ("<listcomp>", "<setcomp>", "<dictcomp>")
"""Frames of their own in Python 3.11, which later versions run inside the function (PEP 709). Here
their variables always count as those of the function, so names do not depend on the version."""


@dataclass(frozen=True, eq=False)
class Input:
    """A number that a derivation starts from."""

    name: str
    value: Any
    unit: str
    origin: str
    """Where the number comes from: an argument, or a field of a registry row."""
    source: Any = None
    """The publication that states it, a `Source`; `None` for a value given by the caller."""
    estimated: bool = False

    @property
    def label(self) -> str:
        """The name of the field, preceded by the name of its record."""
        return ".".join(self.origin.split(".")[-2:])


class Recorded:
    """A quantity, and how it was computed.

    Attributes
    ----------
    magnitude : float
        The number itself.
    unit : _Unit or None
        Its unit; `None` if it is not a quantity.
    operation : str
        Sign or name of the operation that made it; empty for an input.
    operands : tuple
        Operands of the operation: recorded numbers, and literals of the model.
    origin : Input or None
        The input, if this number is one.
    formula : Formula or None
        The formula that returned it.
    arguments : dict
        Arguments of that formula.
    name : str
        The first variable to which it was bound.
    """

    __slots__ = (
        "_quantity",
        "arguments",
        "formula",
        "magnitude",
        "name",
        "operands",
        "operation",
        "origin",
        "unit",
    )

    def __init__(
        self,
        value: Any,
        operation: str = "",
        operands: tuple[Any, ...] = (),
        origin: Input | None = None,
        unit: Any = None,
    ) -> None:
        self._quantity: Any = None
        if unit is None and hasattr(value, "magnitude"):
            self._quantity = value
            value, unit = value.magnitude, _unit(value.units)
        self.magnitude = value
        self.unit = unit
        self.operation = operation
        self.operands = operands
        self.origin = origin
        self.formula: Formula | None = None
        self.arguments: dict[str, Any] = {}
        self.name = ""

    @property
    def value(self) -> Any:
        """The number with its unit. Few are shown, so arithmetic is on magnitudes."""
        if self.unit is None:
            return self.magnitude
        if self._quantity is None:
            self._quantity = Q_(self.magnitude, self.unit.units)
        return self._quantity

    def __repr__(self) -> str:
        return f"<Recorded {self.name or self.operation}: {self.value}>"

    def __neg__(self) -> Recorded:
        return Recorded(-self.magnitude, "-", (self,), unit=self.unit)

    # Hashed by identity, although the model's comparisons use values.
    __hash__ = object.__hash__


@dataclass(frozen=True, eq=False)
class _Unit:
    """A unit, of which there is one object, because comparing those of Pint takes long."""

    units: Any


_unit = functools.cache(_Unit)
_NO_UNIT = _unit(Q_(1.0, "").units)
_RESULTS: dict[tuple[str, _Unit | None, _Unit | None], tuple[bool, Any]] = {}
"""Whether an operation on two units is one on magnitudes, and the unit of its results."""


def value_of(number: Any) -> Any:
    """Return the quantity of a recorded number, and any other value unchanged."""
    return number.value if isinstance(number, Recorded) else number


def applied(function: Callable[..., Any], *operands: Any) -> Recorded:
    """Apply an elementary function to recorded numbers, and record the operation."""
    value = _unwatched(function, *[value_of(operand) for operand in operands])
    return Recorded(value, function.__name__, operands)


def chosen(function: Callable[[Any, Any], Any], one: Any, other: Any) -> Recorded:
    """Apply a function that returns one of two numbers; at least one is recorded."""
    value, unit = _result("-", operator.sub, function, one, other)
    return Recorded(value, function.__name__, (one, other), unit=unit)


def _result(
    sign: str, trial: Callable[..., Any], function: Callable[..., Any], one: Any, other: Any
) -> tuple[Any, Any]:
    """Return a function of two numbers and the unit of the result; `None` for no or any unit.

    Quantities take longer than their arithmetic, so it is on magnitudes if an operation on the same
    two units, `trial`, has shown that no number is converted.
    """
    a, unit = (one.magnitude, one.unit) if type(one) is Recorded else (one, None)
    b, second = (other.magnitude, other.unit) if type(other) is Recorded else (other, None)
    if type(a) in _PLAIN and type(b) in _PLAIN:
        key = sign, unit, second
        if key not in _RESULTS:
            _RESULTS[key] = _unwatched(_tried, sign, trial, unit, second)
        alike, made = _RESULTS[key]
        if alike:
            return function(a, b), made
    return _unwatched(function, value_of(one), value_of(other)), None


_PLAIN = (float, int)


def _tried(
    sign: str, function: Callable[[Any, Any], Any], one: Any, other: Any
) -> tuple[bool, Any]:
    """Try an operation on quantities of two units.

    A power's unit depends on its exponent, and a whole quotient hides that numbers are converted.
    """
    if sign in ("//", "%", "**") and not {one, other} <= {None, _NO_UNIT}:
        return False, None
    a, b = (
        number if unit is None else Q_(number, unit.units)
        for number, unit in ((3.0, one), (2.0, other))
    )
    try:
        value = function(a, b)
    except TypeError:  # of different dimensions, unless one is zero
        return False, None
    made = Recorded(value)
    return made.magnitude == function(3.0, 2.0), made.unit


def _unwatched(function: Callable[..., Any], *values: Any) -> Any:
    """Call a function without watching: the arithmetic inside has no useful names."""
    watch = sys.getprofile()
    if watch is None:
        return function(*values)
    sys.setprofile(None)
    try:
        return function(*values)
    finally:
        _profile_with(watch)


def _profile_with(profiler: Any) -> None:
    """Restore the interpreter's profiler, or none."""
    if hasattr(profiler, "enable"):  # the profiler of cProfile, which is not a function
        sys.setprofile(None)
        profiler.enable()
    else:
        sys.setprofile(profiler)


def _binary(sign: str, function: Callable[[Any, Any], Any]) -> tuple[Any, Any]:
    def operated(one: Any, other: Any) -> Recorded:
        value, unit = _result(sign, function, function, one, other)
        return Recorded(value, sign, (one, other), unit=unit)

    return operated, lambda self, other: operated(other, self)


def _comparison(function: Callable[[Any, Any], Any]) -> Any:
    return lambda self, other: bool(_result("-", operator.sub, function, self, other)[0])


for _sign, _word, _function in (
    ("+", "add", operator.add),
    ("-", "sub", operator.sub),
    ("*", "mul", operator.mul),
    ("/", "truediv", operator.truediv),
    ("//", "floordiv", operator.floordiv),
    ("%", "mod", operator.mod),
    ("**", "pow", operator.pow),
):
    _forward, _backward = _binary(_sign, _function)
    setattr(Recorded, f"__{_word}__", _forward)
    setattr(Recorded, f"__r{_word}__", _backward)
for _function in (
    operator.lt,
    operator.le,
    operator.gt,
    operator.ge,
    operator.eq,
    operator.ne,
):
    setattr(Recorded, f"__{_function.__name__}__", _comparison(_function))


_HERE = globals()


@dataclass(frozen=True)
class _Kind:
    """What `watching` does at the calls of a function."""

    code: CodeType
    formula: Formula | None
    named: bool
    """Whether the names of its variables are read."""
    inside: bool
    """Whether it is a part of the function that calls it."""


@contextmanager
def watching(*modules: str) -> Iterator[None]:
    """Record the formulas that return recorded numbers, and the variables that hold them.

    Parameters
    ----------
    *modules
        Names of variables are read in functions of these modules, and of those inside them.
    """
    open_calls: list[dict[str, Any]] = []
    records: dict[int, tuple[object, int]] = {}
    """Records whose numbers have names, by identity, with the number of their fields."""
    kinds: dict[int, _Kind] = {}
    """Kinds of functions by the identity of their code."""

    def kind_of(frame: FrameType) -> _Kind:
        code = frame.f_code
        kind = kinds.get(id(code))
        if kind is None:
            module = frame.f_globals.get("__name__", "")
            named = module.startswith(modules) and not code.co_name.startswith(("<", "__"))
            inside = code.co_name in _COMPREHENSIONS
            kind = kinds[id(code)] = _Kind(code, formula_of(code), named, inside)
        return kind

    def read_names(frame: FrameType | None) -> None:
        inner: dict[str, Any] = {}
        while frame is not None and kind_of(frame).inside:
            inner, frame = frame.f_locals | inner, frame.f_back
        if frame is not None and kind_of(frame).named:
            _name(frame.f_locals | inner if inner else frame.f_locals, records)

    def watch(frame: FrameType, event: str, result: Any) -> None:
        if frame.f_globals is _HERE:  # the arithmetic itself, which has no useful names
            caller = frame.f_back
            if event == "call" and caller is not None and caller.f_globals is not _HERE:
                read_names(caller)
        elif event == "call":
            kind = kind_of(frame)
            if kind.inside:
                return
            # The caller binds its variables before the called function binds its own.
            read_names(frame.f_back)
            if kind.formula:
                open_calls.append(dict(frame.f_locals))
        elif event == "return":
            kind = kind_of(frame)
            if kind.formula is None:
                if kind.named:
                    read_names(frame)
                return
            arguments = open_calls.pop()
            handed_through = any(result is value for value in arguments.values())
            if isinstance(result, Recorded) and not handed_through:
                result.formula, result.arguments = kind.formula, arguments

    before = sys.getprofile()
    sys.setprofile(watch)
    try:
        yield
    finally:
        _profile_with(before)


def _name(variables: dict[str, Any], records: dict[int, tuple[object, int]]) -> None:
    """Name the numbers that variables hold, directly or as fields of a record."""
    for variable, value in variables.items():
        kind = type(value)
        if kind is Recorded:
            if not value.name and variable != "self":
                value.name = variable
        elif hasattr(kind, "__dataclass_fields__") and variable != "self":
            fields = vars(value)
            if records.get(id(value), (None, 0))[1] == len(fields):
                continue
            records[id(value)] = value, len(fields)
            for field, part in fields.items():
                if isinstance(part, Recorded):
                    part.name = part.name or f"{variable}.{field}"
