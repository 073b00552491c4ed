"""What a training step sends, and over which links of the groups that share it."""

from __future__ import annotations

from types import SimpleNamespace

from mlsysim.core import formulas as f
from mlsysim.core.numeric import Value, where
from mlsysim.solvers.kernels._training_work import Work

__all__: list[str] = []  # parts of a kernel, no kernel of their own


def ring(
    i: SimpleNamespace, local: Value, remote: Value, ranks: Value, stride: Value
) -> tuple[Value, Value]:
    """Return bandwidth and latency of a ring through the nodes that a group spans."""
    near = f.local_ranks(ranks, f.node_slots(i.devices_per_node, stride))
    inside = near >= ranks
    bandwidth = where(inside, local, f.group_ring_bandwidth(local, remote, near))
    return bandwidth, where(inside, i.local_latency, i.nic_latency)


def round_time(i: SimpleNamespace, tokens: Value, link: tuple[Value, Value]) -> Value:
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


def gradients(i: SimpleNamespace, w: Work) -> tuple[Value, Value, Value, Value]:
    """Return gradients that all replicas share, those of experts, their replicas and group."""
    group = f.expert_group_size(i.tp_size, i.ep_size)
    replicas = f.data_parallel_size(w.devices, group, i.pp_size, 1)
    # Half of the exchange, or two thirds where the weights are sharded too, carries weights.
    weights = where(i.zero_stage >= 3, 2 / 3, where(i.zero_stage >= 1, 1 / 2, 0))

    def sent(parameters: Value) -> Value:
        size = f.tensor_size(parameters, i.gradient_bytes)
        return f.compressed_size(size, i.gradient_compression, weights)

    return (
        sent(f.common_parameters(w.own_parameters, w.own_experts)),
        sent(w.own_experts),
        where(i.moe_layers > 0, replicas, 1),
        group,
    )


def gather_time(i: SimpleNamespace, w: Work, link: tuple[Value, Value]) -> Value:
    """Return the time of a layer's weight gathers and gradient scatter, per microbatch."""
    layer_size = f.tensor_size(
        f.parameter_share(w.own_parameters, w.stage_layers), i.bytes_per_element
    )
    return f.shard_traffic_time(
        f.all_gather_time(layer_size, w.replicas, *link),
        where(i.zero_stage >= 3, 2, 1),
        f.compressed_scatters(i.gradient_scatters, i.gradient_compression),
    )
