"""Mutation score: how many small defects in formulas and models the tests detect.

The defects come from cosmic-ray (`pip install cosmic-ray`, 8.7 or later); the changed code must
still run. Models are mostly calls, so swapping two neighboring arguments is also a defect. Each
mutant is tested in a temporary copy of the project, with the most closely related tests first.
"""

from __future__ import annotations

import ast
import functools
import importlib.util
import itertools
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from mlsysim.core.formula import FORMULAS

ROOT = Path(__file__).resolve().parents[1]
GROUPS = {
    "formulas": ["core/formulas/[a-z]*.py"],
    "models": [
        *("solvers/layer.py", "solvers/work.py", "solvers/training/[lmw]*.py"),
        *("solvers/*/operators.py", "solvers/*/textbook.py", "solvers/passes.py"),
        "solvers/serving/[elmp]*.py",
    ],
}
NEAREST = {"training": "distributed", "serving": "serving", "passes": "single_node"}
# Most others, such as a shift of a float or a missing `@formula`, stop the first import or call.
_SIGNS, _ORDERS = "(Add|Sub|Mul|Div|FloorDiv)", "(Eq|NotEq|Lt|LtE|Gt|GtE)"
USED = re.compile(
    rf"core/(ReplaceBinaryOperator_({_SIGNS}_(Add|Sub|Mul|Div)|Pow_Mul|BitAnd_BitOr|BitOr_BitAnd)"
    rf"|ReplaceComparisonOperator_({_ORDERS}_{_ORDERS}|Is_IsNot|IsNot_Is)"
    "|Replace(UnaryOperator|True|False|And|Or).*|AddNot|NumberReplacer|ZeroIterationForLoop)"
)


@dataclass(frozen=True)
class Mutant:
    """A defect: the whole text of its module, and the function that it is in."""

    path: Path
    text: str
    function: str


class SwapArguments:
    """Swaps the values of two neighboring arguments of a call; an operator for cosmic-ray."""

    def mutation_positions(self, node: Any) -> Iterator[tuple[Any, Any]]:
        """Yield where each pair begins and ends."""
        for (one, i), (two, j) in self._pairs(node):
            yield one.children[i].start_pos, two.children[j].end_pos

    def mutate(self, node: Any, index: int) -> Any:
        """Swap a pair."""
        (one, i), (two, j) = self._pairs(node)[index]
        one.children[i], two.children[j] = two.children[j], one.children[i]
        return node

    def _pairs(self, node: Any) -> list[Any]:
        if node.type != "arglist" or node.parent.type != "trailer":
            return []
        name = node.parent.get_previous_sibling().get_code(False).split(".")[-1]
        values = [
            (child, 2) if child.type == "argument" else (node, index)
            for index, child in enumerate(node.children)
            if child.type != "operator" and "*" not in child.get_first_leaf().value
        ]
        pairs = enumerate(itertools.pairwise(values))
        return [pair for place, pair in pairs if not commutes(name, place)]


def commutes(name: str, place: int) -> bool:
    """Return whether a function takes its neighboring arguments in either order."""
    if name not in FORMULAS:
        return name in ("isinstance", "maximum", "minimum", "zip")
    function, draw = FORMULAS[name].function, random.Random(0)
    try:
        for _ in range(200):
            given = [2.0 ** draw.randint(-30, 4) for _ in FORMULAS[name].signature.parameters]
            swapped = [*given[:place], *reversed(given[place : place + 2]), *given[place + 2 :]]
            if abs(function(*given) - function(*swapped)) > 1e-9 * abs(function(*given)):
                return False
    except (ArithmeticError, TypeError):  # such as the divisors of a fraction
        return False
    return True


def mutants(folder: Path, globs: list[str], seed: int) -> Iterator[Mutant]:
    """Yield mutants in random order, at most one for each place."""
    from cosmic_ray.ast import ast_nodes, get_ast
    from cosmic_ray.mutating import mutate_code
    from cosmic_ray.plugins import get_operator, operator_names

    operators = [get_operator(name)() for name in operator_names() if USED.fullmatch(name)]
    places: dict[Any, list[tuple[Any, int, str]]] = {}
    for path in sorted(path for glob in globs for path in (folder / "mlsysim").glob(glob)):
        nodes = list(ast_nodes(get_ast(path.read_text(encoding="utf-8"))))
        for operator in (*operators, SwapArguments()):
            found = ((node, at) for node in nodes for at in operator.mutation_positions(node))
            for occurrence, (node, at) in enumerate(found):
                if function := _function(node):
                    places.setdefault((path, *at), []).append((operator, occurrence, function))
    draw = random.Random(seed)
    for place in draw.sample(sorted(places), len(places)):
        operator, occurrence, function = draw.choice(places[place])
        text = place[0].read_text(encoding="utf-8")
        changed = mutate_code(text, operator, occurrence)
        try:
            same = ast.dump(ast.parse(changed)) == ast.dump(ast.parse(text))
        except SyntaxError:
            continue
        if not same:
            yield Mutant(place[0].relative_to(folder), changed, function)


