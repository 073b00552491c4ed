"""What a training step sends, and over which links of the groups that share it."""

from __future__ import annotations

from types import SimpleNamespace

from mlsysim.core import formulas as f
from mlsysim.core.numeric import Value, where
from mlsysim.solvers.kernels._training_work import Work

__all__: list[str] = []  # parts of a kernel, no kernel of their own

Link = tuple[Value, Value]
"""Bandwidth and latency."""


def ring(i: SimpleNamespace, local: Value, remote: Value, ranks: Value, stride: Value) -> Link:
    """Return bandwidth and latency of a ring through the nodes that a group spans."""
    near = f.local_ranks(ranks, f.node_slots(i.devices_per_node, stride))
    inside = near >= ranks
    bandwidth = where(inside, local, f.group_ring_bandwidth(local, remote, near))
    return bandwidth, where(inside, i.local_latency, i.nic_latency)


def all_reduces(i: SimpleNamespace, w: Work) -> Value:
    """Return the tensor-parallel all-reduces of a mean layer."""
    whole = (w.expert_group <= i.ep_size) & (i.shared_ffn_dim == 0)
    return f.mean_all_reduces(i.all_reduces_per_layer, i.layers, i.moe_layers, where(whole, 1, 0))


def round_time(i: SimpleNamespace, tokens: Value, link: Link) -> Value:
    """Return the time in which keys and values go round the ranks that share a sequence."""
    return f.context_exchange_time(
        f.key_value_size(tokens, i.kv_heads, i.head_dim, i.tp_size, i.bytes_per_element),
        i.cp_size,
        *link,
    )


def dispatch_time(
    i: SimpleNamespace, w: Work, local: Value, remote: Value, copies_per_node: Value
) -> Value:
    """Return the time of one exchange with experts, in sight of computation."""
    near = f.local_ranks(i.ep_size, i.devices_per_node)
    spanned = f.spanned_nodes(i.ep_size, near)
    return f.expert_dispatch_time(
        f.tensor_slice(w.hidden_state, where(i.sequence_parallel > 0, i.tp_size, 1)),
        f.local_copies(i.experts_per_token, i.ep_size, near),
        where(
            copies_per_node > 0,
            f.copies_by_node(i.experts_per_token, spanned),
            f.copies_by_expert(i.experts_per_token, spanned),
        ),
        local,
        remote,
        f.pairwise_latency(i.ep_size, where(near >= i.ep_size, i.local_latency, i.nic_latency)),
    )


def expert_ring_size(i: SimpleNamespace, w: Work) -> Value:
    """Return the replicas of experts that exchange anything: one where there are no experts."""
    return where(i.moe_layers > 0, w.expert_replicas, 1)


def exchanges(i: SimpleNamespace) -> tuple[Value, Value]:
    """Return a step's scatters of gradients, and gathers: one of each make an all-reduce."""
    return (
        where(i.zero_stage >= 2, i.microbatch_count, 1),
        where(i.zero_stage >= 3, f.weight_gathers(i.microbatch_count), 1),
    )


def gradients(i: SimpleNamespace, w: Work) -> tuple[Value, Value]:
    """Return what is sent of the gradients that all replicas share, and of those of experts."""
    # Replicas that each update all weights gather gradients; the others gather weights.
    weights = where(i.zero_stage >= 1, f.weights_share(*exchanges(i)), 0)

    def sent(parameters: Value) -> Value:
        size = f.tensor_size(parameters, i.gradient_bytes)
        return f.compressed_size(size, i.gradient_compression, weights)

    return (
        sent(f.common_parameters(w.own_parameters, w.own_experts)),
        sent(w.own_experts),
    )


def gather_time(i: SimpleNamespace, w: Work, link: Link, expert_link: Link) -> Value:
    """Return the time of a layer's weight gathers and gradient scatter, per microbatch."""

    def gather(parameters: Value, ranks: Value, ring: Link) -> Value:
        layer = f.parameter_share(parameters, w.stage_layers)
        return f.all_gather_time(f.tensor_size(layer, i.bytes_per_element), ranks, *ring)

    return f.shard_traffic_time(
        f.time_sum(
            gather(f.common_parameters(w.own_parameters, w.own_experts), w.replicas, link),
            gather(w.own_experts, expert_ring_size(i, w), expert_link),
        ),
        where(i.zero_stage >= 3, 2, 1),
        f.compressed_scatters(i.gradient_scatters, i.gradient_compression),
    )
