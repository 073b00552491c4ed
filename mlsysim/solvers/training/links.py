"""Communication of a training step, and the links that carry it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Self

from mlsysim.core import formulas as f
from mlsysim.core.numeric import Value, first_known, is_known, minimum, when, where, zero_like
from mlsysim.core.types.attention import AttentionKind
from mlsysim.solvers.training.inputs import TrainingInputs
from mlsysim.solvers.training.work import Work
from mlsysim.solvers.work import group_bandwidth, mean_over, mean_over_attention, sum_of


@dataclass(frozen=True)
class _Link:
    """A link in one direction."""

    bandwidth: Value
    latency: Value


@dataclass(frozen=True)
class DeviceLinks:
    """A device's links to the others in its node, and its share of the network ports."""

    i: TrainingInputs
    local: _Link
    remote: _Link

    @classmethod
    def of(cls, i: TrainingInputs) -> Self:
        """Return the links with their datasheet values."""
        node, fabric = i.fleet.node, i.fleet.fabric
        port = fabric.bandwidth * node.nics_per_node / node.accelerators_per_node
        local = _Link(node.scale_up.bandwidth, node.scale_up.latency)
        return cls(i, local, _Link(port, fabric.latency))

    def reached(self, local_share: Value, remote_share: Value) -> Self:
        """Return the links at the shares of their bandwidths that collectives reach."""
        local, remote = self.local, self.remote
        return type(self)(
            self.i,
            _Link(local_share * local.bandwidth, local.latency),
            _Link(remote_share * remote.bandwidth, remote.latency),
        )

    def among(self, ranks: Value) -> Value:
        """Return a device's bandwidth to a group of this many devices in its node."""
        return group_bandwidth(self.i.fleet.node.scale_up, self.local.bandwidth, ranks)


@dataclass(frozen=True)
class _Group:
    """A group of devices that communicate, `stride` places apart."""

    links: DeviceLinks
    ranks: Value
    stride: Value

    @cached_property
    def near(self) -> Value:
        """Devices of the group that share a node."""
        slots = f.node_slots(self.links.i.fleet.node.accelerators_per_node, self.stride)
        return f.local_ranks(self.ranks, slots)

    @cached_property
    def ring(self) -> _Link:
        """Bandwidth and mean latency of a ring through the nodes that the group spans."""
        near, local, remote = self.near, self.links.local, self.links.remote
        inside = self.links.among(near)
        across = f.group_ring_bandwidth(inside, remote.bandwidth, near)
        return _Link(
            where(near >= self.ranks, inside, across),
            f.group_hop_latency(self.ranks, near, local.latency, remote.latency),
        )

    @property
    def neighbor(self) -> _Link:
        """The slowest link from a rank to the next.

        If two neighbors are on different nodes, their transfer uses one port, and all ranks wait
        for it.
        """
        inside, local, remote = self.near >= self.ranks, self.links.local, self.links.remote
        return _Link(
            where(inside, self.links.among(2), remote.bandwidth),
            where(inside, local.latency, remote.latency),
        )

    def all_gather_time(self, size: Value) -> Value:
        """Return the time to gather this many bytes on each device."""
        return f.all_gather_time(size, self.ranks, self.ring.bandwidth, self.ring.latency)

    def reduce_scatter_time(self, size: Value) -> Value:
        """Return the time to sum this many bytes of each device, and to distribute the sums."""
        return f.reduce_scatter_time(size, self.ranks, self.ring.bandwidth, self.ring.latency)

    def ring_all_reduce_time(self, size: Value) -> Value:
        """Return the time of an all-reduce by a ring."""
        return f.ring_all_reduce_time(size, self.ranks, self.ring.bandwidth, self.ring.latency)

    def all_reduce_time(self, size: Value) -> Value:
        """Return the time of an all-reduce, by a ring or a tree of nodes: NCCL uses the faster one.

        There is no tree for gathers and scatters (NCCL's PAT serves one device per node only).
        """
        by_tree = f.node_tree_all_reduce_time(
            size,
            self.ranks,
            self.near,
            self.links.i.conventions.tree_share * self.ring.bandwidth,
            self.links.local.latency,
            self.links.remote.latency,
        )
        return minimum(self.ring_all_reduce_time(size), by_tree)

    def swap_time(self, size: Value) -> Value:
        """Return the time in which each device sends a part of these bytes to each other one."""
        local, remote = self.links.local, self.links.remote
        return f.node_all_to_all_time(
            size,
            self.ranks,
            self.near,
            self.links.among(self.near),
            2 * local.latency,
            remote.bandwidth,
            2 * remote.latency,
        )


