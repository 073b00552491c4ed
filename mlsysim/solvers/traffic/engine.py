"""The engine under random arrivals: how long its passes take, and how many sequences it holds.

The times come from the serving model, evaluated for several numbers of sequences in flight and of
prompts in a pass.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from mlsysim.core import formulas as f
from mlsysim.core.numeric import (
    Value,
    is_known,
    is_zero,
    maximum,
    minimum,
    sqrt,
    when,
    where,
    zero_like,
)
from mlsysim.solvers.device import drawn_power
from mlsysim.solvers.layer import Device
from mlsysim.solvers.serving.memory import loading_time, pass_budget
from mlsysim.solvers.serving.operators import (
    ClosedLoop,
    aligned_prompts,
    batch_of,
    closed_loop,
    gathered_tokens,
    prompts_together,
    refills_together,
    shared_time,
)
from mlsysim.solvers.serving.passes import device_rates, new_tokens, prefill_pass
from mlsysim.solvers.traffic.inputs import OpenLoopInputs

_DOUBLINGS = 15
"""Batch sizes at which decode steps are timed: 1, 2, 4 and so on to 16,384."""
_LAUNCHED = 1.5
"""Steps before admission that the model of passes already includes: the rest of the running pass,
and the decode step that shares a pass with the prompt."""
_SMALL = 1e-6
PERCENTILES = {
    "p50": (0.5, 0.0),
    "p90": (0.1, 1.2815515655446004),
    "p99": (0.01, 2.3263478740408408),
}
"""Percentiles: the share of requests beyond each, and its score in a normal distribution."""
_TYPICAL_RUNNING = 32.0
"""Running sequences in the pass that shows how much of a prompt's time grows with its length. Their
number matters only for short prompts, which wait for weights that the pass reads anyway."""


def length_quantile(variation: Value, score: Value) -> Value:
    """Return a percentile of lengths, relative to their mean."""
    return f.lognormal_quantile(1, f.lognormal_deviation(1, variation * variation), score)


def interpolated(knots: tuple[Value, ...], values: tuple[Value, ...], at: Value) -> Value:
    """Interpolate linearly between knots in ascending order; constant beyond the first and last."""
    value = values[0]
    plain = {type(at), *map(type, knots)} == {float}
    for k in range(1, len(knots)):
        if knots[k] is knots[k - 1]:
            continue
        if plain and at <= knots[k - 1]:
            break  # the rest adds nothing
        part = (at - knots[k - 1]) / maximum(knots[k] - knots[k - 1], _SMALL)
        value = value + maximum(0, minimum(part, 1)) * (values[k] - values[k - 1])
    return value


@dataclass(frozen=True, kw_only=True)
class _PromptTimes:
    """What passes take for prompts."""

    empty: Value
    """Time of a pass with one prompt that does not grow with the prompt."""
    prefill: Value
    """Time of a pass with one prompt that does."""
    prompts: tuple[Value, ...]
    """Numbers of prompts in a pass, in ascending order, from one to as many as a stage takes."""
    reads: tuple[Value, ...]
    """Time of a stage to prefill so many prompts, without decode."""
    lengths: tuple[Value, ...]
    """Lengths of single prompts, relative to the mean, in ascending order."""
    lone: tuple[Value, ...]
    """Time of each of them in an engine without others."""
    seq_len: Value
    """Tokens of a prompt that are not in the cache."""
    attending: Value = 0.0
    """Part of `prefill` in which new tokens attend to those in the cache."""


@dataclass(frozen=True, kw_only=True)
class Engine(_PromptTimes):
    """An engine that works in passes, as the queueing model and the simulator represent it."""

    sizes: tuple[Value, ...]
    """Numbers of sequences, each twice the previous one, up to `places`."""
    decodes: tuple[Value, ...]
    """Time of a decode step with each number of sequences, per token."""
    savings: tuple[Value, ...]
    """Time saved if prompts share a pass of each number of sequences, which reads the weights and
    launches its layers anyway."""
    waits: tuple[Value, ...]
    """Time for which a slot has no sequence between two requests: steps launched ahead, and the
    handling of a request."""
    powers: tuple[Value, ...]
    """Power of one device while that many sequences run, with a new prefill for each one that
    ends."""
    places: Value
    """Most sequences that run at once."""
    fits: Value
    """Sequences of full length that fit; below one, the engine cannot run at all."""
    pass_tokens: Value
    """Most prompt tokens in one pass of a rank."""
    delay_steps: Value
    """Passes launched ahead, for which a request waits in addition to the running one."""
    accepted: Value = 1.0
    """Tokens that a decode step yields, more than one with drafts."""
    gathered: Value = 1.0
    """Tokens of a sequence between two admissions."""
    aligned: Value = 1.0
    """Least prompts of a pass that has any."""
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

    def prefill_time(self, prompts: Value) -> Value:
        """Return the time to prefill a number of prompts together, in as many passes as it takes.

        Less than one prompt takes its share of the time.
        """
        time = interpolated(self.prompts, self.reads, prompts)
        time = time - self.reads[0] * maximum(1 - prompts, zero_like(prompts))
        return time + (maximum(prompts / self.prompts[-1], 1) - 1) * self.reads[-1]

    def added_time(self, prompts: Value, saving: Value) -> Value:
        """Return the time that prompts, on all ranks and stages, add to a pass that decodes.

        They save time because they share the pass. A pass reads a chunk of long prompts.
        """
        chunks = self.chunks
        time = self.prefill_time(prompts * chunks) / chunks
        return time - minimum(time, saving * minimum(1, prompts * chunks))

    def mean_prompt_time(self, prompts: Value, saving: Value) -> Value:
        """Return the time that each of a random number of prompts with this mean adds to a pass."""
        together = maximum(f.prompts_if_any(prompts * self.chunks), self.aligned)
        time = self.prefill_time(together) / together
        return time - minimum(time, saving * self.chunks / together)

    def own_time(self, saving: Value) -> Value:
        """Return the time of a request's prompt in passes that decode, in addition to them."""
        alone = self.alone
        return where(
            self.reads[0] > 0, alone - minimum(alone, saving * self.chunks), zero_like(alone)
        )

    def prompt_time(self, length: Value) -> Value:
        """Return the time of a prompt of `length` mean lengths in an engine without others."""
        return interpolated(self.lengths, self.lone, length)

    @property
    def alone(self) -> Value:
        """Time of a prompt in an engine without other requests."""
        return self.empty + self.prefill

    @property
    def filling(self) -> Value:
        """Time of a prompt in the other stages of a pipeline."""
        return (1 - 1 / self.stages) * when(self.reads[0] > 0, self.alone)

    def refill_time(self, decodes: Value, output_len: Value) -> Value:
        """Return the time that a prompt adds to passes if the next one takes each slot at once.

        This is the closed loop of `ServingSolver` with a client for each slot.
        """
        prompts = refills_together(
            self.places,
            output_len,
            self.seq_len,
            self.pass_tokens,
            self.ranks,
            self.gathered,
            self.aligned,
        )
        time = self.prefill_time(prompts) / prompts
        each = f.passes_per_prompt(self.pass_tokens, self.seq_len, prompts, self.ranks)
        saved = shared_time(self.places, time, self.places * each, decodes, self.savings[-1])
        return time - saved / self.places

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

    @property
    def most_prompts(self) -> Value:
        """Most prompts that all ranks and stages prefill in a pass."""
        return self.readers * self.prompts_per_pass

    def full_time(self, saving: Value) -> Value:
        """Return the time that a pass takes for as many prompts as it may."""
        return self.added_time(self.most_prompts, saving)


