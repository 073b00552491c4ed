"""Sizes and operations of a transformer's layers, and the weights and caches that passes read."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from mlsysim.core import formulas as f
from mlsysim.core.numeric import Value, first_known, zero_like
from mlsysim.core.types import (
    Formats,
    NetworkFabric,
    Precision,
    TransformerModel,
)
from mlsysim.core.types.attention import AttentionKind, CacheBytes
from mlsysim.core.types.layers import LayerGroup


@dataclass(frozen=True)
class TokenFlops:
    """Forward operations per token."""

    matrix: Value
    """In the layers' weight matrices."""
    score: Value
    """In attention scores and their product with the values, and in states."""
    logit: Value
    """In the output projection."""


def group_bandwidth(link: NetworkFabric, bandwidth: Value, ranks: Value) -> Value:
    """Return the bandwidth per device within a group of a node's devices."""
    peers: Value = link.peers
    return first_known(f.mesh_bandwidth(bandwidth, ranks, peers), bandwidth)


def mean_over_attention(model: TransformerModel, each: Callable[[AttentionKind], Value]) -> Value:
    """Return the mean over all layers of a value that depends on their attention."""
    parts = [(layers, each(attention)) for layers, attention in model.attentions]
    if len(parts) == 1 and parts[0][0] is model.layers:
        return parts[0][1]
    return sum_of([layers * part for layers, part in parts]) / model.layers


def sum_over(groups: Sequence[LayerGroup], parts: Sequence[Value]) -> Value:
    """Return the sum over all layers, given the value for a layer of each group, if it has one."""
    pairs = zip(groups, parts, strict=True)
    return sum_of([group.count * part for group, part in pairs if part is not None])


def mean_over(model: TransformerModel, parts: list[Value]) -> Value:
    """Return the mean over all layers, given the value for a layer of each group, if it has one."""
    return parts[0] if len(parts) == 1 else sum_over(model.groups, parts) / model.layers


def by_blocks(model: TransformerModel, layer: Value) -> Value:
    """Return the cost of a mean layer, given the cost of a layer with two blocks.

    A layer with only attention or only a feed-forward block costs half as much.
    """
    if all(group.blocks == 2 for group in model.groups):
        return layer
    return mean_over(model, [group.blocks / 2 * layer for group in model.groups])


def token_flops(model: TransformerModel, seq_len: Value, flops_per_mac: Value) -> TokenFlops:
    """Return the operations of one token of a sequence."""
    matrix = sum_of(
        [
            f.matrix_flops(
                group.count,
                group.attention_parameters(model.hidden_dim),
                group.visited_parameters(model.hidden_dim),
                flops_per_mac,
            )
            for group in model.groups
        ]
    )
    return TokenFlops(
        matrix=matrix,
        score=sum_of(
            [
                a.score_flops(layers, seq_len, model.attended_fraction, flops_per_mac)
                for layers, a in model.attentions
            ]
        ),
        logit=f.logit_flops(model.vocab_size, model.hidden_dim, flops_per_mac),
    )


def mtp_flops(model: TransformerModel, seq_len: Value, flops_per_mac: Value) -> TokenFlops:
    """Return the operations of one token in one layer for multi-token prediction."""
    last, h = model.last_group, model.hidden_dim
    visited = last.attention_parameters(h) + last.visited_parameters(h)
    scores = [
        a.score_flops(1, seq_len, model.attended_fraction, flops_per_mac) for a in last.attentions
    ]
    score = sum_of(scores) if scores else zero_like(flops_per_mac)
    return TokenFlops(
        matrix=flops_per_mac * (visited + 2 * h * h),
        score=score,
        logit=f.logit_flops(model.vocab_size, h, flops_per_mac),
    )


def decode_score_flops(model: TransformerModel, context: Value, flops_per_mac: Value) -> Value:
    """Return the operations in scores and states to decode one token after a context."""
    return sum_of(
        [a.decode_score_flops(layers, context, flops_per_mac) for layers, a in model.attentions]
    )


@dataclass(frozen=True)
class LayerAdapters:
    """Parameters of the adapters of one layer."""

    common: Value
    """Parameters of adapters other than those of experts."""
    experts: Value
    visited: Value
    """Parameters of adapters that a token passes through."""


def layer_adapters(model: TransformerModel, rank: Value) -> list[LayerAdapters]:
    """Return the adapters of a layer of each group; none if all parameters are trained."""
    adapters = []
    for group in model.groups:
        sides = sum_of([each.sides for each in group.matrices(model.hidden_dim)])
        common = f.adapter_parameters(rank, sides)
        experts, visited = zero_like(common), common
        if (block := group.experts) is not None:
            expert = f.adapter_parameters(rank, block.expert_matrix(model.hidden_dim).sides)
            experts, visited = block.count * expert, common + block.per_token * expert
        adapters.append(LayerAdapters(common, experts, visited))
    return adapters


def expansion_parameters(model: TransformerModel) -> Value:
    """Return the parameters that expand latent vectors to attention heads, in all layers."""
    return sum_of([layers * a.expansion_parameters for layers, a in model.attentions])


def sum_of(parts: list[Value]) -> Value:
    """Add the values of all layer groups."""
    total = parts[0]
    for part in parts[1:]:
        total = total + part
    return total


