"""Elementary functions that mean the same on a float, an array and a quantity.

Formulas use these instead of `max`, `if` and `math`, so that one body runs on scalars, on NumPy
arrays and on quantities. NumPy is imported only once an array has arrived: the scalar path runs
without it.
"""

from __future__ import annotations

import math
import sys
from typing import Any

__all__ = ["ceil", "floor", "log2", "maximum", "minimum", "sqrt", "where"]


def _is_array(*values: Any) -> bool:
    numpy = sys.modules.get("numpy")
    return numpy is not None and any(isinstance(value, numpy.ndarray) for value in values)


def maximum(a: Any, b: Any) -> Any:
    """Larger of `a` and `b`, element by element."""
    if _is_array(a, b):
        import numpy

        return numpy.maximum(a, b)
    return a if a >= b else b


def minimum(a: Any, b: Any) -> Any:
    """Smaller of `a` and `b`, element by element."""
    if _is_array(a, b):
        import numpy

        return numpy.minimum(a, b)
    return a if a <= b else b


def where(condition: Any, a: Any, b: Any) -> Any:
    """`a` where the condition holds, else `b`."""
    if _is_array(condition):
        import numpy

        return numpy.where(condition, a, b)
    return a if condition else b


def _elementwise(value: Any, scalar: Any, name: str) -> Any:
    if _is_array(value):
        import numpy

        return getattr(numpy, name)(value)
    if hasattr(value, "magnitude"):  # a quantity: defined only if it is dimensionless
        plain = value.to("")
        return type(value)(scalar(plain.magnitude), plain.units)
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


def sqrt(value: Any) -> Any:
    """Square root, of the dimension's square root."""
    if _is_array(value):
        import numpy

        return numpy.sqrt(value)
    return value**0.5
