"""Power and energy of a serving group, and the device time of its tokens."""

from __future__ import annotations

import math

from mlsysim.core import formulas as f
from mlsysim.core.numeric import Value, maximum, where
from mlsysim.solvers.power import drawn_power
from mlsysim.solvers.serving.inputs import ServingInputs

__all__ = ["served_power", "token_times"]


def served_power(
    i: ServingInputs, sequences: Value, cycle: Value, hfu: Value, traffic: Value
) -> dict[str, Value]:
    """Return power and energy of a serving group from the work and the time of one batch."""
    mbu = f.bandwidth_utilization(traffic, cycle, i.device.memory.bandwidth)
    drawn = drawn_power(i, hfu, mbu)
    energy = i.replica_devices * drawn["device_power"] * cycle
    return {
        # A prefill yields a token even if no decode follows.
        "energy_per_token": energy / (sequences * maximum(i.output_len, 1)),
        **drawn,
        "hfu": hfu,
        "mbu": mbu,
    }


def token_times(
    i: ServingInputs,
    device_time: Value,
    prefill: Value,
    attending: Value,
    decode: Value,
    running: Value,
) -> dict[str, Value]:
    """Return the device time per token, as a request's device time is split by its work.

    Prefill is split into the time that new tokens take by themselves and the time in which they
    attend to cached ones.
    """
    decodes = maximum(i.output_len - 1, 0) * decode / running
    each = device_time / (prefill + decodes)
    known = i.known_share * i.seq_len
    unknown = math.nan * each * prefill
    return {
        "input_token_time": each * (prefill - attending) / maximum(1, i.seq_len - known),
        "cached_token_time": where(known > 0, each * attending / maximum(1, known), unknown),
        "output_token_time": where(
            i.output_len > 0, each * decodes / maximum(1, i.output_len), unknown
        ),
    }
