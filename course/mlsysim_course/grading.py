"""Grade a folder of students' files: ledgers of labs, and notebooks with the problem set.

The files come from students' machines, so the grader trusts none of their claims. It reads what a
student answered and designed, and computes everything else from that. It does not run notebooks.
"""

from __future__ import annotations

import ast
import json
import math
import unicodedata
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from mlsysim.core.calls import expects
from mlsysim.core.errors import ConfigError, shown
from mlsysim.core.files import read_bytes
from mlsysim.core.table import Column, Table
from mlsysim_course.labs.catalog import lab_of
from mlsysim_course.labs.lab import Lab, read_ledger
from mlsysim_course.problems import Task, problem_set

MAX_BYTES = 16 * 1024**2
"""Limit on a file; the figures in a notebook may take megabytes."""
MAX_CODE = 128 * 1024
"""Limit on the characters of code in a notebook, which also limits the time to parse it."""
CLOSE = 1e-9
"""Relative difference between two machines' results of the same computation."""

COLUMNS = ("student", "item", "points", "of", "status", "answer", "note", "file")
STATUSES = {
    "complete": "Every part of the item is answered.",
    "incomplete": "An answer is missing or cannot be read.",
    "differs": "The ledger claims something that does not follow from the answers in it.",
    "unreadable": "The file is neither a notebook nor a ledger of a lab, or is damaged.",
}
"""The meaning of each status."""

Call = tuple[Any, Mapping[str, Any]]
"""The arguments of a call to `answer`: one answer, or the answers by part."""
NONE: Call = (None, {})


@expects(folder=(str, Path))
def grade(folder: Path | str) -> Table:
    """Grade all notebooks and ledgers in a folder and in the folders within it.

    A file is named by its student, up to the first dot: ``ana.ipynb``, ``ana.roofline.json``.
    A file in a subfolder belongs to the student whose name the folder has.

    Parameters
    ----------
    folder
        Where the files are. Files that end in ``.json`` are ledgers. In those that end in
        ``.ipynb``, the calls of `answer` count.

    Returns
    -------
    Table
        One row for each student and problem or lab, and a total, in which the best row of an item
        counts. A lab is worth a point for each right prediction and one for a design that meets
        the requirements. `STATUSES` explains each status, and the note says what is wrong.

    Raises
    ------
    ConfigError
        If the folder does not exist or contains no such file.

    Notes
    -----
    A file can show that its numbers follow from its answers. It cannot show who gave the answers
    or how often a student restarted a lab.
    """
    place = Path(folder)
    if not place.is_dir():
        raise ConfigError(
            f"folder = {str(place)!r} is not a folder: give the folder with the students' files",
            argument="folder",
        )
    students: dict[str, list[dict[str, Any]]] = {}
    for path in sorted(place.rglob("*")):
        first, *rest = path.relative_to(place).parts
        hidden = any(part.startswith(".") for part in (first, *rest))
        wanted = path.suffix in (".json", ".ipynb") and not path.name.endswith(".solution.ipynb")
        if wanted and not hidden and path.is_file():
            name = first if rest else first.partition(".")[0]
            student = unicodedata.normalize("NFC", name)
            found = {"student": student, "file": "/".join((first, *rest))}
            students.setdefault(student, []).extend(found | row for row in _rows(student, path))
    if not students:
        raise ConfigError(
            f"folder = {str(place)!r} contains nothing to grade: notebooks end in .ipynb, and labs "
            "export ledgers that end in .json",
            argument="folder",
        )
    rows = [row for name, found in students.items() for row in (*found, _total(name, found))]
    return Table({name: Column([row.get(name) for row in rows]) for name in COLUMNS}, limit=None)


def _total(student: str, rows: list[dict[str, Any]]) -> dict[str, Any]:
    best = {row["item"]: row for row in sorted(rows, key=lambda row: row["points"])}.values()
    sums = {name: sum(row[name] for row in best) for name in ("points", "of")}
    return {"student": student, "item": "total", **sums}


def _rows(student: str, path: Path) -> list[dict[str, Any]]:
    try:
        return _graded(student, path)
    except Exception as fault:  # a file with an unknown defect must not stop the grading
        reason = getattr(fault, "message", str(fault)) or type(fault).__name__
        return [_row(path.name, 0, 0, "unreadable", reason)]


def _graded(student: str, path: Path) -> list[dict[str, Any]]:
    content = read_bytes(path, MAX_BYTES).decode("utf-8")
    if path.suffix == ".json":
        ledger = read_ledger(content)
        lab = lab_of(ledger)
        return [_of_lab(lab, lab.ledger(lab.admit(ledger)), ledger)]
    calls = dict(_calls(json.loads(content)))
    tasks = problem_set(student)
    return [_of_problem(task, calls.get(name, NONE)) for name, task in tasks.items()]


