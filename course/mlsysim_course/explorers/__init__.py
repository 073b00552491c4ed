"""Explorers: figures that a reader can change, each declared once.

An explorer has controls and a function from their values to numbers, charts and a sentence. A page
builds its form from `declarations`, draws the result of `view`, and gets the derivation of a number
from `derivation`. Explorers do not need NumPy, so all of them run in a reader's browser.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mlsysim.core.errors import UnknownEntryError
from mlsysim_course.explorers.declare import Explorer
from mlsysim_course.explorers.devices import ROOFLINE, WHICH_GPU
from mlsysim_course.explorers.imported import IMPORT
from mlsysim_course.explorers.pipeline import PIPELINE
from mlsysim_course.explorers.running import CARBON
from mlsysim_course.explorers.serving import COST, KV_WALL, LATENCY
from mlsysim_course.explorers.training import ADVICE, CHECKPOINT, MEMORY, RING, SPLIT

__all__ = ["EXPLORERS", "declarations", "derivation", "explorer", "view"]

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


def explorer(name: str) -> Explorer:
    """Return the explorer of that name.

    Raises
    ------
    UnknownEntryError
        If there is no such explorer.
    """
    if name not in EXPLORERS:
        raise UnknownEntryError.build(name, "explorer", EXPLORERS)
    return EXPLORERS[name]


def view(name: str, state: Mapping[str, Any]) -> dict[str, Any]:
    """Return the numbers, charts and sentence of an explorer as plain data.

    Parameters
    ----------
    name
        Name of the explorer.
    state
        Values of its controls by name; controls that are not named have their first value.

    Returns
    -------
    dict
        ``sentence``, ``tone``, ``readings``, ``charts``, ``alerts`` and ``unused``.

    Raises
    ------
    UnknownEntryError
        If there is no such explorer or control.
    ConfigError
        If a value is out of range, or the package refuses the setting.

    Examples
    --------
    >>> from mlsysim_course.explorers import view
    >>> [item["text"] for item in view("kv-wall", {"context": 2048})["readings"]]
    ['238', '0.268 GB', '16.1 GB']
    """
    return explorer(name).view(state)


def derivation(name: str, state: Mapping[str, Any], index: int) -> dict[str, Any]:
    """Return the derivation of one number of an explorer as plain data.

    Parameters
    ----------
    name, state
        As for `view`.
    index
        Which of its readings.

    Returns
    -------
    dict
        ``label``, ``steps`` with the arithmetic in names and in numbers, and ``inputs`` with the
        title and address of each source.

    Raises
    ------
    ConfigError
        If there is no such reading.
    """
    return explorer(name).derivation(state, index)
