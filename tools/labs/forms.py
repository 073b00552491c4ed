"""What pages show before Python is loaded: the forms of explorers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from mlsysim.labs.explorers import declarations

__all__ = ["write_forms"]


def write_forms(folder: Path) -> None:
    """Write the forms into the folder that pages load them from."""
    _write(folder / "explorers.json", declarations())


def _write(path: Path, value: Any) -> None:
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    path.write_text(text + "\n", encoding="utf-8")
