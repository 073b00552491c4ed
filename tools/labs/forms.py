"""Data for pages before Python is loaded: the forms of explorers, labs and exercises."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from mlsysim_course.answers import AmountAsked, Asked, ChoiceAsked, CountAsked
from mlsysim_course.exercises import EXERCISES
from mlsysim_course.explorers import declarations
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


def _part(asked: Asked) -> dict[str, Any]:
    if isinstance(asked, ChoiceAsked):
        return {"asks": asked.asks, "options": [str(option) for option in asked.options]}
    if isinstance(asked, CountAsked):
        return {"asks": asked.asks, "example": "a whole number"}
    unit = asked.unit if isinstance(asked, AmountAsked) else ""
    return {"asks": asked.asks, "example": f"such as 5 {unit}" if unit else "a number"}
