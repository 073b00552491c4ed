"""Explorers: figures that a reader can change, each declared once.

An explorer has controls and a function from their values to numbers, charts and a sentence. A page
builds its form from `declarations` and asks by name for a `view` or the `derivation` of a number.
Explorers do not need NumPy, so all of them run in a reader's browser.
"""

from __future__ import annotations

from typing import Any

from mlsysim_course.explorers.declare import Explorer
from mlsysim_course.explorers.devices import ROOFLINE, WHICH_GPU
from mlsysim_course.explorers.imported import IMPORT
from mlsysim_course.explorers.pipeline import PIPELINE
from mlsysim_course.explorers.running import CARBON
from mlsysim_course.explorers.serving import COST, KV_WALL, LATENCY
from mlsysim_course.explorers.training import ADVICE, CHECKPOINT, MEMORY, RING, SPLIT

__all__ = ["EXPLORERS", "declarations"]

EXPLORERS: dict[str, Explorer] = {
    one.name: one
    for one in (
        ROOFLINE,
        KV_WALL,
        LATENCY,
        RING,
        PIPELINE,
        MEMORY,
        SPLIT,
        CHECKPOINT,
        CARBON,
        COST,
        WHICH_GPU,
        ADVICE,
        IMPORT,
    )
}
"""Every explorer by its name."""


def declarations() -> dict[str, Any]:
    """Return the titles, jobs and controls of all explorers, from which a page builds its forms."""
    return {name: one.declaration() for name, one in EXPLORERS.items()}
