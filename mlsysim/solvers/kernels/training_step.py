"""Kernel of a distributed training step: formulas composed, and nothing else."""

from __future__ import annotations

from typing import Any

from mlsysim.core.formulas import (
    activation_memory_per_layer,
    attention_parameters,
    attention_score_flops,
    busy_time,
    communication_time,
    compute_time,
    data_parallel_size,
    device_flops,
    fleet_devices,
    flops_utilization,
    forward_flops,
    hidden_state_size,
    hierarchical_all_reduce_time,
    interleaving_factor,
    layer_all_reduce_time,
    layers_per_stage,
    local_ranks,
    logit_flops,
    matrix_flops,
    memory_sum,
    microbatch_size,
    microbatches_in_flight,
    mlp_parameters,
    nic_share,
    node_slots,
    operations_sum,
    optimizer_state_size,
    parameters_per_device,
    pipeline_bubble_fraction,
    pipeline_bubble_time,
    pipeline_transfer_time,
    point_to_point_time,
    recomputed_flops,
    sample_rate,
    scaling_efficiency,
    stage_activation_memory,
    stage_imbalance,
    step_time,
    tensor_size,
    tensor_slice,
    token_count,
    training_flops,
)
from mlsysim.core.numeric import Value, floor, where

__all__ = ["training_step"]


