"""``python -m tools.labs.imports``: the files of the modules that explorers import, as JSON."""

from __future__ import annotations

import json
import sys
from types import ModuleType

from tools.labs.blocks import HIDDEN

PACKAGES = ("mlsysim", "mlsysim_course")


def explore() -> None:
    """Show every explorer as it starts, with the derivation of each number."""
    from mlsysim_course import bridge  # noqa: F401  the page asks through it
    from mlsysim_course.explorers import EXPLORERS

    for one in EXPLORERS.values():
        for index in range(len(one.view({})["readings"])):
            one.derivation({}, index)


def file_of(module: ModuleType) -> str:
    """Return the name of a module's file in its wheel."""
    stem = module.__name__.replace(".", "/")
    return f"{stem}/__init__.py" if hasattr(module, "__path__") else f"{stem}.py"


if __name__ == "__main__":
    sys.modules.update(dict.fromkeys(HIDDEN))  # type: ignore[arg-type]
    explore()
    modules = [one for name, one in sys.modules.items() if name.partition(".")[0] in PACKAGES]
    json.dump(sorted(map(file_of, modules)), sys.stdout)
