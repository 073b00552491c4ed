"""Files: scenarios and calibrations, checked as a whole before anything runs."""

from mlsysim.config.cluster import ClusterCalibration, load_calibration
from mlsysim.config.faults import Fault
from mlsysim.config.findings import Conflict, FittedFactor, NextRun, RefusedRow, UsedRow
from mlsysim.config.simulation import SimulationConfig

__all__ = [
    "ClusterCalibration",
    "Conflict",
    "Fault",
    "FittedFactor",
    "NextRun",
    "RefusedRow",
    "SimulationConfig",
    "UsedRow",
    "load_calibration",
]
