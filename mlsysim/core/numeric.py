"""Elementary functions that work alike on a float, an array and a quantity.

Formulas use these instead of `max`, `if` and `math`, so that the same code runs on scalars, NumPy
arrays and quantities. NumPy is imported only if there is an array; the scalar path runs without it.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial
from typing import Any, TypeAlias

from mlsysim.core.recording import Recorded, applied, chosen, value_of

Value: TypeAlias = Any
"""What a formula takes and returns: a float, an array, a quantity or a recorded number."""
NINETIETH = 1.2816
"""Standard deviations from the middle of a normal distribution to its ninetieth percentile."""

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
        return chosen(maximum, a, b)
    if _is_array(a, b):
        import numpy

        return numpy.maximum(a, b)
    return _like(a if a >= b or a != a else b, a, b)


def minimum(a: Any, b: Any) -> Any:
    """Smaller of `a` and `b`, element by element; NaN if either is NaN."""
    if type(a) in _PLAIN and type(b) in _PLAIN:
        return a if a <= b or a != a else b
    if _is_recorded(a, b):
        return chosen(minimum, a, b)
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


def zero_like(value: Any) -> Any:
    """Zero in the unit and the shape of a value; in a derivation, it depends on the value."""
    return 0 * value


def is_known(value: Any) -> Any:
    """Whether a value is known. Unknown values are NaN, the only value unequal to itself."""
    return value == value


def is_unknown(value: Any) -> Any:
    """Whether a value is unknown; see `is_known`. This is an array for an array."""
    return value != value


def where(condition: Any, a: Any, b: Any) -> Any:
    """`a` where the condition is true, else `b`."""
    if condition is True or condition is False:
        return a if condition else b
    if _is_array(condition):
        import numpy

        return numpy.where(condition, a, b)
    return a if condition else b


def when(condition: Any, value: Any) -> Any:
    """`value` where the condition is true, else zero."""
    return where(condition, value, zero_like(value))


def first_known(a: Any, b: Any) -> Any:
    """`a` where it is known, else `b`."""
    return where(is_known(a), a, b)


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
        numbers = value.ravel().tolist()
        try:
            results = numpy.fromiter(map(scalar, numbers), float, value.size)
        except (ValueError, OverflowError):
            each = (_or_nan(scalar, number) for number in numbers)
            results = numpy.fromiter(each, float, value.size)
        return results.reshape(value.shape)
    return _elementwise(value, scalar, "")


def _or_nan(scalar: Any, number: float) -> float:
    """Return NaN where a number has no value: models also compute rows that rules exclude."""
    try:
        return float(scalar(number))
    except (ValueError, OverflowError):
        return math.nan


def _whole_float(scalar: Any, value: Any) -> Any:
    """Round a number as NumPy does: floats stay floats, and infinity and NaN do not change."""
    if not isinstance(value, float):
        return scalar(value)
    return float(scalar(value)) if math.isfinite(value) else value


_CEIL, _FLOOR = partial(_whole_float, math.ceil), partial(_whole_float, math.floor)


def tabulated(function: Callable[..., tuple[float, ...]], *numbers: Any) -> list[Any]:
    """Apply a function of plain numbers that returns several, once per distinct combination.

    The function must be pure. Where it returns fewer numbers than for another row, the rest are 0.
    """
    if any(_is_recorded(number) for number in numbers):
        count = len(function(*(_plain(value_of(number)) for number in numbers)))
        return [applied(_part(function, place), *numbers) for place in range(count)]
    if not _is_array(*numbers):
        return list(function(*numbers))
    import numpy

    columns = numpy.broadcast_arrays(*numbers)
    codes = numpy.zeros(columns[0].shape, numpy.int64)
    rows: Any = [0]
    for column in columns:
        if column.size > 1 and any(column.strides):  # it differs between rows
            known, place = numpy.unique(column, return_inverse=True)
            codes = codes * known.size + place.reshape(codes.shape)
            _, rows, codes = numpy.unique(codes, return_index=True, return_inverse=True)
            codes = codes.reshape(columns[0].shape)
    answers = [function(*(column.flat[row].item() for column in columns)) for row in rows]
    width = max(len(answer) for answer in answers)
    padded = numpy.array([(*answer, *[0.0] * (width - len(answer))) for answer in answers], float)
    return [padded[:, place][codes] for place in range(width)]


def _part(function: Callable[..., tuple[float, ...]], place: int) -> Callable[..., Any]:
    """Return the function that gives one of several results, under the name of the whole."""

    def part(*numbers: Any) -> Any:
        return _like(function(*map(_plain, numbers))[place], *numbers)

    part.__name__ = function.__name__
    return part


def ceil(value: Any) -> Any:
    """Smallest whole number that is not below `value`."""
    if type(value) is float:  # the usual case, with a fast test
        return _CEIL(value)
    return applied(ceil, value) if _is_recorded(value) else _elementwise(value, _CEIL, "ceil")


def floor(value: Any) -> Any:
    """Largest whole number that is not above `value`."""
    if type(value) is float:  # the usual case, with a fast test
        return _FLOOR(value)
    return applied(floor, value) if _is_recorded(value) else _elementwise(value, _FLOOR, "floor")


def log2(value: Any) -> Any:
    """Logarithm to base two."""
    if type(value) is float:  # the usual case, with a fast test
        return math.log2(value)
    return applied(log2, value) if _is_recorded(value) else _elementwise(value, math.log2, "log2")


def erf(value: Any) -> Any:
    """Error function, from which the normal distribution follows."""
    if type(value) is float:
        return math.erf(value)
    return applied(erf, value) if _is_recorded(value) else _one_by_one(value, math.erf)


def log(value: Any) -> Any:
    """Natural logarithm."""
    if type(value) is float:
        return math.log(value)
    return applied(log, value) if _is_recorded(value) else _one_by_one(value, math.log)


def exp(value: Any) -> Any:
    """Exponential function."""
    if type(value) is float:
        return math.exp(value)
    return applied(exp, value) if _is_recorded(value) else _one_by_one(value, math.exp)


def expm1(value: Any) -> Any:
    """Exponential function less one, exact for small values."""
    if type(value) is float:
        return math.expm1(value)
    return applied(expm1, value) if _is_recorded(value) else _one_by_one(value, math.expm1)


def log1p(value: Any) -> Any:
    """Natural logarithm of one more, exact for small values."""
    if _is_recorded(value):
        return applied(log1p, value)
    return _one_by_one(value, math.log1p)


def sqrt(value: Any) -> Any:
    """Square root, of the dimension's square root."""
    # Correctly rounded, like NumPy's. A power of 0.5 can be off in the last digit.
    if isinstance(value, float):
        return math.sqrt(value)
    if _is_recorded(value):
        return applied(sqrt, value)
    if _is_array(value):
        import numpy

        return numpy.sqrt(value)
    return value**0.5


def gcd(a: Any, b: Any) -> Any:
    """Greatest common divisor of two whole numbers."""
    if type(a) is float and type(b) is float:
        return float(math.gcd(int(a), int(b)))
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
