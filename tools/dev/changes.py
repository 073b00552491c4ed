"""The sources of a built site, and the pages that have changed since it was built."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from tools.dev.fingerprint import files_under

BODY = "#body"


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
