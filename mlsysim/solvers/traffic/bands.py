"""Bands of an open loop's times: the error of the pass times, and that of the queueing model."""

from __future__ import annotations

import math
from typing import Any

from mlsysim.core import formulas as f
from mlsysim.core.numeric import Value, maximum, minimum, where, zero_like
from mlsysim.core.types import ServingCalibration
from mlsysim.solvers.traffic.inputs import OpenLoopInputs

__all__ = ["LAW", "LOADS", "SIMULATED", "edges_of", "law_edges", "outside", "simulated"]

LOADS = (0.15, 0.45, 0.7, 0.85)
"""Utilizations at the middle of the ranges for which `LAW` has a row."""
LAW = {
    "ttft_mean": ((0.943, 0.936, 0.889, 0.758), (1.225, 1.293, 1.297, 1.424)),
    "ttft_p50": ((0.907, 0.861, 0.81, 0.838), (1.347, 1.487, 1.247, 1.502)),
    "ttft_p90": ((0.88, 0.884, 0.908, 0.71), (1.298, 1.391, 1.449, 1.664)),
    "ttft_p99": ((0.849, 0.781, 0.749, 0.49), (1.425, 1.414, 1.543, 1.564)),
    "tpot_mean": ((0.926, 0.944, 0.831, 0.824), (1.06, 1.108, 1.1, 1.126)),
    "tpot_p50": ((0.883, 0.887, 0.874, 0.91), (1.007, 1.079, 1.107, 1.149)),
    "tpot_p90": ((0.817, 0.918, 0.847, 0.844), (1.096, 1.186, 1.131, 1.238)),
    "tpot_p99": ((0.824, 0.805, 0.708, 0.659), (1.235, 1.331, 1.231, 1.294)),
    "e2e_mean": ((0.948, 0.949, 0.879, 0.788), (1.068, 1.106, 1.116, 1.25)),
    "e2e_p50": ((0.941, 0.956, 0.91, 0.892), (1.102, 1.117, 1.156, 1.324)),
    "e2e_p90": ((0.916, 0.913, 0.87, 0.744), (1.056, 1.121, 1.201, 1.282)),
    "e2e_p99": ((0.868, 0.811, 0.733, 0.585), (1.142, 1.138, 1.16, 1.257)),
}
"""Simulated over predicted times at these utilizations: the 10th and the 90th percentile over
random systems, from `research/measurements/open_loop_law.csv`."""

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
        "input_variation": where(short, zero_like(i.input_variation), i.input_variation),
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
