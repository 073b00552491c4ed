"""Memory of a server: weights on pipeline stages, caches, and transfers from the host."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, reduce
from typing import NamedTuple

from mlsysim.core import formulas as f
from mlsysim.core.numeric import (
    Value,
    first_known,
    floor,
    is_known,
    is_zero,
    maximum,
    minimum,
    tabulated,
    where,
    zero_like,
)
from mlsysim.core.types.attention import AttentionKind, Cache, CacheBytes
from mlsysim.core.types.layers import LayerGroup, attention_layers
from mlsysim.solvers.serving.adapters import adapter_bytes, resident_bytes
from mlsysim.solvers.serving.inputs import ServingInputs
from mlsysim.solvers.work import (
    cache_bytes,
    expert_bytes,
    expert_parameters,
    layer_runs,
    layers_within,
    longer_between,
    stated_bytes,
    stored_weights,
    sum_of,
    sum_over,
)


class Stage(NamedTuple):
    """A pipeline stage of a server."""

    index: Value
    """Its position, counted from 0."""
    groups: tuple[LayerGroup, ...]
    """The model's groups of layers, each with the number of layers on this stage."""
    attentions: tuple[tuple[Value, AttentionKind], ...]
    """Each attention, and how many of its layers have it."""
    tables: Value
    """Its share of the embedding and output tables."""


def _stages(i: ServingInputs) -> list[Stage]:
    """Return the stages that may need the most memory, in order.

    The first stage has the embedding, and the last the output table. If rows of a sweep have
    different numbers of stages between them, the missing ones have no layers.
    """
    groups = i.model.groups
    if is_zero(i.pp_size - 1):
        return [Stage(zero_like(i.pp_size), groups, i.model.attentions, 1)]
    positions = tuple(group.at for group in groups)

    def stage_layers(pp: float, *sizes: float) -> tuple[float, ...]:
        return _stage_layers(positions, pp, sizes)

    def stage(start: int, tables: Value) -> Stage:
        index, *counts = every[start : start + width]
        pairs = zip(groups, counts, strict=True)
        held = tuple(replace(group, count=count) for group, count in pairs)
        return Stage(index, held, attention_layers(held, sum_of(counts)), tables)

    sizes = [size for group in groups for size in (group.first, group.count)]
    every, width = tabulated(stage_layers, i.pp_size, *sizes), len(groups) + 1
    end = where(i.pp_size > 1, 1 / i.model.embedding_tables, 1)
    between = [stage(start, 0) for start in range(2 * width, len(every), width)]
    return [stage(0, end), *between, stage(width, end)]


@lru_cache(maxsize=1024)
def _stage_layers(
    positions: tuple[tuple[int, ...] | None, ...], pp: float, sizes: tuple[float, ...]
) -> tuple[float, ...]:
    """Return the position of a stage and its layers of each group: the first, the last, and others.

    If layers do not divide, the stages before the last have one more each (vLLM,
    distributed/utils.py, get_pp_indices).
    """
    runs = layer_runs(positions, sizes)
    if not 1 <= pp <= runs[-1].end:  # a rule refuses such a server
        pp = 1
    each, more = divmod(runs[-1].end, int(pp))
    counts, start = [], 0
    for stage in range(int(pp)):
        end = start + each + (pp - 1 - more <= stage < pp - 1)
        counts.append(tuple(layers_within(runs, start, end - start, len(positions))))
        start = end
    chosen = (0, len(counts) - 1, *longer_between(counts))
    return tuple(float(number) for index in chosen for number in (index, *counts[index]))


def _held(i: ServingInputs, stages: list[Stage]) -> list[Value]:
    """Return the memory of weights, activations and adapters on a device of each stage.

    Ranks share the experts and replicate the rest.
    """
    model, stored = i.model, i.weight_precision
    per_expert = expert_bytes(model, stored)
    common = stored_weights(model, stored) - expert_parameters(model) * per_expert
    copies = 1 + i.redundant_experts / model.experts
    wide = stored.training_bytes
    tables = f.embedding_parameters(model.vocab_size, model.hidden_dim, model.embedding_tables)
    tables = tables * (
        wide if model.formats is None else stated_bytes(model.formats.embeddings, wide)
    )
    unrouted = [group.unrouted_parameters(model.hidden_dim) for group in model.groups]
    experts = [group.routed_parameters(model.hidden_dim) for group in model.groups]
    every, workspace = sum_over(model.groups, unrouted), _workspace(i)

    def held(stage: Stage) -> Value:
        dense = common
        if not is_zero(i.pp_size - 1):
            share = sum_over(stage.groups, unrouted) / every
            dense = share * common + (stage.tables - share) * tables
        routed = sum_over(stage.groups, experts) * per_expert * copies
        weights = dense / i.tp_size + routed / i.stage_devices
        return weights + workspace + resident_bytes(i, stage.groups) / i.tp_size

    return [held(stage) for stage in stages]


