"""Communication of a training step, and the links that carry it."""

from __future__ import annotations

from dataclasses import dataclass

from mlsysim.core import formulas as f
from mlsysim.core.numeric import Value, where
from mlsysim.core.types.layers import ExpertBlock
from mlsysim.solvers.layer import mean_over
from mlsysim.solvers.training.inputs import TrainingInputs
from mlsysim.solvers.training.work import Work
from mlsysim.solvers.work import sum_of

__all__ = [
    "DeviceLinks",
    "Link",
    "all_reduces",
    "exchange_time",
    "expert_ring_size",
    "gather_time",
    "gradient_sizes",
    "near_ranks",
    "ring",
    "round_time",
    "stage_transfer_time",
    "step_exchanges",
]


@dataclass(frozen=True)
class Link:
    """A link in one direction."""

    bandwidth: Value
    latency: Value


@dataclass(frozen=True)
class DeviceLinks:
    """A device's links: to the others in its node, and its share of the network ports."""

    local: Link
    remote: Link


def near_ranks(i: TrainingInputs, ranks: Value, stride: Value) -> Value:
    """Return the ranks of a group that share a node, `stride` devices apart."""
    return f.local_ranks(ranks, f.node_slots(i.fleet.node.accelerators_per_node, stride))


def ring(i: TrainingInputs, links: DeviceLinks, ranks: Value, stride: Value) -> Link:
    """Return bandwidth and latency of a ring through the nodes that a group spans."""
    near = near_ranks(i, ranks, stride)
    inside = near >= ranks
    local, remote = links.local, links.remote
    return Link(
        where(
            inside, local.bandwidth, f.group_ring_bandwidth(local.bandwidth, remote.bandwidth, near)
        ),
        where(inside, local.latency, remote.latency),
    )


def all_reduces(i: TrainingInputs, w: Work) -> Value:
    """Return the tensor-parallel all-reduces of a mean layer.

    Half of them belong to attention, half to the feed-forward block. Where ranks hold different
    whole experts, the latter half is not needed: tokens are exchanged instead.
    """
    each = i.recompute.all_reduces_per_layer
    parts = []
    for group in i.model.groups:
        block = group.feed_forward
        if isinstance(block, ExpertBlock):
            whole = (w.expert_group <= i.ep_size) & (block.shared_width == 0)
            parts.append(each * where(whole, 1 / 2, 1))
        else:
            parts.append(each)
    return mean_over(i.model, parts)


def round_time(i: TrainingInputs, w: Work, link: Link) -> Value:
    """Return the time in which keys and values go round the ranks that share a sequence."""
    a = i.model.attention
    layer = f.kv_cache_size(1, a.kv_heads, a.head_dim, w.own_tokens, i.precision.training_bytes)
    return f.context_exchange_time(
        f.kv_per_device(layer, i.tp_size, a.kv_heads), i.cp_size, link.bandwidth, link.latency
    )


def stage_transfer_time(i: TrainingInputs, w: Work, links: DeviceLinks) -> Value:
    """Return the time in which stages hand activations on and gradients back.

    With more than one node, some pair of neighboring stages sits on two; the slowest decides.
    """
    several = i.fleet.count > 1
    transfer = f.point_to_point_time(
        w.hidden_state / i.tp_size,
        where(several, links.remote.bandwidth, links.local.bandwidth),
        where(several, links.remote.latency, links.local.latency),
    )
    return f.pipeline_transfer_time(transfer, i.microbatch_count, i.virtual_stages, i.pp_size)


def exchange_time(i: TrainingInputs, w: Work, links: DeviceLinks, copies_per_node: Value) -> Value:
    """Return the time of the exchanges with experts, per mean layer and microbatch.

    Tokens go out and come back, forward and backward: four exchanges for each layer with experts.
    """
    near = f.local_ranks(i.ep_size, i.fleet.node.accelerators_per_node)
    nodes = i.ep_size / near
    own_state = w.hidden_state / w.sequence_shards
    latency = (i.ep_size - 1) * where(near >= i.ep_size, links.local.latency, links.remote.latency)
    dispatch = []
    for group in i.model.groups:
        block = group.feed_forward
        if not isinstance(block, ExpertBlock):
            continue
        visits = block.experts_per_token
        time = f.expert_dispatch_time(
            own_state,
            f.local_copies(visits, i.ep_size, near),
            where(
                copies_per_node > 0,
                f.copies_by_node(visits, nodes),
                f.copies_by_expert(visits, nodes),
            ),
            links.local.bandwidth,
            links.remote.bandwidth,
            latency,
        )
        dispatch.append(4 * group.count * time)
    return sum_of(dispatch) / i.model.layers if dispatch else i.model.moe_layers * latency


def expert_ring_size(i: TrainingInputs, w: Work) -> Value:
    """Return the replicas of experts that exchange anything: one where there are no experts."""
    return where(i.model.moe_layers > 0, w.expert_replicas, 1)


def step_exchanges(i: TrainingInputs) -> tuple[Value, Value]:
    """Return a step's scatters of gradients, and gathers: one of each make an all-reduce."""
    return (
        where(i.zero_stage >= 2, i.microbatch_count, 1),
        # Sharded weights are gathered for the forward and for the backward pass.
        where(i.zero_stage >= 3, 2 * i.microbatch_count, 1),
    )


def gradient_sizes(i: TrainingInputs, w: Work) -> tuple[Value, Value]:
    """Return what is sent of the gradients that all replicas share, and of those of experts."""
    scatters, gathers = step_exchanges(i)
    # Replicas that each update all weights gather gradients; the others gather weights.
    weights = where(i.zero_stage >= 1, gathers / (scatters + gathers), 0)

    def sent(parameters: Value) -> Value:
        size = parameters * i.gradient_precision.training_bytes
        return f.compressed_size(size, i.gradient_compression, weights)

    return sent(w.own_common), sent(w.own_experts)


def gather_time(i: TrainingInputs, w: Work, link: Link, expert_link: Link) -> Value:
    """Return the time of a layer's weight gathers and gradient scatter, per microbatch."""

    def gather(parameters: Value, ranks: Value, link: Link) -> Value:
        layer = parameters / w.stage_layers * i.precision.training_bytes
        return f.all_gather_time(layer, ranks, link.bandwidth, link.latency)

    once = gather(w.own_common, w.replicas, link) + gather(
        w.own_experts, expert_ring_size(i, w), expert_link
    )
    return f.shard_traffic_time(
        once,
        where(i.zero_stage >= 3, 2, 1),
        i.calibration.gradient_scatters / i.gradient_compression,
    )
