"""``python -m mlsysim.labs.grade FOLDER``: grade what students handed in, as CSV.

Three kinds of files count, each named by its student up to the first dot: notebooks
(``ana.ipynb``), whose calls of ``answer`` are read and not run; answers (``ana.json``), which map
problems to answers; and the ledgers that labs save (``ana.ledger.json``). Verdicts that a file
claims are ignored: points follow from the answers alone.
"""

from __future__ import annotations

import argparse
import ast
import csv
import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mlsysim.core.errors import ConfigError
from mlsysim.core.files import inert, read_bytes
from mlsysim.labs.catalog import lab_of
from mlsysim.labs.lab import read_ledger
from mlsysim.labs.problems import PROBLEMS, problem_set

__all__ = ["Mark", "grade", "main"]

MAX_BYTES = 16 * 1024**2
_NOT_WRITTEN_OUT = object()
TIERS = {"optimal": 3, "partial": 2, "developing": 1}
"""Points for the tier that a lab's ledger reaches."""


@dataclass(frozen=True)
class Mark:
    """Points of a student for one item."""

    student: str
    item: str
    points: float
    of: float
    note: str = ""


def grade(folder: str | Path) -> list[Mark]:
    """Grade every file of a folder.

    Returns
    -------
    list of Mark
        By student: each problem, each lab, and the total.

    Raises
    ------
    ConfigError
        If the folder holds nothing to grade.
    """
    files = sorted(
        path
        for path in Path(folder).glob("*")
        if path.suffix in (".json", ".ipynb") and not path.name.endswith(".solution.ipynb")
    )
    if not files:
        raise ConfigError(
            f"{folder} holds no .ipynb or .json files: give the folder of what students handed in",
            argument="folder",
        )
    found: dict[str, list[Mark]] = {}
    for path in files:
        student = path.name.partition(".")[0]
        found.setdefault(student, []).extend(_marks(student, path))
    return [mark for student, marks in found.items() for mark in (*marks, _total(student, marks))]


def _total(student: str, marks: list[Mark]) -> Mark:
    return Mark(
        student, "total", sum(mark.points for mark in marks), sum(mark.of for mark in marks)
    )


def _marks(student: str, path: Path) -> Iterator[Mark]:
    try:
        text = read_bytes(path, MAX_BYTES).decode("utf-8")
        data = json.loads(text)
        if isinstance(data, dict) and "lab" in data:
            found = read_ledger(text)
            lab = lab_of(found)
            tier = lab.ledger(lab.admit(found))["tier"]
            yield Mark(student, lab.name, TIERS[tier], max(TIERS.values()), tier)
            return
        given = dict(_calls(data)) if path.suffix == ".ipynb" else data
        if not isinstance(given, dict):
            raise ConfigError("it is not a JSON object of answers by problem")
    except (ConfigError, UnicodeDecodeError, ValueError, RecursionError) as fault:
        yield Mark(student, path.name, 0, 0, f"cannot be read: {fault}")
        return
    for name, task in problem_set(student).items():
        if given.get(name) is None:
            yield Mark(student, name, 0, task.points, "no answer")
        elif given[name] is _NOT_WRITTEN_OUT:
            yield Mark(student, name, 0, task.points, "write the number itself, not a variable")
        else:
            points, note = task.grade(given[name])
            yield Mark(student, name, points, task.points, note)
    for name in given:
        if name not in PROBLEMS:
            yield Mark(student, str(name), 0, 0, "is not a problem of this set")


def _calls(data: Any) -> Iterator[tuple[str, Any]]:
    """Yield the answers that a notebook's calls of `answer` state; the last one counts."""
    cells = data.get("cells") if isinstance(data, dict) else None
    if not isinstance(cells, list):
        raise ConfigError("it is not a notebook")
    for cell in cells:
        if not isinstance(cell, dict) or cell.get("cell_type") != "code":
            continue
        source = cell.get("source", "")
        code = "".join(source) if isinstance(source, list) else str(source)
        for line in _statements(code):
            for node in ast.walk(line):
                if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "answer":
                    yield from _answer(node)


def _statements(code: str) -> list[ast.stmt]:
    """Parse a cell; lines for the notebook itself, such as ``%pip``, are left out."""
    plain = "\n".join(
        "" if line.lstrip().startswith(("%", "!", "?")) else line for line in code.split("\n")
    )
    try:
        return ast.parse(plain).body
    except (SyntaxError, ValueError, RecursionError):
        return []  # what does not run answers nothing


def _answer(call: ast.Call) -> Iterator[tuple[str, Any]]:
    try:
        name, *values = [ast.literal_eval(value) for value in call.args]
        parts = {
            keyword.arg: ast.literal_eval(keyword.value)
            for keyword in call.keywords
            if keyword.arg is not None
        }
    except (ValueError, TypeError):
        first = call.args[0] if call.args else None
        if isinstance(first, ast.Constant):
            yield str(first.value), _NOT_WRITTEN_OUT
        return
    given = {part: value for part, value in parts.items() if value is not None}
    yield str(name), values[0] if values and values[0] is not None else given or None


def main(arguments: list[str] | None = None) -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m mlsysim.labs.grade", description="Grade a folder of notebooks and ledgers."
    )
    parser.add_argument("folder", type=Path, help="files named by student: ana.ipynb, ana.json")
    options = parser.parse_args(arguments)
    try:
        marks = grade(options.folder)
    except ConfigError as fault:
        sys.stderr.write(f"{fault.message}\n")
        return 2
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(["student", "item", "points", "of", "note"])
    for mark in marks:
        note = " ".join(mark.note.split())
        writer.writerow([inert(mark.student), inert(mark.item), mark.points, mark.of, inert(note)])
    return 0


if __name__ == "__main__":
    sys.exit(main())
