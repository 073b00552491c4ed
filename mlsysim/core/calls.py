"""Arguments of functions that take objects or arrays rather than numbers and names.

Numbers and names have kinds (`solvers.arguments`). Functions that take objects, such as a trace or
a folder, state their types with `expects`, so that a wrong object is refused with its name before
it fails somewhere inside. Functions on arrays leave the check of shapes to NumPy, whose errors
become those of the package.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

from mlsysim.core.errors import ConfigError, MLSysError, article, shown

P = ParamSpec("P")
R = TypeVar("R")
C = TypeVar("C", bound=type)

_FAULTS = (ArithmeticError, AttributeError, LookupError, MemoryError, TypeError, ValueError)


def expects(**types: type | tuple[type, ...]) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Check the types of a function's arguments when it is called.

    An argument that is left out, or has the value of its default, is not checked.
    """

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        signature = inspect.signature(function)

        @functools.wraps(function)
        def checked(*args: P.args, **kwargs: P.kwargs) -> R:
            given = signature.bind(*args, **kwargs).arguments
            for name, kinds in types.items():
                value, default = given.get(name), signature.parameters[name].default
                if name not in given or value is default or isinstance(value, kinds):
                    continue
                accepted = kinds if isinstance(kinds, tuple) else (kinds,)
                raise ConfigError(
                    f"{name} = {shown(value)} has a wrong type: give "
                    f"{' or '.join(_named(kind) for kind in accepted)}",
                    argument=name,
                )
            return function(*args, **kwargs)

        return checked

    return decorate


_WORDS = {"str": "text", "Path": "path", "int": "whole number", "Sequence": "list"}


def _named(kind: type) -> str:
    """Write a type as an object, such as "a Trace" or "an Accelerator"."""
    name = _WORDS.get(kind.__name__, kind.__name__)
    return f"{article(name)} {name}"


def checked_by_numpy(function: Callable[P, R]) -> Callable[P, R]:
    """Raise a `ConfigError` if NumPy cannot compute with the arguments, because of their shapes."""
    signature = inspect.signature(function)

    @functools.wraps(function)
    def checked(*args: P.args, **kwargs: P.kwargs) -> R:
        given = signature.bind(*args, **kwargs).arguments
        try:
            return function(*args, **kwargs)
        except MLSysError:
            raise
        except _FAULTS as fault:
            parts = [f"{name} = {_told(value)}" for name, value in given.items() if name != "self"]
            raise ConfigError(
                f"{function.__qualname__} cannot compute with {', '.join(parts)}: give arrays of "
                f"shapes that fit together ({fault})",
                argument=next((name for name in given if name != "self"), None),
            ) from fault

    return checked


def _told(value: Any) -> str:
    """Describe an array by its shape."""
    shape = getattr(value, "shape", None)
    return shown(value) if shape is None else f"an array of shape {shown(shape)}"


def methods_checked_by_numpy(kind: C) -> C:
    """Apply `checked_by_numpy` to the constructor and the public methods of a class.

    Methods that call functions of the caller are not changed, because those have their own errors.
    """
    for name, method in list(vars(kind).items()):
        public = not name.startswith("_") or name in ("__init__", "_check")
        if public and inspect.isfunction(method) and "function" not in method.__annotations__:
            setattr(kind, name, checked_by_numpy(method))
    return kind
