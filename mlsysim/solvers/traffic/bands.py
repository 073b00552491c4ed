"""Bands of an open loop's times: the error of the pass times, and that of the queueing model."""

from __future__ import annotations

from typing import Any

from mlsysim.core import formulas as f
from mlsysim.core.numeric import Value, maximum, minimum
from mlsysim.core.types import ServingCalibration

__all__ = ["LAW", "LOADS", "edges_of", "law_edges"]

LOADS = (0.15, 0.45, 0.7, 0.85)
"""Utilizations at the middle of the ranges for which `LAW` has a row."""
LAW = {
    "ttft_mean": ((0.964, 0.933, 0.922, 0.83), (1.321, 1.265, 1.383, 1.634)),
    "ttft_p50": ((0.933, 0.895, 0.902, 0.851), (1.326, 1.149, 1.34, 1.602)),
    "ttft_p90": ((0.954, 0.947, 0.931, 0.867), (1.435, 1.386, 1.582, 2.001)),
    "ttft_p99": ((0.937, 0.897, 0.773, 0.645), (1.568, 1.429, 1.63, 2.036)),
    "tpot_mean": ((0.967, 0.976, 0.948, 0.864), (1.035, 1.072, 1.085, 1.174)),
    "tpot_p50": ((0.912, 0.927, 0.918, 0.932), (1.007, 1.021, 1.051, 1.142)),
    "tpot_p90": ((0.976, 0.989, 0.992, 0.973), (1.137, 1.411, 1.401, 1.399)),
    "tpot_p99": ((0.997, 0.994, 0.981, 0.898), (1.509, 1.846, 1.728, 1.607)),
    "e2e_mean": ((0.972, 0.972, 0.959, 0.899), (1.085, 1.082, 1.122, 1.23)),
    "e2e_p50": ((0.956, 0.959, 0.946, 0.914), (1.076, 1.059, 1.127, 1.329)),
    "e2e_p90": ((0.958, 0.965, 0.959, 0.879), (1.09, 1.184, 1.271, 1.428)),
    "e2e_p99": ((0.947, 0.937, 0.839, 0.731), (1.188, 1.297, 1.412, 1.502)),
}
"""Simulated over predicted times at these utilizations: the 10th and the 90th percentile over
random systems, from `measurements/open_loop_law.csv`."""


def edges_of(
    found: dict[str, Any],
    growth: dict[str, Value],
    calibration: ServingCalibration,
    edge: str,
) -> dict[str, Value]:
    """Return one edge, ``"low"`` or ``"high"``, of the band of every time.

    Parameters
    ----------
    found
        The times and the utilization.
    growth
        By time, how much the queue adds to the error of the pass times.
    calibration
        Constants with the bands of a closed loop.
    edge
        Which edge.
    """
    token = getattr(calibration, f"itl_band_{edge}")
    prompt = getattr(calibration, f"ttft_band_{edge}")
    first = found["ttft_mean"] / found["e2e_mean"]
    passes = {"ttft": prompt, "tpot": token, "e2e": first * prompt + (1 - first) * token}
    return {
        f"{name}_{edge}": f.joint_edge(
            found[name],
            passes[name.partition("_")[0]] * growth[name],
            law_edges(name, found["utilization"])[edge == "high"],
        )
        for name in LAW
    }


def law_edges(name: str, load: Value) -> tuple[Value, Value]:
    """Return the band of simulated over predicted times of the queueing model at a utilization."""
    low, high = LAW[name]
    return _interpolated(low, load), _interpolated(high, load)


def _interpolated(edges: tuple[float, ...], load: Value) -> Value:
    """Return an edge at a utilization, which is constant beyond the first and the last row."""
    value: Value = edges[0]
    for k in range(1, len(LOADS)):
        part = (load - LOADS[k - 1]) / (LOADS[k] - LOADS[k - 1])
        value = value + (edges[k] - edges[k - 1]) * maximum(0, minimum(part, 1))
    return value
