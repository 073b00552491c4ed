"""What a server loads over the link to its host: keys and values that left the device's memory."""

from __future__ import annotations

import math

from mlsysim.core import formulas as f
from mlsysim.core.numeric import Value, is_zero, where
from mlsysim.solvers.serving.cache import own_prompt
from mlsysim.solvers.serving.inputs import ServingInputs

__all__ = ["crossover", "loading_time"]


def loading_time(i: ServingInputs) -> Value:
    """Return the time in which a device loads its part of what the host has of a prompt."""
    if is_zero(i.loaded_share):
        return 0 * i.calibration.request_overhead
    size = i.loaded_share * own_prompt(i)
    time = f.point_to_point_time(size, i.host_bandwidth, i.host_latency)
    return where(i.loaded_share > 0, time, 0 * i.calibration.request_overhead)


def crossover(i: ServingInputs, token: Value, pair: Value) -> Value:
    """Return the length from which loading a prefix is faster than reading it again."""
    load = own_prompt(i) / i.seq_len / i.host_bandwidth
    length = f.load_crossover(i.host_latency, load, token, pair)
    return where(length < math.inf, length, math.nan * length)
