"""The engine under random arrivals: how long its passes take, and how many sequences it holds.

The times come from the serving model, evaluated for several numbers of sequences in flight.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

from mlsysim.core import formulas as f
from mlsysim.core.numeric import Value, maximum, minimum, where
from mlsysim.solvers.inference import inference_device
from mlsysim.solvers.power import drawn_power
from mlsysim.solvers.serving.host import loading_time
from mlsysim.solvers.serving.operators import (
    pass_budget,
    preempted_share,
    prefill_pass,
    serve_operators,
)
from mlsysim.solvers.traffic.inputs import OpenLoopInputs

__all__ = ["Engine", "engine_of", "with_prefixes"]

_DOUBLINGS = 15
"""Batch sizes at which decode steps are timed: 1, 2, 4 and so on to 16,384."""
_LAUNCHED = 1.5
"""Steps before admission that the model of passes already includes: the rest of the running pass,
and the decode step that shares a pass with the prompt."""


_BESIDE = 32.0
"""Running sequences in the pass that prefills a prompt. Their number matters only for short
prompts, which wait for weights that the pass reads anyway."""


@dataclass(frozen=True)
class Engine:
    """An engine that works in passes, as the queueing model and the simulator represent it."""

    empty: Value
    """Time of a pass with prompts only, excluding the time that each prompt adds."""
    prefill: Value
    """Time that a prompt adds to a pass."""
    sizes: tuple[Value, ...]
    """Numbers of sequences, each twice the previous one, up to `places`."""
    decodes: tuple[Value, ...]
    """Time of a decode step with each number of sequences."""
    powers: tuple[Value, ...]
    """Power of one device while that many sequences run, with a new prefill for each one that
    ends."""
    places: Value
    """Most sequences that run at once."""
    fits: Value
    """Sequences of full length that fit; below one, the engine cannot run at all."""
    seq_len: Value
    """Tokens of a prompt that are not in the cache."""
    pass_tokens: Value
    """Most prompt tokens in one pass of a rank."""
    delay_steps: Value
    """Passes launched ahead, for which a request waits in addition to the running one."""
    attending: Value = 0.0
    """Part of `prefill` in which new tokens attend to those in the cache."""
    ranks: Value = 1.0
    """Ranks of data-parallel attention, which prefill different prompts in a pass."""
    stages: Value = 1.0
    """Pipeline stages, which read different prompts at the same time."""
    idle_power: Value = math.nan
    """Power of one device while no request is in the engine."""
    loading: Value = 0.0
    """Mean time to load a request's prefix and adapter over the host link of a rank."""
    preempted: tuple[Value, ...] = ()
    """Share of new tokens that evict another sequence's token, with each number of sequences."""


def engine_of(i: OpenLoopInputs) -> Engine:
    """Return the engine of these inputs."""
    # Answers in flight are longer on average than all answers; context and memory depend on the
    # former.
    length = f.length_in_flight(i.answer, i.output_variation)
    # The cached and loaded shares are subtracted below, for each prompt.
    running = i.but(output_len=length, cached_share=0.0, loaded_share=0.0)
    full = serve_operators(running.but(batch_size=i.batch_limit))
    places = full["running_batch_size"]
    sizes: list[Value] = []
    for power in range(_DOUBLINGS):
        sizes.append(minimum(float(2**power), places))
    served: list[dict[str, Any]] = []
    for sequences, before in zip(sizes, [None, *sizes], strict=False):
        same = sequences is before  # at the places, the sizes repeat
        served.append(served[-1] if same else serve_operators(running.but(batch_size=sequences)))
    empty, prefill, fresh, attending = _prompts(i)
    # While the cache is full, each new token evicts another one, which a later pass computes again.
    chosen = i.reserved_output == i.reserved_output
    each = prefill / (fresh * i.attention_dp * i.pp_size)
    share = preempted_share(running)
    # At the places, requests that wait are admitted as soon as a part of their answer fits.
    most = full["recomputed_tokens"] / length
    preempted = [where(b < places, share(b), most) for b in sizes]
    again = [b * part * each for b, part in zip(sizes, preempted, strict=True)]
    if i.role == "decode":
        # Keys and values come from a prefill pool; a first pass processes the token sent with them.
        fresh, prefill, empty = 0 * fresh + 1, 0 * prefill, served[0]["decode_latency"]
        attending = 0 * prefill
    return Engine(
        empty=empty,
        prefill=prefill,
        sizes=tuple(sizes),
        decodes=tuple(
            each["decode_latency"] + where(chosen, more, 0 * more)
            for each, more in zip(served, again, strict=True)
        ),
        powers=tuple(each["device_power"] for each in served),
        places=places,
        fits=full["max_batch_size"],
        seq_len=fresh,
        pass_tokens=pass_budget(i),
        delay_steps=maximum(i.calibration.admission_steps - _LAUNCHED, 0),
        attending=attending,
        ranks=i.attention_dp,
        stages=i.pp_size,
        idle_power=drawn_power(i, 0.0, 0.0)["device_power"],
        loading=loading_time(i),
        preempted=tuple(preempted),
    )


def with_prefixes(engine: Engine, i: OpenLoopInputs) -> Engine:
    """Return the same engine with the cached and loaded shares of these inputs."""
    if i.role == "decode":
        return engine
    empty, prefill, fresh, attending = _prompts(i)
    return replace(
        engine,
        empty=empty,
        prefill=prefill,
        seq_len=fresh,
        attending=attending,
        loading=loading_time(i),
    )


def _prompts(i: OpenLoopInputs) -> tuple[Value, Value, Value, Value]:
    """Return the time of a pass without decode, the time that a prompt adds, and its new tokens.

    The last value is the part of the added time that is due to cached tokens.
    """
    alone = i.but(batch_size=1.0, cached_share=0.0, loaded_share=0.0)
    fresh = maximum(1, (1 - i.known_share) * i.seq_len)
    cached = maximum(1, i.known_share * i.seq_len)
    # A pass reads the weights and launches its layers for the running sequences anyway: a prompt
    # adds the difference. Fresh tokens also attend to the cached ones, which matters for long ones.
    alike = _reading(alone, _BESIDE + fresh) - _reading(alone, _BESIDE)
    beyond = _reading(alone, i.seq_len) - _reading(alone, cached)
    prefill = maximum(alike, beyond)
    attending = where(i.known_share > 0, prefill - alike, 0 * prefill)
    return maximum(_reading(alone, fresh) - prefill, 0 * prefill), prefill, fresh, attending


def _reading(alone: OpenLoopInputs, tokens: Value) -> Value:
    """Return the time of a pass that prefills one prompt."""
    i = alone.but(seq_len=tokens)
    d = inference_device(i, i.model, i.weight_precision, i.precision.training_bytes)
    return prefill_pass(i, d, 1).time
