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
    "ttft_mean": ((0.943, 0.936, 0.889, 0.758), (1.225, 1.293, 1.297, 1.424)),
    "ttft_p50": ((0.846, 0.788, 0.732, 0.719), (1.167, 1.155, 1.139, 1.385)),
    "ttft_p90": ((0.883, 0.871, 0.902, 0.679), (1.252, 1.225, 1.37, 1.646)),
    "ttft_p99": ((0.925, 0.821, 0.75, 0.493), (1.354, 1.363, 1.443, 1.518)),
    "tpot_mean": ((0.926, 0.957, 0.847, 0.831), (1.065, 1.115, 1.102, 1.147)),
    "tpot_p50": ((0.874, 0.923, 0.906, 0.891), (1.01, 1.12, 1.132, 1.142)),
    "tpot_p90": ((0.843, 0.934, 0.845, 0.855), (1.139, 1.153, 1.137, 1.237)),
    "tpot_p99": ((0.783, 0.835, 0.782, 0.786), (1.155, 1.237, 1.17, 1.272)),
    "e2e_mean": ((0.951, 0.957, 0.893, 0.8), (1.069, 1.109, 1.119, 1.25)),
    "e2e_p50": ((0.943, 0.959, 0.899, 0.864), (1.083, 1.146, 1.147, 1.282)),
    "e2e_p90": ((0.95, 0.937, 0.871, 0.724), (1.114, 1.133, 1.159, 1.297)),
    "e2e_p99": ((0.866, 0.824, 0.767, 0.639), (1.116, 1.144, 1.161, 1.249)),
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
    token = getattr(calibration, f"itl_band_{edge}")
    prompt = getattr(calibration, f"ttft_band_{edge}")
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
