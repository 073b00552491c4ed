"""A question, and the same question with one number changed."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from mlsysim.core.errors import ConfigError, UnknownEntryError, shown
from mlsysim.core.fields import Record, field_of, units_of, whole_fields
from mlsysim.core.forms import replaced
from mlsysim.core.inputs import Inputs
from mlsysim.core.types import TransformerModel
from mlsysim.core.units import dress, si_factor
from mlsysim.solvers.arguments import Number, Whole
from mlsysim.solvers.base import Solver


@dataclass(frozen=True)
class Place:
    """Location of a number: its path, its unit, and whether it is a count."""

    path: str
    unit: str
    whole: bool
    value: float
    """In SI base units."""

    def dressed(self, value: float) -> Any:
        """Return a value in SI base units in the form of the place: with its unit, or plain."""
        if self.whole:
            return int(value)
        if self.unit in ("", "1", "token"):
            return float(value)
        return dress(value, self.unit)

    @property
    def step(self) -> float:
        """One unit of the number, in SI base units."""
        return si_factor(self.unit)


@dataclass(frozen=True)
class Question:
    """Arguments of a solver, with all defaults resolved."""

    solver: type[Solver[Any, Any]]
    given: Mapping[str, Any]
    inputs: Inputs

    def place(self, path: str) -> Place:
        """Find a number by its path; one that is computed from others cannot be changed."""
        name, *below = path.split(".")
        if not hasattr(self.inputs, name) and name not in self.solver.parameters:
            raise UnknownEntryError.build(name, "input", self.solver.parameters)
        if not below:
            return self._argument(name)
        owner: Any = self.inputs
        for part in (name, *below[:-1]):
            owner = field_of(owner, part)
            if not isinstance(owner, Record):
                raise UnknownEntryError(
                    f"by = {shown(path)} does not exist: {shown(part)} has no fields; give a path "
                    "as sensitivity() prints it",
                    argument="by",
                )
        units = {field: unit for field, unit, _ in units_of(type(owner))}
        if below[-1] not in units:
            if hasattr(owner, below[-1]) and below[-1] not in owner.__dataclass_fields__:
                raise ConfigError(
                    f"by = {shown(path)} is computed from other fields of {type(owner).__name__}: "
                    "choose one of those",
                    argument="by",
                )
            raise UnknownEntryError.build(
                below[-1], f"numeric field of {type(owner).__name__}", units
            )
        whole = below[-1] in whole_fields(type(owner))
        return Place(path, units[below[-1]], whole, owner.si(below[-1]))

    def _argument(self, name: str) -> Place:
        kind = self.solver.parameters.get(name)
        if not isinstance(kind, Number):
            raise ConfigError(
                f"by = {shown(name)} is not a number: give a path to one, as sensitivity() prints "
                "it, such as fleet.fabric.bandwidth",
                argument="by",
            )
        number = float(getattr(self.inputs.plain(), name))
        return Place(name, kind.unit, isinstance(kind, Whole), number)

    def changed(self, place: Place, value: float) -> Question:
        """Return the question with another value, in SI base units, in one place."""
        name, *below = place.path.split(".")
        if not below:
            given = {**self.given, name: place.dressed(value)}
            return dataclasses.replace(self, given=given, inputs=self.solver.admit(given))
        changed = _with(getattr(self.inputs, name), below, place.dressed(value))
        return dataclasses.replace(
            self,
            given={**self.given, name: changed},
            inputs=replaced(self.inputs, **{name: changed}),
        )

    def outputs(self) -> dict[str, Any]:
        """Run the model on plain numbers, unless the inputs contradict each other."""
        for fault in self.solver.faults(self.inputs):
            raise fault
        return self.solver.model(self.inputs)(self.inputs.plain())

    def recorded(self, field: str) -> Any:
        """Run the model on recorded numbers, and return a field."""
        return self.solver.model(self.inputs)(self.inputs.recorded())[field]


def question_of(solver: type[Solver[Any, Any]], given: Mapping[str, Any]) -> Question:
    """Validate the arguments of a solver, and resolve its defaults."""
    known = {name: given.get(name, usual) for name, usual in solver.defaults.items()}
    inputs = solver.admit(known)
    for name in inputs._late:
        # Constants chosen for a device stay the same while one of its numbers changes.
        getattr(inputs, name)
    return Question(solver, known, inputs)


def question_behind(result: Any) -> Question:
    """Return the question that a result of a solver answers."""
    return question_of(*result.__dict__["_origin"])


def _with(row: Any, below: list[str], value: Any) -> Any:
    """Return a record with another value down a path."""
    name, *rest = below
    made = _with(field_of(row, name), rest, value) if rest else value
    if "[" in name:  # an item of a tuple, such as one group of layers
        name, spot = name.rstrip("]").split("[")
        items = getattr(row, name)
        made = (*items[: int(spot)], made, *items[int(spot) + 1 :])
    if not isinstance(row, TransformerModel) or name == "parameters":
        return dataclasses.replace(row, **{name: made})
    # Parameters are counted again for the new shape, with the same ratio to the stated number.
    counted = dataclasses.replace(row, parameters=None)
    change = {name: made, "layers": None} if name == "stack" else {name: made}
    other = dataclasses.replace(row, **change, parameters=None)
    ratio = row.si("parameters") / counted.si("parameters")
    stated = dress(ratio * other.si("parameters"), "param")
    return other if ratio == 1 else dataclasses.replace(other, parameters=stated)
