"""Derivations: a result as a tree of steps, with the input numbers and their sources.

A solver's model is run once on numbers that record how they were computed (see `recording`). Here
they become steps. Each step is a use of a formula or a line of the model's own arithmetic. A
term that is zero or one in a configuration, such as the experts of a dense model, is marked and not
expanded. If only one term of a line is left, the term takes the place of the line.
"""

from __future__ import annotations

import ast
import copy
import dataclasses
import functools
import math
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from mlsysim.core.docstring import read_source
from mlsysim.core.errors import ConfigError, UnknownEntryError, shown
from mlsysim.core.files import printable
from mlsysim.core.formula import Formula
from mlsysim.core.provenance import cited
from mlsysim.core.recording import Input, Recorded, value_of
from mlsysim.core.units import Q_, format_number, real_number, si_factor

__all__ = ["Derivation", "Input", "Step", "expression", "value_text"]


@dataclass(eq=False)
class Step:
    """A use of a formula, or a line of the model's own arithmetic."""

    name: str
    """The field of the result, else the variable that holds the value, else the name of the
    formula."""
    formula: Formula | None
    """`None` for the model's own arithmetic."""
    value: Any
    arguments: dict[str, Any] = field(default_factory=dict)
    """Arguments of the formula, or the terms of the line of arithmetic."""
    parents: dict[str, Step | Input] = field(default_factory=dict, repr=False)
    """The step or input behind each argument, except literals in the model. Not part of `repr`,
    in which a step that several others use would appear once for each path to it."""
    left_out: dict[str, int] = field(default_factory=dict)
    """Terms that are left out of a line of arithmetic because they are zero or one here."""
    line: str = ""
    """The line of arithmetic, with names."""
    put_in: Callable[[], str] = str
    """Function that writes the same line with numbers."""
    other_names: set[str] = field(default_factory=set)
    """Names of lines that have this term only."""

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "put_in": functools.partial(str, self.put_in())}

    @property
    def equation_text(self) -> str:
        """The arithmetic with the names of its arguments."""
        return _equation(self.formula.function) if self.formula else self.line

    @property
    def numbers_text(self) -> str:
        """The arithmetic with numbers."""
        if self.formula:
            return expression(self.formula.function, _arguments(self))
        return self.put_in()

    @property
    def value_text(self) -> str:
        """The value, in the unit that the formula's documentation states."""
        return value_text(self)

    @property
    def summary(self) -> str:
        """The meaning in words; empty for the model's own arithmetic."""
        return self.formula.documentation.summary if self.formula else ""

    @property
    def omission(self) -> str:
        """Which terms are left out, and why; empty if none are."""
        parts = []
        for number, word in ((0, "zero"), (1, "one")):
            names = [name for name, value in self.left_out.items() if value == number]
            if names:
                parts.append(f"{word} here: {', '.join(names)}")
        return "; ".join(parts)


