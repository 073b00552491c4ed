"""`mlsysim assign STUDENT`: a student's notebook with the problem set, or with its solution."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import mlsysim
from mlsysim.core.calls import expects
from mlsysim.core.errors import ConfigError, shown
from mlsysim.core.files import write_text
from mlsysim.core.units import dress, has_dimension
from mlsysim_course.answers import AmountAsked, Asked
from mlsysim_course.problems import Task, problem_set


@expects(students=(str, Sequence), folder=(str, Path))
def assign(
    students: str | Sequence[str], folder: Path | str, *, solution: bool = False
) -> list[Path]:
    """Write a notebook for each student, with the student's name as its file name.

    Parameters
    ----------
    students
        Their names or numbers; a text is one name.
    folder
        Folder for the notebooks; it is created if it does not exist.
    solution
        Whether the answers are filled in. Such files end in ``.solution.ipynb``.

    Raises
    ------
    ConfigError
        If a name cannot begin a file name or contains a dot, or if `folder` is not a path.
    """
    names = [students] if isinstance(students, str) else list(students)
    place = Path(folder)
    for student in names:
        if (
            not isinstance(student, str)
            or not student.strip()
            or any(mark in student for mark in "./\\")
        ):
            raise ConfigError(
                f"student = {shown(student)} must be a name without dots and slashes: the grader "
                "reads the student's name from the file name, up to its first dot",
                argument="student",
            )
    place.mkdir(parents=True, exist_ok=True)
    end = "solution.ipynb" if solution else "ipynb"
    paths = [place / f"{student}.{end}" for student in names]
    for student, path in zip(names, paths, strict=True):
        write_text(path, json.dumps(notebook(student, solution=solution), indent=1))
    return paths


def notebook(student: str, *, solution: bool = False) -> dict[str, Any]:
    """Return a notebook with a student's tasks and a cell for each answer.

    Parameters
    ----------
    student
        Any text that names the student. It determines the values.
    solution
        Whether the answers are filled in.
    """
    tasks = problem_set(student)
    points = sum(task.points for task in tasks.values())
    cells = [
        _text(
            f"# Problem set for {student}\n\n{points} points. Computed by mlsysim "
            f"{mlsysim.__version__}.\n\nShow how you got each number in cells of your own. Then "
            "write it into the call to `answer`, as a number or as text with its unit. The grader "
            "reads these calls and does not run them, so write numbers, not variables."
        ),
        _code("from mlsysim_course.problems import answer"),
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
    truth = asked.truth
    if isinstance(asked, AmountAsked) and has_dimension(asked.unit):
        return f"{dress(truth, asked.unit).magnitude:.4g} {asked.unit}"
    return truth
