"""Bands of an open loop's times: the error of the pass times, and that of the queueing model."""

from __future__ import annotations

import math
from typing import Any

from mlsysim.core import formulas as f
from mlsysim.core.numeric import Value, maximum, minimum, where
from mlsysim.core.types import ServingCalibration
from mlsysim.solvers.traffic.inputs import OpenLoopInputs

__all__ = ["LAW", "LOADS", "SIMULATED", "edges_of", "law_edges", "outside", "simulated"]

LOADS = (0.15, 0.45, 0.7, 0.85)
"""Utilizations at the middle of the ranges for which `LAW` has a row."""
LAW = {
    "ttft_mean": ((0.954, 0.935, 0.884, 0.786), (1.327, 1.265, 1.462, 1.668)),
    "ttft_p50": ((0.92, 0.851, 0.875, 0.8), (1.563, 1.326, 1.684, 1.748)),
    "ttft_p90": ((0.902, 0.895, 0.891, 0.807), (1.392, 1.419, 1.666, 2.036)),
    "ttft_p99": ((0.901, 0.817, 0.686, 0.534), (1.657, 1.518, 1.554, 1.941)),
    "tpot_mean": ((0.95, 0.91, 0.869, 0.784), (1.045, 1.084, 1.071, 1.24)),
    "tpot_p50": ((0.89, 0.842, 0.943, 0.897), (1.0, 1.041, 1.108, 1.307)),
    "tpot_p90": ((0.875, 0.908, 0.881, 0.844), (1.077, 1.146, 1.142, 1.405)),
    "tpot_p99": ((0.916, 0.873, 0.777, 0.733), (1.333, 1.241, 1.223, 1.398)),
    "e2e_mean": ((0.965, 0.947, 0.933, 0.778), (1.096, 1.099, 1.128, 1.311)),
    "e2e_p50": ((0.955, 0.946, 0.962, 0.857), (1.133, 1.117, 1.21, 1.424)),
    "e2e_p90": ((0.919, 0.92, 0.88, 0.795), (1.06, 1.119, 1.204, 1.472)),
    "e2e_p99": ((0.9, 0.865, 0.754, 0.625), (1.18, 1.181, 1.168, 1.288)),
}
"""Simulated over predicted times at these utilizations: the 10th and the 90th percentile over
random systems, from `measurements/open_loop_law.csv`."""

SIMULATED = {
    "burstiness": 4.0,
    "input_variation": 2.0,
    "output_variation": 2.0,
    "prompt_steps": 100.0,
}
"""Largest values of these random systems. Beyond them, the error of the queueing model is not
known."""
SHORT = 0.5
"""Decode steps that prompts one standard deviation above the mean take, below which the variation
of prompts counts as none. In random systems like these, with an `input_variation` of 2 to 8, bands
of the time per token held more than 90% of simulated times, and those of the time to first token 52
to 65%."""


def simulated(i: OpenLoopInputs, prompt_steps: Value) -> Value:
    """Return whether a load is within the simulated systems."""
    known: Value = True
    for name, value in _compared(i, prompt_steps).items():
        known = where(value > SIMULATED[name], False, known)
    return known


def outside(i: OpenLoopInputs, prompt_steps: float | None) -> tuple[str, ...]:
    """Return where a load is outside the simulated systems, in words."""
    values = _compared(i, math.nan if prompt_steps is None else prompt_steps)
    return tuple(
        f"{name} = {value:.3g} is above {SIMULATED[name]:g}, the most of any simulated system"
        for name, value in values.items()
        if value > SIMULATED[name]
    )


def _compared(i: OpenLoopInputs, prompt_steps: Value) -> dict[str, Value]:
    """Return what to compare with `SIMULATED`. Prompts much shorter than a step have one length."""
    short = prompt_steps * (1 + i.input_variation) < SHORT
    return {
        "burstiness": i.burstiness,
        "input_variation": where(short, 0 * i.input_variation, i.input_variation),
        "output_variation": i.output_variation,
        "prompt_steps": prompt_steps,
    }


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
