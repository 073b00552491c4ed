"""Memory of the keys, values and states that a server keeps for its sequences."""

from __future__ import annotations

import math

from mlsysim.core import formulas as f
from mlsysim.core.numeric import Value, floor, is_known, is_zero, maximum, where, zero_like
from mlsysim.core.types.attention import AttentionKind, Cache, CacheBytes
from mlsysim.solvers.serving.inputs import ServingInputs
from mlsysim.solvers.serving.stages import fullest, most_layers
from mlsysim.solvers.work import cache_bytes, sum_of

__all__ = [
    "cache_parts",
    "cache_read",
    "cache_size",
    "longest",
    "own_blocks",
    "own_cache",
    "own_prompt",
]


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


def own_cache(i: ServingInputs, sequences: Value, context: Value) -> Value:
    """Return the part of the cache on one device of the stage whose layers cache most."""
    parts = cache_parts(i, sequences, context)
    whole = sum_of([_own(i, part, part.size) for part in parts]) / i.attention_dp
    if is_zero(i.pp_size - 1):
        return whole
    one_layer = {
        id(a): sum_of(
            [_own(i, p, p.size) for p in a.cache(1, sequences, context, _element_bytes(i))]
        )
        for _, a in i.model.attentions
    }

    def size(layers: list[Value], end: Value) -> Value:
        pairs = zip(layers, i.model.groups, strict=True)
        return sum_of(
            [zero_like(end)]
            + [count * one_layer[id(a)] for count, group in pairs for a in group.attentions]
        )

    return where(i.pp_size > 1, fullest(i, size) / i.attention_dp, whole)


def _own(i: ServingInputs, part: Cache, size: Value) -> Value:
    """Return one device's share of a cache, or of the bytes that a step reads of it."""
    own = f.kv_per_device(size, i.tp_size, part.heads)
    if not part.divided or is_zero(i.dcp_size - 1):
        return own
    return f.kv_per_context_rank(own, i.dcp_size)


def own_prompt(i: ServingInputs) -> Value:
    """Return the keys and values of a prompt that one device holds."""
    parts = cache_parts(i, 1, i.seq_len)
    return sum_of([_own(i, part, part.size) for part in parts]) / i.pp_size


def own_blocks(i: ServingInputs, sequences: Value, context: Value) -> Value:
    """Return the memory that one device reserves for them, in whole blocks."""
    return own_cache(i, sequences, context + f.block_padding(i.block_size))


def cache_read(i: ServingInputs, a: AttentionKind, sequences: Value, context: Value) -> Value:
    """Return the bytes of a layer's cache that one device reads and writes per decode step."""
    parts = a.cache(1, sequences, context, _element_bytes(i))
    return sum_of([_own(i, part, part.read) for part in parts])


def longest(i: ServingInputs, capacity: Value, held: Value, share: Value) -> Value:
    """Return the tokens that each sequence may hold if caches may use a share of the memory.

    NaN if no cache grows with the context.
    """
    padding = f.block_padding(i.block_size)
    if all(a.caches_whole for _, a in i.model.attentions):
        found = f.longest_context(capacity, held, own_cache(i, 1, 1) / share, i.batch_size)
        return maximum(0, floor(found - padding))
    room = share * (capacity - held) * i.attention_dp / most_layers(i)
    found = _longest_context(i, room)
    return where(is_known(found), maximum(0, floor(found - padding)), found)


def _longest_context(i: ServingInputs, room: Value) -> Value:
    """Return the tokens that each sequence may hold, given the memory for all caches.

    NaN if no cache grows any further. Caches with a limited reach are full once the context is that
    long. For each such limit, we compute the context that fits if the caches up to that limit are
    full. The longest of these contexts is correct, because each of the others counts some full
    caches as growing.
    """
    fixed, growing, limited = [zero_like(room)], [], []
    for part in cache_parts(i, i.batch_size, 1):
        each = _own(i, part, part.size)
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
