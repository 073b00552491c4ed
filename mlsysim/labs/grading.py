"""Grades a folder of ledgers: reads each, computes it again, and reports what it is worth.

A ledger is a file on a student's machine, so nothing that it claims is believed. Its state says
what the student answered and designed, and everything else is computed from that.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from mlsysim.core.errors import ConfigError
from mlsysim.core.files import read_bytes
from mlsysim.core.table import Column, Table
from mlsysim.labs.catalog import lab_of
from mlsysim.labs.lab import Lab, read_ledger

__all__ = ["COLUMNS", "STATUSES", "grade"]

MAX_BYTES = 1024 * 1024
CLOSE = 1e-9
"""Relative difference between two machines' results of the same computation."""

COLUMNS = (
    "file",
    "lab",
    "status",
    "prediction_1",
    "verdict_1",
    "prediction_2",
    "verdict_2",
    "reflections_right",
    "accepted",
    "tier",
    "version",
    "note",
)
STATUSES = {
    "complete": "Both predictions are locked, and all that the file claims can be computed again.",
    "incomplete": "A prediction is missing, so the design does not count yet.",
    "differs": "The file claims something that does not follow from the answers in it.",
    "unreadable": "The file is not a ledger of a lab, or is damaged.",
}
"""What a row's status means."""


def grade(folder: Path | str) -> Table:
    """Grade all ledgers in a folder and in the folders within it.

    Parameters
    ----------
    folder
        Where the files are. All files that end in ``.json`` are read.

    Returns
    -------
    Table
        One row for each file: what was predicted, and the verdicts, the tier and whether the design
        was accepted, all computed again by this version of the package. `STATUSES` says what a
        status means, and the note says what differs or why a file cannot be read.

    Raises
    ------
    ConfigError
        If the folder does not exist, or holds no such file.

    Notes
    -----
    A ledger shows that its numbers follow from its answers. It cannot show who gave them, or how
    often a student started again.
    """
    place = Path(folder)
    if not place.is_dir():
        raise ConfigError(
            f"folder = {str(place)!r} is not a folder: give one that holds the ledgers",
            argument="folder",
        )
    files = sorted(path for path in place.rglob("*.json") if path.is_file())
    if not files:
        raise ConfigError(
            f"folder = {str(place)!r} holds no ledger: a lab exports them as files that end in "
            ".json",
            argument="folder",
        )
    rows = [_row(path, path.relative_to(place).as_posix()) for path in files]
    return Table({name: Column([row.get(name) for row in rows]) for name in COLUMNS})


def _row(path: Path, name: str) -> dict[str, Any]:
    try:
        found = read_ledger(read_bytes(path, MAX_BYTES).decode("utf-8"))
        lab = lab_of(found)
        state = lab.admit(found)
    except (OSError, UnicodeDecodeError) as error:
        return {"file": name, "status": "unreadable", "note": str(error)}
    except ConfigError as error:
        return {"file": name, "status": "unreadable", "note": error.message}
    return {"file": name, **_graded(lab, lab.ledger(state), found)}


def _graded(lab: Lab, kept: Mapping[str, Any], found: Mapping[str, Any]) -> dict[str, Any]:
    first, second = kept["predictions"].values()
    wrong = [name for name in _claims(kept) if not _same(found.get(name), kept[name])]
    locked = first["answer"] is not None and second["answer"] is not None
    notes = [f"{', '.join(wrong)} not as computed"] if wrong else []
    if found.get("version") != kept["version"]:
        notes.append(f"graded by version {kept['version']}")
    verdicts = [one["verdict"] for one in kept["reflections"].values()]
    return {
        "lab": lab.name,
        "status": "differs" if wrong else "complete" if locked else "incomplete",
        "prediction_1": _text(first["answer"]),
        "verdict_1": first["verdict"],
        "prediction_2": _text(second["answer"]),
        "verdict_2": second["verdict"],
        "reflections_right": verdicts.count("right"),
        "accepted": bool(locked and kept["result"]["accepted"]),
        "tier": kept["tier"],
        "version": _text(found.get("version")),
        "note": "; ".join(notes),
    }


def _claims(kept: Mapping[str, Any]) -> Iterator[str]:
    """Yield the parts of a ledger that follow from its state."""
    yield from (name for name in kept if name not in ("lab", "format", "version", "state"))


def _text(answer: Any) -> str | None:
    """Return an answer in the form of a column in which others are numbers or words."""
    return None if answer is None else str(answer)[:40]


def _same(claimed: Any, computed: Any) -> bool:
    """Tell whether two pieces of plain data agree, numbers up to rounding."""
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
