"""The course: explorers, labs, checked exercises, problem sets, and simulated ranks.

The pages of the site and the notebooks of students use this package. It imports `mlsysim` and is
never imported by it. `check` grades the answer to an exercise and hints at the step to check.
Importing this module does not import NumPy.
"""

from mlsysim_course.answers import Verdict
from mlsysim_course.checking import check

__all__ = ["Verdict", "check"]
