"""Elementary functions that mean the same on a float, an array and a quantity.

Formulas use these instead of `max`, `if` and `math`, so that one body runs on scalars, on NumPy
arrays and on quantities. NumPy is imported only once an array has arrived: the scalar path runs
without it.
"""

from __future__ import annotations

import math
import sys
from typing import Any, TypeAlias

__all__ = [
    "Value",
    "ceil",
    "exp",
    "expm1",
    "first_known",
    "floor",
    "gcd",
    "log2",
    "maximum",
    "minimum",
    "sqrt",
    "where",
]

Value: TypeAlias = Any
"""A float, an array, or a quantity: what a formula takes and returns."""


def _is_array(*values: Any) -> bool:
    numpy = sys.modules.get("numpy")
    if numpy is None:
        return False
    array = numpy.ndarray
    for value in values:  # noqa: SIM110 - a generator would take twice the time of the formula
        if isinstance(value, array):
            return True
    return False


def maximum(a: Any, b: Any) -> Any:
    """Larger of `a` and `b`, element by element."""
    if _is_array(a, b):
        import numpy

        return numpy.maximum(a, b)
    return _like(a if a >= b else b, a, b)


def minimum(a: Any, b: Any) -> Any:
    """Smaller of `a` and `b`, element by element."""
    if _is_array(a, b):
        import numpy

        return numpy.minimum(a, b)
    return _like(a if a <= b else b, a, b)


def _like(value: Any, *arguments: Any) -> Any:
    """Make a plain `value` a quantity if any of the arguments is one."""
    quantities = [argument for argument in arguments if hasattr(argument, "magnitude")]
    if quantities and not hasattr(value, "magnitude"):
        return type(quantities[0])(value, "")
    return value


def where(condition: Any, a: Any, b: Any) -> Any:
    """`a` where the condition holds, else `b`."""
    if _is_array(condition):
        import numpy

        return numpy.where(condition, a, b)
    return a if condition else b


def first_known(a: Any, b: Any) -> Any:
    """`a` where it is known, else `b`. Not known is NaN, the only value unequal to itself."""
    return where(a == a, a, b)


def _elementwise(value: Any, scalar: Any, name: str) -> Any:
    if _is_array(value):
        import numpy

        return getattr(numpy, name)(value)
    if hasattr(value, "magnitude"):  # a quantity: defined only if it is dimensionless
        return type(value)(scalar(value.to("").magnitude), "")
    return scalar(value)


def ceil(value: Any) -> Any:
    """Smallest whole number that is not below `value`."""
    return _elementwise(value, math.ceil, "ceil")


def floor(value: Any) -> Any:
    """Largest whole number that is not above `value`."""
    return _elementwise(value, math.floor, "floor")


def log2(value: Any) -> Any:
    """Logarithm to base two."""
    return _elementwise(value, math.log2, "log2")


def exp(value: Any) -> Any:
    """Exponential function."""
    return _elementwise(value, math.exp, "exp")


def expm1(value: Any) -> Any:
    """Exponential function less one, exact for small values."""
    return _elementwise(value, math.expm1, "expm1")


def sqrt(value: Any) -> Any:
    """Square root, of the dimension's square root."""
    if _is_array(value):
        import numpy

        return numpy.sqrt(value)
    return value**0.5


def gcd(a: Any, b: Any) -> Any:
    """Greatest common divisor of two whole numbers."""
    if _is_array(a, b):
        import numpy

        return numpy.gcd(numpy.asarray(a).astype(int), numpy.asarray(b).astype(int))
    return _like(math.gcd(_whole(a), _whole(b)), a, b)


def _whole(value: Any) -> int:
    return int(value.to("").magnitude if hasattr(value, "magnitude") else value)
