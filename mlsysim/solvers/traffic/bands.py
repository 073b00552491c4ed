"""Bands of an open loop's times: the error of the pass times, and that of the queueing model."""

from __future__ import annotations

import math
from typing import Any

from mlsysim.core import formulas as f
from mlsysim.core.numeric import Value, where, zero_like
from mlsysim.core.types import ServingCalibration
from mlsysim.solvers.traffic.engine import interpolated
from mlsysim.solvers.traffic.inputs import OpenLoopInputs

LOADS = (0.15, 0.45, 0.7, 0.85)
"""Utilizations at the middle of the ranges for which `LAW` has a row."""
LAW = {
    "ttft_mean": ((0.962, 0.932, 0.882, 0.709), (1.228, 1.213, 1.314, 1.503)),
    "ttft_p50": ((0.926, 0.8, 0.733, 0.702), (1.295, 1.215, 1.168, 1.266)),
    "ttft_p90": ((0.939, 0.914, 0.869, 0.63), (1.308, 1.241, 1.335, 1.804)),
    "ttft_p99": ((0.96, 0.861, 0.749, 0.442), (1.432, 1.384, 1.488, 1.536)),
    "tpot_mean": ((0.934, 0.926, 0.799, 0.839), (1.058, 1.101, 1.094, 1.177)),
    "tpot_p50": ((0.881, 0.886, 0.844, 0.88), (1.01, 1.054, 1.083, 1.104)),
    "tpot_p90": ((0.872, 0.948, 0.931, 0.856), (1.099, 1.159, 1.145, 1.262)),
    "tpot_p99": ((0.905, 0.928, 0.864, 0.805), (1.204, 1.282, 1.212, 1.346)),
    "e2e_mean": ((0.961, 0.948, 0.864, 0.802), (1.075, 1.111, 1.154, 1.267)),
    "e2e_p50": ((0.959, 0.96, 0.86, 0.865), (1.107, 1.135, 1.163, 1.267)),
    "e2e_p90": ((0.958, 0.936, 0.88, 0.76), (1.12, 1.123, 1.197, 1.409)),
    "e2e_p99": ((0.891, 0.819, 0.77, 0.61), (1.144, 1.189, 1.19, 1.28)),
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
    times: dict[str, Any], growth: dict[str, Value], calibration: ServingCalibration, edge: str
) -> dict[str, Value]:
    """Return one edge, ``"low"`` or ``"high"``, of the band of every time.

    The queue multiplies the error of the pass times, which is that of a closed loop, by `growth`.
    """
    token, prompt = getattr(calibration.itl_band, edge), getattr(calibration.ttft_band, edge)
    first = times["ttft_mean"] / times["e2e_mean"]
    passes = {"ttft": prompt, "tpot": token, "e2e": first * prompt + (1 - first) * token}
    return {
        f"{name}_{edge}": f.joint_edge(
            times[name],
            passes[name.partition("_")[0]] * growth[name],
            law_edges(name, times["utilization"])[edge == "high"],
        )
        for name in LAW
    }


def law_edges(name: str, load: Value) -> tuple[Value, Value]:
    """Return the band of simulated over predicted times of the queueing model at a utilization."""
    low, high = (interpolated(LOADS, edges, load) for edges in LAW[name])
    return low, high
