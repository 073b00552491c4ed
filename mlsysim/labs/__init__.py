"""Labs: lessons that a reader plays through, with the package's solvers as the instruments.

A lab is a function of what the student did: `view(state)` takes a mapping from controls to values,
and returns what to show as plain data. It has no interface of its own. A face draws the blocks,
keeps the state, and sends it back with one value changed: the lab's page does so in the browser, a
marimo app on the desk. `blocks` says what the blocks are, `controls` what a state may hold.

Nothing here needs NumPy, so a lab starts as fast as an answer of a solver.
"""
