"""The base class of the solvers: checked arguments, one run of the model, a result with units.

A solver is a declaration. The signature of `solve` declares what each argument may be; `inputs` is
the record that the model reads; `rules` exclude contradictory combinations; `result` is the record
that is returned. This class does everything else for every solver: `solve` runs the model on plain
SI numbers, `sweep` on arrays, and `explain` on numbers that record their arithmetic.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, TypeAlias, TypeVar

from mlsysim.core.derivation import Derivation
from mlsysim.core.errors import ConfigError, shown
from mlsysim.core.inputs import Inputs
from mlsysim.core.numeric import Value
from mlsysim.core.recording import watching
from mlsysim.core.result import Result
from mlsysim.core.types import TransformerModel
from mlsysim.core.units import dress
from mlsysim.solvers.arguments import Argument, Number, Switch, is_axis
from mlsysim.solvers.signatures import arguments_of, composed, defaults_in, given_to

I = TypeVar("I", bound=Inputs)  # noqa: E741 - models call their inputs `i`
R = TypeVar("R", bound=Result)
Model: TypeAlias = Callable[[I], dict[str, Any]]
"""A function that computes the fields of a result from the inputs."""


@dataclass(frozen=True)
class Rule(Generic[I]):
    """A condition that the inputs must meet for the model to apply.

    `holds` receives the inputs with plain numbers or arrays. `message` receives the validated
    inputs of one case and describes what is wrong. A rule for several arguments finds the one at
    fault from the plain numbers.
    """

    argument: str | Callable[[I], str]
    holds: Callable[[I], Any]
    message: Callable[[I], str]
    error: type[ConfigError] = ConfigError

    def fault(self, inputs: I) -> ConfigError:
        """Compose the error for inputs that break the rule."""
        return self.error(self.message(inputs), argument=self.culprit(inputs))

    def culprit(self, inputs: I) -> str:
        """Return the argument at fault."""
        if isinstance(self.argument, str):
            return self.argument
        return self.argument(inputs.plain())


class Solver(Generic[I, R]):
    """Base of the solvers. Solvers hold no state: call their methods on the class.

    Attributes
    ----------
    parameters : dict
        The kind of each argument, read from the signature of `solve`.
    defaults : dict
        Default of each argument; `Parameter.empty` if it must be given.
    units : dict
        Unit of each argument that is a number.
    """

    inputs: ClassVar[type[Any]]
    rules: ClassVar[tuple[Rule[Any], ...]] = ()
    result: ClassVar[type[Any]]
    solve: ClassVar[Callable[..., Any]]
    parameters: ClassVar[Mapping[str, Argument]]
    defaults: ClassVar[Mapping[str, Any]]
    units: ClassVar[Mapping[str, str]]
    _usual: ClassVar[Mapping[str, Any]]
    """Defaults in the form that the solver uses, without those of arguments that must be given."""

    def __init_subclass__(cls) -> None:
        kinds = arguments_of(cls.solve)
        if not kinds:
            return  # a `solve` that passes its arguments on to that of the base class
        composed()(getattr(cls.solve, "__func__", cls.solve))
        cls.parameters = kinds
        cls.defaults = defaults_in(cls.solve)
        cls._usual = {
            name: kind.admit(name, cls.defaults[name])
            for name, kind in kinds.items()
            if cls.defaults[name] is not inspect.Parameter.empty
        }
        cls.units = {n: kind.unit for n, kind in kinds.items() if isinstance(kind, Number | Switch)}

    @classmethod
    def model(cls, inputs: I) -> Model[I]:
        """Choose the model for validated inputs."""
        raise NotImplementedError

    @classmethod
    def rest(cls, values: Mapping[str, Any], inputs: I) -> dict[str, Callable[[], Any]]:
        """Return functions for the fields of the result that the model does not compute."""
        return {}

    @classmethod
    def check(cls, inputs: I) -> None:
        """Reject arguments that contradict each other, regardless of their numbers."""

    @classmethod
    def admit(cls, given: Mapping[str, Any]) -> I:
        """Check every argument, and that the arguments are consistent.

        Those that are left out have their defaults.
        """
        usual, defaults = cls._usual, cls.defaults
        values = {
            name: usual[name]
            if name in usual and (name not in given or given[name] is defaults[name])
            else kind.admit(name, given.get(name))
            for name, kind in cls.parameters.items()
        }
        inputs: I = cls.inputs(values, cls.units)
        cls.check(inputs)
        return inputs

    @classmethod
    def faults(cls, inputs: I) -> Iterator[ConfigError]:
        """Yield an error for each rule that validated inputs break."""
        plain = inputs.plain()
        return (rule.fault(inputs) for rule in cls.rules if not rule.holds(plain))

    @classmethod
    def _answer(cls, own: Mapping[str, Any], shared: Mapping[str, Any] | None = None) -> R:
        """Return the result for the arguments of `solve`.

        Parameters
        ----------
        own
            Its own arguments, as `locals()`.
        shared
            Those that it shares with other functions. They may be left out.

        Raises
        ------
        TypeError
            If `solve` has no such argument.
        """
        given = {name: own[name] for name in cls.parameters if name in own}
        if shared is not None:
            given = given_to(cls.defaults, given, shared)
        for name, value in given.items():
            if value is not cls.defaults[name] and is_axis(value):
                raise ConfigError(
                    f"{name} = {shown(value)} has several values: give one, or use sweep",
                    argument=name,
                )
        inputs = cls.admit(given)
        plain = inputs.plain()
        for rule in cls.rules:
            if not rule.holds(plain):
                raise rule.fault(inputs)
        values = _Dressed(cls.model(inputs)(plain), cls.result)
        rest = cls.rest(values, inputs)
        answer: R = cls.result._lazily(
            lambda name: rest[name]() if name in rest else values.get(name)
        )
        answer._from(cls, given)
        return answer

    @classmethod
    def derive(cls, given: Mapping[str, Any]) -> Derivation:
        """Run the model on recorded numbers and return the derivation of its outputs."""
        inputs = cls.admit(given)
        model, recorded = cls.model(inputs), inputs.recorded()
        with watching(__package__, "mlsysim.core.types", model.__module__):
            outputs = model(recorded)
        return Derivation(outputs)


class _Dressed(Mapping[str, Any]):
    """A model's plain numbers, converted to the units of the result when they are read."""

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


def check_one_model(inputs: Inputs) -> None:
    """Reject both of the textbook's one constant and a calibration's constants."""
    given: Any = inputs
    efficient = given.gives("efficiency") and given.efficiency is not None
    if efficient and given.gives("calibration"):
        raise ConfigError(
            f"calibration = {given.calibration.name} cannot be combined with efficiency, which "
            "replaces its constants: leave one of the two out",
            argument="calibration",
        )


def within_context(tokens: Callable[[Any], Value], what: str) -> Rule[Any]:
    """Return the rule that a sequence fits into the positions of the model.

    `tokens` counts those of the longest sequence, and `what` names the arguments that decide them.
    """

    def holds(i: Any) -> Value:
        if not isinstance(i.model, TransformerModel):
            return True
        return tokens(i) <= i.model.positions

    return Rule(
        "seq_len",
        holds,
        lambda i: (
            f"{what} = {tokens(i):,.0f} tokens is more than the context of {i.model.name}, "
            f"{i.model.context:,}: shorten the sequence, or take a model that states context = "
            f"{tokens(i):,.0f} if its positions are extended"
        ),
    )
