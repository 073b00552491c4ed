"""``python -m tools.labs.blocks``: which blocks of pages run without NumPy, as JSON.

Each page maps to a list of its blocks: the code, whether it is visible, and the package that it
needs and the browser does not have, if any.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from tools.pages.pages import Page, read_page

__all__ = ["blocks"]

# A browser has none of these. They are hidden before the package is imported.
HIDDEN = ("numpy", "matplotlib", "yaml", "jsonschema", "dask")

DOCS = Path("docs")
# Tutorials, and other pages with exercises; site.js looks for the same line.
EXERCISES = "from mlsysim_course import check"


def blocks(page: Page) -> list[dict[str, Any]]:
    """Run the blocks of a page in order, as a browser would."""
    from mlsysim_course.bridge import run

    found = []
    lacking = ""
    for cell in page.cells:
        done = run(page.path.as_posix(), cell.code)
        if done["error"] and not cell.options.get("error", False):
            # Its names were defined in a block that could not run.
            done["needs"] = done["needs"] or lacking
            if not lacking:
                raise SystemExit(f"{page.path}:{cell.line}: {done['error']}")
        lacking = lacking or done["needs"]
        shown = cell.options.get("echo", True) and cell.options.get("include", True)
        found.append({"code": cell.code.strip("\n"), "shown": bool(shown), "needs": done["needs"]})
    return found


if __name__ == "__main__":
    sys.modules.update(dict.fromkeys(HIDDEN))  # type: ignore[arg-type]
    pages = [read_page(path) for path in sorted(DOCS.rglob("*.qmd")) if "api" not in path.parts]
    run_here = [page for page in pages if any(EXERCISES in cell.code for cell in page.cells)]
    json.dump({page.path.with_suffix("").as_posix(): blocks(page) for page in run_here}, sys.stdout)
