"""Research: published measurements, their readers, the fits, and comparisons with other models.

It is part of a checkout of the repository, not of the package: it imports `mlsysim`, and `mlsysim`
never imports it.
"""

from pathlib import Path

__all__ = ["MEASUREMENTS"]

MEASUREMENTS = Path(__file__).parent / "measurements"
"""The folder of our tables of measurements."""
