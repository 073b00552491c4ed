"""Names: the registry rows that an argument accepts."""

from __future__ import annotations

import re
from functools import cache
from typing import Any

from mlsysim.core.errors import UnknownEntryError
from mlsysim.core.types import Calibration
from mlsysim.registry import Hardware, Infra, Models, Systems
from mlsysim.registry.calibration.networks import NetworkCalibrations
from mlsysim.registry.calibration.power import PowerCalibrations
from mlsysim.registry.calibration.serving import ServingCalibrations
from mlsysim.registry.calibration.training import Calibrations

__all__ = ["FILE", "entries", "find_entry"]

FILE = re.compile(r"\.[yY][aA]?[mM][lL]$")
"""How the name of a file ends where a calibration may be one."""

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


def find_entry(name: object, kinds: tuple[type, ...], label: str = "") -> Any:
    """Return the row of that name.

    Parameters
    ----------
    name
        Short name of the row, such as ``"H100"``; of a calibration of training also the path of
        a YAML file that `calibrate` made, from the working directory.
    kinds
        What the row may be.
    label
        What to call such a row in a message.

    Raises
    ------
    UnknownEntryError
        If there is no such row; the message has the nearest names.
    ConfigError
        If the file of a calibration cannot be read.
    """
    if Calibration in kinds and isinstance(name, str) and FILE.search(name):
        from mlsysim.config.cluster import load_calibration  # which reads names itself

        return load_calibration(name)
    known = entries(*kinds)
    if not isinstance(name, str) or name not in known:
        what = label or " or ".join(kind.__name__ for kind in kinds)
        raise UnknownEntryError.build(name, what, known)
    return known[name]
