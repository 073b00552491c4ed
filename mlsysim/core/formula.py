"""Formulas: plain arithmetic with structured documentation.

`@formula` registers a function by name and does not change it. The docstring is its datasheet,
with equation, symbols, units and source (see `docstring`).
"""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Callable
from dataclasses import dataclass
from types import CodeType
from typing import Any, TypeVar

from mlsysim.core import bibliography
from mlsysim.core.docstring import Documentation, read_docstring

_KEY = re.compile(r"@(\w+)")
"""The key of a publication in the bibliography, as docstrings cite it."""

F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True)
class Formula:
    """A registered formula: the function and its documentation."""

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
    def works(self) -> tuple[str, ...]:
        """Keys of the cited publications."""
        return tuple(dict.fromkeys(_KEY.findall(self.documentation.references)))

    @property
    def references(self) -> str:
        """References as Markdown, in which the name of a publication links to its address."""
        return _KEY.sub(
            lambda key: f"[{bibliography.name(key[1])}]({bibliography.address(key[1])})",
            self.documentation.references,
        )

    @property
    def plain_references(self) -> str:
        """References as text, with the address after the name of each publication."""
        return _KEY.sub(
            lambda key: f"{bibliography.name(key[1])}, {bibliography.address(key[1])}",
            self.documentation.references,
        )

    def to_markdown(self) -> str:
        """Write the datasheet: equation, symbols with their units, notes and references."""
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


FORMULAS: dict[str, Formula] = {}
"""Every formula of the package by name."""

_BY_CODE: dict[int, Formula] = {}
"""By the identity of the code object, because its hash takes long."""


def formula(function: F) -> F:
    """Register a function as a formula, and return it unchanged."""
    entry = Formula(function.__name__, function)
    if entry.name in FORMULAS:
        raise ValueError(f"two formulas are named {entry.name}")
    FORMULAS[entry.name] = _BY_CODE[id(function.__code__)] = entry
    return function


def formula_of(code: CodeType) -> Formula | None:
    """Return the formula that has this code object."""
    return _BY_CODE.get(id(code))
