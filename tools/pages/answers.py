"""Worked answers of exercises, cut out of the code with which the course computes them.

A page includes one with a line ``{{< include /build/answers/NAME.qmd >}}``. `read_page` needs no
files for it; ``python -m tools.pages.answers`` writes them for Quarto.
"""

from __future__ import annotations

import ast
import inspect
import re
import subprocess
import sys
import textwrap
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

from mlsysim.core.units import has_dimension
from mlsysim_course.answers import AmountAsked, CountAsked
from mlsysim_course.exercises import EXERCISES, find

FOLDER = Path("build/answers")
WIDTH = 68
KINDS = {kind.__name__: kind for kind in (AmountAsked, CountAsked)}


def cell(name: str) -> str:
    """Return the worked answer to an exercise as a cell, which needs nothing else of its page."""
    return f"```{{python}}\n{_formatted()[find(name).name]}```"


@cache
def _formatted() -> dict[str, str]:
    """Return the code of every answer by its exercise. Starting ruff takes longer than its work."""
    with TemporaryDirectory() as folder:
        paths = {name: Path(folder, f"{name}.py") for name in EXERCISES}
        for name, path in paths.items():
            path.write_text(_code(name), encoding="utf-8")
        options = ("--isolated", "--no-cache", "--quiet", f"--line-length={WIDTH}")
        subprocess.run([sys.executable, "-m", "ruff", "format", *options, folder], check=True)
        return {name: path.read_text(encoding="utf-8") for name, path in paths.items()}


def _code(name: str) -> str:
    exercise = find(name)
    source = _Source(inspect.getsource(sys.modules[exercise.answer.__module__]))
    function = source.definitions[exercise.answer.__name__]
    assert isinstance(function, ast.FunctionDef)
    lines: list[str] = []
    needed = set[str]()
    for statement in reversed(function.body):
        if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Yield):
            texts = source.truth(statement.value)
        elif needed & _affected(statement):
            texts = [source.text(statement)]
        else:
            continue
        lines += reversed(texts)
        needed |= _names(map(ast.parse, texts), ast.Load)
    # Imports first, wherever the course has them.
    lines = sorted(
        [*source.needed(needed), *reversed(lines)],
        key=lambda line: not line.startswith(("import ", "from ")),
    )
    code = "\n".join(lines)
    for private in source.definitions:
        code = re.sub(rf"\b{private}\b", private.lstrip("_"), code)
    return code


class _Source:
    """The code of a module of exercises."""

    def __init__(self, source: str) -> None:
        self.bytes = source.encode()
        self.starts = [0]
        for line in self.bytes.splitlines(keepends=True):
            self.starts.append(self.starts[-1] + len(line))
        self.module = ast.parse(source)
        self.definitions = {
            name: node
            for node in self.module.body
            if not isinstance(node, ast.Import | ast.ImportFrom | ast.If)
            for name in _assigned(node)
        }

    def truth(self, asked: ast.Yield) -> list[str]:
        """Return the statements that compute and print the right answer to a part."""
        call = asked.value
        assert isinstance(call, ast.Call)
        assert isinstance(call.func, ast.Name)
        name = ast.literal_eval(call.args[0])
        given = {one.arg: one.value for one in call.keywords}
        shown = name
        if kind := KINDS.get(call.func.id):
            unit, form = (
                ast.literal_eval(given[key]) if key in given else getattr(kind, key)
                for key in ("unit", "form")
            )
            shown += f".to({unit!r}):{form}~P" if has_dimension(unit) else f":{form}"
        right = given["truth"]
        truth = self._plain(right, self._at(right.lineno, right.col_offset), self._end(right))
        show = f'print(f"{name}: {{{shown}}}")'
        return [show] if truth == name else [f"{name} = ({truth})", show]

    def needed(self, names: set[str]) -> list[str]:
        """Return the imports and definitions that code with these names needs, in order."""
        nodes = set[ast.stmt]()
        while more := {self.definitions[name] for name in names & set(self.definitions)} - nodes:
            nodes |= more
            texts = [ast.parse(self.text(node)) for node in more]
            names = names | _names(texts, ast.Load)
        imports = []
        for node in self.module.body:
            if isinstance(node, ast.Import | ast.ImportFrom):
                node.names = [one for one in node.names if (one.asname or one.name) in names]
                imports += [ast.unparse(node)] if node.names else []
        ordered = sorted(nodes, key=lambda node: node.lineno)
        return [*imports, *(self.text(node) for node in ordered)]

    def text(self, node: ast.stmt) -> str:
        """Return the lines of a statement, without types."""
        decorated = [one.lineno for one in getattr(node, "decorator_list", [])]
        first = min([node.lineno, *decorated])
        lines = self._plain(node, self.starts[first - 1], self.starts[node.end_lineno or 0])
        return textwrap.dedent(lines).rstrip()

    def _plain(self, node: ast.AST, begin: int, end: int) -> str:
        pieces = []
        for left, right in sorted(self._types(node), reverse=True):
            pieces.append(self.bytes[right:end])
            end = left
        pieces.append(self.bytes[begin:end])
        return b"".join(reversed(pieces)).decode()

    def _types(self, node: ast.AST) -> Iterator[tuple[int, int]]:
        """Yield where the types are that a statement declares."""
        for one in ast.walk(node):
            if isinstance(one, ast.arg) and one.annotation:
                left = self._at(one.lineno, one.col_offset) + len(one.arg.encode())
                yield left, self._end(one.annotation)
            elif isinstance(one, ast.AnnAssign):
                yield self._end(one.target), self._end(one.annotation)
            elif isinstance(one, ast.FunctionDef) and one.returns:
                end = self._end(one.returns)
                yield self.bytes.rindex(b"->", 0, end), end

    def _at(self, line: int, column: int) -> int:
        return self.starts[line - 1] + column

    def _end(self, node: ast.expr) -> int:
        assert node.end_lineno
        assert node.end_col_offset is not None
        return self._at(node.end_lineno, node.end_col_offset)


def _names(nodes: Iterable[ast.AST], context: type[ast.expr_context]) -> set[str]:
    names = (one for node in nodes for one in ast.walk(node) if isinstance(one, ast.Name))
    return {name.id for name in names if isinstance(name.ctx, context)}


def _assigned(node: ast.stmt) -> set[str]:
    """Return the names that a statement defines."""
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        return {node.name}
    if isinstance(node, ast.Import | ast.ImportFrom):
        return {one.asname or one.name for one in node.names}
    return _names([node], ast.Store)


def _affected(statement: ast.stmt) -> set[str]:
    """Return the names that a statement defines, or whose objects a bare call may change."""
    names = _assigned(statement)
    return names | _names([statement], ast.Load) if isinstance(statement, ast.Expr) else names


def main() -> int:
    """Write all answers for Quarto."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name in EXERCISES:
        (FOLDER / f"{name}.qmd").write_text(f"{cell(name)}\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
