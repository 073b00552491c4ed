"""Labs: lessons that a reader plays through, and checkers for the exercises of the tutorials.

A lab is a function of what the student did: `view(state)` takes a mapping from controls to values,
and returns what to show as plain data. It has no interface of its own. A face draws the blocks,
keeps the state, and sends it back with one value changed: the lab's page does so in the browser, a
marimo app on the desk. `blocks` says what the blocks are, `controls` what a state may hold.

`check` judges the answer to an exercise, and hints at the step to look at. Nothing here needs NumPy
to be imported.
"""

from mlsysim.labs.answers import Verdict
from mlsysim.labs.checking import check

__all__ = ["Verdict", "check"]
