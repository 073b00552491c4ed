"""Exact derivatives of a result, by the chain rule along the recorded arithmetic.

A `Recorded` number stores the operation that computed it and the operands. Walking that graph
backward from a result yields the derivatives with respect to all inputs at once. At a `maximum` or
a `where`, the derivative is that of the branch taken. Rounding and greatest common divisors are
constant between their steps, so their derivative is zero, and the inputs behind them are marked.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from mlsysim.core.recording import Input, Recorded, value_of


@dataclass(eq=False)
class Slope:
    """The derivative of a result with respect to one input."""

    input: Input
    """The input."""
    value: float
    """Value of the input in SI base units."""
    slope: float = 0.0
    """The derivative, in SI base units."""
    stepped: bool = False
    """Whether the result also depends on it through rounding, which has a derivative of zero."""
    tied: bool = False
    """Whether it reaches the result through a maximum or minimum of two equal numbers, so that the
    derivative is only that of one side."""


def plain(number: Any) -> float:
    """Return a number, a quantity or a recorded one as a float in SI base units."""
    value = value_of(number)
    return float(value.to_base_units().magnitude if hasattr(value, "magnitude") else value)


def slopes(answer: Recorded) -> list[Slope]:
    """Differentiate a result with respect to every input on which it depends.

    Parameters
    ----------
    answer
        A number that a model returned for recorded inputs.

    Returns
    -------
    list of Slope
        One per input, in no particular order.
    """
    order = _ordered(answer)
    slope = {id(node): 0.0 for node in order}
    slope[id(answer)] = 1.0
    stepped: set[int] = set()
    tied: set[int] = set()
    inputs: dict[str, Slope] = {}
    for node in reversed(order):
        node_slope = slope[id(node)]
        if node.origin is not None:
            at = inputs.setdefault(node.origin.origin, Slope(node.origin, plain(node)))
            at.slope += node_slope
            at.stepped |= id(node) in stepped
            at.tied |= id(node) in tied
            continue
        values = [plain(item) for item in node.operands]
        counted = node.operation in _COUNTS
        partials = _nothing if counted else _PARTIALS[node.operation, len(values)]
        partial = partials(*values)
        steps = counted or node.operation in _STEPS
        tie = node.operation in _CHOICES and values[0] == values[1] != 0
        for operand, part in zip(node.operands, partial, strict=True):
            if not isinstance(operand, Recorded):
                continue
            slope[id(operand)] += node_slope * part if node_slope and part else 0.0
            # The operand that a maximum discards does not affect the result.
            if steps or (part != 0 and id(node) in stepped):
                stepped.add(id(operand))
            if tie or (part != 0 and id(node) in tied):
                tied.add(id(operand))
    return list(inputs.values())


def _ordered(answer: Recorded) -> list[Recorded]:
    """Return every number from which the result was computed, operands first."""
    order: list[Recorded] = []
    seen: set[int] = set()
    stack: list[tuple[Recorded, bool]] = [(answer, False)]
    while stack:
        node, done = stack.pop()
        if done:
            order.append(node)
        elif id(node) not in seen:
            seen.add(id(node))
            stack.append((node, True))
            stack.extend((item, False) for item in node.operands if isinstance(item, Recorded))
    return order


def _power(base: float, exponent: float) -> tuple[float, float]:
    by_base = exponent * base ** (exponent - 1) if base or exponent >= 1 else math.nan
    return by_base, base**exponent * math.log(base) if base > 0 else 0.0


def _nothing(*values: float) -> Iterable[float]:
    return (0.0,) * len(values)


_PARTIALS: dict[tuple[str, int], Callable[..., Iterable[float]]] = {
    ("+", 2): lambda a, b: (1.0, 1.0),
    ("-", 1): lambda a: (-1.0,),
    ("-", 2): lambda a, b: (1.0, -1.0),
    ("*", 2): lambda a, b: (b, a),
    ("/", 2): lambda a, b: (1 / b, -a / b**2),
    ("//", 2): _nothing,
    ("%", 2): lambda a, b: (1.0, -(a // b)),
    ("**", 2): _power,
    ("maximum", 2): lambda a, b: (1.0, 0.0) if a >= b else (0.0, 1.0),
    ("minimum", 2): lambda a, b: (1.0, 0.0) if a <= b else (0.0, 1.0),
    ("ceil", 1): _nothing,
    ("floor", 1): _nothing,
    ("gcd", 2): _nothing,
    ("log", 1): lambda a: (1 / a,),
    ("erf", 1): lambda a: (2 / math.sqrt(math.pi) * math.exp(-a * a),),
    ("log2", 1): lambda a: (1 / (a * math.log(2)),),
    ("exp", 1): lambda a: (math.exp(a),),
    ("expm1", 1): lambda a: (math.exp(a),),
    ("log1p", 1): lambda a: (1 / (1 + a),),
    ("sqrt", 1): lambda a: (0.5 / math.sqrt(a) if a else math.inf,),
}
"""Per operation and number of operands: the derivative with respect to each."""
_STEPS = {"//", "%", "ceil", "floor", "gcd"}
_COUNTS = {"layers_before", "stage_layers"}
"""Functions that count layers, of any number of operands; they change in steps."""
_CHOICES = {"maximum", "minimum"}
