"""The engine under random arrivals: how long its passes take, and how many sequences it holds.

The times come from the serving model, evaluated for several numbers of sequences in flight.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

from mlsysim.core import formulas as f
from mlsysim.core.numeric import Value, exp, maximum, minimum, sqrt, where
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


_SMALL = 1e-6
_BESIDE = 32.0
"""Running sequences in the pass that prefills a prompt. Their number matters only for short
prompts, which wait for weights that the pass reads anyway."""


@dataclass(frozen=True)
class Engine:
    """An engine that works in passes, as the queueing model and the simulator represent it."""

    empty: Value
    """Time of a pass with prompts only, excluding the time that each prompt adds."""
    prefill: Value
    """Time that a prompt adds to a pass without others."""
    further_prefill: Value
    """Time that another prompt adds to a pass with several on each rank."""
    first_extra: Value
    """Time that prompts add beyond that, in a pass with several; negative if the first ones hide
    behind the weights that the pass reads."""
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
    single_saving: Value = 0.0
    """Time by which a prompt is prefilled sooner if no other rank has one."""
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

    def prompt_time(self, prompts: Value, busiest: Value) -> Value:
        """Return the time that each prompt on the busiest rank adds to a pass.

        A few short prompts hide behind the weights that a pass reads anyway, and many do not. With
        experts, the first prompt makes the pass read most of them, and the others add less.

        Parameters
        ----------
        prompts
            Prompts in the pass, on all ranks and stages.
        busiest
            Prompts on the rank with the most.
        """
        ranks = prompts / maximum(busiest, _SMALL)
        return self._each(ranks, 1 / maximum(1, minimum(busiest, self.prompts_per_pass)))

    def first_time(self, step: Value) -> Value:
        """Return what a pass with prompts takes in addition to them and a decode step.

        Prompts launch slower kernels and, with experts, read more of them than a few sequences.
        """
        return maximum(self.empty - step, 0 * step)

    def mean_prompt_time(self, prompts: Value, step: Value) -> Value:
        """Return the time that each prompt adds, for a random number per pass with this mean.

        What counts once in a pass with prompts does so in a share of all passes.

        Parameters
        ----------
        prompts
            Mean number of prompts per pass, on all ranks and stages.
        step
            Time of a decode step.
        """
        mean = maximum(minimum(prompts / self.readers, self.prompts_per_pass), _SMALL)
        share = (1 - exp(-mean)) / mean
        return self._each(maximum(prompts, 1), share) + share * self.first_time(step)

    @property
    def readers(self) -> Value:
        """Prompts that are prefilled at the same time, on different ranks and stages."""
        return self.ranks * self.stages

    @property
    def chunks(self) -> Value:
        """Passes that prefill a prompt, each with a decode step."""
        return maximum(self.seq_len / self.pass_tokens, 1)

    @property
    def prompts_per_pass(self) -> Value:
        """Most prompts that a rank prefills in a pass, which may be a part of one."""
        return self.pass_tokens / self.seq_len

    def full_prefill(self, step: Value) -> Value:
        """Return the time that each prompt adds to a pass that prefills as many as it may."""
        per_pass = self.prompts_per_pass
        each = self.prompt_time(self.readers * per_pass, per_pass)
        return each + self.first_time(step) / maximum(1, per_pass)

    def _each(self, reading: Value, first_share: Value) -> Value:
        """Return the time of a prompt, with the number of ranks and stages that prefill one."""
        own = self.prefill + self.single_saving
        readers = self.readers
        without = maximum(readers - reading, 0 * readers) / maximum(readers - 1, _SMALL)
        several = self.further_prefill + self.first_extra * first_share
        return maximum(minimum(own, self.further_prefill), several) - self.single_saving * without


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
    prompts = _prompts(i)
    # While the cache is full, each new token evicts another one, which a later pass computes again.
    chosen = i.reserved_output == i.reserved_output
    each = prompts.prefill / (prompts.seq_len * i.attention_dp * i.pp_size)
    share = preempted_share(running)
    # At the places, requests that wait are admitted as soon as a part of their answer fits.
    most = full["recomputed_tokens"] / length
    preempted = [where(b < places, share(b), most) for b in sizes]
    again = [b * part * each for b, part in zip(sizes, preempted, strict=True)]
    if i.role == "decode":
        # Keys and values come from a prefill pool; a first pass processes the token sent with them.
        nothing = 0 * prompts.prefill
        prompts = _Prompts(
            empty=served[0]["decode_latency"],
            prefill=nothing,
            further_prefill=nothing,
            first_extra=nothing,
            single_saving=nothing,
            seq_len=0 * prompts.seq_len + 1,
            attending=nothing,
        )
    return Engine(
        **vars(prompts),
        sizes=tuple(sizes),
        decodes=tuple(
            each["decode_latency"] + where(chosen, more, 0 * more)
            for each, more in zip(served, again, strict=True)
        ),
        powers=tuple(each["device_power"] for each in served),
        places=places,
        fits=full["max_batch_size"],
        pass_tokens=pass_budget(i),
        delay_steps=maximum(i.calibration.admission_steps - _LAUNCHED, 0),
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
    return replace(engine, **vars(_prompts(i)), loading=loading_time(i))


@dataclass(frozen=True)
class _Prompts:
    """What passes take for prompts, in the fields of an `Engine`."""

    empty: Value
    prefill: Value
    further_prefill: Value
    first_extra: Value
    single_saving: Value
    seq_len: Value
    attending: Value


def _prompts(i: OpenLoopInputs) -> _Prompts:
    """Return the times of passes with prompts.

    A pass reads the weights and launches its layers for the running sequences anyway, so prompts
    add the difference.
    """
    alone = i.but(batch_size=1.0, cached_share=0.0, loaded_share=0.0)
    fresh = maximum(1, (1 - i.known_share) * i.seq_len)
    cached = maximum(1, i.known_share * i.seq_len)
    decoding = _reading(alone, _BESIDE, 1)
    alike = _reading(alone, _BESIDE + fresh, 1) - decoding
    # Fresh tokens also attend to the cached ones, which matters for long ones.
    beyond = _reading(alone, i.seq_len, 1) - _reading(alone, cached, 1)
    attending = where(i.known_share > 0, maximum(beyond - alike, 0 * alike), 0 * alike)
    prefill = alike + attending
    further, extra, saving = _further(i, alone, fresh, alike, decoding)
    return _Prompts(
        empty=maximum(_reading(alone, fresh, 1) - prefill, 0 * prefill),
        prefill=prefill,
        further_prefill=further + attending,
        first_extra=extra,
        single_saving=saving,
        seq_len=fresh,
        attending=attending,
    )


def _further(
    i: OpenLoopInputs, alone: OpenLoopInputs, fresh: Value, single: Value, decoding: Value
) -> tuple[Value, Value, Value]:
    """Return slope and intercept of the time that prompts add, over their number on each rank.

    If the first prompts add less than the others, the line passes through a full pass and one that
    is partly full. Otherwise it passes through a full pass and one prompt. The last value is the
    time by which a prompt on one rank is faster than one on each.
    """

    def added(prompts: Value) -> Value:
        everywhere = i.attention_dp * (prompts + _BESIDE / fresh)
        return _reading(alone, fresh, everywhere) - decoding

    first = where(i.attention_dp > 1, added(1), single)
    full = maximum(1, pass_budget(i) / fresh)
    part = sqrt(full)
    most = added(full)
    slope = (most - added(part)) / maximum(full - part, _SMALL)
    hidden = slope * full - most
    convex = where(slope > first, slope - hidden <= first, False)
    chord = (most - first) / maximum(full - 1, _SMALL)
    several = full > 1
    slope = where(several, where(convex, slope, chord), first)
    extra = where(several, where(convex, -hidden, first - chord), 0 * first)
    return slope, extra, first - single


def _reading(alone: OpenLoopInputs, tokens: Value, prompts: Value) -> Value:
    """Return the time of a pass that prefills prompts of a length."""
    i = alone.but(seq_len=tokens)
    d = inference_device(i, i.model, i.weight_precision, i.precision.training_bytes)
    return prefill_pass(i, d, prompts).time
