"""Results: frozen records that are also mappings and can show their work."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Self, overload

from mlsysim.core.errors import UnknownEntryError
from mlsysim.core.fields import Record, read_only, record
from mlsysim.core.files import printable
from mlsysim.core.provenance import escaped
from mlsysim.core.table import Table
from mlsysim.core.units import format_number

if TYPE_CHECKING:
    from mlsysim.core.derivation import Derivation


class PlainNumber(float):
    """A number with a `magnitude`, because energies in kWh were quantities in the first edition."""

    __slots__ = ()

    @property
    def magnitude(self) -> float:
        """The number itself."""
        return float(self)


class InUnit:
    """A field of a result as a plain number in a unit, such as `tco_usd` for `tco` in USD.

    Such a name is not a field, but can be read like one, and `explain` treats it as the field.
    """

    def __init__(self, field: str, unit: str) -> None:
        self.field = field
        self.unit = unit

    @overload
    def __get__(self, result: None, owner: type) -> InUnit: ...
    @overload
    def __get__(self, result: Result, owner: type) -> PlainNumber: ...
    def __get__(self, result: Result | None, owner: type) -> InUnit | PlainNumber | None:
        if result is None:
            return self
        value = getattr(result, self.field)
        return None if value is None else PlainNumber(value.to(self.unit).magnitude)


@record
class Result(Mapping[str, Any]):
    """Base class of results: `r.latency` and `r["latency"]` are the same object.

    Attributes
    ----------
    aliases : dict
        Other names of fields. `mlsysim.compat` sets the names of the first edition.
    """

    aliases: ClassVar[Mapping[str, str]] = {}

    def __getitem__(self, key: str) -> Any:
        name = self.aliases.get(key, key) if isinstance(key, str) else ""
        view = getattr(type(self), name, None)
        if name not in self._fields() and not isinstance(view, InUnit):
            raise UnknownEntryError.build(key, f"{type(self).__name__} field", self._fields())
        return getattr(self, name)

    @classmethod
    def _lazily(cls, make: Callable[[str], Any]) -> Self:
        """Return a result that computes each field when it is first read.

        Units and reasons take longer than the arithmetic, and most callers read only a few fields.
        """
        answer = object.__new__(cls)
        object.__setattr__(answer, "_make", make)
        return answer

    def __getstate__(self) -> dict[str, Any]:
        for name in self._fields():
            getattr(self, name)
        return {n: value for n, value in self.__dict__.items() if n not in ("_make", "_whole")}

    def __getattr__(self, name: str) -> Any:
        # Reached only if the attribute does not exist, or not yet.
        if name.startswith("_"):
            raise AttributeError(name)
        if "_make" in self.__dict__ and name in self.__dataclass_fields__:
            value = self._make(name)
            object.__setattr__(self, name, value)
            return value
        if name in type(self).aliases:
            return getattr(self, type(self).aliases[name])
        fault = UnknownEntryError.build(name, f"{type(self).__name__} field", self._fields())
        raise AttributeError(fault.message)

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self]

    def __iter__(self) -> Iterator[str]:
        return iter(self._fields())

    def __len__(self) -> int:
        return len(self._fields())

    @classmethod
    def _fields(cls) -> tuple[str, ...]:
        return tuple(item.name for item in dataclasses.fields(cls))

    def explain(self, *names: str, depth: int | None = None) -> Derivation:
        """Derive the result step by step: equations, input numbers, and their sources.

        Parameters
        ----------
        *names
            Fields to derive; all of them if none is named.
        depth
            Levels of steps to show: 1 for the last formula of each field, 2 to include its
            arguments, and so on. `None` derives everything down to the inputs, but prints at most
            40 lines, and without names only the last formula of each field. The last line then
            states the depth that prints everything.

        Raises
        ------
        UnknownEntryError
            If the result has no such field.
        ConfigError
            If `depth` is below one.
        """
        if "_origin" not in self.__dict__:
            raise UnknownEntryError(
                f"this {type(self).__name__} was not returned by a solver, but may be a part or "
                "an edited copy of a result: explain the result that solve returned",
            )
        derivation = self._derivation()
        fields = [self._derived(name) for name in names]
        for name in fields:
            if name in self._fields() and name not in derivation.roots:
                raise UnknownEntryError(
                    f"{name} is not a computed number: explain one of "
                    f"{', '.join(derivation.roots)}, or all with explain()",
                    argument="names",
                )
        part = derivation.only(*fields).to_depth(depth)
        return part if names else part.totals_first()

    def _derivation(self) -> Derivation:
        """Return the derivation of all fields, which is computed once."""
        if "_whole" not in self.__dict__:
            solver, arguments = self.__dict__["_origin"]
            object.__setattr__(self, "_whole", solver.derive(arguments))
        whole: Derivation = self.__dict__["_whole"]
        return whole

    def _derived(self, name: str) -> str:
        """Return the field that a name refers to."""
        if not isinstance(name, str):
            raise UnknownEntryError.build(name, f"{type(self).__name__} field", self._fields())
        view = getattr(type(self), name, None)
        return view.field if isinstance(view, InUnit) else self.aliases.get(name, name)

    def _from(self, solver: type, arguments: Mapping[str, Any]) -> None:
        """Store the call that made this result, so that it can be explained later."""
        # Copies, so that later changes to an amount do not change the derivation.
        copies = {name: read_only(value) for name, value in arguments.items()}
        object.__setattr__(self, "_origin", (solver, copies))

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {', '.join(self._fields())}>"

    def __str__(self) -> str:
        width = max(len(name) for name in self._fields())
        lines = [f"{name:<{width}}  {_shown(value)}" for name, value in self.items()]
        return "\n".join([type(self).__name__, *(f"  {printable(line)}" for line in lines)])

    def _repr_markdown_(self) -> str:
        rows = [f"| {name} | {escaped(_shown(value))} |" for name, value in self.items()]
        return "\n".join(["| Field | Value |", "|:---|:---|", *rows])


def _shown(value: Any) -> str:
    if isinstance(value, Result):
        return ", ".join(f"{name} {_shown(item)}" for name, item in value.items())
    if isinstance(value, tuple):
        return "; ".join(str(item) for item in value) or "none"
    return format_number(value)


def plain(value: Any) -> Any:
    """Convert a result to mappings, lists, numbers and text.

    A quantity becomes ``{"value": 4.2, "unit": "ms"}``, a table a list of rows, a part of an answer
    its fields, and a registry row its name. Unknown and infinite values become `None`.

    Parameters
    ----------
    value
        A result, a table, a quantity, a number, text, or a collection of them.

    Returns
    -------
    object
        Data that `json.dumps` accepts.
    """
    if hasattr(value, "magnitude"):
        return {"value": plain(value.magnitude), "unit": f"{value.units:~C}".replace("**", "^")}
    if hasattr(value, "item"):
        return plain(value.item())
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if isinstance(value, Table):
        return list(records(value))
    named_row = isinstance(value, Record) and hasattr(value, "name")
    if dataclasses.is_dataclass(value) and not named_row:
        return {item.name: plain(getattr(value, item.name)) for item in dataclasses.fields(value)}
    return str(getattr(value, "name", value))


def records(table: Table) -> Iterator[dict[str, Any]]:
    """Yield the rows of a table as plain data."""
    units: dict[str, str] = {}  # formatting a unit takes longer than everything else
    for row in table:
        cells = {}
        for name, value in row.items():
            if not hasattr(value, "magnitude"):
                cells[name] = plain(value)
                continue
            if name not in units:
                units[name] = plain(value)["unit"]
            cells[name] = {"value": plain(value.magnitude), "unit": units[name]}
        yield cells