def training_step(
    layers: Value,
    hidden_dim: Value,
    heads: Value,
    kv_heads: Value,
    head_dim: Value,
    ffn_dim: Value,
    mlp_matrices: Value,
    vocab_size: Value,
    attended_fraction: Value,
    parameters: Value,
    nodes: Value,
    devices_per_node: Value,
    nics_per_node: Value,
    peak_rate: Value,
    memory_capacity: Value,
    local_bandwidth: Value,
    local_latency: Value,
    nic_bandwidth: Value,
    nic_latency: Value,
    batch_size: Value,
    seq_len: Value,
    tp_size: Value,
    pp_size: Value,
    microbatch_count: Value,
    virtual_stages: Value,
    sequence_parallel: Value,
    efficiency: Value,
    bytes_per_element: Value,
    matrix_share: Value,
    score_share: Value,
    kept_scores: Value,
    flops_per_mac: Value,
    mask_bytes: Value,
    all_reduces_per_layer: Value,
    moment_bytes: Value,
    master_bytes: Value,
) -> dict[str, Any]:
    """One step of distributed training in which nothing overlaps.

    Parameters
    ----------
    layers : [1]
        Layers.
    hidden_dim : [1]
        Width of the residual stream.
    heads : [1]
        Attention heads.
    kv_heads : [1]
        Key and value heads.
    head_dim : [1]
        Width of one head.
    ffn_dim : [1]
        Inner width of the feed-forward block.
    mlp_matrices : [1]
        Matrices in the feed-forward block.
    vocab_size : [1]
        Size of the vocabulary.
    attended_fraction : [1]
        Share of the positions that a token attends to.
    parameters : [param]
        Parameters of the model.
    nodes : [1]
        Nodes of the fleet.
    devices_per_node : [1]
        Devices of a node.
    nics_per_node : [1]
        Network ports of a node.
    peak_rate : [flop/s]
        Dense peak rate of a device.
    memory_capacity : [byte]
        Memory of a device.
    local_bandwidth : [byte/s]
        Bandwidth of a device within its node, one direction.
    local_latency : [s]
        Latency within a node.
    nic_bandwidth : [byte/s]
        Bandwidth of one network port, one direction.
    nic_latency : [s]
        Latency between nodes.
    batch_size : [1]
        Sequences in the global batch.
    seq_len : [token]
        Tokens in each sequence.
    tp_size : [1]
        Devices that share each layer.
    pp_size : [1]
        Pipeline stages.
    microbatch_count : [1]
        Microbatches per replica and step.
    virtual_stages : [1]
        Model chunks per stage.
    sequence_parallel : [1]
        1 if norms and dropouts are split over the tensor-parallel ranks, else 0.
    efficiency : [1]
        Share of the peak rate that arithmetic reaches.
    bytes_per_element : [byte]
        Bytes of one weight, gradient or activation.
    matrix_share : [1]
        Share of the matrix products that is recomputed.
    score_share : [1]
        Share of the attention scores that is recomputed.
    kept_scores : [1]
        Share of the attention scores that is kept.
    flops_per_mac : [flop]
        Operations of one multiply-accumulate.
    mask_bytes : [byte]
        Bytes of one element of a dropout mask.
    all_reduces_per_layer : [1]
        All-reduces of tensor parallelism per layer.
    moment_bytes : [byte]
        Bytes of Adam's moments per parameter.
    master_bytes : [byte]
        Bytes of a master weight.
    """
    # Sizes of the groups
    devices = fleet_devices(nodes, devices_per_node)
    dp_size = data_parallel_size(devices, tp_size, pp_size, 1)
    sequences = microbatch_size(batch_size, dp_size, microbatch_count)
    stage_layers = layers_per_stage(layers, pp_size)

    # Operations and the time they take
    tokens = token_count(batch_size, seq_len)
    matrix = matrix_flops(
        layers,
        attention_parameters(hidden_dim, heads, kv_heads, head_dim),
        mlp_parameters(hidden_dim, ffn_dim, mlp_matrices),
        flops_per_mac,
    )
    score = attention_score_flops(
        layers, heads, head_dim, seq_len, attended_fraction, flops_per_mac
    )
    logit = logit_flops(vocab_size, hidden_dim, flops_per_mac)
    model_flops = training_flops(forward_flops(tokens, matrix, score, logit))
    hardware_flops = operations_sum(
        model_flops, recomputed_flops(tokens, matrix, score, matrix_share, score_share)
    )
    imbalance = stage_imbalance(layers, pp_size, stage_layers)
    flops_per_device = device_flops(hardware_flops, devices, imbalance)
    compute = compute_time(flops_per_device, peak_rate, efficiency)

    # Links
    remote_bandwidth = nic_share(nic_bandwidth, nics_per_node, devices_per_node)
    hidden_state = hidden_state_size(seq_len, sequences, hidden_dim, bytes_per_element)
    tensor = layer_all_reduce_time(
        hierarchical_all_reduce_time(
            hidden_state,
            tp_size,
            local_ranks(tp_size, devices_per_node),
            local_bandwidth,
            local_latency,
            remote_bandwidth,
            nic_latency,
        ),
        all_reduces_per_layer,
        stage_layers,
        microbatch_count,
    )
    # With more than one node, some pair of neighbouring stages sits on two; the slowest decides.
    pipeline = pipeline_transfer_time(
        point_to_point_time(
            tensor_slice(hidden_state, tp_size),
            where(nodes > 1, remote_bandwidth, local_bandwidth),
            where(nodes > 1, nic_latency, local_latency),
        ),
        microbatch_count,
        virtual_stages,
        pp_size,
    )
    own_parameters = parameters_per_device(parameters, tp_size, pp_size, imbalance)
    gradients = tensor_size(own_parameters, bytes_per_element)
    data = hierarchical_all_reduce_time(
        gradients,
        dp_size,
        local_ranks(dp_size, node_slots(devices_per_node, tp_size)),
        local_bandwidth,
        local_latency,
        remote_bandwidth,
        nic_latency,
    )

    # The step
    busy = busy_time(compute, tensor, pipeline)
    bubble = pipeline_bubble_time(busy, pp_size, microbatch_count, virtual_stages)
    step = step_time(busy, bubble, data)

    # Memory of the device that holds most
    sequence_shards = where(sequence_parallel > 0, tp_size, 1)
    activations = stage_activation_memory(
        where(
            matrix_share > 0,
            tensor_slice(hidden_state, sequence_shards),
            activation_memory_per_layer(
                seq_len,
                sequences,
                hidden_dim,
                heads,
                tp_size,
                sequence_shards,
                kept_scores,
                bytes_per_element,
                mask_bytes,
            ),
        ),
        stage_layers,
        microbatches_in_flight(pp_size, microbatch_count),
        where(virtual_stages > 1, interleaving_factor(pp_size, virtual_stages), 1),
    )
    weights = tensor_size(own_parameters, bytes_per_element)
    optimizer = optimizer_state_size(own_parameters, bytes_per_element, moment_bytes, master_bytes)
    memory = memory_sum(weights, gradients, optimizer, activations)
    fits_memory = memory <= memory_capacity
    whole_microbatches = floor(sequences) == sequences

    return {
        "step_latency_total": step,
        "effective_throughput": sample_rate(batch_size, step),
        "token_throughput": sample_rate(tokens, step),
        "scaling_efficiency": scaling_efficiency(
            compute_time(model_flops, peak_rate, efficiency), devices, step
        ),
        "mfu": flops_utilization(model_flops, step, peak_rate, devices),
        "hfu": flops_utilization(hardware_flops, step, peak_rate, devices),
        "compute_latency": compute,
        "communication_latency": communication_time(data, tensor, pipeline),
        "dp_communication_latency": data,
        "tp_communication_latency": tensor,
        "pp_communication_latency": pipeline,
        "pipeline_bubble_latency": bubble,
        "bubble_fraction": pipeline_bubble_fraction(pp_size, microbatch_count, virtual_stages),
        "model_flops": model_flops,
        "device_flops": flops_per_device,
        "dp_size": dp_size,
        "microbatch_size": sequences,
        "memory": memory,
        "weights_memory": weights,
        "gradient_memory": gradients,
        "optimizer_memory": optimizer,
        "activation_memory": activations,
        "memory_capacity": memory_capacity,
        "fits_memory": fits_memory,
        "whole_microbatches": whole_microbatches,
        "feasible": fits_memory & whole_microbatches,
    }
