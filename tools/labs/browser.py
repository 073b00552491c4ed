"""What runs in a browser, found out in a process that hides the packages which a browser lacks.

``python -m tools.labs.browser blocks`` prints the blocks of each page as JSON: the code, whether it
is visible, and the package that it needs and the browser does not have, if any. ``modules`` prints
the files of the modules that explorers import, as they are named in a wheel.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

from tools.pages import EXERCISES
from tools.pages.pages import Page, read_page

HIDDEN = ("numpy", "matplotlib", "yaml", "jsonschema", "dask")
PACKAGES = ("mlsysim", "mlsysim_course")


def answer(question: str, root: Path = Path()) -> Any:
    """Return what this module prints for one of the `QUESTIONS`."""
    command = [sys.executable, "-m", "tools.labs.browser", question]
    return json.loads(subprocess.run(command, cwd=root, check=True, stdout=subprocess.PIPE).stdout)


def write(path: Path, value: Any) -> None:
    """Write data that pages load."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    path.write_text(text + "\n", encoding="utf-8")


def blocks() -> dict[str, list[dict[str, Any]]]:
    """Return the blocks of every page with exercises, by the page's address."""
    paths = (path for path in sorted(Path("docs").rglob("*.qmd")) if "api" not in path.parts)
    pages = [page for page in map(read_page, paths) if any(EXERCISES in c.code for c in page.cells)]
    return {page.path.with_suffix("").as_posix(): blocks_of(page) for page in pages}


def blocks_of(page: Page) -> list[dict[str, Any]]:
    """Run the blocks of a page in order, as a browser would."""
    from mlsysim_course.bridge import run

    results = []
    lacking = ""
    for cell in page.cells:
        done = run(page.path.as_posix(), cell.code)
        if done["error"] and not cell.options.get("error", False):
            # Its names were defined in a block that could not run.
            done["needs"] = done["needs"] or lacking
            if not lacking:
                raise SystemExit(f"{page.path}:{cell.line}: {done['error']}")
        lacking = lacking or done["needs"]
        code = cell.code.strip("\n")
        results.append({"code": code, "shown": cell.is_shown, "needs": done["needs"]})
    return results


def modules() -> list[str]:
    """Show every explorer with the derivation of each number, and return what this imports."""
    from mlsysim_course import archives, bridge  # noqa: F401  a page asks through these
    from mlsysim_course.explorers import EXPLORERS

    for one in EXPLORERS.values():
        for index in range(len(one.view({})["readings"])):
            one.derivation({}, index)
    imported = [one for name, one in sys.modules.items() if name.partition(".")[0] in PACKAGES]
    return sorted(map(file_of, imported))


def file_of(module: ModuleType) -> str:
    """Return the name of a module's file in its wheel."""
    stem = module.__name__.replace(".", "/")
    return f"{stem}/__init__.py" if hasattr(module, "__path__") else f"{stem}.py"


QUESTIONS = {"blocks": blocks, "modules": modules}

if __name__ == "__main__":
    asked = QUESTIONS[sys.argv[1]]
    # Hidden before the package is imported.
    sys.modules.update(dict.fromkeys(HIDDEN))  # type: ignore[arg-type]
    json.dump(asked(), sys.stdout)
