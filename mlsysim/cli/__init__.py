"""The command line: `mlsysim`, or `python -m mlsysim`."""

from mlsysim.cli.app import main

__all__ = ["main"]
