"""Find out whether anything has changed since a step last ran."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from pathlib import Path

from tools.dev.console import ROOT

STAMPS = ROOT / "build" / "stamps"
# IPython adds the last one to the profile of the pages' kernels.
IGNORED_PARTS = {"__pycache__", ".ipynb_checkpoints", "startup"}


def files_under(paths: Iterable[Path]) -> list[Path]:
    """Return every file in ``paths`` and their folders, in a fixed order."""
    found: set[Path] = set()
    for path in paths:
        if path.is_file():
            found.add(path)
        elif path.is_dir():
            found.update(p for p in path.rglob("*") if p.is_file())
    return sorted(path for path in found if not _is_of_an_editor(path))


def _is_of_an_editor(path: Path) -> bool:
    """Return whether a file is in a cache, or is a temporary copy of an editor."""
    kept = path.name.startswith((".", "~$")) or path.name.endswith("~")
    return kept or bool(IGNORED_PARTS.intersection(path.parts))


def fingerprint(paths: Iterable[Path]) -> str:
    """Return a digest of the names and bytes of all files under ``paths``."""
    digest = hashlib.sha256()
    for path in files_under(paths):
        digest.update(f"\0{path}\0".encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()


class Stamp:
    """The fingerprint that a step had when it last succeeded."""

    def __init__(self, name: str) -> None:
        self.path = STAMPS / name

    def read(self) -> str:
        """Return the recorded fingerprint; empty if there is none."""
        return self.path.read_text(encoding="utf-8") if self.path.is_file() else ""

    def matches(self, value: str) -> bool:
        """Return whether the step last succeeded with exactly this input."""
        return self.read() == value

    def write(self, value: str) -> None:
        """Record success."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.path.write_text(value, encoding="utf-8")

    def forget(self) -> None:
        """Make the step run the next time, even if this run is interrupted."""
        self.path.unlink(missing_ok=True)
