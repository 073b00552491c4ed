"""Elementary functions that work alike on a float, an array and a quantity.

Formulas use these instead of `max`, `if` and `math`, so that the same code runs on scalars, NumPy
arrays and quantities. NumPy is imported only if there is an array; the scalar path runs without it.
"""

from __future__ import annotations

import math
import sys
from bisect import bisect_left
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial
from typing import Any, TypeAlias

from mlsysim.core.recording import Recorded, applied

__all__ = [
    "Value",
    "ceil",
    "count_below",
    "erf",
    "exp",
    "expm1",
    "first_known",
    "floor",
    "gcd",
    "is_zero",
    "log",
    "log2",
    "maximum",
    "minimum",
    "sqrt",
    "vectorized",
    "where",
]

Value: TypeAlias = Any
"""What a formula takes and returns: a float, an array, a quantity or a recorded number."""


_PLAIN = (float, int)


def _is_recorded(a: Any, b: Any = None) -> bool:
    return type(a) is Recorded or type(b) is Recorded


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
    """Larger of `a` and `b`, element by element; NaN if either is NaN."""
    if type(a) in _PLAIN and type(b) in _PLAIN:  # the usual case, with a fast test
        return a if a >= b or a != a else b
    if _is_recorded(a, b):
        return applied(maximum, a, b)
    if _is_array(a, b):
        import numpy

        return numpy.maximum(a, b)
    return _like(a if a >= b or a != a else b, a, b)


def minimum(a: Any, b: Any) -> Any:
    """Smaller of `a` and `b`, element by element; NaN if either is NaN."""
    if type(a) in _PLAIN and type(b) in _PLAIN:
        return a if a <= b or a != a else b
    if _is_recorded(a, b):
        return applied(minimum, a, b)
    if _is_array(a, b):
        import numpy

        return numpy.minimum(a, b)
    return _like(a if a <= b or a != a else b, a, b)


def _like(value: Any, *arguments: Any) -> Any:
    """Convert a plain `value` to a quantity if any of the arguments is one."""
    quantities = [argument for argument in arguments if hasattr(argument, "magnitude")]
    if quantities and not hasattr(value, "magnitude"):
        return type(quantities[0])(value, "")
    return value


def is_zero(value: Any) -> bool:
    """Whether a single number (not an array) is zero, so that a model may leave out a term."""
    return (type(value) in _PLAIN or _is_recorded(value)) and bool(value == 0)


def where(condition: Any, a: Any, b: Any) -> Any:
    """`a` where the condition is true, else `b`."""
    if condition is True or condition is False:
        return a if condition else b
    if _is_array(condition):
        import numpy

        return numpy.where(condition, a, b)
    return a if condition else b


def first_known(a: Any, b: Any) -> Any:
    """`a` where it is known, else `b`. Unknown values are NaN, the only value unequal to itself."""
    return where(a == a, a, b)


def _elementwise(value: Any, scalar: Any, name: str) -> Any:
    if _is_array(value):
        import numpy

        return getattr(numpy, name)(value)
    if hasattr(value, "magnitude"):  # a quantity: defined only if it is dimensionless
        return type(value)(scalar(value.to("").magnitude), "")
    return scalar(value)


_VECTORIZED: ContextVar[bool] = ContextVar("vectorized", default=False)


@contextmanager
def vectorized() -> Iterator[None]:
    """Let NumPy compute exponentials and logarithms, which takes 1/20 of the time.

    Use this where the last digits do not matter: results may differ from those of one row.
    """
    before = _VECTORIZED.set(True)
    try:
        yield
    finally:
        _VECTORIZED.reset(before)