def cache_parts(
    i: ServingInputs,
    attentions: Sequence[tuple[Value, AttentionKind]],
    sequences: Value,
    context: Value,
) -> list[Cache]:
    """Return the cache of sequences of a given length in some layers, by kind of attention."""
    each = _element_bytes(i)
    caches = [a.cache(layers, sequences, context, each) for layers, a in attentions]
    return [part for parts in caches for part in parts]


def _element_bytes(i: ServingInputs) -> CacheBytes:
    return cache_bytes(i.model, i.kv_precision.bytes_per_element, i.precision.training_bytes)


def cache_size(i: ServingInputs, sequences: Value, context: Value) -> Value:
    """Return the size of the cache on all devices together."""
    return sum_of([part.size for part in cache_parts(i, i.model.attentions, sequences, context)])


def device_cache(i: ServingInputs, sequences: Value, context: Value) -> Value:
    """Return the part of the cache on one device of the stage whose layers cache most."""
    return reduce(maximum, [_stage_cache(i, stage, sequences, context) for stage in _stages(i)])


def _stage_cache(i: ServingInputs, stage: Stage, sequences: Value, context: Value) -> Value:
    """Return the part of the cache on one device of a stage."""
    parts = cache_parts(i, stage.attentions, sequences, context)
    size = sum_of([_device_share(i, part, part.size) for part in parts]) / i.attention_dp
    # An element for a stage without attention: its memory is divided by that of a sequence.
    return size if is_zero(i.pp_size - 1) else maximum(i.kv_precision.bytes_per_element, size)


def _device_share(i: ServingInputs, part: Cache, size: Value) -> Value:
    """Return one device's share of a cache, or of the bytes that a step reads of it."""
    share = f.kv_per_device(size, i.tp_size, part.heads)
    if not part.divided or is_zero(i.dcp_size - 1):
        return share
    return f.kv_per_context_rank(share, i.dcp_size)


def device_prompt(i: ServingInputs) -> Value:
    """Return the keys and values of a prompt that one device holds."""
    parts = cache_parts(i, i.model.attentions, 1, i.seq_len)
    return sum_of([_device_share(i, part, part.size) for part in parts]) / i.pp_size


def cache_read(i: ServingInputs, a: AttentionKind, sequences: Value, context: Value) -> Value:
    """Return the bytes of a layer's cache that one device reads and writes per decode step."""
    parts = a.cache(1, sequences, context, _element_bytes(i))
    return sum_of([_device_share(i, part, part.read) for part in parts])


def _longest_context(i: ServingInputs, stage: Stage, room: Value) -> Value:
    """Return the tokens that each sequence may hold, given the memory for all caches of a stage.

    Infinite if no cache grows any further. Caches with a limited reach are full once the context is
    that long. For each such limit, we compute the context that fits if the caches up to that limit
    are full. The longest of these contexts is correct, because each of the others counts some full
    caches as growing.
    """
    fixed, growing, limited = [zero_like(room)], [zero_like(room)], []
    for part in cache_parts(i, stage.attentions, i.batch_size, 1):
        each = _device_share(i, part, part.size)
        if part.limit is None:
            growing.append(each)
        elif is_zero(part.limit):
            fixed.append(each)
        else:
            limited.append((part.limit, each))
    room = room - sum_of(fixed)
    longest: Value = 0
    for limit in (0, *(limit for limit, _ in limited)):
        full = sum_of(
            [fixed[0], *(where(other <= limit, other * each, 0) for other, each in limited)]
        )
        rest = sum_of([*growing, *(where(other <= limit, 0, each) for other, each in limited)])
        grows = rest > 0
        fits = (room - full) / where(grows, rest, 1)
        longest = maximum(longest, where(grows, fits, where(room >= full, math.inf, 0)))
    return longest


def loading_time(i: ServingInputs) -> Value:
    """Return the mean time to load a request's keys, values and adapter from the host."""
    prefix = adapter = nothing = zero_like(i.calibration.request_overhead)
    if not is_zero(i.loaded_share):
        size = i.loaded_share * device_prompt(i)
        time = f.point_to_point_time(size, i.host_bandwidth, i.host_latency)
        prefix = where(i.loaded_share > 0, time, nothing)
    if not is_zero(i.adapter_rank):
        # An adapter that is resident needs no time.
        missing = 1 - first_known(i.resident_adapters, i.adapters) / i.adapters
        size = adapter_bytes(i, i.model.groups) / (i.tp_size * i.pp_size)
        time = missing * f.point_to_point_time(size, i.host_bandwidth, i.host_latency)
        adapter = where(missing > 0, time, nothing)
    return prefix + adapter


