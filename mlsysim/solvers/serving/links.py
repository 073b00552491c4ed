"""Communication of a pass, and the part of it that computation hides."""

from __future__ import annotations

from mlsysim.core import formulas as f
from mlsysim.core.numeric import Value, is_zero, minimum, when, where, zero_like
from mlsysim.core.types import NetworkFabric
from mlsysim.core.types.attention import AttentionKind
from mlsysim.core.types.layers import Experts
from mlsysim.solvers.layer import Device, beside_exchange
from mlsysim.solvers.serving.experts import expert_work
from mlsysim.solvers.serving.inputs import ServingInputs
from mlsysim.solvers.work import group_bandwidth, mean_over, mean_over_attention


def _near_ranks(i: ServingInputs, ranks: Value) -> Value:
    """Return how many devices of a group of neighbors share a node: all, if they fit in one."""
    if i.node is None or i.fabric is None:
        return ranks
    places = i.node.accelerators_per_node
    return where(ranks <= places, ranks, f.local_ranks(ranks, places))


def _port_bandwidth(i: ServingInputs) -> Value:
    """Return a device's share of its node's ports, which is unlimited if there is one node."""
    if i.node is None or i.fabric is None:
        return None
    ports = i.node.nics_per_node / i.node.accelerators_per_node
    return i.calibration.link_efficiency * i.fabric.bandwidth * ports


def communication(i: ServingInputs, device_tokens: Value, stage_tokens: Value) -> Value:
    """Return the communication of a mean layer."""
    if i.links is None:
        return 0
    reduced = _all_reduce(i, i.links, device_tokens)
    per_layer = i.conventions.forward_all_reduces
    parts = []
    for group in i.model.groups:
        usual = group.blocks / 2 * per_layer * reduced
        if (block := group.experts) is not None:
            dispatch, combine = _exchange_times(i, i.links, block, stage_tokens)
            exchanged = usual - per_layer / 2 * reduced + (dispatch + combine)
            usual = where(i.attention_dp > 1, exchanged, usual)
        parts.append(usual)
    return mean_over(i.model, parts)


def _all_reduce(i: ServingInputs, links: NetworkFabric, tokens: Value) -> Value:
    """Return the time of an all-reduce over the devices that share a layer."""
    size = f.hidden_state_size(tokens, 1, i.model.hidden_dim, i.precision.training_bytes)
    bandwidth, overhead = _collective(i, links, i.tp_size)
    return f.one_shot_all_reduce_time(size, i.tp_size, bandwidth, overhead)


def _collective(i: ServingInputs, links: NetworkFabric, ranks: Value) -> tuple[Value, Value]:
    """Return the bandwidth and the fixed time of a collective over neighboring devices."""
    c, near = i.calibration, _near_ranks(i, ranks)
    bandwidth = group_bandwidth(links, c.link_efficiency * links.bandwidth, near)
    overhead = c.all_reduce_overhead
    if i.fabric is not None:
        far = near < ranks
        across = f.group_ring_bandwidth(bandwidth, _port_bandwidth(i), near)
        bandwidth = where(far, across, bandwidth)
        hops = 2 * (ranks / near - 1) * i.fabric.latency
        overhead = where(far, overhead + hops, overhead)
    return bandwidth, overhead


def context_exchange(i: ServingInputs, tokens: Value) -> Value:
    """Return the time of a mean layer to combine attention over ranks that divide the context."""
    if i.links is None or is_zero(i.dcp_size - 1):
        return 0
    bandwidth, overhead = _collective(i, i.links, i.dcp_size)

    def each(a: AttentionKind) -> Value:
        if not a.caches_whole:
            return zero_like(overhead)
        return f.partial_attention_time(
            tokens,
            a.heads,
            a.decode_dim,
            i.precision.training_bytes,
            i.tp_size,
            i.dcp_size,
            bandwidth,
            overhead,
        )

    return mean_over_attention(i.model, each)


def _exchange_times(
    i: ServingInputs, links: NetworkFabric, block: Experts, tokens: Value
) -> tuple[Value, Value]:
    """Return the times to send tokens to experts, and their results back.

    Dispatched tokens may be in a narrower format; results are summed, so they stay wide.
    """
    c, ranks = i.calibration, i.stage_devices
    near = _near_ranks(i, ranks)
    copies = f.copies_by_rank(block.per_token, ranks, i.ep_size)
    inside = copies * (near - 1) / (ranks - where(ranks > 1, 1, 0))
    outside = where(near < ranks, copies - inside, 0)
    local = group_bandwidth(links, c.link_efficiency * links.bandwidth, near)
    latency = c.exchange_overhead
    remote = local
    if i.fabric is not None:
        remote = _port_bandwidth(i)
        latency = where(near < ranks, latency + i.fabric.latency, latency)
    width = block.token_width(i.model.hidden_dim)

    def exchange(each: Value) -> Value:
        size = f.hidden_state_size(tokens / ranks, 1, width, each)
        return f.expert_dispatch_time(size, inside, outside, local, remote, latency)

    there = exchange(i.dispatch_precision.bytes_per_element)
    return there, exchange(i.precision.training_bytes)


def stage_hops(i: ServingInputs, tokens: Value) -> Value:
    """Return the time of a token's transfers from stage to stage, and of the next token's back."""
    if i.links is None:
        return 0
    c = i.calibration
    size = f.hidden_state_size(tokens, 1, i.model.hidden_dim, i.precision.training_bytes)
    device_size = size / i.tp_size
    near = f.point_to_point_time(
        device_size, c.link_efficiency * i.links.bandwidth, i.links.latency
    )
    hop = near
    if i.fabric is not None and i.node is not None:
        far = f.point_to_point_time(device_size, _port_bandwidth(i), i.fabric.latency)
        hop = where(i.replica_devices <= i.node.accelerators_per_node, near, far)
    return minimum(1, i.pp_size - 1) * i.pp_size * hop


def batch_parts(i: ServingInputs, each: Value) -> Value:
    """Return into how many parts a rank splits its batch: one that cannot be split stays whole."""
    if is_zero(i.overlap_batches):
        return 1
    split = (i.overlap_batches == 2) & (i.attention_dp > 1) & (each >= 2)
    return where(split, 2.0, 1.0)


def hidden_exchange(
    i: ServingInputs, d: Device, tokens: Value, every: Value, parts: Value, computation: Value
) -> Value:
    """Return the time of a mean layer's exchange that computation hides.

    Two halves of a batch take turns: while one computes a layer, the other one's tokens are on
    their way. Within a single batch, shared experts run while tokens are sent, and the experts'
    last product runs while its first results are sent back.
    """
    experts = any(group.experts is not None for group in i.model.groups)
    if i.links is None or not experts or is_zero(i.overlap_batches):
        return 0
    hidden: list[Value] = []
    for group in i.model.groups:
        if (block := group.experts) is None:
            hidden.append(None)
            continue
        dispatch, combine = _exchange_times(i, i.links, block, every)
        routed = expert_work(i, d, block, every)
        shared, last = beside_exchange(d, i.model, block, tokens, i.tp_size, routed)
        within = _hidden(dispatch, shared) + _hidden(combine, last)
        between = _hidden(dispatch + combine, computation)
        alone = when((i.overlap_batches == 1) & (i.attention_dp > 1), within)
        hidden.append(where(parts > 1, between, alone))
    return mean_over(i.model, hidden)


def _hidden(exchange: Value, cover: Value) -> Value:
    return exchange - f.covered_time(exchange, 1.0, cover)
