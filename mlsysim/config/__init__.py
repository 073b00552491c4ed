"""Configurations: scenarios in files, checked as a whole before anything runs."""

from mlsysim.config.faults import Fault
from mlsysim.config.simulation import SimulationConfig

__all__ = ["Fault", "SimulationConfig"]
