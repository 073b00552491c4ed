"""Formulas: plain arithmetic that documents itself and can record that it was used.

`@formula` leaves a function as it is, and registers it by name. Its docstring is its data sheet:
equation, symbols, units and source (see `docstring`). Inside `with trace() as calls:` each call
is recorded with its arguments and its value; outside, a call costs one look at a variable.
"""

from __future__ import annotations

import copy
import functools
import inspect
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, ParamSpec, TypeVar, cast

from mlsysim.core.docstring import Documentation, read_docstring

__all__ = ["FORMULAS", "Call", "Formula", "formula", "trace"]

_ADDRESS = re.compile(r"https?://[^\s;<>]+[^\s;<>,.)]")
# What is said of a publication, up to its address. A semicolon parts it from what is said before.
_CITED = re.compile(rf"([^;]*?),? *({_ADDRESS.pattern})")

P = ParamSpec("P")
R = TypeVar("R")


@dataclass(frozen=True)
class Formula:
    """A registered formula: the function and what its docstring says."""

    name: str
    function: Callable[..., Any]

    @functools.cached_property
    def documentation(self) -> Documentation:
        """Equation, symbols, units and references."""
        return read_docstring(self.function)

    @property
    def line(self) -> int:
        """Line of the module on which the function begins."""
        return self.function.__code__.co_firstlineno

    @property
    def works(self) -> dict[str, str]:
        """Publications that it cites: by address, the words that name them."""
        text, end, found = self.documentation.references, 0, {}
        for match in _ADDRESS.finditer(text):
            found[match[0]] = text[end : match.start()].strip(" ;,.")
            end = match.end()
        return found

    @property
    def references(self) -> str:
        """What it rests on, as Markdown: the words that name a publication link to its address."""
        return _CITED.sub(_link, self.documentation.references)

    def to_markdown(self) -> str:
        """Write the data sheet: equation, symbols with their units, notes and references."""
        manual = self.documentation
        rows = [(f"`{item.name}`", item) for item in manual.parameters.values()]
        rows += [("*result*", manual.returns)] if manual.returns else []
        table = ["| Symbol | Argument | Unit | Meaning |", "|:---|:-------|:-----|:--------------|"]
        for name, item in rows:
            unit = "–" if item.unit in ("", "1") else item.unit
            text = item.text[:1].upper() + item.text[1:]
            table.append(f"| ${item.latex}$ | {name} | {unit} | {text} |")
        blocks = [manual.summary, f"$$ {manual.equation} $$", manual.notes, "\n".join(table)]
        return "\n\n".join(filter(None, [*blocks, f"*Source:* {self.references}"]))

    def _repr_markdown_(self) -> str:
        return self.to_markdown()

    @functools.cached_property
    def signature(self) -> inspect.Signature:
        """The function's parameters."""
        return inspect.signature(self.function)


def _link(cited: re.Match[str]) -> str:
    words = cited[1].lstrip()
    return f"{cited[1][: -len(words)]}[{words}]({cited[2]})" if words else f"<{cited[2]}>"


FORMULAS: dict[str, Formula] = {}
"""Every formula of the package by name."""


@dataclass
class Call:
    """One recorded use of a formula."""

    formula: Formula
    arguments: dict[str, Any]
    value: Any = None
    calls: list[Call] = field(default_factory=list)


_active: ContextVar[list[Call] | None] = ContextVar("_active", default=None)


def formula(function: Callable[P, R]) -> Callable[P, R]:
    """Register a function as a formula and let `trace` see its calls."""
    entry = Formula(function.__name__, function)
    if entry.name in FORMULAS:
        raise ValueError(f"two formulas are named {entry.name}")
    FORMULAS[entry.name] = entry

    @functools.wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        calls = _active.get()
        if calls is None:
            return function(*args, **kwargs)
        bound = entry.signature.bind(*args, **kwargs)
        bound.apply_defaults()
        record = Call(entry, dict(bound.arguments))
        calls.append(record)
        token = _active.set(record.calls)
        try:
            value = function(*args, **kwargs)
        finally:
            _active.reset(token)
        # A derivation follows values by identity. A formula that hands an argument through (a
        # maximum, say) must therefore return an object of its own.
        if any(value is argument for argument in record.arguments.values()):
            value = copy.copy(value)
        record.value = value
        return value

    return cast(Callable[P, R], call)


@contextmanager
def trace() -> Iterator[list[Call]]:
    """Record every formula that is called inside the block, in order, nested as called."""
    calls: list[Call] = []
    token = _active.set(calls)
    try:
        yield calls
    finally:
        _active.reset(token)
