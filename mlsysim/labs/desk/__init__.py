"""A lab on the desk: what its view returns, drawn with marimo's elements, its ledger in a file.

The notebooks in `mlsysim/labs/apps` are a few lines each, and all that they have in common is here.
marimo is imported when something is drawn, never before: ``pip install marimo``.
"""

from mlsysim.labs.desk.drawing import draw
from mlsysim.labs.desk.elements import elements
from mlsysim.labs.desk.footer import footer
from mlsysim.labs.desk.keeper import Keeper

__all__ = ["Keeper", "draw", "elements", "footer"]
