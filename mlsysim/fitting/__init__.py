"""Fitting: constants that are drawn from published ones toward the runs of one cluster."""

from mlsysim.fitting.calibrate import calibrate

__all__ = ["calibrate"]
