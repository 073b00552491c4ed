"""Remember the results for a page until something on which they depend changes."""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Callable
from functools import cache, partial
from importlib.metadata import version
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any

from tools.dev.fingerprint import fingerprint
from tools.pages import RESTS_ON
from tools.pages.execute import execute
from tools.pages.pages import Page

CACHE = Path("build/preview")
TOOLS = Path(__file__).parents[1]
VERSIONS = [version(name) for name in ("ipython", "matplotlib", "numpy", "pint", "pypandoc-binary")]


# The files that pages and their tools rest on do not change while a program renders pages.
_contents = cache(lambda *paths: fingerprint(paths))


def remember(root: Path, key: list[str], make: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """Return ``make()``, or what it returned when it was last called with this key."""
    key += [*VERSIONS, sys.version, _contents(TOOLS / "pages", TOOLS / "preview")]
    path = root / CACHE / f"{hashlib.sha256(chr(0).join(key).encode()).hexdigest()[:40]}.json"
    if path.is_file():
        return dict(json.loads(path.read_text(encoding="utf-8")))
    value = make()
    path.parent.mkdir(parents=True, exist_ok=True)
    # Renamed when it is whole: an interruption leaves no half of one behind.
    with NamedTemporaryFile("w", encoding="utf-8", dir=path.parent, delete=False) as part:
        json.dump(value, part)
    Path(part.name).replace(path)
    return value


def run(page: Page, root: Path) -> dict[str, list[Any]]:
    """Return the outputs of the page's cells, which depend on the files that they read."""
    if not page.runs:
        return {}
    rests_on = _contents(*(root / name for name in RESTS_ON))
    key = ["run", str(page.path), page.source, rests_on]
    return remember(root, key, partial(execute, page, root))
