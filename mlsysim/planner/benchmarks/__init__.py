"""Measurements of load generators compared with predictions."""

from mlsysim.planner.benchmarks.gaps import Gap, compare, predict_load
from mlsysim.planner.benchmarks.load_files import Benchmark, read_benchmark

__all__ = [
    "Benchmark",
    "Gap",
    "compare",
    "predict_load",
    "read_benchmark",
]
