"""Every argument and field of the interface, with its unit and its docstring."""

from __future__ import annotations

import ast
import dataclasses
import inspect
import textwrap
from collections.abc import Callable, Iterator
from functools import cache
from itertools import pairwise
from typing import Any, NamedTuple

from griffe import Docstring

import mlsysim
from mlsysim import compat
from mlsysim.core.docstring import read_source
from mlsysim.solvers.base import Solver
from tools.api.docstrings import items


class Field(NamedTuple):
    """One name of one owner: an argument of a function, or a field of a record."""

    name: str
    owner: str
    unit: str
    text: str


def fields() -> list[Field]:
    """Return all arguments and fields of public names, sorted by name."""
    public = {
        name: getattr(mlsysim, name) for name in mlsysim.__all__ if name not in compat.__all__
    }
    found = [item for owner, thing in public.items() for item in _of(owner, thing)]
    return sorted(found, key=lambda item: (item.name.lower(), item.owner))


def _of(owner: str, thing: Any) -> Iterator[Field]:
    if inspect.isclass(thing) and dataclasses.is_dataclass(thing):
        texts = _texts(thing)
        for field in dataclasses.fields(thing):
            if not field.name.startswith("_"):
                unit = field.metadata.get("unit", "")
                yield Field(field.name, owner, unit, texts.get(field.name, ""))
    solve = _function(thing)
    if solve is not None:
        texts = _items(solve, "parameters")
        call = f"{owner}.solve" if inspect.isclass(thing) else owner
        for name in inspect.signature(solve).parameters:
            yield Field(name, call, "", texts.get(name, ""))


def _function(thing: Any) -> Callable[..., Any] | None:
    if inspect.isclass(thing) and issubclass(thing, Solver):
        solve: Callable[..., Any] = thing.solve
        return solve
    return thing if inspect.isfunction(thing) else None


@cache
def _texts(kind: type) -> dict[str, str]:
    """Texts of fields: strings below them, or items of the docstring; of base classes too."""
    found: dict[str, str] = {}
    for base in reversed(kind.__mro__):
        if not base.__module__.startswith("mlsysim"):
            continue
        found |= _items(base, "parameters") | _items(base, "attributes")
        [body] = ast.parse(textwrap.dedent(read_source(base))).body
        statements = body.body if isinstance(body, ast.ClassDef) else []
        for above, below in pairwise(statements):
            match above, below:
                case (
                    ast.AnnAssign(target=ast.Name(id=name)),
                    ast.Expr(value=ast.Constant(value=str(text))),
                ):
                    found[name] = " ".join(text.split())
    return found


def _items(thing: Any, kind: str) -> dict[str, str]:
    """Texts of one section of a numpydoc docstring, by name."""
    sections = Docstring(inspect.getdoc(thing) or "").parse("numpy", warnings=False)
    return {
        name.strip("*"): " ".join(item.description.split())
        for name, item in items(sections, kind).items()
    }
