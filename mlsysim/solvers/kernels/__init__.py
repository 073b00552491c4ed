"""Kernels: what a solver computes, as pure functions made of formulas alone.

A kernel does no arithmetic of its own, so that a derivation that follows its formulas misses
nothing. It takes and returns plain SI numbers, arrays or quantities, like the formulas.
"""
