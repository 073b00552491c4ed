"""Calibrations: constants of operators, kernels and engines, fitted to published measurements."""
