"""Labs: interactive lessons in two acts.

A lab is a function of the student's actions: `view(state)` takes a mapping from controls to values
and returns plain data to show. It has no interface of its own. Its page draws the blocks, keeps the
state, and sends it back with one value changed. `blocks` describes the blocks, and
`mlsysim_course.controls` describes the values of a state.
"""
