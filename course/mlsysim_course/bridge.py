"""The interface between a page in a reader's browser and the package: text in, text out.

The worker of a page runs this module in Pyodide. Every question is a name and a JSON object of
arguments. The answer is a JSON object with a ``value``, or with ``refused``, the message of an
error.
"""

from __future__ import annotations

import ast
import contextlib
import copy
import io
import json
import sys
import traceback
import warnings
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NoReturn

from mlsysim.core.errors import ConfigError, MLSysError, UnknownEntryError
from mlsysim_course.labs.catalog import explorer, find

_FILE = "<this block>"
# What the blocks of each page have defined so far.
_pages: dict[str, dict[str, Any]] = {}


def ask(question: str, text: str) -> str:
    """Answer one question.

    Parameters
    ----------
    question
        One of `QUESTIONS`.
    text
        Its arguments as a JSON object.

    Returns
    -------
    str
        A JSON object: ``value``, ``refused`` if the package refuses the arguments, or ``needs``
        with the name of a missing package.
    """
    if question not in QUESTIONS:
        raise UnknownEntryError.build(question, "question", QUESTIONS)
    try:
        value = QUESTIONS[question](**json.loads(text))
    except MLSysError as error:
        return json.dumps({"refused": str(error)})
    except ModuleNotFoundError as error:
        return json.dumps({"needs": error.name})
    return json.dumps({"value": value}, allow_nan=False)


class _Missing:
    """Placeholder for a name from a missing package; using it raises and names the package."""

    def __init__(self, package: str) -> None:
        self.__package = package

    def _refuse(self, *given: Any, **named: Any) -> NoReturn:
        raise ModuleNotFoundError(f"{self.__package} is not here", name=self.__package)

    __getattr__ = __call__ = __getitem__ = __iter__ = _refuse


def run(page: str, code: str) -> dict[str, Any]:
    """Run a block of code after the others of its page.

    Importing a missing package is not an error, because the block may not use that name.

    Parameters
    ----------
    page
        The page. Its blocks share one namespace.
    code
        The block. The value of a last expression is shown, unless a semicolon follows it.

    Returns
    -------
    dict
        ``output`` as text, ``error`` with the last line of a traceback, ``needs`` with the name of
        a package that was used but is missing, and ``figures`` with what was drawn, as SVG.
    """
    names = _pages.setdefault(page, {"__name__": "__main__"})
    said, error, needs = io.StringIO(), "", ""
    with contextlib.redirect_stdout(said), warnings.catch_warnings():
        # There is no window to show a figure in; the page shows it.
        warnings.filterwarnings("ignore", "FigureCanvasAgg is non-interactive")
        try:
            _execute(ast.parse(code, _FILE), names, shows=not code.rstrip().endswith(";"))
        except ModuleNotFoundError as fault:
            needs = (fault.name or "a package").partition(".")[0]
        except BaseException as fault:  # what a block raises is its answer, `exit()` included
            error = _words(fault)
    return {"output": said.getvalue(), "error": error, "needs": needs, "figures": [*_figures()]}


def _figures() -> Iterator[str]:
    """Yield the figures that a block has drawn, and close them."""
    pyplot = sys.modules.get("matplotlib.pyplot")
    if pyplot is None:
        return
    for number in pyplot.get_fignums():
        text = io.StringIO()
        pyplot.figure(number).savefig(text, format="svg")
        pyplot.close(number)
        yield text.getvalue()


def _execute(tree: ast.Module, names: dict[str, Any], *, shows: bool) -> None:
    *body, last = [*tree.body, None]
    if body and isinstance(body[-1], ast.Expr) and shows:
        last = body.pop()
    for statement in body:
        if isinstance(statement, ast.Import | ast.ImportFrom):
            _import(statement, names)
        else:
            exec(compile(ast.Module([statement], []), _FILE, "exec"), names)
    if isinstance(last, ast.Expr):
        value = eval(compile(ast.Expression(last.value), _FILE, "eval"), names)
        if value is not None:
            sys.stdout.write(f"{value if hasattr(value, '_repr_markdown_') else repr(value)}\n")


def _import(statement: ast.Import | ast.ImportFrom, names: dict[str, Any]) -> None:
    """Import each name separately, so that a missing one does not affect the others."""
    for alias in statement.names:
        single = copy.copy(statement)
        single.names = [alias]
        try:
            exec(compile(ast.Module([single], []), _FILE, "exec"), names)
        except ModuleNotFoundError as fault:
            bound = alias.asname or alias.name.partition(".")[0]
            names[bound] = _Missing(fault.name or alias.name)


def _words(fault: BaseException) -> str:
    """Return an error's name and message, and the line of the block that raised it."""
    lines = [
        line.lineno for line in traceback.extract_tb(fault.__traceback__) if line.filename == _FILE
    ]
    if isinstance(fault, SyntaxError) and fault.filename == _FILE:
        lines, fault = [fault.lineno], SyntaxError(fault.msg)
    where = f"line {lines[-1]}: " if lines else ""
    return f"{where}{type(fault).__name__}: {fault}"


def _check(name: str, answers: Mapping[str, Any]) -> dict[str, Any]:
    """Grade what a reader typed, or chose by position, for the parts of an exercise."""
    from mlsysim_course.answers import ChoiceAsked
    from mlsysim_course.exercises import find as find_exercise

    exercise = find_exercise(name)
    given = {}
    for part, text in exercise.given(None, answers).items():
        asked = exercise.parts[part]
        given[part] = text
        if isinstance(asked, ChoiceAsked) and type(text) is int:
            if not 0 <= text < len(asked.options):
                raise ConfigError(
                    f"{part} = {text} is not an option of {name}: choose from 0 to "
                    f"{len(asked.options) - 1}",
                    argument=part,
                )
            given[part] = asked.options[text]
    verdict = exercise.verdict(given, form=True)
    return {"right": verdict.right, "hint": verdict.hint}


def _explore(name: str, state: Mapping[str, Any]) -> dict[str, Any]:
    return explorer(name).view(state)


def _derive(name: str, state: Mapping[str, Any], index: int) -> dict[str, Any]:
    return explorer(name).derivation(state, index)


def _lab(lab: str, state: Mapping[str, Any]) -> dict[str, Any]:
    return find(lab).view(state)


def _restore(lab: str, text: str) -> dict[str, Any]:
    return find(lab).restore(text)


QUESTIONS: dict[str, Callable[..., Any]] = {
    "view": _lab,
    "restore": _restore,
    "explore": _explore,
    "derive": _derive,
    "run": run,
    "check": _check,
}
"""The questions by name, with the arguments of each."""