def tensor_all_reduce_time(i: TrainingInputs, w: Work, links: DeviceLinks) -> Value:
    """Return the time of one all-reduce of activations over a tensor-parallel group.

    With sequence parallelism it is a reduce-scatter and an all-gather, which have no tree.
    """
    group = _Group(links, i.tp_size, 1)
    by_ring = group.ring_all_reduce_time(w.hidden_state)
    return where(i.sequence_parallel > 0, by_ring, group.all_reduce_time(w.hidden_state))


def all_reduces(i: TrainingInputs, w: Work) -> Value:
    """Return the tensor-parallel all-reduces of a mean layer.

    Half of them belong to attention, half to the feed-forward block. If ranks hold different whole
    experts, the latter half is not needed, because tokens are exchanged instead.
    """
    blocks = []
    for group in i.model.groups:
        needed: Value = 1
        if (block := group.experts) is not None:
            needed = where((w.experts.group <= i.ep_size) & (block.shared_width == 0), 0, 1)
        both = (group.attention is not None) + (group.feed_forward is not None) * needed
        blocks.append(i.recompute.all_reduces_per_layer * both / 2)
    return mean_over(i.model, blocks)


def context_times(
    i: TrainingInputs, w: Work, links: DeviceLinks, attention: Callable[[AttentionKind], Value]
) -> tuple[Value, Value]:
    """Return the context-parallel communication per layer and microbatch, and its exposed part.

    `attention` gives the time of its forward pass, during which keys and values can travel. Gathers
    and swaps of heads come before attention, so they are not hidden.
    """
    times = {id(a): _context_times(i, w, links, a, attention(a)) for _, a in i.model.attentions}
    sent = mean_over_attention(i.model, lambda a: times[id(a)][0])
    seen = mean_over_attention(i.model, lambda a: times[id(a)][1])
    return sent, seen


def context_memory(i: TrainingInputs, w: Work, a: AttentionKind) -> Value:
    """Return the bytes that a rank sends in one layer: keys and values, or a state.

    After a swap of heads a rank holds fewer heads of more tokens. Linear attention passes on the
    state after its own tokens, whatever their number.
    """
    return a.passed_bytes(
        w.device_tokens * i.swap_size,
        w.device_sequences * i.cp_size,
        i.tp_size * i.swap_size,
        i.precision.training_bytes,
    )


def _context_times(
    i: TrainingInputs, w: Work, links: DeviceLinks, a: AttentionKind, attention: Value
) -> tuple[Value, Value]:
    """Return the time of a layer's exchange, and the part that attention does not hide."""
    swap, matrix_share = i.swap_size, i.recompute.matrix_share
    group = _Group(links, i.cp_size / swap, i.tp_size * swap)
    sent = context_memory(i, w, a)
    hop = group.neighbor
    exchange = f.context_exchange_time(sent, group.ranks, hop.bandwidth, hop.latency)
    # Nothing travels while the last keys and values are processed.
    covering = attention * (group.ranks - 1) / group.ranks
    gathered = (3 + matrix_share) * group.all_gather_time(group.ranks * sent)

    def round_trip(covering: Value) -> Value:
        in_turn = f.uncovered_time(exchange, covering, i.attention_backward, matrix_share)
        return where(i.cp_kind.gathers > 0, gathered, in_turn)

    # Heads are swapped before attention and back after it, in each pass.
    size = f.head_swap_size(
        w.device_tokens, a.width, *a.swapped_keys, i.tp_size, swap, i.precision.training_bytes
    )
    swapped = (2 + matrix_share) * _Group(links, swap, i.tp_size).swap_time(size)
    return round_trip(zero_like(attention)) + swapped, round_trip(covering) + swapped


def stage_transfer_time(i: TrainingInputs, w: Work, links: DeviceLinks) -> Value:
    """Return the time to send activations to the next stage and gradients back.

    With several nodes, at least one pair of neighboring stages is on two nodes; the slowest
    decides.
    """
    several = i.fleet.count > 1
    transfer = f.point_to_point_time(
        w.hidden_state / i.tp_size,
        where(several, links.remote.bandwidth, links.among(2)),
        where(several, links.remote.latency, links.local.latency),
    )
    return f.pipeline_transfer_time(transfer, i.microbatch_count, i.virtual_stages, i.pp_size)


