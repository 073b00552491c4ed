"""All labs, by the names of their modules. A lab is imported when it is asked for."""

from __future__ import annotations

from importlib import import_module

from mlsysim.core.errors import UnknownEntryError
from mlsysim.labs.lab import Lab

__all__ = ["LABS", "find"]

LABS = ("parallelism_paradox", "roofline", "pipeline_builder", "checkpointing")
"""Names of the labs; the first one opens if no name is given."""


def find(name: str) -> Lab:
    """Return the lab of that name.

    Raises
    ------
    UnknownEntryError
        If there is no such lab.
    """
    if name not in LABS:
        raise UnknownEntryError.build(name, "lab", LABS)
    lab: Lab = import_module(f"mlsysim.labs.{name}").LAB
    return lab
