"""Power and energy of a serving group, and the device time of its tokens."""

from __future__ import annotations

import math

from mlsysim.core import formulas as f
from mlsysim.core.numeric import Value, is_zero, maximum, where, zero_like
from mlsysim.solvers.device import drawn_power, flops_share
from mlsysim.solvers.serving.adapters import adapter_parameters
from mlsysim.solvers.serving.inputs import ServingInputs
from mlsysim.solvers.serving.passes import new_tokens
from mlsysim.solvers.tower import tower_flops, tower_of
from mlsysim.solvers.work import decode_score_flops, token_flops


def batch_power(
    i: ServingInputs,
    sequences: Value,
    context: Value,
    cycle: Value,
    traffic: Value,
    padding: Value,
    recomputed: Value,
) -> dict[str, Value]:
    """Return power and energy from the work and the time of one batch, including prefill."""
    c = i.conventions.flops_per_mac
    prompt = token_flops(i.model, i.seq_len, c)
    score = decode_score_flops(i.model, context, c)
    tokens = sequences * (new_tokens(i) + recomputed)
    decodes = maximum(i.output_len - 1, 0) * i.step_tokens / i.accepted

    tower = tower_of(i)
    # Adapters are in 16 bits, as attention and logits are.
    thin = 0 if is_zero(i.adapter_rank) else c * i.model.layers * adapter_parameters(i)

    def flops(matrix: Value) -> Value:
        step = f.decode_flops(sequences, matrix + thin, score, prompt.logit)
        reading = f.prefill_flops(tokens, sequences, matrix + thin, prompt.score, prompt.logit)
        if tower is not None:
            reading = reading + tower_flops(tower, sequences * i.images)
        return decodes * step + reading

    hfu = flops_share(
        i, flops(prompt.matrix), flops(zero_like(prompt.matrix)), cycle, i.replica_devices
    )
    if not is_zero(i.calibration.expert_padding):
        hfu = hfu + f.flops_utilization(padding, cycle, i.peak_rate, 1)
    return served_power(i, sequences, cycle, hfu, traffic)


def served_power(
    i: ServingInputs, sequences: Value, cycle: Value, hfu: Value, traffic: Value
) -> dict[str, Value]:
    """Return power and energy of a serving group from its utilizations in the time of one batch."""
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
