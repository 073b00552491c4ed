"""All labs by the names of their modules. A lab is imported when it is needed."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from mlsysim.core.errors import ConfigError, UnknownEntryError
from mlsysim_course.labs.lab import Lab

__all__ = ["LABS", "find", "lab_of"]

LABS = ("parallelism_paradox", "roofline", "serving_slo", "pipeline_builder", "checkpointing")
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
    lab: Lab = import_module(f"mlsysim_course.labs.{name}").LAB
    return lab


def lab_of(ledger: Any) -> Lab:
    """Return the lab that a ledger, read from JSON, belongs to.

    Raises
    ------
    ConfigError
        If it is not a ledger of a lab.
    """
    name = ledger.get("lab") if isinstance(ledger, dict) else None
    if not isinstance(name, str):
        raise ConfigError("this is not a ledger of a lab: it does not name a lab", argument="lab")
    return find(name)