def _one_by_one(value: Any, scalar: Any) -> Any:
    """Apply a function to each element of an array.

    NumPy's exponentials differ from Python's in the last digit, and between processors. After two
    almost equal numbers are subtracted, every digit of the difference may be wrong.
    """
    if _is_array(value):
        import numpy

        if _VECTORIZED.get() and scalar is not math.erf:
            return getattr(numpy, scalar.__name__)(value)
        found = numpy.fromiter(map(scalar, value.ravel().tolist()), float, value.size)
        return found.reshape(value.shape)
    return _elementwise(value, scalar, "")


def _whole_float(scalar: Any, value: Any) -> Any:
    """Round a number as NumPy does: floats stay floats, and infinity and NaN do not change."""
    if not isinstance(value, float):
        return scalar(value)
    return float(scalar(value)) if math.isfinite(value) else value


_CEIL, _FLOOR = partial(_whole_float, math.ceil), partial(_whole_float, math.floor)


def count_below(positions: tuple[int, ...], value: Any) -> Any:
    """Count the sorted positions that are below a whole number."""
    if _is_recorded(value):

        def layers_before(number: Any) -> Any:
            return count_below(positions, number)

        return applied(layers_before, value)
    if _is_array(value):
        import numpy

        return numpy.searchsorted(positions, value).astype(float)
    return _like(float(bisect_left(positions, _plain(value))), value)


def ceil(value: Any) -> Any:
    """Smallest whole number that is not below `value`."""
    if _is_recorded(value):
        return applied(ceil, value)
    return _elementwise(value, _CEIL, "ceil")


def floor(value: Any) -> Any:
    """Largest whole number that is not above `value`."""
    if _is_recorded(value):
        return applied(floor, value)
    return _elementwise(value, _FLOOR, "floor")


def log2(value: Any) -> Any:
    """Logarithm to base two."""
    if _is_recorded(value):
        return applied(log2, value)
    return _elementwise(value, math.log2, "log2")


def erf(value: Any) -> Any:
    """Error function, from which the normal distribution follows."""
    if _is_recorded(value):
        return applied(erf, value)
    return _one_by_one(value, math.erf)


def log(value: Any) -> Any:
    """Natural logarithm."""
    if _is_recorded(value):
        return applied(log, value)
    return _one_by_one(value, math.log)


def exp(value: Any) -> Any:
    """Exponential function."""
    if _is_recorded(value):
        return applied(exp, value)
    return _one_by_one(value, math.exp)


def expm1(value: Any) -> Any:
    """Exponential function less one, exact for small values."""
    if _is_recorded(value):
        return applied(expm1, value)
    return _one_by_one(value, math.expm1)


def sqrt(value: Any) -> Any:
    """Square root, of the dimension's square root."""
    if _is_recorded(value):
        return applied(sqrt, value)
    if _is_array(value):
        import numpy

        return numpy.sqrt(value)
    # Correctly rounded, like NumPy's. A power of 0.5 can be off in the last digit.
    return math.sqrt(value) if isinstance(value, float) else value**0.5


def gcd(a: Any, b: Any) -> Any:
    """Greatest common divisor of two whole numbers."""
    if _is_recorded(a, b):
        return applied(gcd, a, b)
    if _is_array(a, b):
        import numpy

        a, b = numpy.broadcast_arrays(numpy.asarray(a, float), numpy.asarray(b, float))
        if (a < _INT64).all() and (b < _INT64).all():
            return numpy.gcd(a.astype(numpy.int64), b.astype(numpy.int64)).astype(float)
        # Euclid's algorithm, because floats do not wrap around.
        with numpy.errstate(invalid="ignore"):
            while (b > 0).any():
                a, b = numpy.where(b > 0, b, a), numpy.where(b > 0, numpy.fmod(a, b), b)
        return a
    return _like(_gcd(_plain(a), _plain(b)), a, b)


_INT64 = 2.0**63


def _gcd(a: Any, b: Any) -> Any:
    common = math.gcd(int(a), int(b))
    return float(common) if isinstance(a, float) or isinstance(b, float) else common


def _plain(value: Any) -> Any:
    return value.to("").magnitude if hasattr(value, "magnitude") else value
