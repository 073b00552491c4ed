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
    "ttft_mean": ((0.948, 0.913, 0.863, 0.628), (1.159, 1.193, 1.264, 1.484)),
    "ttft_p50": ((0.859, 0.755, 0.704, 0.733), (1.153, 1.088, 1.105, 1.371)),
    "ttft_p90": ((0.932, 0.911, 0.894, 0.585), (1.213, 1.271, 1.362, 1.698)),
    "ttft_p99": ((0.958, 0.802, 0.721, 0.463), (1.354, 1.347, 1.444, 1.522)),
    "tpot_mean": ((0.942, 0.942, 0.828, 0.828), (1.064, 1.112, 1.107, 1.133)),
    "tpot_p50": ((0.879, 0.886, 0.843, 0.84), (1.01, 1.068, 1.12, 1.133)),
    "tpot_p90": ((0.86, 0.938, 0.843, 0.803), (1.114, 1.145, 1.141, 1.228)),
    "tpot_p99": ((0.846, 0.849, 0.784, 0.716), (1.185, 1.269, 1.163, 1.305)),
    "e2e_mean": ((0.96, 0.947, 0.864, 0.776), (1.062, 1.083, 1.117, 1.272)),
    "e2e_p50": ((0.947, 0.934, 0.854, 0.849), (1.062, 1.098, 1.128, 1.244)),
    "e2e_p90": ((0.954, 0.937, 0.864, 0.707), (1.082, 1.125, 1.181, 1.288)),
    "e2e_p99": ((0.878, 0.809, 0.756, 0.611), (1.12, 1.127, 1.17, 1.26)),
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