class Derivation:
    """How a result follows from its inputs.

    `print` shows it as a tree in text; in a notebook or on a page it shows as equations. `roots`
    contains the derived fields by name, `steps` all steps, and `inputs` all input numbers.
    """

    def __init__(self, outputs: Mapping[str, Any]) -> None:
        self._outputs = {n: value for n, value in outputs.items() if isinstance(value, Recorded)}
        self._depth: int | None = None
        self._totals = False
        self._whole = False
        self._grow()

    def _grow(self) -> None:
        tree = _Tree(self._outputs, prune=not self._whole)
        self.roots: dict[str, Step | Input] = {
            name: tree.node(value) for name, value in self._outputs.items()
        }

    @property
    def numbers(self) -> Mapping[str, Recorded]:
        """The recorded numbers of the results."""
        return dict(self._outputs)

    def only(self, *names: str) -> Derivation:
        """Return the part that derives the named fields, or everything if none is named."""
        for name in names:
            if name not in self.roots:
                raise UnknownEntryError.build(name, "derived field", self.roots)
        part = copy.copy(self)
        part._outputs = {name: self._outputs[name] for name in names or self._outputs}
        part.roots = {name: self.roots[name] for name in part._outputs}
        return part

    def __getitem__(self, name: str) -> Step:
        """Return the first step of a name, or that uses a formula of this name.

        Raises
        ------
        UnknownEntryError
            If no step has that name or formula.
        """
        steps = self.steps
        for step in steps:
            if name in (step.name, step.formula.name if step.formula else None):
                return step
        for step in steps:
            if name in step.other_names:
                return step
        raise UnknownEntryError.build(name, "step", [step.name for step in steps])

    def unpruned(self) -> Derivation:
        """Return the same derivation with every term expanded, even if it is zero or one."""
        part = copy.copy(self)
        part._whole = True
        part._grow()
        return part

    def to_depth(self, depth: int | None) -> Derivation:
        """Return the part at most `depth` steps below a result; `None` for all.

        Raises
        ------
        ConfigError
            If `depth` is not a whole number of one or more.
        """
        whole = real_number(depth)
        if depth is not None and (whole is None or whole != whole // 1 or whole < 1):
            raise ConfigError(
                f"depth = {shown(depth)} is out of range: give a whole number of 1 or more, or "
                "None",
                argument="depth",
            )
        part = copy.copy(self)
        part._depth = None if whole is None else int(whole)
        return part

    def totals_first(self) -> Derivation:
        """Return the same derivation, which prints only the last step of each result."""
        part = copy.copy(self)
        part._totals = True
        return part

    def _brief(self) -> Derivation | None:
        """Return the part that is printed instead of a long derivation."""
        if self._depth is not None or not self.roots:
            return None
        part = self.to_depth(1)
        part._totals = False
        if self._totals:
            return part
        for depth in range(2, self._levels() + 1):
            deeper = self.to_depth(depth)
            if str(deeper).count("\n") >= _LINES:
                return part
            part = deeper
        return None

    def _levels(self) -> int:
        """Return the number of levels of steps."""
        level, seen, count = list(self.roots.values()), set[int](), 0
        while steps := [n for n in level if isinstance(n, Step) and id(n) not in seen]:
            seen |= {id(step) for step in steps}
            count += 1
            level = [node for step in steps for node in self._below(step)]
        return count

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
                stack.extend(reversed(self._below(node)))

    def _below(self, step: Step) -> list[Step | Input]:
        return [node for node in step.parents.values() if not self._dead_end(node)]

    def _dead_end(self, node: Step | Input) -> bool:
        """Return whether a node is zero or one here, and so is not expanded."""
        if self._whole or isinstance(node, Input) or node in self.roots.values():
            return False
        return _trivial(node.value) is not None

    def _visible(self) -> set[int]:
        """Return the identities of the nodes down to the displayed depth."""
        level = list(self.roots.values())
        visible = {id(node) for node in level}
        left = math.inf if self._depth is None else self._depth - 1
        while level and left > 0:
            below = [n for node in level if isinstance(node, Step) for n in self._below(node)]
            level = [node for node in below if id(node) not in visible]
            visible |= {id(node) for node in level}
            left -= 1
        return visible

    @property
    def steps(self) -> list[Step]:
        """Every step, results first."""
        return [node for node in self._walk() if isinstance(node, Step)]

    @property
    def inputs(self) -> list[Input]:
        """Every input number."""
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
            lines += self._lines(node, name, numbers, shown, depth=0)
        return "\n".join(map(printable, lines))

    def _rest(self) -> str:
        names, count = [f'"{name}"' for name in self.roots], len(self.steps)
        if self._totals:
            return (
                f"{count} steps in all: explain({names[0]}) shows the steps of one field, "
                "explain(depth=2) one more level."
            )
        arguments = ", ".join([*names, f"depth={self._levels()}"])
        return f"{count} steps in all: explain({arguments}) shows them."

    def _lines(
        self, node: Step | Input, name: str, numbers: Mapping[int, int], shown: set[int], depth: int
    ) -> list[str]:
        indent = "    " * depth
        if isinstance(node, Input):
            source = f"; {node.source}" if node.source else ""
            return [f"{indent}{name} = {value_text(node)}   <- {node.origin}{source}"]
        if id(node) not in numbers:
            why = "" if self._dead_end(node) else "   (not shown at this depth)"
            return [f"{indent}{name} = {value_text(node)}{why}"]
        label = f"{indent}[{numbers[id(node)]}] {name} = {value_text(node)}"
        if id(node) in shown:
            return [f"{label}   (derived above)"]
        shown.add(id(node))
        lines = [label]
        if node.summary:
            lines.append(f"{indent}      {node.summary}")
        omitted = f"   ({node.omission})" if node.omission else ""
        lines += [
            f"{indent}      = {node.equation_text}{omitted}",
            f"{indent}      = {node.numbers_text}",
        ]
        for key, parent in node.parents.items():
            lines += self._lines(parent, key, numbers, shown, depth + 1)
        return lines

    def _repr_markdown_(self) -> str:
        if (brief := self._brief()) is not None:
            return f"{brief._repr_markdown_()}\n\n{self._rest()}"
        numbers = {id(step): index for index, step in enumerate(self.steps, 1)}
        blocks = [_markdown_step(step, numbers) for step in self.steps]
        rows = [
            f"| {item.label} | {value_text(item)} | `{item.origin}` | {cited(item.source)} |"
            for item in self.inputs
        ]
        head = ["| Input | Value | From | Source |", "|:---|---:|:---|:---|"]
        return "\n\n".join([*blocks, "\n".join([*head, *rows])])


class _Tree:
    """Converts recorded numbers to steps, each number once."""

    def __init__(self, outputs: Mapping[str, Recorded], prune: bool) -> None:
        self._fields = {id(value): name for name, value in outputs.items()}
        self._known: dict[int, Step | Input] = {}
        self._dropped: dict[int, dict[str, int]] = {}
        """Terms that are left out of lines that are no step."""
        self._prune = prune

    def node(self, number: Recorded, asked_as: str = "") -> Step | Input:
        """Return the step or input of a recorded number, with its name."""
        if number.origin is not None:
            return number.origin
        known = self._known.get(id(number))
        if known is None:
            field = self._fields.get(id(number))
            known = Step(field or self.label(number, asked_as), number.formula, number.value)
            self._known[id(number)] = known
            if number.formula:
                self._apply(known, number)
            else:
                self._write(known, number)
                known = self._known[id(number)] = self._meant(known, number)
        return known

    def _meant(self, step: Step, number: Recorded) -> Step | Input:
        """Return the only term of a line in its place, or the step itself if it has several."""
        target = step.parents.get(step.line)
        if target is None:
            return step
        if id(number) not in self._fields:
            self._dropped[id(number)] = step.left_out
            if isinstance(target, Step):
                target.other_names.add(step.name)
            return target
        if isinstance(target, Input) or target.name in self._fields.values():
            return step
        left_out = {**step.left_out, **target.left_out}
        names = {target.name, *target.other_names}
        return dataclasses.replace(target, name=step.name, left_out=left_out, other_names=names)

    def _parent(self, step: Step, label: str, number: Recorded) -> None:
        step.parents[label] = self.node(number, label)
        for name, neutral in self._dropped.get(id(number), {}).items():
            step.left_out.setdefault(name, neutral)

    def _apply(self, step: Step, number: Recorded) -> None:
        for name, argument in number.arguments.items():
            step.arguments[name] = argument.value if isinstance(argument, Recorded) else argument
            if isinstance(argument, Recorded):
                self._parent(step, name, argument)

    def _write(self, step: Step, number: Recorded) -> None:
        terms: dict[int, tuple[str, Recorded]] = {}
        prune = self._prune and _trivial(number.value) is None
        writer = _Writer(self, terms, step.left_out if prune else None)
        step.line = writer.operation(number, numbers=False)[0]
        step.put_in = lambda: writer.operation(number, numbers=True)[0]
        for label, term in terms.values():
            step.arguments[label] = term.value
            self._parent(step, label, term)

    def is_term(self, number: Any) -> bool:
        """Return whether a recorded number appears by name in a line of arithmetic."""
        return bool(number.origin or number.formula or number.name or id(number) in self._fields)

    def label(self, number: Recorded, asked_as: str = "value") -> str:
        """Name a term."""
        if number.origin is not None:
            return number.origin.label
        own = number.name or self._fields.get(id(number), "")
        return own or (number.formula.name if number.formula else asked_as)


_LINES = 40
"""Most lines that are printed of a derivation, unless the depth is given."""
_LOOSE, _TIGHT, _SIGN, _POWER, _ATOM = 1, 2, 3, 4, 5
_BINDING = {
    "+": _LOOSE,
    "-": _LOOSE,
    "*": _TIGHT,
    "/": _TIGHT,
    "//": _TIGHT,
    "%": _TIGHT,
    "**": _POWER,
}


class _Writer:
    """Writes a line of arithmetic, without zeros in sums and ones in products."""

    def __init__(
        self, tree: _Tree, terms: dict[int, tuple[str, Recorded]], left_out: dict[str, int] | None
    ) -> None:
        self._tree = tree
        self._terms = terms
        self._left_out = left_out

    def operation(self, number: Recorded, numbers: bool) -> tuple[str, int]:
        """Return the text of an operation, and how tightly it binds."""
        sign, operands = number.operation, number.operands
        if sign not in _BINDING:
            inside = ", ".join(self._operand(item, numbers)[0] for item in operands)
            return f"{sign}({inside})", _ATOM
        if len(operands) == 1:
            return f"-{self._bound(operands[0], numbers, _SIGN)}", _SIGN
        left, right = operands
        kept = self._kept(sign, left, right)
        if kept is not None:
            return self._operand(kept, numbers)
        binding = _BINDING[sign]
        first = self._bound(left, numbers, binding + (sign == "**"))
        # Subtrahends, divisors and the base of a power need parentheses, as does a rounded quotient
        # or a remainder that is multiplied.
        rounded = isinstance(right, Recorded) and right.operation in ("//", "%")
        exact = sign in ("+", "**") or (sign == "*" and not rounded)
        second = self._bound(right, numbers, binding + (not exact))
        return f"{first} {sign} {second}" if sign != "**" else f"{first}**{second}", binding

    def _kept(self, sign: str, left: Any, right: Any) -> Any:
        """Return the operand that is left if the other one changes nothing; else `None`."""
        if self._left_out is None:
            return None
        neutral = {"+": 0, "-": 0, "*": 1, "/": 1}.get(sign)
        for dropped, kept in ((right, left), (left, right)):
            if neutral is None or (dropped is left and sign in "-/"):
                continue
            if not isinstance(kept, Recorded) or _trivial(value_of(dropped)) != neutral:
                continue
            if isinstance(dropped, Recorded):
                self._left_out.setdefault(self._mention(dropped), neutral)
            return kept
        return None

    def _mention(self, number: Recorded) -> str:
        if self._tree.is_term(number):
            return self._tree.label(number)
        return _Writer(self._tree, {}, None).operation(number, numbers=False)[0]

    def _bound(self, item: Any, numbers: bool, binding: int) -> str:
        text, own = self._operand(item, numbers)
        return f"({text})" if own < binding else text

    def _operand(self, item: Any, numbers: bool) -> tuple[str, int]:
        if not isinstance(item, Recorded):
            return f"{item:g}" if isinstance(item, int | float) else str(item), _ATOM
        if not self._tree.is_term(item):
            return self.operation(item, numbers)
        if id(item) not in self._terms:
            taken = {label for label, _ in self._terms.values()}
            label = own = self._tree.label(item)
            count = 1
            while label in taken:
                count += 1
                label = f"{own} ({count})"
            self._terms[id(item)] = label, item
        label, _ = self._terms[id(item)]
        return (_term(item) if numbers else label), _ATOM


def _term(number: Recorded) -> str:
    if number.origin is not None:
        return _number(number.value, number.origin.unit)
    return _number(number.value, _unit(number.formula))


def _trivial(value: Any) -> int | None:
    """Return 0 for zero and 1 for a dimensionless one; else `None`."""
    if not hasattr(value, "magnitude"):
        return int(value) if value in (0, 1) else None
    if value.magnitude in (0, 1) and (value.magnitude == 0 or value.dimensionless):
        return int(value.magnitude)
    return None


def _number(value: Any, unit: str) -> str:
    """Print a value in the unit that the documentation gives, including counts."""
    if not hasattr(value, "magnitude"):
        return format_number(value)
    base = value.to_base_units()
    if unit in ("", "1") or si_factor(unit) != 1:
        return format_number(base)
    return format_number(Q_(base.magnitude, unit))


def _unit(formula: Formula | None) -> str:
    returns = formula.documentation.returns if formula else None
    return returns.unit if returns else ""


def value_text(node: Step | Input) -> str:
    """Write the value of a step or an input; ``≈`` marks an estimate."""
    if isinstance(node, Input):
        return ("≈ " if node.estimated else "") + _number(node.value, node.unit)
    return _number(node.value, _unit(node.formula))


def _arguments(step: Step) -> dict[str, str]:
    symbols = step.formula.documentation.parameters if step.formula else {}
    return {
        key: _number(value, symbols[key].unit if key in symbols else "")
        for key, value in step.arguments.items()
    }


def _markdown_step(step: Step, numbers: Mapping[int, int]) -> str:
    head = f"**\\[{numbers[id(step)]}\\] `{step.name}` = {value_text(step)}.**"
    if step.formula is None:
        terms = [
            f"`{name}` = {value_text(parent)}{_reference(step, name, numbers)}"
            for name, parent in step.parents.items()
        ]
        omitted = f" ({step.omission})" if step.omission else ""
        text = f"with {', '.join(terms)}{omitted}." if terms else omitted
        return "\n\n".join(filter(None, [head, f"`{step.name} = {step.line}`", text]))
    manual = step.formula.documentation
    symbols = manual.parameters
    terms = []
    for key, value in _arguments(step).items():
        latex = symbols[key].latex if key in symbols else rf"\mathrm{{{key}}}"
        terms.append(f"${latex}$ = {value}{_reference(step, key, numbers)}")
    return "\n\n".join(
        [
            f"{head} {manual.summary}",
            f"$$ {manual.equation} $$",
            f"with {', '.join(terms)}. *{step.formula.references}*",
        ]
    )


def _reference(step: Step, argument: str, numbers: Mapping[int, int]) -> str:
    number = numbers.get(id(step.parents.get(argument)))
    return f" \\[{number}\\]" if number else ""


@functools.cache
def _body(function: Callable[..., Any]) -> ast.expr:
    """Return a formula's return expression, with its local variables expanded."""
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


@functools.cache
def _equation(function: Callable[..., Any]) -> str:
    """Write a formula's arithmetic with the names of its arguments."""
    return ast.unparse(_body(function))


_NAME = re.compile(r"(?<![\w.])[A-Za-z_]\w*")


def expression(function: Callable[..., Any], numbers: Mapping[str, str] | None = None) -> str:
    """Write a formula's arithmetic as text, with numbers for some of its names."""
    known = numbers or {}
    return _NAME.sub(lambda name: known.get(name[0], name[0]), _equation(function))
