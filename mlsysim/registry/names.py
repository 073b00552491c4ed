"""Names: the rows of all catalogs, by their short names."""

from __future__ import annotations

from functools import cache
from typing import Any

from mlsysim.core.errors import UnknownEntryError, shown, spelled
from mlsysim.registry import Hardware, Infra, Models, Systems
from mlsysim.registry.catalogs import (
    Calibrations,
    NetworkCalibrations,
    PowerCalibrations,
    ServingCalibrations,
)

_CATALOGS: tuple[Any, ...] = (
    Hardware,
    Models,
    Systems,
    Infra,
    Calibrations,
    ServingCalibrations,
    PowerCalibrations,
    NetworkCalibrations,
)


@cache
def entries(*kinds: type) -> dict[str, Any]:
    """Return every registry row of the given kinds, by its short name."""
    return {
        name: row
        for catalog in _CATALOGS
        for name, row in catalog.items()
        if isinstance(row, kinds)
    }


def row_of(name: object, kinds: tuple[type, ...], label: str = "") -> Any:
    """Return the row of that name.

    Parameters
    ----------
    name
        Short name of the row, such as ``"H100"``; case, hyphens, underscores, dots and spaces may
        differ.
    kinds
        Types that the row may have.
    label
        What to call such a row in a message.

    Raises
    ------
    UnknownEntryError
        If there is no such row, or it has another type. The message lists similar names, or names
        the device of a server.
    """
    known = entries(*kinds)
    what = label or " or ".join(kind.__name__ for kind in kinds)
    if not isinstance(name, str):
        raise UnknownEntryError.build(name, what, known)
    try:
        return known[spelled(name, known, what)]
    except UnknownEntryError as fault:
        everything = entries(object)
        try:
            row = everything[spelled(name, everything, what)]
        except UnknownEntryError:
            raise fault from None
        raise _of_another_kind(name, row, kinds, what) from None


def _of_another_kind(name: str, row: Any, kinds: tuple[type, ...], what: str) -> UnknownEntryError:
    """Return the error for the name of a row that has another type."""
    known = entries(*kinds)
    node = getattr(row, "node", row)
    device = getattr(node, "accelerator", None)
    parts = [key for key, part in known.items() if part is node or part is device]
    advice = parts[0] if parts else f"one such as {', '.join(list(known)[:3])}"
    wanted = " or ".join(kind.__name__ for kind in kinds)
    return UnknownEntryError(
        f"{what} {shown(name)} is of the kind {type(row).__name__}, but must be of the kind "
        f"{wanted}: give {advice}",
        argument=name,
    )
