"""``python -m mlsysim.labs.assign STUDENT``: write a student's notebook, or its solution."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

import mlsysim
from mlsysim.core.errors import ConfigError
from mlsysim.core.files import write_text
from mlsysim.core.units import dress, has_dimension
from mlsysim.labs.answers import AmountAsked, Asked
from mlsysim.labs.problems import Task, problem_set

__all__ = ["main", "notebook"]


def notebook(student: str, *, solution: bool = False) -> dict[str, Any]:
    """Return a notebook with a student's tasks and a cell for each answer.

    Parameters
    ----------
    student
        Any text that names the student. It decides the values.
    solution
        Whether the answers are filled in.
    """
    tasks = problem_set(student)
    points = sum(task.points for task in tasks.values())
    cells = [
        _text(
            f"# Problem set for {student}\n\n{points} points. Computed by mlsysim "
            f"{mlsysim.__version__}.\n\nShow how you got each number in cells of your own. Then "
            "write it into the call of `answer`, as a number or as text with its unit. The grader "
            "reads these calls and does not run them, so write numbers, not variables."
        ),
        _code("from mlsysim.labs.problems import answer"),
    ]
    for task in tasks.values():
        cells += [
            _text(f"## {task.name} ({task.points} points)\n\n{task.text}"),
            _code(_call(task, solution)),
        ]
    return {
        "cells": [cell | {"id": f"cell-{i}"} for i, cell in enumerate(cells)],
        "metadata": {
            "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}
        },
        "nbformat": 4,
        "nbformat_minor": 5,
    }


def _text(source: str) -> dict[str, Any]:
    return {"cell_type": "markdown", "metadata": {}, "source": source}


def _code(source: str) -> dict[str, Any]:
    return {
        "cell_type": "code",
        "execution_count": None,
        "metadata": {},
        "outputs": [],
        "source": source,
    }


def _call(task: Task, solution: bool) -> str:
    lines = [f'answer("{task.name}",']
    for name, asked in task.parts.items():
        value = json.dumps(_shown(asked)) if solution else "None"
        lines.append(f"       {name}={value},  # {asked.asks}{_unit(asked)}")
    return "\n".join([*lines, ")"])


def _unit(asked: Asked) -> str:
    return f', such as "1 {asked.unit}"' if isinstance(asked, AmountAsked) and asked.unit else ""


def _shown(asked: Asked) -> Any:
    truth = asked.truth()
    if isinstance(asked, AmountAsked) and has_dimension(asked.unit):
        return f"{dress(truth, asked.unit).magnitude:.4g} {asked.unit}"
    return truth


def main(arguments: list[str] | None = None) -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(prog="python -m mlsysim.labs.assign", description=__doc__)
    parser.add_argument("students", nargs="+", metavar="STUDENT", help="name or number")
    parser.add_argument("--folder", type=Path, default=Path(), help="where to write")
    parser.add_argument("--solution", action="store_true", help="fill in the answers")
    options = parser.parse_args(arguments)
    for student in options.students:
        end = "solution.ipynb" if options.solution else "ipynb"
        path = options.folder / f"{student}.{end}"
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            write_text(path, json.dumps(notebook(student, solution=options.solution), indent=1))
        except (OSError, ValueError, ConfigError) as fault:
            sys.stderr.write(f"{path} cannot be written: {fault}\n")
            return 1
        sys.stdout.write(f"{path}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
