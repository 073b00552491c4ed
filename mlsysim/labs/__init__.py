"""Labs: interactive lessons, and checkers for the exercises of the tutorials.

A lab is a function of what the student did: `view(state)` takes a mapping from controls to values,
and returns what to show as plain data. It has no interface of its own. A front end draws the
blocks, keeps the state, and sends it back with one value changed: the lab's page in a browser, or a
marimo app on your machine. `blocks` says what the blocks are, `controls` what a state may hold.

`check` judges the answer to an exercise, and hints at the step to look at. Importing this module
does not import NumPy.
"""

from mlsysim.labs.answers import Verdict
from mlsysim.labs.checking import check

__all__ = ["Verdict", "check"]
