"""Kernel of a training step at a constant efficiency: the textbook's account."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from mlsysim.core import formulas as f
from mlsysim.core.numeric import Value, where
from mlsysim.solvers.kernels._training_links import (
    Link,
    all_reduces,
    dispatch_time,
    exchanges,
    expert_ring_size,
    gradients,
    round_time,
)
from mlsysim.solvers.kernels._training_memory import training_memory
from mlsysim.solvers.kernels._training_work import answer, training_work

__all__ = ["training_step"]


def training_step(**inputs: Value) -> dict[str, Any]:
    """One step of distributed training in which nothing overlaps.

    Parameters
    ----------
    layers, hidden_dim, heads, kv_heads, head_dim, ffn_dim, mlp_matrices, vocab_size : [1]
        Shape of the model.
    attended_fraction : [1]
        Share of the positions that a token attends to.
    dropout, kept_attention_width, embedding_tables : [1]
        1 if training drops elements out; what attention keeps, where it is not counted from the
        heads; tables for input and output.
    experts, experts_per_token, expert_ffn_dim, shared_ffn_dim, moe_layers : [1]
        Shape of its experts; one expert, visited by all, where it has none.
    parameters : [param]
        Parameters of the model.
    nodes, devices_per_node, nics_per_node : [1]
        The fleet.
    peak_rate : [flop/s]
        Dense peak rate of a device, in the format of the products.
    memory_capacity : [byte]
        Memory of a device.
    local_bandwidth, nic_bandwidth : [byte/s]
        Bandwidth of a device within its node, and of one network port, one direction.
    local_latency, nic_latency : [s]
        Latencies within a node and between nodes.
    batch_size : [1]
        Sequences in the global batch.
    seq_len : [token]
        Tokens in each sequence.
    tp_size, pp_size, cp_size, ep_size, zero_stage : [1]
        Ways to split the work and the states.
    microbatch_count, virtual_stages, all_forward_first : [1]
        The pipeline's schedule.
    gradient_compression : [1]
        Bytes of gradients over bytes that are sent of them.
    sequence_parallel : [1]
        1 if norms and dropouts are split over the tensor-parallel ranks, else 0.
    bytes_per_element, gradient_bytes, mask_bytes, moment_bytes, master_bytes : [byte]
        Bytes of one activation or weight, gradient, dropout mask, pair of moments, master weight.
    statistic_bytes : [byte]
        Bytes of the statistic that fused attention keeps per query and head.
    matrix_share, score_share, kept_scores, all_reduces_per_layer : [1]
        What is computed again, and what is kept.
    fused_attention : [1]
        1 if attention is one kernel that keeps no scores, else 0.
    flops_per_mac : [flop]
        Operations of one multiply-accumulate.
    efficiency : [1]
        Share of the peak rate that arithmetic reaches.
    design_power : [W]
        Design power of a device.
    constant_share, compute_share, memory_share, idle_share : [1]
        Shares of it: constant power, arithmetic at the peak rate, traffic at the full bandwidth,
        and an idle device.
    """
    i = SimpleNamespace(**inputs)
    w = training_work(i)
    compute = f.compute_time(w.device_flops, i.peak_rate, i.efficiency)

    # Links
    remote = f.nic_share(i.nic_bandwidth, i.nics_per_node, i.devices_per_node)
    links = (i.local_bandwidth, i.local_latency, remote, i.nic_latency)
    tensor = f.layer_all_reduce_time(
        f.hierarchical_all_reduce_time(
            w.hidden_state, i.tp_size, f.local_ranks(i.tp_size, i.devices_per_node), *links
        ),
        all_reduces(i, w),
        w.stage_layers,
        i.microbatch_count,
    )
    # With more than one node, some pair of neighbouring stages sits on two; the slowest decides.
    pipeline = f.pipeline_transfer_time(
        f.point_to_point_time(
            f.tensor_slice(w.hidden_state, i.tp_size),
            where(i.nodes > 1, remote, i.local_bandwidth),
            where(i.nodes > 1, i.nic_latency, i.local_latency),
        ),
        i.microbatch_count,
        i.virtual_stages,
        i.pp_size,
    )
    # Nothing overlaps, so no attention covers the keys and values that go round.
    tokens = f.token_count(w.own_sequences, i.seq_len)
    context = f.step_share(
        f.uncovered_time(
            round_time(i, tokens, _link(i, remote, i.cp_size, i.tp_size)), 0, i.matrix_share
        ),
        w.stage_layers,
        i.microbatch_count,
    )
    exchange = f.step_share(
        f.expert_exchange_time(
            dispatch_time(i, w, i.local_bandwidth, remote, 0), i.layers, i.moe_layers
        ),
        w.stage_layers,
        i.microbatch_count,
    )
    common, experts = gradients(i, w)
    replicas = expert_ring_size(i, w)
    data = f.gradient_exchange_time(
        f.time_sum(
            f.hierarchical_all_reduce_time(
                common, w.replicas, _near(i, w.replicas, i.tp_size), *links
            ),
            f.hierarchical_all_reduce_time(
                experts, replicas, _near(i, replicas, w.expert_group), *links
            ),
        ),
        f.exchange_volume(*exchanges(i)),
    )

    busy = f.busy_time(compute, f.time_sum(tensor, f.time_sum(context, exchange)), pipeline)
    bubble = f.pipeline_bubble_time(busy, i.pp_size, i.microbatch_count, i.virtual_stages)
    step = f.step_time(busy, bubble, data)
    return answer(
        i,
        w,
        training_memory(i, w),
        step=step,
        alone=f.compute_time(w.model_flops, i.peak_rate, i.efficiency),
        compute=compute,
        data=data,
        tensor=tensor,
        pipeline=pipeline,
        context=context,
        exchange=exchange,
        bubble=bubble,
        mfu=f.flops_utilization(w.model_flops, step, i.peak_rate, w.devices),
        hfu=f.flops_utilization(w.hardware_flops, step, i.peak_rate, w.devices),
        mbu=0,  # the textbook counts no memory traffic
    )


def _near(i: SimpleNamespace, ranks: Value, stride: Value) -> Value:
    """Return the ranks of a group that share a node."""
    return f.local_ranks(ranks, f.node_slots(i.devices_per_node, stride))


def _link(i: SimpleNamespace, remote: Value, ranks: Value, stride: Value) -> Link:
    """Return bandwidth and latency of the slowest link between two ranks of a group."""
    inside = _near(i, ranks, stride) >= ranks
    return where(inside, i.local_bandwidth, remote), where(inside, i.local_latency, i.nic_latency)
