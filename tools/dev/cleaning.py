"""Removing what was built."""

from __future__ import annotations

import shutil
from pathlib import Path

from tools.dev.console import ROOT, say

BUILT = ("_site", "_preview", "dist", "build", "_variables.yml", ".quarto")
CACHES = (".venv", ".pytest_cache", ".mypy_cache", ".ruff_cache", ".hypothesis")


def generated() -> list[Path]:
    """Files that a build writes among the sources: the API reference and the notebooks."""
    api = ROOT / "docs" / "api"
    pages = [*api.glob("*.qmd"), api / "source", api / "_sidebar.yml", api / "objects.json"]
    return [*pages, *(ROOT / "docs").rglob("*.ipynb")]


def clean(*, everything: bool) -> int:
    """Remove build outputs; ``everything`` adds the environment and the tools' caches."""
    names = BUILT + CACHES if everything else BUILT
    for path in [*(ROOT / name for name in names), *generated()]:
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        elif path.exists():
            path.unlink()
        else:
            continue
        say(f"removed {path.relative_to(ROOT)}")
    return 0
