"""Transfers over the link from a server's host: keys and values, and adapters."""

from __future__ import annotations

import math

from mlsysim.core import formulas as f
from mlsysim.core.numeric import Value, first_known, is_zero, where, zero_like
from mlsysim.solvers.serving.adapters import adapter_bytes
from mlsysim.solvers.serving.cache import own_prompt
from mlsysim.solvers.serving.inputs import ServingInputs

__all__ = ["crossover", "loading_time"]


def loading_time(i: ServingInputs) -> Value:
    """Return the mean time to load a request's keys, values and adapter from the host."""
    return _prefix_time(i) + _adapter_time(i)


def _prefix_time(i: ServingInputs) -> Value:
    if is_zero(i.loaded_share):
        return zero_like(i.calibration.request_overhead)
    size = i.loaded_share * own_prompt(i)
    time = f.point_to_point_time(size, i.host_bandwidth, i.host_latency)
    return where(i.loaded_share > 0, time, zero_like(i.calibration.request_overhead))


def _adapter_time(i: ServingInputs) -> Value:
    """Return the mean time to load an adapter, given the probability that it is not resident."""
    if is_zero(i.adapter_rank):
        return zero_like(i.calibration.request_overhead)
    missing = 1 - first_known(i.resident_adapters, i.adapters) / i.adapters
    size = adapter_bytes(i) / (i.tp_size * i.pp_size)
    time = missing * f.point_to_point_time(size, i.host_bandwidth, i.host_latency)
    return where(missing > 0, time, zero_like(i.calibration.request_overhead))


def crossover(i: ServingInputs, token: Value, pair: Value) -> Value:
    """Return the length from which loading a prefix is faster than recomputing it."""
    load = own_prompt(i) / i.seq_len / i.host_bandwidth
    length = f.load_crossover(i.host_latency, load, token, pair)
    return where(length < math.inf, length, math.nan * length)
