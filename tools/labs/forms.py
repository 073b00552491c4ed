"""Data for pages before Python is loaded: forms, and the first answers of explorers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from mlsysim_course import bridge
from mlsysim_course.answers import AmountAsked, Asked, ChoiceAsked, CountAsked
from mlsysim_course.controls import Paste
from mlsysim_course.exercises import EXERCISES
from mlsysim_course.explorers import EXPLORERS, declarations
from mlsysim_course.explorers.declare import Explorer
from mlsysim_course.labs.catalog import LABS, find
from tools.labs.browser import write


def write_forms(folder: Path) -> None:
    """Write the forms into the folder from which pages load them."""
    labs = {name: find(name) for name in LABS}
    instruments = [one for lab in labs.values() for one in lab.explorers]
    write(
        folder / "explorers.json",
        declarations() | {one.name: one.declaration() for one in instruments},
    )
    write(folder / "labs.json", {name: lab.declaration() for name, lab in labs.items()})
    write(
        folder / "exercises.json",
        {
            name: {part: _part(asked) for part, asked in exercise.parts.items()}
            for name, exercise in EXERCISES.items()
        },
    )


def write_answers(folder: Path) -> None:
    """Write the answers of each explorer that a page shows before its Python is there."""
    for one in (*EXPLORERS.values(), *(one for lab in LABS for one in find(lab).explorers)):
        write(folder / f"answers-{one.name.replace('/', '-')}.json", _answers(one))


def _answers(explorer: Explorer) -> dict[str, Any]:
    """Answer for the first setting and for each with one other value, by this value."""
    states: dict[str, dict[str, Any]] = {"": {}}
    for control in explorer.controls:
        if not isinstance(control, Paste):
            others = (value for value in control.choices if value != control.first)
            states |= {f"{control.id}={value}": {control.id: value} for value in others}
    return {
        key: json.loads(bridge.ask("explore", json.dumps({"name": explorer.name, "state": state})))
        for key, state in states.items()
    }


def _part(asked: Asked) -> dict[str, Any]:
    if isinstance(asked, ChoiceAsked):
        return {"asks": asked.asks, "options": [str(option) for option in asked.options]}
    if isinstance(asked, CountAsked):
        return {"asks": asked.asks, "example": "a whole number"}
    unit = asked.unit if isinstance(asked, AmountAsked) else ""
    return {"asks": asked.asks, "example": f"such as 5 {unit}" if unit else "a number"}
