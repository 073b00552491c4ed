"""Inputs: the one typed argument of a model, with everything that its result depends on.

Each question has a class of inputs. Its fields are the validated arguments of the solver, and the
registry rows that the model also reads. A field may have a `default` that depends on other fields;
a number that depends on names, such as the peak rate in a number format, is `derived`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, Self

from mlsysim.core.fields import Record, derived
from mlsysim.core.forms import plain_form, recorded, recorded_form, replaced, stacked_form


class Varying:
    """Placeholder for a number that differs between rows, while a sweep chooses constants.

    It cannot be compared or converted, because a choice that depends on an axis must be made for
    each of its values. A number that models branch on is a `Stage`.
    """

    def __init__(self, name: str) -> None:
        self.name = name

    def _refuse(self, *_: object) -> Any:
        raise TypeError(f"{self.name} differs from row to row: declare it a Stage to branch on it")

    __bool__ = __float__ = __int__ = __lt__ = __le__ = __gt__ = __ge__ = __eq__ = __ne__ = _refuse
    __hash__ = _refuse


class _Default:
    """Descriptor of a field that is computed from the others unless it is given."""

    def __init__(self, choose: Callable[[Any], Any]) -> None:
        self.choose = choose

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, inputs: Any, owner: type) -> Any:
        if inputs is None:
            return self
        value = inputs.__dict__[self.name] = self.choose(inputs)
        return value


def default(choose: Callable[[Any], Any]) -> Any:
    """Declare how a field that is not given is computed from the other inputs.

    The value is another field, or is determined by names and registry rows. Arithmetic on arguments
    belongs in a property, because in a sweep arguments differ between rows.
    """
    return _Default(choose)


def _constant(value: Any) -> Callable[[Any], Any]:
    return lambda _: value


class Inputs:
    """Base class of the inputs of a model. They are read-only.

    The inputs hold the validated arguments, such as registry rows and whole numbers. The model
    receives a form of them, with plain numbers, recorded numbers, or arrays.

    A subclass may state the `defaults` of arguments that some of its solvers do not have.

    Parameters
    ----------
    values
        The validated arguments of the solver.
    units
        Units of the numeric arguments, from the solver's signature.
    """

    _late: ClassVar[tuple[str, ...]] = ()
    """Fields that are computed from others unless they are given."""
    _worked_out: ClassVar[tuple[str, ...]] = ()
    """These fields, and those that are always computed from others."""
    _fields: ClassVar[frozenset[str]] = frozenset()

    def __init_subclass__(cls, defaults: Mapping[str, Any] | None = None) -> None:
        for name, value in (defaults or {}).items():
            if not hasattr(cls, name):
                item = _Default(_constant(value))
                item.__set_name__(cls, name)
                setattr(cls, name, item)
        attributes = {name: getattr(cls, name) for name in dir(cls)}
        cls._late = tuple(n for n, value in attributes.items() if isinstance(value, _Default))
        cls._worked_out = tuple(
            n for n, value in attributes.items() if isinstance(value, _Default | derived)
        )
        declared = (getattr(base, "__annotations__", ()) for base in cls.__mro__)
        cls._fields = frozenset(cls._worked_out).union(*declared)

    def __init__(self, values: Mapping[str, Any], units: Mapping[str, str]) -> None:
        given = {
            name: value
            for name, value in values.items()
            if value is not None or name not in self._late
        }
        self.__dict__.update(given, _given=tuple(given), _units=units)

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"{type(self).__name__}.{name} is read-only: use but() for changes")

    def gives(self, name: str) -> bool:
        """Return whether a field was given, rather than computed from the others."""
        return name in self.__dict__["_given"]

    def but(self, **values: Any) -> Self:
        """Return the same inputs with other values in some fields.

        Fields that depend on others are computed again. In a form they keep their values, because
        the names that they depend on may differ between rows.
        """
        if unknown := values.keys() - self._fields:
            raise TypeError(f"{type(self).__name__} has no field {', '.join(sorted(unknown))}")
        made = replaced(self, **values)
        if (given := self.__dict__.get("_given")) is not None:
            made.__dict__["_given"] = given = tuple({*given, *values})
            for name in self._worked_out:
                if name not in given:
                    made.__dict__.pop(name, None)
        return made

    def plain(self) -> Self:
        """Return the form with floats in SI base units; unknown values are NaN."""
        return self._form(
            lambda name, value: value if isinstance(value, Varying) else float(value),
            lambda name, row: plain_form(row),
        )

    def recorded(self) -> Self:
        """Return the form with recorded quantities, with their origins."""
        return self._form(
            lambda name, value: recorded(float(value), name, self.__dict__["_units"][name], name),
            lambda name, row: recorded_form(row, name),
        )

    def _form(self, number: Callable[[str, Any], Any], row: Callable[[str, Any], Any]) -> Self:
        form = object.__new__(type(self))
        made = form.__dict__
        given: tuple[str, ...] = self.__dict__["_given"]
        units: Mapping[str, str] = self.__dict__["_units"]
        for name in (*given, *self._late):
            if name in made or (name in units and name not in given):
                continue  # a form looks up such a number itself, and so has its origin
            value = getattr(self, name)
            if isinstance(value, Record):
                made[name] = row(name, value)
            elif name in units:
                made[name] = number(name, math.nan if value is None else value)
            else:
                made[name] = value
        return form

    @classmethod
    def stacked(cls, forms: Sequence[Self], join: Callable[[list[Any]], Any]) -> Self:
        """Return one form with the joined numbers of several plain ones."""
        for form in forms:
            for name in cls._worked_out:
                getattr(form, name)
        return stacked_form(forms, join)