def engine_of(i: OpenLoopInputs) -> Engine:
    """Return the engine of these inputs."""
    # Answers in flight are longer on average than all answers; context and memory depend on the
    # former.
    length = f.length_in_flight(i.answer, i.output_variation)
    # The cached and loaded shares are subtracted below, for each prompt.
    running = i.but(output_len=length, cached_share=0.0, loaded_share=0.0)
    device = device_rates(i)
    full = batch_of(running.but(batch_size=i.batch_limit))
    places = full.running
    sizes = tuple(minimum(float(2**power), places) for power in range(_DOUBLINGS))
    alone = prefill_pass(running, device, 1)
    loops: list[ClosedLoop] = []
    for sequences, before in zip(sizes, [None, *sizes], strict=False):
        if sequences is before:  # at the places, the sizes repeat
            loops.append(loops[-1])
            continue
        now = running.but(batch_size=sequences)
        loops.append(closed_loop(now, device, alone, full.of(sequences)))
    prompts = _prompt_times(i, device, places)

    # While the cache is full, each new token evicts another one, which a later pass computes again.
    refills = minimum(prompts_together(i, places, i.answer), prompts.prompts[-1])
    each = interpolated(prompts.prompts, prompts.reads, refills) / (refills * prompts.seq_len)
    # All tokens are recomputed in the passes after the first token.
    each = each * i.answer / maximum(i.answer - 1, 1)
    # At the places, requests that wait are admitted as soon as a part of their answer fits.
    most = full.recomputed / maximum(length, 1)
    preempted = tuple(where(size < places, full.full_share(size), most) for size in sizes)
    chosen = is_known(i.reserved_output)
    decodes = tuple(
        loop.decode + when(chosen, size * part * each)
        for loop, size, part in zip(loops, sizes, preempted, strict=True)
    )

    c = i.calibration
    first_steps = [zero_like(loop.step.time) for loop in loops]
    if i.role == "decode":
        # Keys and values come from a prefill pool; a first pass processes the token sent with them.
        nothing, single = zero_like(prompts.prefill), prompts.prompts[0]  # 0 s, and a count of 1
        prompts = _PromptTimes(
            empty=loops[0].decode,
            prefill=nothing,
            prompts=tuple(single for _ in prompts.prompts),
            reads=tuple(nothing for _ in prompts.reads),
            lengths=tuple(single for _ in prompts.lengths),
            lone=tuple(loops[0].decode for _ in prompts.lone),
            seq_len=single,
            attending=nothing,
        )
        # That pass is a decode step, which is part of a wait for admission.
        first_steps = [
            where(i.answer > 1, zero_like(loop.step.time), loop.step.time) for loop in loops
        ]

    def wait(size: Value, step: Value, first_step: Value) -> Value:
        steps = c.admission_steps + f.gathering_steps(c.poll_steps, c.hold_steps, size, i.answer)
        waited = f.admission_wait(step, size, steps, i.answer) + c.request_overhead
        return waited + first_step

    return Engine(
        **vars(prompts),
        sizes=sizes,
        decodes=decodes,
        savings=tuple(c.mixing * loop.step.shared for loop in loops),
        waits=tuple(
            wait(size, loop.step.time, first_step)
            for size, loop, first_step in zip(sizes, loops, first_steps, strict=True)
        ),
        powers=tuple(loop.energy["device_power"] for loop in loops),
        places=places,
        fits=full.fits,
        pass_tokens=pass_budget(i),
        delay_steps=maximum(c.admission_steps - _LAUNCHED, 0),
        accepted=i.accepted,
        gathered=gathered_tokens(i),
        aligned=aligned_prompts(i),
        ranks=i.attention_dp,
        stages=i.pp_size,
        idle_power=drawn_power(i, 0.0, 0.0)["device_power"],
        loading=loading_time(i),
        preempted=preempted,
    )


