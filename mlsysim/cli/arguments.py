"""Arguments: convert the words of a command line to the arguments of a function.

A `Signature` has the kinds, defaults and notes of a function's arguments. It determines the options
of a command, their help and the completion of names.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

from mlsysim.core.errors import ConfigError, UnknownEntryError
from mlsysim.scenario.files import scalar_of
from mlsysim.scenario.names import read_argument
from mlsysim.solvers.arguments import Argument, Noun
from mlsysim.solvers.base import Solver
from mlsysim.solvers.signatures import arguments_of, notes_of

__all__ = ["REQUIRED", "Signature", "example", "flag", "signature_of"]

REQUIRED = inspect.Parameter.empty
"""Default of an argument that has none."""

Words = Mapping[str, Iterable[str]]
"""Texts given for each argument by the option with its name."""


@dataclass(frozen=True)
class Signature:
    """The arguments of a function.

    Attributes
    ----------
    name : str
        Name of the function in errors.
    kinds : Mapping[str, Argument]
        Kind of each argument, in the function's order.
    defaults : Mapping[str, object]
        Default of each argument, or `REQUIRED`.
    notes : Mapping[str, str]
        Description of each argument in the docstring.
    """

    name: str
    kinds: Mapping[str, Argument]
    defaults: Mapping[str, Any]
    notes: Mapping[str, str]

    @classmethod
    def of(cls, function: Callable[..., Any], *, name: str = "") -> Signature:
        """Read a function's signature and docstring.

        Parameters
        ----------
        function
            The function. Arguments without a kind are left out.
        name
            Name for errors; if empty, the function's own name.
        """
        kinds, known = arguments_of(function), inspect.signature(function).parameters
        return cls(
            name=name or function.__name__,
            kinds={key: kinds[key] for key in known if key in kinds},
            defaults={key: item.default for key, item in known.items() if key in kinds},
            notes=notes_of(function),
        )

    def read(self, words: Words, settings: Iterable[str], *, axes: bool = False) -> dict[str, Any]:
        """Read the arguments of one call.

        Parameters
        ----------
        words
            Texts given by options.
        settings
            Texts given as ``KEY=VALUE``.
        axes
            Whether values separated by commas become a list.

        Raises
        ------
        ConfigError
            If a value is invalid, given twice, or missing.
        """
        given = {
            name: self._several(name, text) if axes else self._value(name, text)
            for name, text in self._words(words, settings).items()
        }
        missing = [
            name
            for name, default in self.defaults.items()
            if default is REQUIRED and name not in given
        ]
        if missing:
            ways = " ".join(f"{flag(name)} {example(self.kinds[name])}" for name in missing)
            raise ConfigError(
                f"{self.name} needs {', '.join(missing)}: add them, as in {ways}",
                argument=missing[0],
            )
        return given

    def changes(self, settings: Iterable[str]) -> dict[str, Any]:
        """Read the arguments that differ in another call, given as ``KEY=VALUE`` after `--against`.

        Raises
        ------
        ConfigError
            If a value is invalid or given twice.
        """
        words = self._words({}, settings, option="against")
        return {name: self._value(name, text) for name, text in words.items()}

    def _several(self, name: str, text: str) -> Any:
        values = [self._value(name, part.strip()) for part in text.split(",")]
        return values if len(values) > 1 else values[0]

    def _value(self, name: str, text: str) -> Any:
        return read_argument(self.kinds[name], name, scalar_of(text))

    def _words(self, words: Words, settings: Iterable[str], option: str = "set") -> dict[str, str]:
        """Collect names and texts, each once."""
        pairs = [(name, text) for name, texts in words.items() for text in texts]
        for setting in settings:
            key, equals, text = setting.partition("=")
            if not equals or not key.strip():
                raise ConfigError(f"--{option} {setting!r} is not KEY=VALUE", argument=option)
            # Options are spelled with hyphens, so keys may be too.
            pairs.append((key.strip().replace("-", "_"), text.strip()))
        found: dict[str, str] = {}
        for key, text in pairs:
            if key in found:
                raise ConfigError(f"{key} is given twice", argument=key)
            self._check_name(key)
            found[key] = text
        return found

    def _check_name(self, name: str) -> None:
        if name in self.kinds:
            return
        near = get_close_matches(name, self.kinds, n=1)
        hint = f"did you mean {near[0]}?" if near else f"it takes {', '.join(self.kinds)}"
        raise UnknownEntryError(f"{self.name} has no argument {name}; {hint}", argument=name)


def signature_of(solver: type[Solver[Any, Any]]) -> Signature:
    """Return the arguments of a solver."""
    return Signature.of(solver.solve, name=solver.__name__)


def flag(name: str) -> str:
    """Return the option for an argument."""
    return f"--{name.replace('_', '-')}"


def example(kind: Argument) -> str:
    """Return a value that an argument of this kind might have."""
    if isinstance(kind, Noun):
        return kind.hint.split(",")[0].rpartition(".")[2]
    return str(getattr(kind, "minimum", 1))
