"""Files: scenarios and calibrations, checked as a whole before anything runs."""

from mlsysim.config.cluster import (
    ClusterCalibration,
    FittedFactor,
    NextRun,
    RefusedRow,
    UsedRow,
    load_calibration,
)
from mlsysim.config.faults import Fault
from mlsysim.config.simulation import SimulationConfig

__all__ = [
    "ClusterCalibration",
    "Fault",
    "FittedFactor",
    "NextRun",
    "RefusedRow",
    "SimulationConfig",
    "UsedRow",
    "load_calibration",
]
