"""Reads the docstrings of formulas: equation, symbols, units and references.

The convention is numpydoc's, with two additions. The type slot of a parameter holds its unit in
brackets, and its description begins with its symbol:

    message_size : [byte]
        $m$, data that each rank holds.

The equation is between double dollars below the summary. The site and the tests read the same text,
so pages always agree with the code.
"""

from __future__ import annotations

import inspect
import re
import textwrap
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from mlsysim.core.errors import MLSysError

_SECTION = re.compile(r"^(\w[\w ]*)\n-{3,}$", re.MULTILINE)
_ITEM = re.compile(r"^(\w+) : \[([^\]]*)\]$")
_SYMBOL = re.compile(r"^\$([^$]+)\$,?\s*")
_EQUATION = re.compile(r"\$\$(.+?)\$\$", re.DOTALL)


@dataclass(frozen=True)
class Symbol:
    """One documented quantity: a parameter, or the returned value."""

    name: str
    unit: str
    latex: str
    text: str


@dataclass(frozen=True)
class Documentation:
    """The parsed docstring of a formula."""

    summary: str
    equation: str
    notes: str
    parameters: dict[str, Symbol]
    returns: Symbol | None
    references: str


def read_docstring(function: Callable[..., Any]) -> Documentation:
    """Read the docstring of a formula."""
    text = inspect.getdoc(function)
    if text is None:
        raise MLSysError(
            f"{function.__name__} has no docstring, which states its equation and units: python "
            "-OO removes docstrings, so run Python without -OO"
        )
    parts = _SECTION.split(text)
    sections = dict(zip(parts[1::2], (part.strip("\n") for part in parts[2::2]), strict=True))
    summary, _, body = parts[0].strip().partition("\n\n")
    equation = _EQUATION.search(body)
    returned = _read_items(sections.get("Returns", ""))
    return Documentation(
        summary=" ".join(summary.split()),
        equation=" ".join(equation[1].split()) if equation else "",
        notes=_EQUATION.sub("", body).strip(),
        parameters=_read_items(sections.get("Parameters", "")),
        returns=next(iter(returned.values()), None),
        references=" ".join(sections.get("References", "").split()),
    )


def read_source(thing: type | Callable[..., Any]) -> str:
    """Read the source code of a formula or a catalog, to show its arithmetic or notes."""
    try:
        return textwrap.dedent(inspect.getsource(thing))
    except OSError:
        raise MLSysError(
            f"the source code of {thing.__name__} is not installed, but derivations and notes are "
            "read from it: install mlsysim with its .py files, as pip does"
        ) from None


def _read_items(section: str) -> dict[str, Symbol]:
    symbols: dict[str, Symbol] = {}
    name, unit, lines = "", "", list[str]()
    for line in [*section.splitlines(), "end : []"]:
        item = _ITEM.match(line)
        if item is None:
            lines.append(line.strip())
            continue
        if name:
            text = " ".join(lines).strip()
            symbol = _SYMBOL.match(text)
            latex = symbol[1] if symbol else rf"\mathrm{{{name}}}"
            symbols[name] = Symbol(name, unit, latex, _SYMBOL.sub("", text))
        name, unit, lines = item[1], item[2], []
    return symbols
