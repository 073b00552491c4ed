"""Memory of the device that a training step fills most: shared by the kernels of training."""

from __future__ import annotations

from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

from mlsysim.core import formulas as f
from mlsysim.core.numeric import Value, first_known, where
from mlsysim.solvers.kernels._training_work import Work

__all__ = ["training_memory"]


@dataclass(frozen=True)
class _Parameters:
    """Parameters of the model's parts."""

    attention: Value
    dense: Value
    experts: Value
    """Of all experts."""
    table: Value
    """Of one embedding table, with what else is outside the layers."""


@dataclass(frozen=True)
class _Stage:
    """What one stage of the pipeline holds."""

    dense_layers: Value
    moe_layers: Value
    tables: Value
    output_tables: Value
    in_flight: Value
    interleaving: Value
    parameters: Value
    """Of one device, experts apart."""
    experts: Value
    """Parameters of experts on one device."""


@dataclass(frozen=True)
class _Kept:
    """What one layer keeps of one microbatch, and what its backward pass needs."""

    dense: Value
    expert: Value
    whole_dense: Value
    whole_expert: Value


def training_memory(i: SimpleNamespace, w: Work) -> dict[str, Any]:
    """Return what a device of the fuller stage holds: states, activations, working memory.

    The first stage keeps the most microbatches; the last has the logits and, in models that begin
    with dense layers, the most experts.
    """
    n, kept = _parameters(i), _kept(i, w)
    moe = f.first_stage_moe_layers(w.stage_layers, i.layers, i.moe_layers)
    flight = f.microbatches_in_flight(i.pp_size, i.microbatch_count)
    growth = where(i.virtual_stages > 1, f.interleaving_factor(i.pp_size, i.virtual_stages), 1)
    outputs = f.first_stage_output_tables(i.pp_size)
    tables = f.first_stage_tables(i.embedding_tables, outputs)
    first = _held(i, w, n, kept, _stage(i, w, n, moe, tables, outputs, flight, growth))

    moe = f.last_stage_moe_layers(w.stage_layers, i.moe_layers)
    flight = f.last_stage_in_flight(i.pp_size, i.virtual_stages, i.microbatch_count)
    last = _held(i, w, n, kept, _stage(i, w, n, moe, 1, 1, flight, 1))

    fuller = {
        name: where(last["memory"] > first["memory"], last[name], first[name]) for name in first
    }
    return {
        **fuller,
        "memory_capacity": i.memory_capacity,
        "fits_memory": fuller["memory"] <= i.memory_capacity,
    }


def _parameters(i: SimpleNamespace) -> _Parameters:
    """Count the parameters of the model's parts from the shapes of its matrices."""
    attention = f.attention_parameters(i.hidden_dim, i.heads, i.kv_heads, i.head_dim)
    dense = f.mlp_parameters(i.hidden_dim, i.ffn_dim, i.mlp_matrices)
    experts = f.expert_parameters(
        i.moe_layers, i.experts, i.mlp_matrices, i.hidden_dim, i.expert_ffn_dim
    )
    shared = f.mlp_parameters(i.hidden_dim, i.shared_ffn_dim, i.mlp_matrices)
    stack = f.layer_stack_parameters(i.layers, i.moe_layers, attention, dense, shared, experts)
    table = f.table_parameters(i.parameters, stack, i.embedding_tables)
    return _Parameters(attention, dense, experts, table)


def _stage(
    i: SimpleNamespace,
    w: Work,
    n: _Parameters,
    moe_layers: Value,
    tables: Value,
    output_tables: Value,
    in_flight: Value,
    interleaving: Value,
) -> _Stage:
    """Count the layers and parameters of a stage."""
    parameters = f.stage_parameters(
        i.parameters,
        n.experts,
        n.table,
        i.embedding_tables,
        tables,
        i.pp_size,
        i.tp_size,
        f.stage_imbalance(i.layers, i.pp_size, w.stage_layers),
    )
    experts = f.expert_parameters(
        moe_layers, i.experts, i.mlp_matrices, i.hidden_dim, i.expert_ffn_dim
    )
    return _Stage(
        dense_layers=f.dense_layers(w.stage_layers, moe_layers),
        moe_layers=moe_layers,
        tables=tables,
        output_tables=output_tables,
        in_flight=where(i.all_forward_first > 0, i.microbatch_count, in_flight),
        interleaving=interleaving,
        parameters=parameters,
        experts=f.parameter_share(experts, w.expert_group),
    )


