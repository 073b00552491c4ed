"""Derivations: an answer as a tree of formulas, with the numbers put in and their sources.

A solver's kernel is run once on quantities under a trace. Each recorded call becomes a step. A
step's arguments are matched, by identity, with the steps that produced them and with the kernel's
inputs, so that nothing between input and answer is left out.
"""

from __future__ import annotations

import ast
import copy
import functools
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from mlsysim.core.docstring import read_source
from mlsysim.core.errors import ConfigError, UnknownEntryError, shown
from mlsysim.core.files import printable
from mlsysim.core.formula import Call, Formula
from mlsysim.core.provenance import cited
from mlsysim.core.types import Source
from mlsysim.core.units import Q_, format_number

__all__ = ["Derivation", "Input", "Step", "expression"]


@dataclass(frozen=True, eq=False)
class Input:
    """A number that the derivation starts from."""

    name: str
    value: Any
    unit: str
    origin: str
    """Where the solver took it from: an argument, or a field of a registry row."""
    source: Source | None = None
    """The publication that states it; `None` for what the caller gave."""
    estimated: bool = False


@dataclass(eq=False)
class Step:
    """One formula put to use."""

    name: str
    formula: Formula
    value: Any
    arguments: dict[str, Any]
    parents: dict[str, Step | Input] = field(default_factory=dict)
    """Per argument, what it came from; a literal of the kernel has no parent."""

    @property
    def equation_text(self) -> str:
        """The formula's arithmetic, with the names of its arguments."""
        return expression(self.formula.function)

    @property
    def numbers_text(self) -> str:
        """The same with the numbers put in."""
        return expression(self.formula.function, _arguments(self))

    @property
    def value_text(self) -> str:
        """The value, in the unit that the formula's documentation gives it."""
        return _value(self)


class Derivation:
    """How an answer follows from its inputs.

    Print it for a tree in text; in a notebook or on a page it shows as equations. `roots` holds
    the derived fields by name, `steps` every formula used, `inputs` every number put in.
    """

    def __init__(
        self, calls: list[Call], outputs: Mapping[str, Any], inputs: Mapping[str, Input]
    ) -> None:
        names = {id(value): name for name, value in outputs.items()}
        known: dict[int, Step | Input] = {id(item.value): item for item in inputs.values()}
        for call in calls:
            label = names.get(id(call.value), call.formula.name)
            step = Step(label, call.formula, call.value, call.arguments)
            for name, value in call.arguments.items():
                if id(value) in known:
                    step.parents[name] = known[id(value)]
            known[id(call.value)] = step
        self._outputs = outputs
        self._depth: int | None = None
        self._totals = False
        self.roots: dict[str, Step | Input] = {
            name: known[id(value)] for name, value in outputs.items() if id(value) in known
        }

    def only(self, *names: str) -> Derivation:
        """Return the part that derives the named fields; everything if none is named."""
        for name in names:
            if name not in self.roots:
                raise UnknownEntryError.build(name, "derived field", self.roots)
        part = copy.copy(self)
        part.roots = {name: self.roots[name] for name in names or self.roots}
        return part

    def to_depth(self, depth: int | None) -> Derivation:
        """Return the part that lies at most so many steps below an answer; `None` for all.

        Raises
        ------
        ConfigError
            If `depth` is not a whole number of one or more.
        """
        if depth is not None and (not isinstance(depth, int) or depth < 1):
            raise ConfigError(
                f"depth = {shown(depth)} is out of range: give a whole number of 1 or more, or "
                "None",
                argument="depth",
            )
        part = copy.copy(self)
        part._depth = depth
        return part

    def totals_first(self) -> Derivation:
        """Return the same derivation; printed, it shows each answer's own formula only."""
        part = copy.copy(self)
        part._totals = True
        return part

    def _brief(self) -> Derivation | None:
        """Return what is printed in place of a derivation whose operators nobody asked for."""
        if not self._totals or self._depth is not None:
            return None
        part = self.to_depth(1)
        part._totals = False
        return part

    def _walk(self) -> Iterator[Step | Input]:
        visible = self._visible()
        seen: set[int] = set()
        stack = list(reversed(self.roots.values()))
        while stack:
            node = stack.pop()
            if id(node) in seen or id(node) not in visible:
                continue
            seen.add(id(node))
            yield node
            if isinstance(node, Step):
                stack.extend(reversed(node.parents.values()))

    def _visible(self) -> set[int]:
        """Return the identities of the nodes down to the depth that is shown."""
        level = list(self.roots.values())
        visible = {id(node) for node in level}
        left = math.inf if self._depth is None else self._depth - 1
        while level and left > 0:
            below = [n for node in level if isinstance(node, Step) for n in node.parents.values()]
            level = [node for node in below if id(node) not in visible]
            visible |= {id(node) for node in level}
            left -= 1
        return visible

    @property
    def steps(self) -> list[Step]:
        """Every formula used, answers first."""
        return [node for node in self._walk() if isinstance(node, Step)]

    @property
    def inputs(self) -> list[Input]:
        """Every number put in."""
        return [node for node in self._walk() if isinstance(node, Input)]

    def __repr__(self) -> str:
        return f"<Derivation of {', '.join(self.roots)}: {len(self.steps)} steps>"

    def __str__(self) -> str:
        if (brief := self._brief()) is not None:
            return f"{brief}\n\n{self._rest()}"
        numbers = {id(step): index for index, step in enumerate(self.steps, 1)}
        lines: list[str] = []
        shown: set[int] = set()
        for name, node in self.roots.items():
            lines += _tree(node, name, numbers, shown, depth=0)
        return "\n".join(map(printable, lines))

    def _rest(self) -> str:
        name = next(iter(self.roots), "")
        return (
            f'{len(self.steps)} steps in all: explain("{name}") shows those of one field, '
            "explain(depth=2) those one level below."
        )

    def _repr_markdown_(self) -> str:
        if (brief := self._brief()) is not None:
            return f"{brief._repr_markdown_()}\n\n{self._rest()}"
        numbers = {id(step): index for index, step in enumerate(self.steps, 1)}
        blocks = [_markdown_step(step, numbers) for step in self.steps]
        rows = [
            f"| {item.name} | {_value(item)} | `{item.origin}` | {cited(item.source)} |"
            for item in self.inputs
        ]
        head = ["| Input | Value | From | Source |", "|:---|---:|:---|:---|"]
        return "\n\n".join([*blocks, "\n".join([*head, *rows])])


