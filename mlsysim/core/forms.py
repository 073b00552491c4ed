"""Forms of a record: with plain numbers, with recorded ones, or with arrays.

A model always reads `i.fleet.node.accelerator.memory.bandwidth`. For a single result this is a
float in SI base units, for a derivation a recorded quantity, and in a sweep an array over the axes
on which it depends. A form is an object of the record's own class, so type checkers and editors see
its fields, and the class's methods work on it.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from mlsysim.core.fields import Record, derived, units_of
from mlsysim.core.recording import Input, Recorded
from mlsysim.core.types.source import Entry, Source
from mlsysim.core.units import Q_, base_unit

R = TypeVar("R")
_PRIVATE = (Source, Mapping, frozenset)


@dataclass(frozen=True)
class _Fields:
    """Fields of a record class."""

    units: dict[str, str]
    """Numeric fields, with their units."""
    counts: tuple[str, ...]
    """Derived fields."""
    others: tuple[str, ...]
    """Fields that hold records, names and switches."""
    worked_out: frozenset[str]
    """Cached values that are not fields."""


_KNOWN: dict[type[Any], _Fields] = {}


def _fields(cls: type[Any]) -> _Fields:
    if cls not in _KNOWN:
        units = {name: unit for name, unit, _ in units_of(cls)}
        declared = [item.name for item in dataclasses.fields(cls)]
        _KNOWN[cls] = _Fields(
            units,
            tuple(name for name in _having(cls, derived) if name not in declared),
            # A source, or `None`, does not matter to a model.
            tuple(name for name in declared if name not in units and name != "source"),
            frozenset(_having(cls, functools.cached_property)),
        )
    return _KNOWN[cls]


def _having(cls: type[Any], kind: type[Any]) -> list[str]:
    return [name for name in dir(cls) if isinstance(getattr(cls, name, None), kind)]


def _holds_records(value: Any) -> bool:
    return type(value) is tuple and bool(value) and isinstance(value[0], Record)


def _formed(record: R, number: Callable[[str, str, float], Any], inner: Callable[..., Any]) -> R:
    fields = _fields(type(record))
    form: R = object.__new__(type(record))
    made = form.__dict__
    for name, unit in fields.units.items():
        made[name] = number(name, unit, float(record.si(name)))  # type: ignore[attr-defined]
    for name in fields.counts:
        made[name] = number(name, "", float(getattr(record, name)))
    for name in fields.others:
        value = getattr(record, name)
        if isinstance(value, Record) and not isinstance(value, Source):
            made[name] = inner(name, value)
        elif _holds_records(value):
            made[name] = tuple(inner(f"{name}[{spot}]", item) for spot, item in enumerate(value))
        elif not isinstance(value, _PRIVATE):
            made[name] = value
    return form


def plain_form(record: R) -> R:
    """Return a record with its numbers as floats in SI base units; unknown values are NaN.

    It is computed once per record: records are read-only, and the same few are used repeatedly.
    """
    cache = record.__dict__
    if "_plain" not in cache:
        cache["_plain"] = _formed(
            record, lambda name, unit, value: value, lambda name, value: plain_form(value)
        )
    form: R = cache["_plain"]
    return form


@dataclass(frozen=True)
class _Place:
    """Location of a record: below an argument, and within a registry row."""

    path: str
    entry: Entry | None
    field: str = ""

    def below(self, name: str, record: Any) -> _Place:
        path = f"{self.path}.{name}"
        if isinstance(record, Entry):
            return _Place(path, record)
        return _Place(path, self.entry, f"{self.field}.{name}".lstrip("."))


def recorded(value: float, name: str, unit: str, origin: str, **source: Any) -> Recorded:
    """Return a recorded number at which derivations start."""
    amount = Q_(value, base_unit(unit))
    return Recorded(amount, origin=Input(name, amount, unit, origin, **source))


def recorded_form(record: R, path: str) -> R:
    """Return a record with its numbers as recorded quantities, with their origins."""
    return _recorded_at(record, _Place(path, record if isinstance(record, Entry) else None))


def _recorded_at(record: R, place: _Place) -> R:
    def number(name: str, unit: str, value: float) -> Recorded:
        path = f"{place.path}.{name}"
        if place.entry is None:
            return recorded(value, name, unit, path)
        field = f"{place.field}.{name}".lstrip(".")
        try:
            source = place.entry.source_of(field)
        except LookupError:  # a derived number, such as a count of matrices
            source = place.entry.source
        estimated = place.entry.is_estimated(field)
        return recorded(value, name, unit, path, source=source, estimated=estimated)

    return _formed(
        record, number, lambda name, value: _recorded_at(value, place.below(name, value))
    )


def structure(form: Any) -> tuple[Any, ...]:
    """Return the structure that stacked forms must share: their classes, at every level.

    Records in a tuple, such as the layers of a model, must also have the same tuples of whole
    numbers and the same private fields, because models branch on them.
    """
    parts = []
    for name, part in contents(form):
        if isinstance(part, Record):
            parts.append((name, structure(part)))
        elif _holds_records(part):
            parts.append((name, tuple((structure(item), *_tuples(item)) for item in part)))
        elif name.startswith("_") and isinstance(part, tuple):
            parts.append((name, part))
    return type(form), tuple(sorted(parts, key=lambda part: part[0]))


def _tuples(form: Any) -> tuple[Any, ...]:
    return tuple(sorted((n, v) for n, v in contents(form) if isinstance(v, tuple)))


def stacked_form(forms: Sequence[R], join: Callable[[list[Any]], Any]) -> R:
    """Return one form with the joined numbers of several forms of the same structure."""
    first = forms[0]
    stacked: R = object.__new__(type(first))
    for name, value in contents(first):
        values = [form.__dict__[name] for form in forms]
        made: Any
        if all(other is value for other in values[1:]) and isinstance(value, Record):
            made = value
        elif isinstance(value, Record):
            made = stacked_form(values, join)
        elif _holds_records(value):
            made = tuple(stacked_form(items, join) for items in zip(*values, strict=True))
        elif isinstance(value, str | bool | tuple) or value is None:
            made = value if all(other == value for other in values) else _Differing(name)
        else:
            made = join(values)
        stacked.__dict__[name] = made
    return stacked


def mapped(form: R, change: Callable[[Any], Any]) -> R:
    """Return a form with its numbers changed; records without a change stay the same objects."""
    changes = {}
    for name, value in contents(form):
        made: Any
        if _holds_records(value):
            made = tuple(mapped(item, change) for item in value)
            if all(new is old for new, old in zip(made, value, strict=True)):
                continue
        else:
            made = mapped(value, change) if isinstance(value, Record) else change(value)
        if made is not value:
            changes[name] = made
    return replaced(form, **changes) if changes else form


def replaced(form: R, **numbers: Any) -> R:
    """Return a form with other numbers in some of its fields."""
    if isinstance(form, Record) and (unknown := numbers.keys() - form.__dict__.keys()):
        raise TypeError(f"{type(form).__name__} has no field {', '.join(sorted(unknown))}")
    made: R = type(form).__new__(type(form))
    made.__dict__.update(contents(form))
    made.__dict__.update(numbers)
    return made


class _Differing:
    """A name that differs among stacked forms, so that models must not branch on it."""

    def __init__(self, name: str) -> None:
        self.name = name

    def _refuse(self, *_: object) -> Any:
        raise TypeError(f"{self.name} differs from row to row, but the model branches on it")

    __eq__ = __ne__ = __bool__ = __str__ = __hash__ = _refuse

    def __reduce__(self) -> tuple[Any, ...]:
        return _Differing, (self.name,)


def contents(form: Any) -> Iterator[tuple[str, Any]]:
    """Yield the fields of a form, without cached values."""
    if not isinstance(form, Record):
        return iter(form.__dict__.items())
    worked_out = _fields(type(form)).worked_out
    return ((name, value) for name, value in form.__dict__.items() if name not in worked_out)