def _held(
    i: SimpleNamespace, w: Work, n: _Parameters, kept: _Kept, stage: _Stage
) -> dict[str, Any]:
    """Return the memory of one device of a stage, by what it is for."""

    def share(zero_stage: int) -> Value:
        # Experts have fewer replicas than the rest.
        sharded = i.zero_stage >= zero_stage
        return f.parameters_held(
            f.parameter_share(stage.parameters, where(sharded, w.replicas, 1)),
            f.parameter_share(stage.experts, where(sharded, w.expert_replicas, 1)),
        )

    weights = f.tensor_size(share(3), i.bytes_per_element)
    gradients = f.tensor_size(share(2), i.gradient_bytes)
    optimizer = f.optimizer_state_size(
        share(1), i.bytes_per_element, i.moment_bytes, i.master_bytes
    )
    activations = f.stage_activation_memory(
        f.layer_stack_size(kept.dense, kept.expert, stage.dense_layers, stage.moe_layers),
        stage.in_flight,
        stage.interleaving,
    )
    working = _working(i, w, n, kept, stage)
    return {
        "memory": f.memory_sum(weights, gradients, optimizer, activations, working),
        "weights_memory": weights,
        "gradient_memory": gradients,
        "optimizer_memory": optimizer,
        "activation_memory": activations,
        "working_memory": working,
    }


def _kept(i: SimpleNamespace, w: Work) -> _Kept:
    """Count the activations of a dense layer and of one with experts."""
    widths = (
        f.kept_ffn_width(i.ffn_dim, i.mlp_matrices),
        f.kept_expert_width(
            i.experts_per_token, i.hidden_dim, i.expert_ffn_dim, i.shared_ffn_dim, i.mlp_matrices
        ),
    )
    dense, expert = (_layer(i, w, width, i.kept_scores) for width in widths)
    whole_dense, whole_expert = (_layer(i, w, width, 1) for width in widths)
    # Under full recomputation a layer keeps its input only.
    inputs = f.tensor_slice(w.hidden_state, _shards(i))
    return _Kept(
        dense=where(i.matrix_share > 0, inputs, dense),
        expert=where(i.matrix_share > 0, inputs, expert),
        whole_dense=whole_dense,
        whole_expert=whole_expert,
    )


def _shards(i: SimpleNamespace) -> Value:
    return where(i.sequence_parallel > 0, i.tp_size, 1)


def _layer(i: SimpleNamespace, w: Work, kept_width: Value, kept_scores: Value) -> Value:
    """Return what one layer keeps of one microbatch when nothing else is recomputed."""
    attention = first_known(
        i.kept_attention_width, f.kept_attention_width(i.heads, i.kv_heads, i.head_dim)
    )
    return f.activation_memory_per_layer(
        f.token_count(w.own_sequences, i.seq_len),
        i.seq_len,
        i.hidden_dim,
        i.heads,
        attention,
        f.copied_context_width(f.attention_width(i.heads, i.head_dim), i.cp_size),
        kept_width,
        i.tp_size,
        _shards(i),
        kept_scores,
        i.fused_attention,
        i.dropout,
        i.statistic_bytes,
        i.bytes_per_element,
        i.mask_bytes,
    )


def _working(i: SimpleNamespace, w: Work, n: _Parameters, kept: _Kept, stage: _Stage) -> Value:
    """Return what the backward pass holds for a while, in a layer with experts if there is one."""
    tokens = f.token_count(w.own_sequences, i.seq_len)
    mixed = stage.moe_layers > 0
    buffers = f.buffered_parameters(
        n.attention,
        n.dense,
        f.mlp_parameters(
            i.hidden_dim,
            f.expert_buffer_width(i.expert_ffn_dim, i.shared_ffn_dim),
            i.mlp_matrices,
        ),
        n.table,
        stage.dense_layers,
        stage.moe_layers,
        stage.output_tables,
        i.tp_size,
    )
    width = where(
        mixed,
        f.backward_width(i.experts_per_token, i.hidden_dim, i.expert_ffn_dim, i.mlp_matrices),
        f.backward_width(1, i.hidden_dim, i.ffn_dim, i.mlp_matrices),
    )
    one_layer = f.tensor_size(
        f.parameter_share(f.parameters_held(stage.parameters, stage.experts), w.stage_layers),
        i.bytes_per_element,
    )
    return f.working_memory(
        f.tensor_size(buffers, i.bytes_per_element),
        f.gathered_weights_size(one_layer, i.zero_stage),
        f.recomputed_size(
            where(mixed, kept.whole_expert, kept.whole_dense),
            where(mixed, kept.expert, kept.dense),
        ),
        f.layer_working_memory(tokens, i.hidden_dim, width, i.tp_size, i.bytes_per_element),
        f.head_working_memory(
            tokens,
            i.hidden_dim,
            i.vocab_size,
            stage.output_tables,
            i.tp_size,
            _shards(i),
            i.bytes_per_element,
        ),
    )
