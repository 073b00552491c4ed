"""Kernel of a training step from its operators: formulas composed, and nothing else."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from mlsysim.core import formulas as f
from mlsysim.core.numeric import Value, floor, where
from mlsysim.solvers.kernels.operator_layer import Rates, head, layer, rates
from mlsysim.solvers.kernels.training_memory import training_memory

__all__ = ["operator_step"]


def operator_step(**inputs: Value) -> dict[str, Any]:
    """One step of distributed training, timed operator by operator.

    Parameters
    ----------
    layers, hidden_dim, heads, kv_heads, head_dim, ffn_dim, mlp_matrices, vocab_size : [1]
        Shape of the model.
    attended_fraction : [1]
        Share of the positions that a token attends to.
    experts, experts_per_token, expert_ffn_dim, shared_ffn_dim, moe_layers : [1]
        Shape of its experts; one expert, visited by all, where it has none.
    parameters : [param]
        Parameters of the model.
    nodes, devices_per_node, nics_per_node : [1]
        The fleet.
    peak_rate, wide_peak_rate : [flop/s]
        Dense peak rate in the format of the products, and of attention and logits.
    memory_bandwidth : [byte/s]
        Memory bandwidth of a device.
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
    sequence_parallel, fused_attention : [1]
        1 or 0.
    bytes_per_element, gradient_bytes, mask_bytes, moment_bytes, master_bytes : [byte]
        Bytes of one activation or weight, gradient, dropout mask, pair of moments, master weight.
    matrix_share, score_share, kept_scores, all_reduces_per_layer : [1]
        What is computed again, and what is kept.
    flops_per_mac : [flop]
        Operations of one multiply-accumulate.
    gemm_efficiency, wide_gemm_efficiency, attention_efficiency, memory_efficiency : [1]
        Shares of the datasheet's rates that operators reach.
    link_efficiency, nic_efficiency : [1]
        Shares of the links' bandwidth that collectives reach.
    attention_backward, elementwise_backward : [1]
        Backward over forward.
    score_bytes, hidden_bytes, ffn_bytes, loss_bytes, optimizer_bytes : [byte]
        Memory traffic per attention score, residual and inner element, logit and parameter.
    gather_overlap, gradient_overlap, gradient_scatters : [1]
        What overlaps, and the volume of a gradient scatter.
    gemm_overhead, layer_launch, step_overhead : [s]
        Fixed time per product, per layer's forward pass, and per step.
    """
    i = SimpleNamespace(**inputs)
    r = rates(i)

    # Sizes of the groups
    devices = f.fleet_devices(i.nodes, i.devices_per_node)
    dp_size = f.data_parallel_size(devices, i.tp_size, i.pp_size, i.cp_size)
    replicas = f.state_replicas(dp_size, i.cp_size)
    sequences = f.microbatch_size(i.batch_size, dp_size, i.microbatch_count)
    shared_sequences = f.sequences_per_rank(sequences, i.cp_size)
    tokens = f.token_count(shared_sequences, i.seq_len)
    stage_layers = f.layers_per_stage(i.layers, i.pp_size)
    imbalance = f.stage_imbalance(i.layers, i.pp_size, stage_layers)

    # One layer on one microbatch
    computed = layer(i, r, tokens, shared_sequences)
    hidden_state = f.hidden_state_size(
        i.seq_len, shared_sequences, i.hidden_dim, i.bytes_per_element
    )
    all_reduce = f.ring_all_reduce_time(hidden_state, i.tp_size, *_ring(i, r, i.tp_size, 1))
    tensor = f.layer_all_reduce_time(all_reduce, i.all_reduces_per_layer, 1, 1)
    expert = f.expert_exchange_time(
        f.all_to_all_time(
            f.routed_size(hidden_state, i.experts_per_token),
            i.ep_size,
            *_ring(i, r, i.ep_size, i.tp_size),
        ),
        i.layers,
        i.moe_layers,
    )
    on_device = f.launch_limited_time(
        f.device_layer_time(computed, tensor, expert),
        f.layer_launch_time(i.layer_launch, i.elementwise_backward, i.matrix_share),
    )

    # Weights gathered layer by layer, where they are sharded
    experts = f.expert_parameters(
        i.moe_layers, i.experts, i.mlp_matrices, i.hidden_dim, i.expert_ffn_dim
    )
    own_parameters = f.sharded_parameters(
        i.parameters, experts, i.tp_size, i.pp_size, i.ep_size, imbalance
    )
    link = _ring(i, r, replicas, i.tp_size)
    gathers = f.shard_traffic_time(
        f.all_gather_time(
            f.tensor_size(
                f.parameter_share(own_parameters, stage_layers), i.bytes_per_element
            ),
            replicas,
            *link,
        ),
        where(i.zero_stage >= 3, 2, 1),
        i.gradient_scatters,
    )
    sharded = i.zero_stage >= 2
    per_layer = where(
        sharded, f.gathered_layer_time(on_device, gathers, i.gather_overlap), on_device
    )

    # The pipeline
    last = head(i, r, tokens)
    transfer = f.pipeline_transfer_time(
        f.point_to_point_time(
            f.tensor_slice(hidden_state, i.tp_size),
            where(i.nodes > 1, r.remote, r.local),
            where(i.nodes > 1, i.nic_latency, i.local_latency),
        ),
        i.microbatch_count,
        i.virtual_stages,
        i.pp_size,
    )
    passes = f.pipeline_pass_time(per_layer, stage_layers, last, i.microbatch_count)
    busy = f.time_sum(passes, transfer)
    # A stage that waits for another waits for the mean one, which has its part of the head.
    mean = f.pipeline_pass_time(
        per_layer, stage_layers, f.stage_share(last, i.pp_size), i.microbatch_count
    )
    bubble = f.pipeline_bubble_time(mean, i.pp_size, i.microbatch_count, i.virtual_stages)

    # Once per step
    gradient = f.ring_all_reduce_time(
        f.tensor_size(own_parameters, i.gradient_bytes), replicas, *link
    )
    hidden = where(sharded, 1, where(i.zero_stage >= 1, i.gradient_overlap, 0))
    exposed = f.exposed_time(gradient, hidden)
    update = f.memory_time(
        f.tensor_size(
            f.parameter_share(own_parameters, where(i.zero_stage >= 1, replicas, 1)),
            i.optimizer_bytes,
        ),
        r.memory,
    )
    step = f.operator_step_time(busy, bubble, exposed, update, i.step_overhead)
    memory = training_memory(
        i,
        sequences=shared_sequences,
        stage_layers=stage_layers,
        own_parameters=own_parameters,
        replicas=replicas,
        hidden_state=hidden_state,
    )
    whole = floor(sequences) == sequences
    return {
        "step_latency_total": step,
        "gradient": exposed,
        "busy": busy,
        "whole_microbatches": whole,
        "feasible": memory["fits_memory"] & whole,
        "dp_size": dp_size,
        "microbatch_size": sequences,
        **memory,
    }


def _ring(i: SimpleNamespace, r: Rates, ranks: Value, stride: Value) -> tuple[Value, Value]:
    """Return bandwidth and latency of a ring through the nodes that a group spans."""
    near = f.local_ranks(ranks, f.node_slots(i.devices_per_node, stride))
    inside = near >= ranks
    bandwidth = where(inside, r.local, f.group_ring_bandwidth(r.local, r.remote, near))
    return bandwidth, where(inside, i.local_latency, i.nic_latency)