@dataclass(frozen=True)
class Memory:
    """Memory of a server: that of a device of each pipeline stage that may limit it."""

    inputs: ServingInputs
    capacity: Value
    share: Value
    """The part of the memory left free by `held` that an engine uses for keys and values."""
    stages: list[Stage]
    held: list[Value]
    """Memory of weights, adapters, and the activations of the largest pass, on each stage."""

    def reserved(self, sequences: Value, context: Value) -> list[Value]:
        """Return the memory that each stage reserves for sequences, in whole blocks."""
        i = self.inputs
        context = context + f.block_padding(i.block_size)
        return [_stage_cache(i, stage, sequences, context) / self.share for stage in self.stages]

    def fullest(self, sequences: Value, context: Value) -> tuple[Value, Value]:
        """Return the memory that a device of the fullest stage needs, and the stage's position."""
        reserved = self.reserved(sequences, context)
        needs = [held + size for held, size in zip(self.held, reserved, strict=True)]
        most, position = needs[0], self.stages[0].index
        for need, stage in zip(needs[1:], self.stages[1:], strict=True):
            position = where(need > most, stage.index, position)
            most = maximum(most, need)
        return most, position

    def fits(self, reserved: list[Value]) -> Value:
        """Return how many sequences fit on every stage, given the memory of one."""
        pairs = zip(self.held, reserved, strict=True)
        return reduce(minimum, [f.largest_batch(self.capacity, held, one) for held, one in pairs])

    def full_share(self, sequences: Value, prompts: list[Value], wholes: list[Value]) -> Value:
        """Return the share of time that the cache is full, by the stage that is full most often."""
        shares = [
            f.cache_full_probability(sequences, self.capacity - held, prompt, whole)
            for held, prompt, whole in zip(self.held, prompts, wholes, strict=True)
        ]
        return reduce(maximum, shares)

    def longest(self) -> Value:
        """Return the tokens that each sequence of the batch may hold on every stage.

        NaN if no cache grows with the context.
        """
        i, padding = self.inputs, f.block_padding(self.inputs.block_size)
        pairs = list(zip(self.stages, self.held, strict=True))
        if all(a.caches_whole for _, a in i.model.attentions):
            lengths = [
                f.longest_context(
                    self.capacity, held, _stage_cache(i, stage, 1, 1) / self.share, i.batch_size
                )
                for stage, held in pairs
            ]
            return maximum(0, floor(reduce(minimum, lengths) - padding))
        lengths = [
            _longest_context(i, stage, self.share * (self.capacity - held) * i.attention_dp)
            for stage, held in pairs
        ]
        tokens = reduce(minimum, lengths)
        tokens = where(tokens == math.inf, math.nan * i.batch_size, tokens)
        return where(is_known(tokens), maximum(0, floor(tokens - padding)), tokens)


def server_memory(i: ServingInputs) -> Memory:
    """Return the memory of a server that is timed operator by operator."""
    chip, stages = i.device.memory, _stages(i)
    capacity = first_known(chip.reported, chip.capacity)
    return Memory(i, capacity, i.calibration.kv_share, stages, _held(i, stages))


def textbook_memory(i: ServingInputs) -> Memory:
    """Return the memory of a server with only weights and caches, which may fill all of it."""
    stages = _stages(i)
    weights = stored_weights(i.model, i.weight_precision) / i.tp_size
    return Memory(i, i.device.memory.capacity, 1, stages, [weights] * len(stages))


def _workspace(i: ServingInputs) -> Value:
    """Return the memory that one device keeps for the activations of the largest pass."""
    inside, widest = 0, 0
    for _, a in i.model.attentions:
        inside = maximum(inside, a.inner_width)
    for group in i.model.groups:
        block = group.feed_forward
        if block is not None:
            width = where(group.count > 0, block.matrices * group.inner_width, 0)
            widest = maximum(widest, width)
    return f.pass_workspace(
        pass_budget(i),
        i.model.hidden_dim,
        inside,
        widest,
        i.tp_size,
        i.precision.training_bytes,
    )


def pass_budget(i: ServingInputs) -> Value:
    """Return the most tokens per rank in one pass."""
    return first_known(i.token_budget, i.calibration.pass_tokens)
