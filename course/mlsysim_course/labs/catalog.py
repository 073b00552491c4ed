"""All labs by the names of their modules. A lab is imported when it is needed."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from mlsysim.core.errors import ConfigError, UnknownEntryError
from mlsysim_course.explorers import EXPLORERS
from mlsysim_course.explorers.declare import Explorer
from mlsysim_course.labs.lab import Lab, Ledgered

__all__ = ["LABS", "PAGES", "explorer", "find", "lab_of", "page_lab"]

PAGES = ("roofline", "serving_slo", "pipeline_builder", "checkpointing")
"""Labs whose words are in their pages."""
LABS = ("parallelism_paradox", *PAGES)
"""Names of the labs."""


def find(name: str) -> Ledgered:
    """Return the lab of that name.

    Raises
    ------
    UnknownEntryError
        If there is no such lab.
    """
    if name not in LABS:
        raise UnknownEntryError.build(name, "lab", LABS)
    lab: Ledgered = import_module(f"mlsysim_course.labs.{name}").LAB
    return lab


def page_lab(name: str) -> Lab:
    """Return the lab of a page.

    Raises
    ------
    UnknownEntryError
        If no lab of that name has its words in its page.
    """
    lab = find(name)
    if not isinstance(lab, Lab):
        raise UnknownEntryError.build(name, "lab", PAGES)
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
        return page_lab(lab).explorer(name)
    if name not in EXPLORERS:
        raise UnknownEntryError.build(name, "explorer", EXPLORERS)
    return EXPLORERS[name]


def lab_of(ledger: Any) -> Ledgered:
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
