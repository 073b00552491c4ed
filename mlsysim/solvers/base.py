"""What all solvers share: the door in, one run of the kernel, the door out.

A solver is a declaration. `parameters` says what each argument may be; a `Plan` names the kernel,
a pure function made of formulas, and says for each of its inputs which argument or which field of
a registry row it is; `rules` say which combinations make no sense; `result` is the record that is
handed back. Everything else happens here, once, for every solver: `solve` puts plain SI numbers
through the kernel, `sweep` arrays, `explain` quantities.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar, Generic, TypeVar
from weakref import ref

from mlsysim.core.derivation import Derivation, Input
from mlsysim.core.docstring import read_docstring
from mlsysim.core.errors import ConfigError, shown
from mlsysim.core.formula import trace
from mlsysim.core.result import Result
from mlsysim.core.types import Entry
from mlsysim.core.units import Q_, dress, has_dimension
from mlsysim.solvers.arguments import Argument, Varying, is_array

__all__ = ["Kernel", "Plan", "Rule", "Solver"]

R = TypeVar("R", bound=Result)
Kernel = Callable[..., dict[str, Any]]


@dataclass(frozen=True)
class Rule:
    """A condition on the kernel's inputs without which there is no answer at all.

    `holds` is evaluated on numbers and on arrays alike. `message` describes the fault of one case;
    it gets whole numbers as integers.
    """

    argument: str
    holds: Callable[[Mapping[str, Any]], Any]
    message: Callable[[Mapping[str, Any]], str]
    error: type[ConfigError] = ConfigError

    def fault(self, inputs: Mapping[str, Any]) -> ConfigError:
        """Compose the error for scalar inputs that break the rule."""
        whole = {n: int(v) if v.is_integer() else v for n, v in inputs.items()}
        return self.error(self.message(whole), argument=self.argument)


@dataclass(frozen=True)
class Plan:
    """A kernel, and where each of its inputs comes from.

    An origin is a dotted path from an argument, such as ``"model.layers"``; a tuple of paths
    means the first that is not `None`. Braces at the end of a part stand for the name of
    another argument, as in ``"hardware.compute.{precision}"``. `limits` has the origins of values
    that only the rules need.
    """

    kernel: Kernel
    origins: Mapping[str, str | tuple[str, ...]]
    limits: Mapping[str, str | tuple[str, ...]] = field(default_factory=dict)
    _read: dict[Any, tuple[Any, dict[str, float]]] = field(
        default_factory=dict, repr=False, compare=False
    )
    """What was read of records: they are read-only, and a solver meets the same few again."""

    def inputs(self, arguments: Mapping[str, Any]) -> dict[str, float]:
        """Look up the kernel's inputs, sorted by name.

        Plans of one kernel find them in different orders, and a sweep joins them.
        """
        found = _values(arguments, self._direct)
        for root, paths in self._of_records.items():
            found |= self._numbers(arguments, root, paths)
        return {name: found[name] for name in sorted(found)}

    @cached_property
    def _direct(self) -> dict[str, str | tuple[str, ...]]:
        """Origins that are arguments themselves, or one of several."""
        return {n: p for n, p in self.origins.items() if not isinstance(p, str) or "." not in p}

    @cached_property
    def _of_records(self) -> dict[str, dict[str, str]]:
        """The other origins, by the argument that they begin with."""
        paths: dict[str, dict[str, str]] = {}
        for name, path in self.origins.items():
            if isinstance(path, str) and "." in path:
                paths.setdefault(path.split(".")[0], {})[name] = path
        return paths

    @cached_property
    def _formats(self) -> tuple[str, ...]:
        """Arguments whose names stand in braces."""
        return tuple(sorted(set(re.findall(r"{(\w+)}", str(self.origins)))))

    def _numbers(
        self, arguments: Mapping[str, Any], root: str, paths: Mapping[str, str]
    ) -> dict[str, float]:
        record = arguments[root]
        key = (root, id(record), *(arguments[name].name for name in self._formats))
        known, numbers = self._read.get(key, (None, {}))
        if known is None or known() is not record:
            numbers = _values(arguments, paths)
            gone = ref(record, lambda _: self._read.pop(key, None))
            self._read[key] = gone, numbers
        return numbers


class Solver(Generic[R]):
    """Base of the solvers. Solvers hold no state: their methods belong to the class."""

    parameters: ClassVar[Mapping[str, Argument]]
    rules: ClassVar[tuple[Rule, ...]] = ()
    result: ClassVar[type[Any]]
    constants: ClassVar[Mapping[str, Any]] = {}
    solve: ClassVar[Callable[..., Any]]

    @classmethod
    def plan(cls, arguments: Mapping[str, Any]) -> Plan:
        """Choose the kernel for admitted arguments."""
        raise NotImplementedError

    @classmethod
    def rest(
        cls, values: Mapping[str, Any], arguments: Mapping[str, Any]
    ) -> dict[str, Callable[[], Any]]:
        """Say how to make those fields of the result that the kernel does not compute."""
        return {}

    @classmethod
    def each(cls, given: Mapping[str, Any]) -> dict[str, Any]:
        """Check every argument by itself and return them as the solver uses them."""
        return {
            name: kind.admit(name, given.get(name)) for name, kind in cls.parameters.items()
        } | dict(cls.constants)

    @classmethod
    def admit(cls, given: Mapping[str, Any]) -> dict[str, Any]:
        """Check every argument, and that they agree with each other."""
        return cls.each(given)

    @classmethod
    def inputs(cls, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Look up the kernel's inputs, as plain SI numbers.

        All of them are floats, as in the arrays of a sweep. With integers the two could differ:
        Python's are exact, and NumPy's wrap around.
        """
        return cls.plan(arguments).inputs(arguments)

    @classmethod
    def limits(cls, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Look up the values that the rules need besides the kernel's inputs."""
        return _values(arguments, cls.plan(arguments).limits)

    @classmethod
    def faults(
        cls, arguments: Mapping[str, Any], inputs: Mapping[str, Any]
    ) -> Iterator[ConfigError]:
        """Yield a fault for each rule that admitted arguments break."""
        known = {**inputs, **cls.limits(arguments)}
        return (rule.fault(known) for rule in cls.rules if not rule.holds(known))

    @classmethod
    def _run(cls, **given: Any) -> R:
        for name, value in given.items():
            if is_array(value):
                raise ConfigError(
                    f"{name} = {shown(value)} is an array, and solve takes one value: use sweep",
                    argument=name,
                )
        arguments = cls.admit(given)
        plan = cls.plan(arguments)
        inputs = cls.inputs(arguments)
        for fault in cls.faults(arguments, inputs):
            raise fault
        outputs = plan.kernel(**inputs)
        values = _Dressed(outputs, cls.result)
        rest = cls.rest(values, arguments)
        answer: R = cls.result._lazily(
            lambda name: rest[name]() if name in rest else values.get(name)
        )
        answer._from(cls, given)
        return answer

    @classmethod
    def derive(cls, given: Mapping[str, Any]) -> Derivation:
        """Run the kernel on quantities under a trace and return the derivation."""
        arguments = cls.admit(given)
        plan = cls.plan(arguments)
        symbols = read_docstring(plan.kernel).parameters
        inputs = {}
        for name, path in plan.origins.items():
            found = _locate(arguments, path)
            inputs[name] = found.as_input(name, symbols[name].unit)
        with trace() as calls:
            outputs = plan.kernel(**{name: item.value for name, item in inputs.items()})
        return Derivation(calls, outputs, inputs)


class _Dressed(Mapping[str, Any]):
    """A kernel's plain numbers, in the units that the result declares once they are read."""

    def __init__(self, outputs: Mapping[str, Any], result: type[Any]) -> None:
        self._outputs = outputs
        self._fields = result.__dataclass_fields__
        self._made: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        if name not in self._made:
            self._made[name] = self._dressed(name, self._outputs[name])
        return self._made[name]

    def _dressed(self, name: str, value: Any) -> Any:
        declared = self._fields[name].metadata if name in self._fields else {}
        if "unit" not in declared:
            return value
        value = float(value)
        if math.isnan(value):
            return None
        if not declared["plain"]:
            return dress(value, declared["unit"])
        return int(value) if declared["whole"] else value

    def __iter__(self) -> Iterator[str]:
        return iter(self._outputs)

    def __len__(self) -> int:
        return len(self._outputs)


@dataclass(frozen=True)
class _Located:
    """A kernel input as the door found it."""

    value: Any
    path: str
    entry: Entry | None = None
    field: str = ""

    def as_input(self, name: str, unit: str) -> Input:
        # Counts are dressed without their name ("param", "token"): it would stick to products.
        value = Q_(self.value, unit if has_dimension(unit) else "")
        if self.entry is None:
            return Input(name, value, unit, self.path)
        try:
            source = self.entry.source_of(self.field)
        except LookupError:  # a derived field, such as a count of matrices
            source = self.entry.source
        return Input(name, value, unit, self.path, source, self.entry.is_estimated(self.field))


def _values(
    arguments: Mapping[str, Any], origins: Mapping[str, str | tuple[str, ...]]
) -> dict[str, Any]:
    return {name: _locate(arguments, path).value for name, path in origins.items()}


def _locate(arguments: Mapping[str, Any], path: str | tuple[str, ...]) -> _Located:
    """Follow a path from an argument to a number, noting the last registry row on the way."""
    if isinstance(path, tuple):
        given = next((option for option in path[:-1] if _present(arguments, option)), path[-1])
        return _locate(arguments, given)
    root, *parts = path.split(".")
    node = arguments[root]
    entry, since = (node, 0) if isinstance(node, Entry) else (None, 0)
    for index, part in enumerate(parts):
        if "{" in part:
            before, _, rest = part.partition("{")
            parts[index] = before + arguments[rest[:-1]].name
        if index == len(parts) - 1:
            field = ".".join(parts[since:])
            value = float(node.si(field.split(".")[-1]))
            return _Located(value, ".".join([root, *parts]), entry, field)
        node = getattr(node, part)
        if isinstance(node, Entry):
            entry, since = node, index + 1
    return _Located(node if isinstance(node, Varying) else float(node), root)


def _present(arguments: Mapping[str, Any], path: str) -> bool:
    return arguments[path.split(".")[0]] is not None
