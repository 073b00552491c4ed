"""The course: explorers, labs, checked exercises, problem sets, and simulated ranks.

The pages of the site and the notebooks of students use this package. It imports `mlsysim` and is
never imported by it. `check` grades the answer to an exercise and hints at the step to check.
Importing this module does not import NumPy.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mlsysim_course.answers import Verdict
    from mlsysim_course.exercises import check

__all__ = ["Verdict", "check"]

_MODULES = {"Verdict": "answers", "check": "exercises"}


def __getattr__(name: str) -> Any:
    """Import what is exported when it is first used: pages with explorers have no exercises."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
