"""Labs on your own machine: marimo's elements draw a lab's view, and a file keeps its ledger.

The notebooks in `mlsysim/labs/apps` have a few lines each, and this package has their common code.
It imports marimo only when it draws something: ``pip install marimo``.
"""

from mlsysim.labs.desk.drawing import draw
from mlsysim.labs.desk.elements import elements
from mlsysim.labs.desk.footer import footer
from mlsysim.labs.desk.keeper import Keeper

__all__ = ["Keeper", "draw", "elements", "footer"]