def exchange_time(i: TrainingInputs, w: Work, links: DeviceLinks, copies_per_node: Value) -> Value:
    """Return the time of the exchanges with experts, per mean layer and microbatch.

    Tokens go out and come back, forward and backward, and once more if layers are recomputed.
    Dispatched tokens may be in a narrower format; results are summed and keep their width.
    """
    nodes = i.expert_span
    near = i.ep_size / nodes
    # With a limit on nodes, a token is sent to each of them once.
    limited = is_known(i.expert_nodes)
    by_node = where(limited, 1, copies_per_node) > 0
    back = i.capacity_factor * w.hidden_state / w.sequence_shards
    out = back * i.dispatch_precision.bytes_per_element / i.precision.training_bytes
    # A device sends to all others, or to one in each other node, which forwards tokens.
    others = where(by_node, nodes - 1, i.ep_size - near)
    latency = (near - 1) * links.local.latency + others * links.remote.latency
    local = links.among(near)
    exchanges = []
    for group in i.model.groups:
        if (block := group.experts) is None:
            continue
        visits = block.per_token
        # Experts in a narrower space receive and return tokens of that width.
        narrower = block.token_width(i.model.hidden_dim) / i.model.hidden_dim
        # The router's groups of experts limit the nodes of a token, unless a limit is given.
        most = minimum(nodes, first_known(i.expert_nodes, block.most_nodes(nodes)))
        # A copy that arrives at a node is forwarded to its devices over their links.
        inside = f.local_copies(visits, where(by_node, near, i.ep_size), near)
        outside = where(
            by_node, f.copies_by_node(visits, nodes, most), f.copies_by_expert(visits, nodes)
        )
        both = [
            f.expert_dispatch_time(
                where(block.latent_width > 0, narrower * size, size),
                inside,
                outside,
                local,
                links.remote.bandwidth,
                latency,
            )
            for size in (out, back)
        ]
        exchanges.append((2 + i.recompute.matrix_share) * group.count * sum_of(both))
    return sum_of(exchanges) / i.model.layers if exchanges else i.model.routed_layers * latency


def shard_time(i: TrainingInputs, w: Work, links: DeviceLinks, gradient_bytes: Value) -> Value:
    """Return the time of a layer's weight gathers and gradient scatter, per microbatch.

    Sharded gradients are scattered for each microbatch. Sharded weights are gathered for the
    forward pass, and again for the backward pass unless they are kept.
    """
    gathers = where(i.zero_stage >= 3, where(i.reshard_after_forward > 0, 2, 1), 0)
    # A device may hold a stage and its mirror image; a microbatch passes through only one.
    layers = (1 + i.schedule.bidirectional) * w.stage_layers
    parts = []
    for part in (w.common, w.experts):
        group = _Group(links, part.shards, part.group)
        gather = group.all_gather_time(part.weights / layers)
        scatter = group.reduce_scatter_time(
            part.trained / layers * gradient_bytes / i.gradient_compression
        )
        parts.append(f.shard_traffic_time(gather, gathers, scatter))
    return when(i.zero_stage >= 2, sum_of(parts))


def step_exchanges(
    i: TrainingInputs, w: Work, links: DeviceLinks, gradient_bytes: Value
) -> tuple[Value, Value]:
    """Return the times of the exchanges of gradients and weights that happen once per step.

    For everything not sharded layer by layer, gradients are reduce-scattered within a sharding
    group and summed between such groups, and weights are gathered after the update.
    """
    gradients, weights = [], []
    for part in (w.common, w.experts):
        size = part.trained * gradient_bytes / i.gradient_compression
        shards = _Group(links, part.shards, part.group)
        same_shards = _Group(links, part.replicas / part.shards, part.group * part.shards)
        between = same_shards.all_reduce_time(size / part.shards)
        scatter = when(i.zero_stage < 2, shards.reduce_scatter_time(size))
        gradients.append(between + scatter)
        gather = shards.all_gather_time(part.trained * i.precision.training_bytes)
        weights.append(when(i.zero_stage < 3, gather))
    return sum_of(gradients), sum_of(weights)
