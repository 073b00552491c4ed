"""Limits of a service, and the ones that no engine can meet even for a single request."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from mlsysim.core import formulas as f
from mlsysim.core.errors import ConfigError, shown
from mlsysim.core.fields import si_number
from mlsysim.core.units import Q_, Quantity, format_number
from mlsysim.planner.service.engines import LEVERS, Choice, queue_times, stacked
from mlsysim.solvers.serving.passes import decode_pass, device_rates, new_tokens, prefill_pass
from mlsysim.solvers.traffic.inputs import OpenLoopInputs
from mlsysim.solvers.work import decode_score_flops, token_flops
from mlsysim.traffic import Traffic

PERCENTS = ("mean", "p50", "p90", "p99")
SLO = tuple(f"{time}_{percent}" for time in ("ttft", "tpot", "e2e") for percent in PERCENTS)
"""Times that can be limited by an SLO."""
_PARTS = {
    "ttft": "prefill",
    "tpot": "a decode step",
    "e2e": "prefill with all decode steps",
}


def limits_of(slo: Mapping[str, Quantity], traffic: Traffic) -> dict[str, float]:
    """Return the limits of a service in seconds, each of a time that its requests have."""
    if not isinstance(slo, Mapping) or not slo:
        raise ConfigError(
            f"slo = {shown(slo)} has no limits: give some, such as {{'ttft_p99': Q_(500, 'ms')}}",
            argument="slo",
        )
    limits = {}
    for name, limit in slo.items():
        if name not in SLO:
            raise ConfigError(
                f"slo has {shown(name)}, which is unknown: choose from {', '.join(SLO)}",
                argument="slo",
            )
        if name.startswith("tpot") and traffic.output_len == 1:
            raise ConfigError(
                f"slo has {name}, but with output_len = 1 no token follows the first: leave it "
                "out, or give a larger output_len",
                argument="slo",
            )
        limits[name] = si_number(limit, f"slo[{name!r}]", "slo", {"unit": "s", "zero": False})
    return limits


def check_floor(
    limits: Mapping[str, float],
    choices: Sequence[Choice],
    pools: tuple[Sequence[Choice], Sequence[Choice]],
    traffic: Traffic,
    hints: Sequence[str],
) -> None:
    """Reject a limit that no engine meets even for a single request."""
    for name, limit in limits.items():
        if name.startswith("e2e") and all(pools):
            continue  # of two engines together
        role = 0 if name.startswith("ttft") else 1
        candidates = [*choices, *pools[role]]
        answers = np.array([item.answer for item in candidates])[:, None]
        alone = queue_times(stacked(candidates), 1e-9, traffic, answers)
        times = alone[name][:, 0]
        if np.isnan(times).all():  # more tokens than any engine makes in decades
            continue
        best = int(np.nanargmin(times))
        if limit < times[best]:
            levers = dict(zip(LEVERS, candidates[best].levers, strict=True))
            fastest = (
                f"the fastest engine ({levers['hardware']}, tp_size = {levers['tp_size']}, weights "
                f"in {levers['weight_precision']})"
            )
            times_alone = {n: alone[n][best, 0] for n in SLO}
            fault = floor_of(name, limit, times_alone, candidates[best].inputs, fastest)
            fault.message = "; ".join([fault.message, *hints])
            raise fault


def physical_times(i: OpenLoopInputs) -> dict[str, tuple[float, str]]:
    """Return the least times of a mean request, and the limit of the hardware behind each.

    Each device moves its bytes at the full bandwidth of its memory and computes its share of the
    operations at the peak rate. Nothing else takes time: no launches, exchanges or other requests.
    Bytes include activations that the model of passes streams through memory.
    """
    model, per_mac = i.model, i.conventions.flops_per_mac
    d = device_rates(i)
    new, context = new_tokens(i), f.mean_context(i.seq_len, i.output_len)
    token = token_flops(model, new, per_mac)
    prompt = f.prefill_flops(new, 1, token.matrix, token.score, token.logit)
    score = decode_score_flops(model, context, per_mac)
    step = f.decode_flops(1, token.matrix, score, token.logit)
    # Stages read a long prompt's chunks at the same time, but each token passes them in turn.
    first = _slower(i, prefill_pass(i, d, 1).traffic / i.pp_size, prompt / i.pp_size)
    later, by = _slower(i, decode_pass(i, d, 1, context).traffic, step)
    later = later / float(i.accepted)
    ways = first[1] if first[1] == by else f"{first[1]} in prefill and {by} in decode"
    return {
        "ttft": first,
        "tpot": (later, by),
        "e2e": (first[0] + max(float(i.output_len) - 1, 0.0) * later, ways),
    }


def _slower(i: OpenLoopInputs, traffic: Any, flops: Any) -> tuple[float, str]:
    """Return the time of the slower of memory and arithmetic on the devices of a stage."""
    memory = float(traffic / i.device.memory.bandwidth)
    arithmetic = float(flops / (i.stage_devices * i.peak_rate))
    if memory >= arithmetic:
        return memory, "memory bandwidth"
    return arithmetic, "peak rate of arithmetic"


def floor_of(
    name: str, limit: float, alone: Mapping[str, float], i: OpenLoopInputs, engine: str
) -> ConfigError:
    """Return the error for a limit in seconds that an engine cannot meet even for one request.

    `alone` has the predicted times of a request that has the engine to itself, and `engine` is the
    engine in words.
    """
    time, least = name.split("_")[0], float(alone[name])
    bound, by = physical_times(i)[time]
    # The bound is for mean lengths; a median prompt may be shorter.
    bound *= min(1.0, least / float(alone[f"{time}_mean"]))
    given, calibrated, physical = (format_number(Q_(x, "s")) for x in (limit, least, bound))
    where = (
        f"below the physical limit of {physical} ({by})"
        if limit < bound
        else f"above the physical limit of {physical} ({by}), but shorter than predicted"
    )
    return ConfigError(
        f"slo: {name} = {given} is {where}: even without other requests, {_PARTS[time]} on "
        f"{engine} takes {calibrated} with the calibrated constants; raise the limit, or choose "
        "faster devices, narrower formats or a larger tp_size",
        argument="slo",
    )
