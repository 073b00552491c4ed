"""Import from a second archive what the first one of a page does not have."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.machinery import ModuleSpec, PathFinder
from typing import Any


@dataclass(frozen=True)
class _Archive:
    """Finds modules, also those of a package that has others in the first archive."""

    path: str

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: Any = None
    ) -> ModuleSpec | None:
        *packages, _ = name.split(".")
        return PathFinder.find_spec(name, ["/".join([self.path, *packages])])


def also_import_from(archive: str) -> None:
    """Import modules from this archive that are nowhere else."""
    sys.meta_path.append(_Archive(archive))
