"""Labs: interactive lessons in two acts.

A lab is a page in `docs/labs` with questions and explorers. The course computes the right answers,
the readings of the explorers, and the ledger, from what a student has set: a mapping from controls
to values, which `mlsysim_course.controls` describes.
"""