def expert_parameters(model: TransformerModel) -> Value:
    """Return the parameters of all experts of a model; none if it is dense."""
    experts = [
        group.count * group.routed_parameters(model.hidden_dim)
        for group in model.groups
        if group.experts is not None
    ]
    return sum_of(experts) if experts else model.routed_layers * model.parameters


def stored_bytes(stored: Precision) -> Value:
    """Return the bytes of one weight of a layer, with its share of scale factors."""
    return stored.bytes_per_element + stored.scale_bytes


def stated_bytes(stated: Precision | None, otherwise: Value) -> Value:
    """Return the bytes per weight in the format that the model states, else in a given one."""
    return otherwise if stated is None else stored_bytes(stated)


def expert_bytes(model: TransformerModel, stored: Precision) -> Value:
    """Return the bytes of one stored weight of an expert."""
    each = stored_bytes(stored)
    return each if model.formats is None else stated_bytes(model.formats.experts, each)


def stored_weights(model: TransformerModel, stored: Precision) -> Value:
    """Return the bytes of all weights; embeddings and output stay in 16 bits or more."""
    embeddings = f.embedding_parameters(model.vocab_size, model.hidden_dim, model.embedding_tables)
    if model.formats is not None:
        return _by_format(model, model.formats, stored, embeddings)
    return f.stored_weights(
        model.parameters,
        embeddings,
        stored.bytes_per_element,
        stored.scale_bytes,
        stored.training_bytes,
    )


def _by_format(
    model: TransformerModel, formats: Formats, stored: Precision, embeddings: Value
) -> Value:
    """Return the bytes of all weights, for a model that states its own formats."""
    each = stored_bytes(stored)
    attention = sum_of([layers * a.parameters(model.hidden_dim) for layers, a in model.attentions])
    experts = expert_parameters(model)
    rest = model.parameters - embeddings - attention - experts
    return (
        embeddings * stated_bytes(formats.embeddings, stored.training_bytes)
        + attention * stated_bytes(formats.attention, each)
        + experts * stated_bytes(formats.experts, each)
        + rest * stated_bytes(formats.feed_forward, each)
    )


def tower_parameters(model: TransformerModel) -> Value:
    """Return the parameters of the vision tower; 0 without one."""
    return zero_like(model.parameters) if model.vision is None else model.vision.network.parameters


def weights_read(model: TransformerModel, stored: Precision, tokens: Value) -> Value:
    """Return the bytes of the weights that a pass over a number of tokens reads.

    The weights of a vision tower are read by its own pass.
    """
    read = stored_weights(model, stored)
    if model.vision is not None:
        formats = model.formats
        each = stated_bytes(None if formats is None else formats.feed_forward, stored_bytes(stored))
        read = read - tower_parameters(model) * each
    for group in model.groups:
        if (block := group.experts) is not None:
            visited = f.experts_visited(block.count, block.per_token, tokens)
            expert = block.expert_parameters(model.hidden_dim)
            idle = group.count * (block.count - visited) * expert
            read = read - idle * expert_bytes(model, stored)
    return read


def cache_bytes(model: TransformerModel, kv_bytes: Value, state_bytes: Value) -> CacheBytes:
    """Return the bytes of one element of a cache, given those of keys and values and of states.

    A format that the model states for its states replaces the latter.
    """
    stated = None if model.formats is None else model.formats.state
    state = state_bytes if stated is None else stated.bytes_per_element
    return CacheBytes(kv_bytes, state, convolution=state_bytes)


def kv_cache(
    model: TransformerModel,
    sequences: Value,
    context: Value,
    kv_bytes: Value,
    state_bytes: Value,
) -> Value:
    """Return the caches of all layers for sequences of this length."""
    each = cache_bytes(model, kv_bytes, state_bytes)
    caches = [a.cache(layers, sequences, context, each) for layers, a in model.attentions]
    return sum_of([part.size for parts in caches for part in parts])


class LayerRun(NamedTuple):
    """Consecutive layers of one group."""

    start: int
    length: int
    kind: int
    """Index of the group."""

    @property
    def end(self) -> int:
        """Position after the last layer."""
        return self.start + self.length


def layer_runs(
    positions: tuple[tuple[int, ...] | None, ...], sizes: tuple[float, ...]
) -> list[LayerRun]:
    """Return the runs of a stack from the positions of each group, or its start and its length."""
    placed: list[tuple[int, int, int]] = []
    for kind, at in enumerate(positions):
        start, count = int(sizes[2 * kind]), int(sizes[2 * kind + 1])
        placed += [(spot, 1, kind) for spot in at] if at else [(start, count, kind)]
    runs: list[LayerRun] = []
    for _, length, kind in sorted(placed):
        runs.append(LayerRun(runs[-1].end if runs else 0, length, kind))
    return runs


def layers_within(runs: list[LayerRun], start: int, size: int, groups: int) -> list[int]:
    """Return how many of the layers from `start` on belong to each group."""
    counts = [0] * groups
    for run in runs:
        counts[run.kind] += max(0, min(run.end, start + size) - max(run.start, start))
    return counts


def longer_between(stages: list[tuple[int, ...]]) -> list[int]:
    """Return the stages between the ends with more of some layers than every stage before them."""
    chosen: list[int] = []
    for index, stage in enumerate(stages[1:-1], 1):
        before = (stages[other] for other in (0, *chosen))
        if not any(all(a >= b for a, b in zip(other, stage, strict=True)) for other in before):
            chosen.append(index)
    return chosen
