"""Fitting: adjust published constants to the runs of one cluster."""

from mlsysim.fitting.calibrate import calibrate

__all__ = ["calibrate"]