def _row(
    item: str, points: float, of: int, status: str, note: str, answers: Mapping[str, Any] = NONE[1]
) -> dict[str, Any]:
    texts = [answer if isinstance(answer, str) else shown(answer) for answer in answers.values()]
    given = "; ".join(f"{part} = {text[:40]}" for part, text in zip(answers, texts, strict=True))
    cells = (item, float(points), of, status, given, note)
    return dict(zip(COLUMNS[1:-1], cells, strict=True))


def _of_problem(task: Task, call: Call | None) -> dict[str, Any]:
    if call is None:
        note = "write the number itself, not a variable"
        return _row(task.name, 0, task.points, "incomplete", note)
    try:
        answers = task.given(*call)
    except ConfigError as fault:
        return _row(task.name, 0, task.points, "incomplete", fault.message)
    hints = {part: _hint(task, part, answers.get(part)) for part in task.parts}
    points = task.points * list(hints.values()).count("") / len(hints)
    status = "complete" if answers.keys() == hints.keys() else "incomplete"
    return _row(task.name, points, task.points, status, " ".join(task.joined(hints)), answers)


def _hint(task: Task, part: str, answer: Any) -> str:
    try:
        return "no answer" if answer is None else task.hint(part, answer)
    except ConfigError as fault:
        return fault.message


def _calls(data: Any) -> Iterator[tuple[str, Call | None]]:
    """Yield the calls of `answer` in a notebook, in order."""
    cells = data.get("cells") if isinstance(data, dict) else None
    if not isinstance(cells, list):
        raise ConfigError("it is not a notebook")
    sources = [
        cell.get("source", "")
        for cell in cells
        if isinstance(cell, dict) and cell.get("cell_type") == "code"
    ]
    codes = [
        "".join(map(str, source)) if isinstance(source, list) else str(source) for source in sources
    ]
    if sum(map(len, codes)) > MAX_CODE:
        raise ConfigError(f"it has more than {MAX_CODE // 1024} KiB of code, the limit")
    for code in codes:
        for node in _nodes(code):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "answer":
                yield from _call(node)


def _nodes(code: str) -> Iterator[ast.AST]:
    """Parse a cell; lines for the notebook itself, such as ``%pip``, are left out."""
    lines = code.split("\n")
    plain = ["" if line.lstrip().startswith(("%", "!", "?")) else line for line in lines]
    try:
        return ast.walk(ast.parse("\n".join(plain)))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return iter(())  # a cell that cannot run has no answers


def _call(node: ast.Call) -> Iterator[tuple[str, Call | None]]:
    if not node.args or not isinstance(node.args[0], ast.Constant):
        return
    name = str(node.args[0].value)
    try:
        first, *_ = [*map(ast.literal_eval, node.args[1:]), None]
        parts = {str(part.arg): ast.literal_eval(part.value) for part in node.keywords}
    except (ValueError, TypeError, RecursionError, MemoryError):
        yield name, None
        return
    given = {part: answer for part, answer in parts.items() if answer is not None}
    yield name, (first, given)


def _of_lab(lab: Lab, kept: Mapping[str, Any], found: Mapping[str, Any]) -> dict[str, Any]:
    answers = {name: one["answer"] for name, one in kept["predictions"].items()}
    verdicts = {name: one["verdict"] or "open" for name, one in kept["predictions"].items()}
    locked = "open" not in verdicts.values()
    accepted = locked and kept["result"]["accepted"]
    wrong = [name for name in _claims(kept) if not _same(found.get(name), kept[name])]
    notes = [
        *(f"{name} {verdict}" for name, verdict in verdicts.items()),
        f"design {'accepted' if accepted else 'not accepted'}",
        f"tier {kept['tier']}",
    ]
    if wrong:
        notes.append(f"{', '.join(wrong)} not as computed")
    if found.get("version") != kept["version"]:
        notes.append(f"graded by version {kept['version']}")
    return _row(
        lab.name,
        list(verdicts.values()).count("right") + bool(accepted),
        len(verdicts) + 1,
        "differs" if wrong else "complete" if locked else "incomplete",
        "; ".join(notes),
        {name: answer for name, answer in answers.items() if answer is not None},
    )


def _claims(kept: Mapping[str, Any]) -> Iterator[str]:
    """Yield the parts of a ledger that follow from its state."""
    yield from (name for name in kept if name not in ("lab", "format", "version", "state"))


def _same(claimed: Any, computed: Any) -> bool:
    """Return whether two pieces of plain data agree, numbers up to rounding."""
    if isinstance(computed, Mapping):
        return (
            isinstance(claimed, Mapping)
            and claimed.keys() == computed.keys()
            and all(_same(claimed[name], value) for name, value in computed.items())
        )
    if isinstance(computed, list):
        return (
            isinstance(claimed, list)
            and len(claimed) == len(computed)
            and all(map(_same, claimed, computed))
        )
    if isinstance(computed, float) and type(claimed) in (int, float):
        return math.isclose(claimed, computed, rel_tol=CLOSE)
    return type(claimed) is type(computed) and bool(claimed == computed)
