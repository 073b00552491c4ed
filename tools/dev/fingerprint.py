"""Find out what has changed since a step last ran: anything, or which pages of a site."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from tools.dev.console import ROOT

STAMPS = ROOT / "build" / "stamps"
IGNORED_PARTS = {"__pycache__", ".ipynb_checkpoints"}
BODY = "#body"


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


def digests(paths: Iterable[Path], root: Path) -> dict[str, str]:
    """Return a digest of each file by its path from ``root``; for pages, of the head and of all."""
    found = {}
    for path in files_under(paths):
        name, content = path.relative_to(root).as_posix(), path.read_bytes()
        if path.suffix == ".qmd":
            found[name + BODY] = hashlib.sha256(content).hexdigest()
            content = head(content.decode(errors="replace")).encode()
        found[name] = hashlib.sha256(content).hexdigest()
    return found


def head(text: str) -> str:
    """Return the part of a page that others show: its front matter, or all if it has no title."""
    front = text.partition("\n---")[0]
    return front if re.search(r"^title:", front, re.MULTILINE) else text


def changed_pages(before: Mapping[str, str], now: Mapping[str, str]) -> list[str] | None:
    """Return the pages to render again; None means all, because others depend on a change."""
    names = {name for name in before.keys() | now.keys() if before.get(name) != now.get(name)}
    bodies = {name for name in names if name.endswith(BODY)}
    # A tutorial's notebook is made from its page, and is copied with every render.
    if not bodies or any(not name.endswith(".ipynb") for name in names - bodies):
        return None
    return sorted(name.removesuffix(BODY) for name in bodies)


class Stamp:
    """The fingerprint that a step had when it last succeeded."""

    def __init__(self, name: str) -> None:
        self.path = STAMPS / name

    def read(self) -> str:
        """Return the fingerprint of the last success; empty if there is none."""
        return self.path.read_text(encoding="utf-8") if self.path.is_file() else ""

    def write(self, value: str) -> None:
        """Record success."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.path.write_text(value, encoding="utf-8")

    def forget(self) -> None:
        """Make the step run the next time, even if this run is interrupted."""
        self.path.unlink(missing_ok=True)
