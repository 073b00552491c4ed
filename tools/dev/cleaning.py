"""Remove build outputs."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from tools.dev.console import ROOT, say

BUILT = ("_site", "_preview", "dist", "build", "_variables.yml", "_address.yml", ".quarto")
CACHES = (".venv", ".pytest_cache", ".mypy_cache", ".ruff_cache", ".hypothesis")


def generated() -> list[Path]:
    """Return the files that a build writes into source folders: pages, notebooks, lab files."""
    api, docs = ROOT / "docs" / "api", ROOT / "docs"
    pages = [*api.rglob("*.qmd"), *api.glob("*.json"), api / "_sidebar.yml"]
    folders = [docs / "labs" / "runtime", docs / "assets" / "cards"]
    return [*pages, *docs.rglob("*.ipynb"), *folders]


def left_by_quarto() -> list[Path]:
    """Return the files that an interrupted render leaves next to its pages."""
    found = [ROOT / "site_libs"]
    for page in [*ROOT.glob("*.qmd"), *(ROOT / "docs").rglob("*.qmd")]:
        found += [page.with_suffix(".html"), page.with_name(f"{page.stem}_files")]
        found += page.parent.glob(f"{page.stem}.quarto_ipynb*")
    return found


def clean(*, everything: bool) -> int:
    """Remove build outputs; ``everything`` adds the environment and the tools' caches."""
    names = BUILT + CACHES if everything else BUILT
    for name in names:
        if remove(ROOT / name):
            say(f"removed {name}")
    if count := sum(map(remove, left_by_quarto() + generated())):
        say(f"removed {count} generated files and folders under docs/")
    return 0


def remove(path: Path) -> bool:
    """Delete a file or a folder; return whether there was one."""
    if not os.path.lexists(path):
        return False
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink()
    return True
