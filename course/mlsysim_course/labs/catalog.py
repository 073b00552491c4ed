"""Labs and explorers by name. A lab is imported when it is needed."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from mlsysim.core.errors import ConfigError, UnknownEntryError
from mlsysim_course.explorers import EXPLORERS
from mlsysim_course.explorers.declare import Explorer

if TYPE_CHECKING:
    from mlsysim_course.labs.lab import Lab

LABS = (
    "roofline",
    "serving_slo",
    "pipeline_builder",
    "parallelism_paradox",
    "checkpointing",
)
"""Names of the labs."""


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


def explorer(name: str) -> Explorer:
    """Return the explorer of that name; those of a lab begin with its name, as in ``lab/plan``.

    Raises
    ------
    UnknownEntryError
        If there is no such explorer.
    """
    lab, separator, _ = name.partition("/")
    if separator:
        return find(lab).explorer(name)
    if name not in EXPLORERS:
        raise UnknownEntryError.build(name, "explorer", EXPLORERS)
    return EXPLORERS[name]


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
