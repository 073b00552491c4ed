"""Memory of a server: weights on pipeline stages, caches, and transfers from the host."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

from mlsysim.core import formulas as f
from mlsysim.core.numeric import (
    Value,
    first_known,
    floor,
    is_known,
    is_zero,
    maximum,
    tabulated,
    where,
    zero_like,
)
from mlsysim.core.types.attention import AttentionKind, Cache, CacheBytes
from mlsysim.solvers.serving.adapters import adapter_bytes, resident_bytes
from mlsysim.solvers.serving.inputs import ServingInputs
from mlsysim.solvers.work import (
    cache_bytes,
    expert_bytes,
    expert_parameters,
    layer_runs,
    layers_within,
    stated_bytes,
    stored_weights,
    sum_of,
)


def _fullest(i: ServingInputs, size: Callable[[list[Value], Value], Value]) -> Value:
    """Return the largest size of a stage.

    `size` takes the layers of each group on a stage, and 1 if the stage is the first or the last.
    """
    groups = i.model.groups
    positions = tuple(group.at for group in groups)

    def stage_layers(pp: float, *sizes: float) -> tuple[float, ...]:
        return _stage_layers(positions, pp, sizes)

    sizes = [part for group in groups for part in (group.first, group.count)]
    every = tabulated(stage_layers, i.pp_size, *sizes)
    n = len(groups)
    stages = [every[start : start + n] for start in range(0, len(every), n)]
    largest = maximum(size(stages[0], 1), size(stages[1], 1))
    for layers in stages[2:]:
        largest = maximum(largest, size(layers, 0))
    return largest


@lru_cache(maxsize=1024)
def _stage_layers(
    positions: tuple[tuple[int, ...] | None, ...], pp: float, sizes: tuple[float, ...]
) -> tuple[float, ...]:
    """Return the layers of each group on the first stage, on the last, and on unlike ones between.

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
        layers = layers_within(runs, start, end - start, len(positions))
        counts.append(tuple(map(float, layers)))
        start = end
    between = dict.fromkeys(counts[1:-1])
    return tuple(count for stage in (counts[0], counts[-1], *between) for count in stage)


def _most_layers(i: ServingInputs) -> Value:
    """Return the share of the model's layers that the longest stage has."""
    if is_zero(i.pp_size - 1):
        return 1 / i.pp_size
    longest = _fullest(i, lambda layers, end: sum_of(layers))
    return where(i.pp_size > 1, longest / i.model.layers, 1)


def _stage_weights(i: ServingInputs, weights: Value) -> Value:
    """Return the weights on a device of the fullest stage, of all weights of the model.

    Ranks share the experts and replicate the rest. The first stage has the embedding, and the last
    the output table.
    """
    model, stored = i.model, i.weight_precision
    per_expert = expert_bytes(model, stored) * (1 + i.redundant_experts / model.experts)
    experts = [group.routed_parameters(model.hidden_dim) for group in model.groups]
    all_experts = sum_of([group.count * n for group, n in zip(model.groups, experts, strict=True)])
    common = weights - expert_bytes(model, stored) * all_experts
    tables = f.embedding_parameters(model.vocab_size, model.hidden_dim, model.embedding_tables)
    wide = stored.training_bytes
    tables = tables * (
        wide if model.formats is None else stated_bytes(model.formats.embeddings, wide)
    )
    parts = [group.unrouted_parameters(model.hidden_dim) for group in model.groups]
    every = sum_of([group.count * part for group, part in zip(model.groups, parts, strict=True)])

    def size(layers: list[Value], end: Value) -> Value:
        held = sum_of([count * part for count, part in zip(layers, parts, strict=True)]) / every
        table = where(i.pp_size > 1, end * tables / model.embedding_tables, tables)
        dense = ((common - tables) * held + table) / i.tp_size
        routed = sum_of([count * part for count, part in zip(layers, experts, strict=True)])
        return dense + per_expert * routed / i.stage_devices

    return _fullest(i, size)


def cache_parts(i: ServingInputs, sequences: Value, context: Value) -> list[Cache]:
    """Return the cache of sequences of a given length, by kind of attention."""
    each = _element_bytes(i)
    caches = [a.cache(layers, sequences, context, each) for layers, a in i.model.attentions]
    return [part for parts in caches for part in parts]


def _element_bytes(i: ServingInputs) -> CacheBytes:
    return cache_bytes(i.model, i.kv_precision.bytes_per_element, i.precision.training_bytes)


def cache_size(i: ServingInputs, sequences: Value, context: Value) -> Value:
    """Return the size of the cache on all devices together."""
    return sum_of([part.size for part in cache_parts(i, sequences, context)])


def device_cache(i: ServingInputs, sequences: Value, context: Value) -> Value:
    """Return the part of the cache on one device of the stage whose layers cache most."""
    parts = cache_parts(i, sequences, context)
    whole = sum_of([_device_share(i, part, part.size) for part in parts]) / i.attention_dp
    if is_zero(i.pp_size - 1):
        return whole
    one_layer = {
        id(a): sum_of(
            [_device_share(i, p, p.size) for p in a.cache(1, sequences, context, _element_bytes(i))]
        )
        for _, a in i.model.attentions
    }

    def size(layers: list[Value], end: Value) -> Value:
        pairs = zip(layers, i.model.groups, strict=True)
        return sum_of(
            [zero_like(end)]
            + [count * one_layer[id(a)] for count, group in pairs for a in group.attentions]
        )

    return where(i.pp_size > 1, _fullest(i, size) / i.attention_dp, whole)


