"""Calibrations: constants of operators, kernels and engines, fitted on published measurements."""
