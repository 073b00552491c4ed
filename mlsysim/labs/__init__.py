"""Labs: interactive lessons, and checkers for the exercises of the tutorials.

A lab is a function of the student's actions: `view(state)` takes a mapping from controls to values
and returns plain data to show. It has no interface of its own. A front end, which is the lab's page
in a browser or a marimo app on your machine, draws the blocks, keeps the state, and sends it back
with one value changed. `blocks` describes the blocks, and `controls` the values of a state.

`check` grades the answer to an exercise and hints at the step to check. Importing this module
does not import NumPy.
"""

from mlsysim.labs.answers import Verdict
from mlsysim.labs.checking import check

__all__ = ["Verdict", "check"]
