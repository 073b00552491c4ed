"""Signatures and docstrings of functions that share arguments.

Shared arguments are declared once, as fields of a TypedDict. Each field is annotated with its type
and its kind, which has the limits and the default, and the docstring describes it. A function takes
all of them as ``**engine: Unpack[EngineArguments]``, which type checkers and editors understand.
`composed` writes them out in the function's signature and docstring, for `help`, commands and the
reference.

The type of a field may be a type variable, so that one function takes a number and another function
several numbers to choose from.
"""

from __future__ import annotations

import inspect
import math
import re
from collections.abc import Callable, Collection, Iterable, Mapping
from enum import Enum
from functools import cache
from typing import Annotated, Any, TypeVar, Unpack, get_args, get_origin, get_type_hints

from mlsysim.solvers.arguments import Argument, Number

F = TypeVar("F", bound=Callable[..., Any])
_SECTION = r"^{}\n-+\n(.*?)(?=\n\n\w+\n-+\n|\Z)"
_ITEM = re.compile(r"^(\w+)\n((?:    .*(?:\n|\Z))+)", re.MULTILINE)


def fields_of(shared: Any) -> dict[str, Any]:
    """Return the annotation of each field of a TypedDict, with a type for each type variable."""
    types = _types(shared)
    return {
        name: Annotated[types.get(hint.__origin__, hint.__origin__), *hint.__metadata__]
        for name, hint in _annotations(get_origin(shared) or shared).items()
    }


@cache
def _annotations(declared: Any) -> dict[str, Any]:
    return get_type_hints(declared, include_extras=True)


def _types(shared: Any) -> dict[Any, Any]:
    """Return the types that a TypedDict and its bases give to their type variables."""
    generic = get_origin(shared)
    types = dict(zip(getattr(generic, "__parameters__", ()), get_args(shared), strict=False))
    for base in getattr(generic or shared, "__orig_bases__", ()):
        types = _types(base) | types
    return types


def _hints(function: Any) -> dict[str, Any]:
    """Return the annotation of each argument of a function, and of each shared one."""
    if isinstance(get_origin(function) or function, type):
        return fields_of(function)
    hints: dict[str, Any] = {}
    for name, hint in _annotations(function).items():
        hints |= fields_of(get_args(hint)[0]) if get_origin(hint) is Unpack else {name: hint}
    return hints


def _kind(hint: Any) -> Argument | None:
    """Return the kind in an annotation; `None` if there is none."""
    if get_origin(hint) is not Annotated:
        return None
    plain, *notes = get_args(hint)
    kinds = (kind.of(get_args(plain) or (plain,)) for kind in notes if isinstance(kind, Argument))
    return next(kinds, None)


def arguments_of(function: Any) -> dict[str, Argument]:
    """Return the kind of each argument of a function or a TypedDict that states one."""
    kinds = {name: _kind(hint) for name, hint in _hints(function).items()}
    return {name: kind for name, kind in kinds.items() if kind is not None}


def marked(shared: Any, mark: Enum) -> tuple[str, ...]:
    """Return the fields of a TypedDict that have a mark in their annotation."""
    return tuple(name for name, hint in fields_of(shared).items() if mark in hint.__metadata__)


def defaults_of(shared: Any) -> dict[str, Any]:
    """Return the defaults that a model reads, for the fields of a TypedDict that state them.

    A number that is left out is NaN. Names of catalog entries have no default here.
    """
    values: dict[str, Any] = {}
    for name, kind in arguments_of(shared).items():
        if isinstance(kind, Number) and kind.default is not inspect.Parameter.empty:
            values[name] = math.nan if kind.default is None else float(kind.default)
        elif kind.default is None:
            values[name] = None
    return values


def defaults_in(function: Callable[..., Any]) -> dict[str, Any]:
    """Return the default of each argument of a function; `Parameter.empty` if there is none."""
    parameters = inspect.signature(function).parameters
    return {name: item.default for name, item in parameters.items()}