def _function(node: Any) -> str:
    """Return the function or class that a node computes in; none for decorators and types."""
    while node.parent is not None:
        child, node = node, node.parent
        typed = node.type == "annassign" and child is node.children[1]
        if typed or node.type in ("decorator", "tfpdef"):
            return ""
        if node.type in ("funcdef", "classdef"):
            returned = node.type == "funcdef" and child is node.annotation
            return "" if returned else str(node.name.value)
    return ""


def stages(folder: Path, mutant: Mutant) -> Iterator[list[str]]:
    """Yield the tests to run: those that name the formula, or the kind of model, and then all."""
    part, name = mutant.path.parts[2].removesuffix(".py"), mutant.function
    if part == "formulas":
        word = re.compile(rf"\b{name}\b")
        tests = (folder / "tests").glob("[crs]*/**/test_*.py")
        near = [str(test) for test in tests if word.search(test.read_text(encoding="utf-8"))]
        yield ["tests/core/test_laws.py", "-k", name]
    else:
        begins = NEAREST.get(part, "[ds]")
        near = [str(test) for test in (folder / "tests/solvers").glob(f"test_{begins}*.py")]
    if near:
        yield sorted(near)
    yield ["tests/solvers", "tests/core/formulas"]


def verdict(folder: Path, mutant: Mutant) -> str:
    """Test a mutant in a copy of the project."""
    path = folder / mutant.path
    original = path.read_text(encoding="utf-8")
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:xdist"]
    run = functools.partial(
        subprocess.run,
        cwd=folder,
        env=os.environ | {"PYTHONPATH": str(folder)},
        capture_output=True,
        timeout=300,
        check=False,
    )
    try:
        path.write_text(mutant.text, encoding="utf-8")
        for tests in stages(folder, mutant):
            # Bytecode knows its source by size and second, and both may be the same.
            Path(importlib.util.cache_from_source(path)).unlink(missing_ok=True)
            done = run([*command, *tests])
            if done.returncode in (1, 2):  # a test fails, or none can be imported
                return "killed"
            if done.returncode != 5:  # no test has the function's name
                done.check_returncode()
    except subprocess.TimeoutExpired:
        return "timed out"
    finally:
        path.write_text(original, encoding="utf-8")
        Path(importlib.util.cache_from_source(path)).unlink(missing_ok=True)
    return "survived"


def score(count: int, seed: int) -> int:
    """Print each group's score and survivors in a sample; return 1 if tests fail without any."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary) / "copy"
        left_out = shutil.ignore_patterns(".*", "build", "_site", "_preview", "__pycache__")
        shutil.copytree(ROOT, folder, ignore=left_out)
        for group, globs in GROUPS.items():
            start, tally = time.perf_counter(), Counter[str]()
            drawn = list(itertools.islice(mutants(folder, globs, seed), count))
            whole = replace(drawn[0], text=(folder / drawn[0].path).read_text(encoding="utf-8"))
            if (found := verdict(folder, whole)) != "survived":
                print(f"without a mutant: {found}")
                return 1
            for mutant in drawn:
                found = verdict(folder, mutant)
                tally[found] += 1
                if found != "killed":
                    _show(folder, mutant, found)
            numbers = ", ".join(f"{tally[k]} {k}" for k in ("killed", "survived", "timed out"))
            share, took = tally["killed"] / len(drawn), time.perf_counter() - start
            print(f"{group}: {numbers}; {share:.0%}, {took:.0f} s", flush=True)
    return 0


def _show(folder: Path, mutant: Mutant, found: str) -> None:
    before = (folder / mutant.path).read_text(encoding="utf-8").split("\n")
    print(f"{found}: {mutant.path} ({mutant.function})")
    for line, (old, new) in enumerate(zip(before, mutant.text.split("\n"), strict=False), 1):
        if old != new:
            print(f"  {line} - {old.strip()}\n  {line} + {new.strip()}", flush=True)
