"""What a training step has to do, before it is known how fast: sizes, operations, parameters."""

from __future__ import annotations

from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

from mlsysim.core import formulas as f
from mlsysim.core.numeric import Value, floor
from mlsysim.solvers.kernels._power import drawn_power
from mlsysim.solvers.kernels._token_work import token_work

__all__ = ["Work", "answer", "training_work"]


@dataclass(frozen=True)
class Work:
    """Quantities that the kernels of training share."""

    devices: Value
    dp_size: Value
    replicas: Value
    """Devices that hold the same part of the model."""
    sequences: Value
    """Sequences of a microbatch."""
    own_sequences: Value
    """Those on one device, where sequences are shared."""
    tokens: Value
    """Tokens of the whole step."""
    stage_layers: Value
    model_flops: Value
    hardware_flops: Value
    wide_model_flops: Value
    """Those of attention and logits, which stay in a wider format than narrow products."""
    wide_hardware_flops: Value
    device_flops: Value
    hidden_state: Value
    expert_group: Value
    """Devices that hold one set of a layer's experts between them."""
    expert_replicas: Value
    """Devices that hold the same experts."""
    own_parameters: Value
    own_experts: Value
    """Those of them that belong to experts."""


def training_work(i: SimpleNamespace) -> Work:
    """Return sizes, operations and parameters from a kernel's inputs."""
    devices = f.fleet_devices(i.nodes, i.devices_per_node)
    dp_size = f.data_parallel_size(devices, i.tp_size, i.pp_size, i.cp_size)
    sequences = f.microbatch_size(i.batch_size, dp_size, i.microbatch_count)
    own_sequences = f.sequences_per_rank(sequences, i.cp_size)
    stage_layers = f.layers_per_stage(i.layers, i.pp_size, i.virtual_stages)
    imbalance = f.stage_imbalance(i.layers, i.pp_size, stage_layers)

    tokens = f.token_count(i.batch_size, i.seq_len)
    matrix, score, logit = token_work(i)
    model_flops = f.training_flops(f.forward_flops(tokens, matrix, score, logit))
    hardware_flops = f.operations_sum(
        model_flops, f.recomputed_flops(tokens, matrix, score, i.matrix_share, i.score_share)
    )
    wide_model_flops = f.training_flops(f.forward_flops(tokens, 0, score, logit))
    wide_hardware_flops = f.operations_sum(
        wide_model_flops, f.recomputed_flops(tokens, matrix, score, 0, i.score_share)
    )
    experts = f.expert_parameters(
        i.moe_layers, i.experts, i.mlp_matrices, i.hidden_dim, i.expert_ffn_dim
    )
    group = f.expert_group_size(i.tp_size, i.ep_size)
    return Work(
        devices=devices,
        dp_size=dp_size,
        replicas=f.state_replicas(dp_size, i.cp_size),
        sequences=sequences,
        own_sequences=own_sequences,
        tokens=tokens,
        stage_layers=stage_layers,
        model_flops=model_flops,
        hardware_flops=hardware_flops,
        wide_model_flops=wide_model_flops,
        wide_hardware_flops=wide_hardware_flops,
        device_flops=f.device_flops(hardware_flops, devices, imbalance),
        hidden_state=f.hidden_state_size(
            i.seq_len, own_sequences, i.hidden_dim, i.bytes_per_element
        ),
        expert_group=group,
        expert_replicas=f.data_parallel_size(devices, group, i.pp_size, 1),
        own_parameters=f.sharded_parameters(
            i.parameters, experts, i.tp_size, i.pp_size, group, imbalance
        ),
        own_experts=f.sharded_parameters(experts, experts, i.tp_size, i.pp_size, group, imbalance),
    )


def answer(
    i: SimpleNamespace,
    w: Work,
    memory: dict[str, Any],
    *,
    step: Value,
    alone: Value,
    compute: Value,
    data: Value,
    tensor: Value,
    pipeline: Value,
    context: Value,
    exchange: Value,
    bubble: Value,
    all_communication: Value = None,
    mfu: Value,
    hfu: Value,
    mbu: Value,
) -> dict[str, Any]:
    """Return the outputs of a training kernel from its times and its memory."""
    whole = floor(w.sequences) == w.sequences
    communication = f.communication_time(data, tensor, pipeline, context, exchange)
    if all_communication is None:  # nothing overlaps
        all_communication = communication
    drawn = drawn_power(i, hfu, mbu)
    energy = f.devices_energy(w.devices, drawn["device_power"], step)
    return {
        "step_latency_total": step,
        "effective_throughput": f.sample_rate(i.batch_size, step),
        "token_throughput": f.sample_rate(w.tokens, step),
        "scaling_efficiency": f.scaling_efficiency(alone, w.devices, step),
        "mfu": mfu,
        "hfu": hfu,
        "energy_per_step": energy,
        "energy_per_token": f.energy_per_token(energy, w.tokens),
        **drawn,
        "compute_latency": compute,
        "communication_latency": communication,
        "hidden_communication_latency": f.hidden_time(all_communication, communication),
        "dp_communication_latency": data,
        "tp_communication_latency": tensor,
        "pp_communication_latency": pipeline,
        "cp_communication_latency": context,
        "ep_communication_latency": exchange,
        "pipeline_bubble_latency": bubble,
        "bubble_fraction": f.pipeline_bubble_fraction(
            i.pp_size, i.microbatch_count, i.virtual_stages
        ),
        "model_flops": w.model_flops,
        "device_flops": w.device_flops,
        "dp_size": w.dp_size,
        "microbatch_size": w.sequences,
        **memory,
        "whole_microbatches": whole,
        "feasible": memory["fits_memory"] & whole,
    }