def given_to(
    defaults: Mapping[str, Any], own: Mapping[str, Any], shared: Mapping[str, Any]
) -> dict[str, Any]:
    """Return all arguments of a call, with the defaults of those that are left out.

    `own` are the values of a function's own arguments, such as its `locals()`, and `shared` those
    of shared ones. `defaults` are those of the composed signature (`defaults_in`).

    Raises
    ------
    TypeError
        If there is no such argument, or one is missing.
    """
    stated = {name: value for name, value in own.items() if name in defaults}
    given = {**defaults, **stated, **shared}
    if len(given) > len(defaults):
        unknown = next(name for name in shared if name not in defaults)
        raise TypeError(f"got an unexpected keyword argument {unknown!r}")
    for name, value in given.items():
        if value is inspect.Parameter.empty:
            raise TypeError(f"missing a required argument: {name!r}")
    return given


def notes_of(function: Any) -> dict[str, str]:
    """Return the description of each argument in a function's docstring."""
    return {
        name: " ".join(text.split()) for name, text in _items(function, "Parameters")[0].items()
    }


def composed(
    defaults: Mapping[str, Any] | None = None, without: Collection[str] = ()
) -> Callable[[F], F]:
    """Write shared arguments out in the signature and the docstring of a function.

    A description in the function's own docstring has priority over the declaration's. `defaults`
    replace those of the declaration, and the function does not accept the arguments in `without`.
    """
    changed = defaults or {}

    def compose(function: F) -> F:
        hints, signature = _hints(function), inspect.signature(function)
        own = [
            item.replace(annotation=_plain(hints.get(item.name, item.annotation)))
            for item in signature.parameters.values()
            if item.kind is not inspect.Parameter.VAR_KEYWORD or item.name in hints
        ]
        shared = {
            name: kind
            for name, hint in hints.items()
            if name not in (*signature.parameters, "return", *without)
            if (kind := _kind(hint)) is not None
        }
        if not shared:
            return function
        parameters = [
            inspect.Parameter(
                name,
                inspect.Parameter.KEYWORD_ONLY,
                default=changed.get(name, kind.default),
                annotation=_plain(hints[name]),
            )
            for name, kind in shared.items()
        ]
        function.__signature__ = signature.replace(parameters=[*own, *parameters])  # type: ignore[attr-defined]
        texts = _texts(_annotations(function).values())
        function.__doc__ = _documented(function, {name: texts.get(name, "") for name in shared})
        return function

    return compose


def _plain(hint: Any) -> Any:
    """Return the type in an annotation."""
    return get_args(hint)[0] if get_origin(hint) is Annotated else hint


def _items(thing: Any, section: str) -> tuple[dict[str, str], int]:
    """Return the items of a section of a docstring, and where it ends; -1 if there is none."""
    text = inspect.getdoc(thing) or ""
    match = re.search(_SECTION.format(section), text, re.MULTILINE | re.DOTALL)
    return ({}, -1) if match is None else (dict(_ITEM.findall(match[1])), match.end())


def _texts(bases: Iterable[Any]) -> dict[str, str]:
    """Return the descriptions in the docstrings of TypedDicts and their bases."""
    texts: dict[str, str] = {}
    for base in bases:
        kind = get_args(base)[0] if get_origin(base) is Unpack else base
        kind = get_origin(kind) or kind
        texts |= _texts(getattr(kind, "__orig_bases__", ())) | _items(kind, "Attributes")[0]
    return texts


def _documented(function: Any, texts: Mapping[str, str]) -> str | None:
    """Return a function's docstring, in which the section of parameters also has these."""
    own, end = _items(function, "Parameters")
    text = inspect.getdoc(function)
    if text is None or end < 0:
        return text
    items = [f"{name}\n{about.rstrip()}" for name, about in texts.items() if name not in own]
    return "\n".join([text[:end], *items]) + text[end:]
