"""Kernel of a training step from its operators: formulas composed, and nothing else."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from mlsysim.core import formulas as f
from mlsysim.core.numeric import Value, where
from mlsysim.solvers.kernels._operator_layer import (
    Rates,
    attention_time,
    head,
    layer,
    rates,
)
from mlsysim.solvers.kernels._power import flops_share
from mlsysim.solvers.kernels._training_links import (
    all_reduces,
    dispatch_time,
    expert_ring_size,
    gather_time,
    gradients,
    ring,
    round_time,
)
from mlsysim.solvers.kernels._training_memory import training_memory
from mlsysim.solvers.kernels._training_work import Work, answer, training_work

__all__ = ["operator_step"]


def operator_step(**inputs: Value) -> dict[str, Any]:
    """One step of distributed training, timed operator by operator.

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
    flops_per_mac : [flop]
        Operations of one multiply-accumulate.
    wide_peak_rate : [flop/s]
        Dense peak rate in the format of attention and logits.
    memory_bandwidth : [byte/s]
        Memory bandwidth of a device.
    fused_attention, written_scores, attention_backward : [1]
        How attention is computed.
    gemm_efficiency, wide_gemm_efficiency, attention_efficiency, memory_efficiency : [1]
        Shares of the datasheet's rates that operators reach.
    expert_efficiency : [1]
        Share of a product's rate that experts' grouped products reach.
    link_efficiency, nic_efficiency : [1]
        Shares of the links' bandwidth that collectives reach.
    elementwise_backward : [1]
        Backward over forward in element-wise operators.
    score_bytes, hidden_bytes, ffn_bytes, cast_bytes, loss_bytes, optimizer_bytes : [byte]
        Memory traffic per attention score, residual and inner element, conversion, logit and
        parameter.
    routing_bytes, bias_bytes : [byte]
        Memory traffic per element that is routed to experts, and to add their biases.
    expert_biases, copies_per_node : [1]
        1 if experts add biases, and if tokens go to a node once; else 0.
    gather_overlap, gradient_overlap, plain_overlap, exchange_overlap, tensor_overlap : [1]
        What overlaps with computation.
    gradient_scatters, launch_exposed : [1]
        What overlaps, and the volume of a gradient scatter.
    gemm_overhead, collective_overhead, layer_launch, expert_launch, step_overhead : [s]
        Fixed time per product, per blocking all-reduce, per layer's forward pass, and per step.
    node_band_low, node_band_high, fleet_band_low, fleet_band_high : [1]
        Measured over predicted step time, at the edges of the band.
    expert_band_low, expert_band_high : [1]
        Measured over predicted step time, at the edges of the band.
    design_power : [W]
        Design power of a device.
    constant_share, compute_share, memory_share, idle_share : [1]
        Shares of it: constant power, arithmetic at the peak rate, traffic at the full bandwidth,
        and an idle device.
    """
    i = SimpleNamespace(**inputs)
    r = rates(i)
    w = training_work(i)
    tokens = f.token_count(w.own_sequences, i.seq_len)

    # One layer on one microbatch
    one = layer(i, r, tokens, w.own_sequences)
    all_reduce = f.time_sum(
        f.ring_all_reduce_time(
            w.hidden_state, i.tp_size, *ring(i, r.local, r.remote, i.tp_size, 1)
        ),
        where(i.tp_size > 1, i.collective_overhead, 0),
    )
    # Keys and values go round while attention works on those that came before.
    rounds = round_time(i, tokens, ring(i, r.local, r.remote, i.cp_size, i.tp_size))
    all_context = f.uncovered_time(rounds, 0, i.matrix_share)
    context = f.uncovered_time(
        rounds, f.covering_time(attention_time(i, tokens), i.cp_size), i.matrix_share
    )
    # Products hide a collective over a node's own links: no framework hides one that leaves the
    # node (github.com/NVIDIA/TransformerEngine/issues/1071). No more is hidden than there is work,
    # and what hides one communication hides no other.
    inside = f.local_ranks(i.tp_size, i.devices_per_node) >= i.tp_size
    all_tensor = f.layer_all_reduce_time(all_reduce, all_reduces(i, w), 1, 1)
    cover = f.cover_left(one.time, all_context, context)
    tensor = f.covered_time(all_tensor, where(inside, i.tensor_overlap, 0), cover)
    all_exchange = f.expert_exchange_time(
        dispatch_time(i, w, r.local, r.remote, i.copies_per_node), i.layers, i.moe_layers
    )
    exchange = f.covered_time(
        all_exchange, i.exchange_overlap, f.cover_left(cover, all_tensor, tensor)
    )
    on_device = f.launch_limited_time(
        f.time_sum(f.device_layer_time(one.time, tensor, exchange), context),
        f.layer_launch_time(
            i.layer_launch,
            i.expert_launch,
            i.layers,
            i.moe_layers,
            i.elementwise_backward,
            i.matrix_share,
        ),
        i.launch_exposed,
    )
    # Weights gathered layer by layer, where they are sharded
    link = ring(i, r.local, r.remote, w.replicas, i.tp_size)
    expert_link = ring(i, r.local, r.remote, expert_ring_size(i, w), w.expert_group)
    gathers = gather_time(i, w, link, expert_link)
    per_layer = where(
        i.zero_stage >= 2,
        f.gathered_layer_time(on_device, gathers, i.gather_overlap),
        on_device,
    )

    # The pipeline
    last = head(i, r, tokens)
    transfer = f.pipeline_transfer_time(
        f.point_to_point_time(
            f.tensor_slice(w.hidden_state, i.tp_size),
            where(i.nodes > 1, r.remote, r.local),
            where(i.nodes > 1, i.nic_latency, i.local_latency),
        ),
        i.microbatch_count,
        i.virtual_stages,
        i.pp_size,
    )
    passes = f.pipeline_pass_time(per_layer, w.stage_layers, last.time, i.microbatch_count)
    # A stage that waits for the others waits for mean ones, which have their part of the head.
    mean = f.pipeline_pass_time(
        per_layer, w.stage_layers, f.stage_share(last.time, i.pp_size), i.microbatch_count
    )
    bubble = f.pipeline_bubble_time(mean, i.pp_size, i.microbatch_count, i.virtual_stages)

    # Once per step
    common, experts = gradients(i, w)
    gradient = f.time_sum(
        f.ring_all_reduce_time(common, w.replicas, *link),
        f.ring_all_reduce_time(experts, expert_ring_size(i, w), *expert_link),
    )
    # The reduction follows the last microbatch's backward pass, the gathers the first's forward.
    # Gradients that are sharded are scattered layer by layer, above.
    data = f.covered_time(
        gradient,
        where(
            i.zero_stage >= 2,
            1,
            where(i.zero_stage >= 1, i.gradient_overlap, i.plain_overlap),
        ),
        where(i.zero_stage >= 2, gradient, f.microbatch_time(passes, i.microbatch_count)),
    )
    sharded = i.zero_stage >= 1
    updated = f.parameters_held(
        f.parameter_share(
            f.common_parameters(w.own_parameters, w.own_experts), where(sharded, w.replicas, 1)
        ),
        f.parameter_share(w.own_experts, where(sharded, w.expert_replicas, 1)),
    )
    written = f.tensor_size(updated, i.optimizer_bytes)
    update = f.memory_time(written, r.memory)
    step = f.operator_step_time(f.time_sum(passes, transfer), bubble, data, update, i.step_overhead)
    traffic = f.step_traffic(
        w.stage_layers,
        i.microbatch_count,
        one.streamed,
        r.memory,
        one.products,
        f.stage_share(last.memory, i.pp_size),
        i.matrix_share,
        written,
    )
    mbu = f.bandwidth_utilization(traffic, step, i.memory_bandwidth)
    # Sharded gradients wait with the layers instead of at the end.
    sharded_data = i.zero_stage >= 2

    def whole(layer: Value) -> Value:
        return f.step_share(layer, w.stage_layers, i.microbatch_count)

    exposed = {
        "data": where(
            sharded_data, whole(f.waiting_time(on_device, gathers, i.gather_overlap)), data
        ),
        "tensor": whole(tensor),
        "pipeline": transfer,
        "context": whole(context),
        "exchange": whole(exchange),
    }
    outputs = answer(
        i,
        w,
        training_memory(i, w),
        step=step,
        alone=_alone(i, r, w),
        compute=f.pipeline_pass_time(one.time, w.stage_layers, last.time, i.microbatch_count),
        **exposed,
        all_communication=f.communication_time(
            where(sharded_data, whole(gathers), gradient),
            whole(all_tensor),
            transfer,
            whole(all_context),
            whole(all_exchange),
        ),
        bubble=bubble,
        mfu=flops_share(i, w.model_flops, w.wide_model_flops, step, w.devices),
        hfu=flops_share(i, w.hardware_flops, w.wide_hardware_flops, step, w.devices),
        mbu=mbu,
    )
    several, mixed = i.nodes > 1, i.moe_layers > 0
    low = where(several, i.fleet_band_low, i.node_band_low)
    high = where(several, i.fleet_band_high, i.node_band_high)
    return outputs | {
        "mbu": mbu,
        "step_latency_low": f.band_edge(step, where(mixed, i.expert_band_low, low)),
        "step_latency_high": f.band_edge(step, where(mixed, i.expert_band_high, high)),
    }


def _alone(i: SimpleNamespace, r: Rates, w: Work) -> Value:
    """Return the time of the whole step on one device that holds it all, and needs no microbatches.

    Every operator has all its rows at once, so that no fleet is faster than its devices.
    """
    whole = {"tp_size": 1, "ep_size": 1, "sequence_parallel": 0, "matrix_share": 0}
    one = SimpleNamespace(**{**vars(i), **whole, "score_share": 0})
    return f.pipeline_pass_time(
        layer(one, r, w.tokens, i.batch_size).time, i.layers, head(one, r, w.tokens).time, 1
    )
