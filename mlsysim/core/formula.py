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

from mlsysim.core.docstring import Documentation, read_docstring

__all__ = ["FORMULAS", "Formula", "formula", "formula_of"]

_ADDRESS = re.compile(r"https?://[^\s;<>]+[^\s;<>,.)]")
# The text about a publication, up to its address. A semicolon separates publications.
_CITED = re.compile(rf"([^;]*?),? *({_ADDRESS.pattern})")

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
    def works(self) -> dict[str, str]:
        """Cited publications: the text that names each one, by address."""
        text, end, found = self.documentation.references, 0, {}
        for match in _ADDRESS.finditer(text):
            found[match[0]] = text[end : match.start()].strip(" ;,.")
            end = match.end()
        return found

    @property
    def references(self) -> str:
        """References as Markdown, in which the name of a publication links to its address."""
        return _CITED.sub(_link, self.documentation.references)

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


def _link(cited: re.Match[str]) -> str:
    words = cited[1].lstrip()
    return f"{cited[1][: -len(words)]}[{words}]({cited[2]})" if words else f"<{cited[2]}>"


FORMULAS: dict[str, Formula] = {}
"""Every formula of the package by name."""

_BY_CODE: dict[CodeType, Formula] = {}


def formula(function: F) -> F:
    """Register a function as a formula, and return it unchanged."""
    entry = Formula(function.__name__, function)
    if entry.name in FORMULAS:
        raise ValueError(f"two formulas are named {entry.name}")
    FORMULAS[entry.name] = _BY_CODE[function.__code__] = entry
    return function


def formula_of(code: CodeType) -> Formula | None:
    """Return the formula that has this code object."""
    return _BY_CODE.get(code)