def with_prefixes(engine: Engine, i: OpenLoopInputs) -> Engine:
    """Return the same engine with the cached and loaded shares of these inputs."""
    if i.role == "decode":
        return engine
    return replace(
        engine, **vars(_prompt_times(i, device_rates(i), engine.places)), loading=loading_time(i)
    )


def _prompt_times(i: OpenLoopInputs, device: Device, places: Value) -> _PromptTimes:
    """Return the times of passes with prompts.

    They are exact for as many prompts as a full engine prefills together, and interpolated between
    that and a single prompt or a full pass.
    """
    fresh, ranks = new_tokens(i), i.attention_dp
    one = i.but(batch_size=1.0)
    plain = one.but(cached_share=0.0, loaded_share=0.0)

    def reading(inputs: OpenLoopInputs, prompts: Value) -> Value:
        return prefill_pass(inputs, device, prompts).time

    most = ranks * maximum(1, pass_budget(i) / fresh)
    refills = minimum(prompts_together(i, places, i.answer), most)
    below, above = minimum(refills, ranks), maximum(refills, ranks)
    numbers = [1 + zero_like(below)]
    for number in (sqrt(below), below, sqrt(below * above), above, sqrt(above * most), most):
        numbers.append(numbers[-1] if _same(number, numbers[-1]) else number)
    times: list[Value] = []
    for number, before in zip(numbers, [None, *numbers], strict=False):
        times.append(times[-1] if number is before else reading(one, number) / i.pp_size)
    alone = times[0] * i.pp_size
    # How much of that grows with the prompt: what it adds to a pass of a few tokens.
    few = reading(plain.but(seq_len=_TYPICAL_RUNNING + zero_like(fresh)), 1)
    growing = reading(plain.but(seq_len=_TYPICAL_RUNNING + fresh), 1) - few
    attending = zero_like(alone)
    if not is_zero(i.known_share):
        # Fresh tokens also attend to the cached ones.
        known = alone - reading(plain.but(seq_len=fresh), 1)
        attending = maximum(where(i.known_share > 0, known, attending), attending)
    prefill = minimum(growing + attending, alone)
    lengths: tuple[Value, ...] = (1 + zero_like(fresh),)
    lone: tuple[Value, ...] = (alone,)
    if not is_zero(i.input_variation):
        scores = (score for _, score in PERCENTILES.values())
        lengths = tuple(length_quantile(i.input_variation, score) for score in scores)
        lone = tuple(reading(one.but(seq_len=length * i.seq_len), 1) for length in lengths)
    return _PromptTimes(
        empty=alone - prefill,
        prefill=prefill,
        prompts=tuple(numbers),
        reads=tuple(times),
        lengths=lengths,
        lone=lone,
        seq_len=fresh,
        attending=attending,
    )


def _same(a: Value, b: Value) -> bool:
    """Return whether two single numbers are equal, so that a model may leave out a term."""
    return type(a) is type(b) is float and a == b