def _number(value: Any, unit: str) -> str:
    """Print a value in the unit that the documentation gives it, counts included."""
    if not hasattr(value, "magnitude"):
        return format_number(value)
    return format_number(Q_(value.to_base_units().magnitude, "" if unit == "1" else unit))


def _value(node: Step | Input) -> str:
    if isinstance(node, Input):
        return ("≈ " if node.estimated else "") + _number(node.value, node.unit)
    returns = node.formula.documentation.returns
    return _number(node.value, returns.unit if returns else "")


def _arguments(step: Step) -> dict[str, str]:
    symbols = step.formula.documentation.parameters
    return {
        key: _number(value, symbols[key].unit if key in symbols else "")
        for key, value in step.arguments.items()
    }


def _tree(
    node: Step | Input, name: str, numbers: Mapping[int, int], shown: set[int], depth: int
) -> list[str]:
    indent = "    " * depth
    if id(node) not in numbers and isinstance(node, Step):
        return [f"{indent}{name} = {_value(node)}   (not shown at this depth)"]
    if isinstance(node, Input):
        source = f"; {node.source}" if node.source else ""
        return [f"{indent}{name} = {_value(node)}   <- {node.origin}{source}"]
    label = f"{indent}[{numbers[id(node)]}] {name} = {_value(node)}"
    if id(node) in shown:
        return [f"{label}   (derived above)"]
    shown.add(id(node))
    lines = [
        label,
        f"{indent}      {node.formula.documentation.summary}",
        f"{indent}      = {node.equation_text}",
        f"{indent}      = {node.numbers_text}",
    ]
    for key, parent in node.parents.items():
        lines += _tree(parent, key, numbers, shown, depth + 1)
    return lines


def _markdown_step(step: Step, numbers: Mapping[int, int]) -> str:
    manual = step.formula.documentation
    symbols = manual.parameters
    terms = []
    for key, value in _arguments(step).items():
        parent = step.parents.get(key)
        number = numbers.get(id(parent))
        reference = f" \\[{number}\\]" if number else ""
        latex = symbols[key].latex if key in symbols else rf"\mathrm{{{key}}}"
        terms.append(f"${latex}$ = {value}{reference}")
    return "\n\n".join(
        [
            f"**\\[{numbers[id(step)]}\\] `{step.name}` = {_value(step)}.** {manual.summary}",
            f"$$ {manual.equation} $$",
            f"with {', '.join(terms)}. *{step.formula.references}*",
        ]
    )


@functools.cache
def _body(function: Callable[..., Any]) -> ast.expr:
    """Return a formula's return expression, with its local names written out."""
    tree = ast.parse(read_source(function))
    definition = next(node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef))
    names: dict[str, ast.expr] = {}
    for statement in definition.body:
        if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name):
            names[statement.targets[0].id] = _put_in(statement.value, names)
        if isinstance(statement, ast.Return) and statement.value is not None:
            return _put_in(statement.value, names)
    raise TypeError(f"{function.__name__} has no return statement")


def _put_in(tree: ast.expr, names: Mapping[str, ast.expr]) -> ast.expr:
    class Substitute(ast.NodeTransformer):
        def visit_Name(self, node: ast.Name) -> ast.expr:
            return copy.deepcopy(names.get(node.id, node))

    result: ast.expr = Substitute().visit(copy.deepcopy(tree))
    return result


def expression(function: Callable[..., Any], numbers: Mapping[str, str] | None = None) -> str:
    """Write a formula's arithmetic as text, with numbers in place of some of its names."""
    values = {name: ast.Name(id=text) for name, text in (numbers or {}).items()}
    return ast.unparse(_put_in(_body(function), values))
