"""Data for pages before Python is loaded: forms, and the code blocks that can run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from mlsysim_course.answers import AmountAsked, Asked, ChoiceAsked, CountAsked
from mlsysim_course.exercises import EXERCISES
from mlsysim_course.explorers import declarations
from mlsysim_course.labs.catalog import LABS, find
from tools.labs.browser import answer


def write_forms(root: Path, folder: Path) -> None:
    """Write the forms and the blocks into the folder from which pages load them."""
    labs = {name: find(name) for name in LABS}
    instruments = [one for lab in labs.values() for one in lab.explorers]
    _write(
        folder / "explorers.json",
        declarations() | {one.name: one.declaration() for one in instruments},
    )
    _write(folder / "labs.json", {name: lab.declaration() for name, lab in labs.items()})
    _write(
        folder / "exercises.json",
        {
            name: {part: _part(asked) for part, asked in exercise.parts.items()}
            for name, exercise in EXERCISES.items()
        },
    )
    _write(folder / "blocks.json", answer("blocks", root))


def _part(asked: Asked) -> dict[str, Any]:
    if isinstance(asked, ChoiceAsked):
        return {"asks": asked.asks, "options": [str(option) for option in asked.options]}
    if isinstance(asked, CountAsked):
        return {"asks": asked.asks, "example": "a whole number"}
    unit = asked.unit if isinstance(asked, AmountAsked) else ""
    return {"asks": asked.asks, "example": f"such as 5 {unit}" if unit else "a number"}


def _write(path: Path, value: Any) -> None:
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    path.write_text(text + "\n", encoding="utf-8")
