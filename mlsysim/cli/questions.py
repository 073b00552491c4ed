"""Questions and arguments: from the words of a command line to a solver's arguments."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from difflib import get_close_matches
from typing import Any

import click

from mlsysim.config.document import scalar_of
from mlsysim.core.errors import ConfigError, UnknownEntryError
from mlsysim.scenario.amounts import read_argument
from mlsysim.solvers import (
    DistributedSolver,
    EconomicsSolver,
    ReliabilitySolver,
    ServingSolver,
    SingleNodeSolver,
    SustainabilitySolver,
)
from mlsysim.solvers.arguments import Argument, Noun
from mlsysim.solvers.base import Solver

__all__ = ["NOUNS", "QUESTIONS", "arguments_of", "asking", "axes_of", "solver_of"]

QUESTIONS: dict[str, type[Solver[Any]]] = {
    "inference": SingleNodeSolver,
    "serving": ServingSolver,
    "training": DistributedSolver,
    "sustainability": SustainabilitySolver,
    "economics": EconomicsSolver,
    "reliability": ReliabilitySolver,
}
NOUNS = ("model", "hardware", "node", "fleet")


def solver_of(question: str) -> type[Solver[Any]]:
    """Return the solver that answers a question."""
    if question not in QUESTIONS:
        raise UnknownEntryError.build(question, "question", QUESTIONS)
    return QUESTIONS[question]


def asking(function: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command the options by which a question is put."""
    options = [
        click.argument("question", metavar="QUESTION"),
        click.option("--model", metavar="NAME", help="The model, by its name in the zoo."),
        click.option("--hardware", metavar="NAME", help="The device."),
        click.option("--node", metavar="NAME", help="The server, in place of a device."),
        click.option("--fleet", metavar="NAME", help="The cluster."),
        click.option(
            "--set",
            "settings",
            metavar="KEY=VALUE",
            multiple=True,
            help="Any other argument of the solver; may be repeated.",
        ),
    ]
    for option in reversed(options):
        function = option(function)
    return function


def arguments_of(
    solver: type[Solver[Any]], nouns: Mapping[str, str | None], settings: Iterable[str]
) -> dict[str, Any]:
    """Read the arguments of one question."""
    words = _words(solver, nouns, settings)
    return _complete(solver, {name: _read(solver, name, text) for name, text in words.items()})


def axes_of(
    solver: type[Solver[Any]], nouns: Mapping[str, str | None], settings: Iterable[str]
) -> dict[str, Any]:
    """Read the arguments of a sweep: values between commas are an axis."""
    words = _words(solver, nouns, settings)
    read = {
        name: [_read(solver, name, part.strip()) for part in text.split(",")]
        for name, text in words.items()
    }
    return _complete(
        solver, {name: values if len(values) > 1 else values[0] for name, values in read.items()}
    )


def _words(
    solver: type[Solver[Any]], nouns: Mapping[str, str | None], settings: Iterable[str]
) -> dict[str, str]:
    """Collect names and texts, each once."""
    found: dict[str, str] = {}
    # A server takes the place of a device, under the argument's one name.
    pairs = [("hardware" if key == "node" else key, text) for key, text in nouns.items() if text]
    for setting in settings:
        key, equals, text = setting.partition("=")
        if not equals or not key.strip():
            raise ConfigError(f"--set {setting!r} is not KEY=VALUE", argument="set")
        pairs.append((key.strip(), text.strip()))
    for key, text in pairs:
        if key in found:
            raise ConfigError(f"{key} is given twice", argument=key)
        _check_name(solver, key)
        found[key] = text
    return found


def _check_name(solver: type[Solver[Any]], name: str) -> None:
    known = solver.parameters
    if name in known:
        return
    near = get_close_matches(name, known, n=1)
    shown = (_spelling(key, kind) for key, kind in known.items())
    hint = f"did you mean {near[0]}?" if near else f"it takes {', '.join(shown)}"
    raise UnknownEntryError(f"{solver.__name__} has no argument {name}; {hint}", argument=name)


def _spelling(name: str, kind: Argument) -> str:
    return f"--{name}" if name in NOUNS and isinstance(kind, Noun) else name


def _read(solver: type[Solver[Any]], name: str, text: str) -> Any:
    return read_argument(solver.parameters[name], name, scalar_of(text))


def _complete(solver: type[Solver[Any]], given: dict[str, Any]) -> dict[str, Any]:
    """Refuse a question that lacks an argument, naming all that are missing."""
    missing = [
        name
        for name, item in inspect.signature(solver.solve).parameters.items()
        if item.default is inspect.Parameter.empty and name not in given
    ]
    if missing:
        ways = [
            f"--{name} NAME" if name in NOUNS else f"--set {name}={_example(solver, name)}"
            for name in missing
        ]
        raise ConfigError(f"missing: {', '.join(ways)}", argument=missing[0])
    return given


def _example(solver: type[Solver[Any]], name: str) -> str:
    kind = solver.parameters[name]
    if isinstance(kind, Noun):
        return kind.hint.split(",")[0].rpartition(".")[2]
    return str(getattr(kind, "minimum", 1))
