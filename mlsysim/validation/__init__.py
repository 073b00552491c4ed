"""Validation: the model compared with measurements, ours or your own."""

from mlsysim.validation.report import Comparison, Report, Statistics
from mlsysim.validation.validate import validate

__all__ = ["Comparison", "Report", "Statistics", "validate"]