def _device_share(i: ServingInputs, part: Cache, size: Value) -> Value:
    """Return one device's share of a cache, or of the bytes that a step reads of it."""
    share = f.kv_per_device(size, i.tp_size, part.heads)
    if not part.divided or is_zero(i.dcp_size - 1):
        return share
    return f.kv_per_context_rank(share, i.dcp_size)


def device_prompt(i: ServingInputs) -> Value:
    """Return the keys and values of a prompt that one device holds."""
    parts = cache_parts(i, 1, i.seq_len)
    return sum_of([_device_share(i, part, part.size) for part in parts]) / i.pp_size


def device_blocks(i: ServingInputs, sequences: Value, context: Value) -> Value:
    """Return the memory that one device reserves for them, in whole blocks."""
    return device_cache(i, sequences, context + f.block_padding(i.block_size))


def cache_read(i: ServingInputs, a: AttentionKind, sequences: Value, context: Value) -> Value:
    """Return the bytes of a layer's cache that one device reads and writes per decode step."""
    parts = a.cache(1, sequences, context, _element_bytes(i))
    return sum_of([_device_share(i, part, part.read) for part in parts])


def longest(i: ServingInputs, capacity: Value, held: Value, share: Value) -> Value:
    """Return the tokens that each sequence may hold if caches may use a share of the memory.

    NaN if no cache grows with the context.
    """
    padding = f.block_padding(i.block_size)
    if all(a.caches_whole for _, a in i.model.attentions):
        tokens = f.longest_context(capacity, held, device_cache(i, 1, 1) / share, i.batch_size)
        return maximum(0, floor(tokens - padding))
    room = share * (capacity - held) * i.attention_dp / _most_layers(i)
    tokens = _longest_context(i, room)
    return where(is_known(tokens), maximum(0, floor(tokens - padding)), tokens)


def _longest_context(i: ServingInputs, room: Value) -> Value:
    """Return the tokens that each sequence may hold, given the memory for all caches.

    NaN if no cache grows any further. Caches with a limited reach are full once the context is that
    long. For each such limit, we compute the context that fits if the caches up to that limit are
    full. The longest of these contexts is correct, because each of the others counts some full
    caches as growing.
    """
    fixed, growing, limited = [zero_like(room)], [], []
    for part in cache_parts(i, i.batch_size, 1):
        each = _device_share(i, part, part.size)
        if part.limit is None:
            growing.append(each)
        elif is_zero(part.limit):
            fixed.append(each)
        else:
            limited.append((part.limit, each))
    room = room - sum_of(fixed)
    if not growing and not limited:
        return where(room >= 0, math.nan * i.batch_size, zero_like(i.batch_size))
    whole = sum_of([*growing, *(each for _, each in limited)])
    longest = maximum(0, room / whole)
    for limit, _ in limited:
        full = sum_of([where(other <= limit, other * each, 0) for other, each in limited])
        rest = sum_of([*growing, *(where(other <= limit, 0, each) for other, each in limited)])
        grows = rest > 0
        fits = (room - full) / where(grows, rest, 1)
        longest = maximum(longest, where(grows, fits, where(room >= full, math.inf, 0)))
    return where(longest == math.inf, math.nan * i.batch_size, longest)


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
        size = adapter_bytes(i) / (i.tp_size * i.pp_size)
        time = missing * f.point_to_point_time(size, i.host_bandwidth, i.host_latency)
        adapter = where(missing > 0, time, nothing)
    return prefix + adapter


@dataclass(frozen=True)
class Memory:
    """Memory of one device of a server."""

    capacity: Value
    held: Value
    """Memory of weights, and of the activations of the largest pass."""
    needed: Value
    """All memory that the device needs."""
    weights: Value
    """Weights of the whole model."""

    @property
    def room(self) -> Value:
        """Memory for keys and values."""
        return self.capacity - self.held


def server_memory(i: ServingInputs, sequences: Value, context: Value) -> Memory:
    """Return the memory that a device needs for a number of sequences, and its capacity."""
    chip = i.device.memory
    weights = stored_weights(i.model, i.weight_precision)
    held = _device_weights(i, weights) + _workspace(i)
    held = held + _most_layers(i) * resident_bytes(i) / i.tp_size
    return Memory(
        capacity=first_known(chip.reported, chip.capacity),
        held=held,
        needed=held + device_blocks(i, sequences, context) / i.calibration.kv_share,
        weights=weights,
    )


def _device_weights(i: ServingInputs, weights: Value) -> Value:
    """Return the weights on a device: ranks share the experts and replicate the rest."""
    experts = expert_parameters(i.model) * expert_bytes(i.model, i.weight_precision)
    copied = experts * (1 + i.redundant_experts / i.model.experts)
    common = weights - experts
    whole = common / i.tp_size + copied / i.stage_devices
    return (
        whole if is_zero(i.pp_size - 1) else where(i.pp_size > 1, _stage_weights(i, weights), whole)
    )


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
