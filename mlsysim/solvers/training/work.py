"""The work of a training step, independent of its speed: sizes, operations, parameters."""

from __future__ import annotations

from dataclasses import dataclass

from mlsysim.core import formulas as f
from mlsysim.core.forms import replaced
from mlsysim.core.numeric import Value, first_known, is_zero, maximum, minimum, where, zero_like
from mlsysim.core.types import Recompute
from mlsysim.core.types.attention import Matrix
from mlsysim.solvers.tower import tower_flops, tower_of
from mlsysim.solvers.training.inputs import TrainingInputs
from mlsysim.solvers.training.stages import Layout, stage_layout
from mlsysim.solvers.work import (
    LayerAdapters,
    TokenFlops,
    expansion_parameters,
    expert_parameters,
    layer_adapters,
    mtp_flops,
    sum_of,
    sum_over,
    token_flops,
)


def recomputed_share(i: TrainingInputs, layers: Value) -> Value:
    """Return the share of a stage's layers to which recomputation applies."""
    return first_known(minimum(1, i.recompute_layers / maximum(1, layers)), 1)


def in_share(recompute: Recompute, share: Value) -> Recompute:
    """Return the mean recomputation if only a share of the layers recomputes anything."""
    names = ("matrix_share", "score_share", "norm_share", "activation_share", "latent_share")
    return replaced(recompute, **{name: share * getattr(recompute, name) for name in names})


def in_mean_layer(i: TrainingInputs) -> TrainingInputs:
    """Return inputs with the mean recomputation over the layers of the longest stage."""
    share = recomputed_share(i, stage_layout(i).longest)
    forward = 2 * i.conventions.forward_all_reduces
    # Forward and backward, and forward again under full recomputation
    all_reduces = forward + share * (i.recompute.all_reduces_per_layer - forward)
    return i.but(
        recompute=replaced(in_share(i.recompute, share), all_reduces_per_layer=all_reduces)
    )


def orthogonalization(i: TrainingInputs, w: Work) -> Value:
    """Return a device's operations to orthogonalize the updates of the layers' matrices.

    Devices that share a matrix share this work too. Embedding tables and routers are left out.
    """
    if is_zero(i.optimizer.iterations):
        return zero_like(i.conventions.flops_per_mac)
    rank = i.adapter_rank

    def flops(matrices: list[Matrix]) -> Value:
        parts = [zero_like(i.conventions.flops_per_mac)]
        for each in matrices:
            # The matrix itself, or the two thin ones that are trained instead
            trained = ((each.rows, each.columns), (rank, each.rows), (rank, each.columns))
            whole, *thin = (
                f.orthogonalization_flops(
                    *sides, i.optimizer.iterations, i.conventions.flops_per_mac
                )
                for sides in trained
            )
            parts.append(each.count * ((1 - i.frozen) * whole + sum_of(thin)))
        return sum_of(parts)

    common, experts = [], []
    for group in i.model.groups:
        common.append(group.count * flops(group.matrices(i.model.hidden_dim)))
        if (block := group.experts) is not None:
            expert = flops([block.expert_matrix(i.model.hidden_dim)])
            experts.append(group.count * block.count * expert)
    shared = sum_of(common) / (w.common.group * w.common.shards)
    if experts:
        shared = shared + sum_of(experts) / (w.experts.group * w.experts.shards)
    return w.copies * w.imbalance * shared / i.pp_size


@dataclass(frozen=True)
class Part:
    """Parameters that are distributed alike: those of experts, or all others."""

    group: Value
    """Neighboring devices that hold one set of them between them."""
    replicas: Value
    """Devices that hold the same ones."""
    shards: Value
    """Devices over which their states are sharded; 1 if none are."""
    weights: Value
    """Bytes of the weights on one device."""
    trained: Value
    """Trained parameters on one device."""


@dataclass(frozen=True)
class StepFlops:
    """Operations of a step, on all devices."""

    model: Value
    hardware: Value
    """Recomputed ones count as well."""
    wide_model: Value
    """Operations of attention and logits, which stay in a wide format when products are narrow."""
    wide_hardware: Value


@dataclass(frozen=True)
class Work:
    """Quantities that both models of a training step start from."""

    dp_size: Value
    sequences: Value
    """Sequences of a microbatch."""
    device_sequences: Value
    """Sequences of a microbatch on one device, if sequences are shared."""
    device_tokens: Value
    """Tokens of a microbatch on one device."""
    tokens: Value
    """Tokens of the whole step."""
    layout: Layout
    imbalance: Value
    """Layers of the longest stage, divided by the mean."""
    copies: Value
    """Stages that a device holds: 2 if microbatches enter at both ends, else 1."""
    flops: StepFlops
    device_flops: Value
    """Operations of the busiest device."""
    hidden_state: Value
    """Bytes of the residual stream of a microbatch on one device."""
    sequence_shards: Value
    """Devices that share norms and dropouts."""
    common: Part
    experts: Part
    adapters: list[LayerAdapters]
    """Adapters of a layer of each group."""

    @property
    def stage_layers(self) -> Value:
        """Layers of the longest stage."""
        return self.layout.longest


def weights_size(i: TrainingInputs, parameters: Value, tables: Value) -> Value:
    """Return the bytes of weights; embedding tables are not stored in a narrow format."""
    wide = i.precision.training_bytes
    if is_zero(i.weights_stated):
        return parameters * wide
    return f.stored_weights(parameters, tables, i.weight_bytes, zero_like(i.weight_bytes), wide)


def training_work(i: TrainingInputs) -> Work:
    """Return sizes, operations and parameters from the inputs."""
    model, layout = i.model, stage_layout(i)
    dp_size = f.data_parallel_size(i.devices, i.tp_size, i.pp_size, i.cp_size)
    sequences = f.microbatch_size(i.batch_size, dp_size, i.microbatch_count)
    device_sequences = sequences / i.cp_size
    imbalance = i.pp_size * layout.longest / model.layers
    copies = 1 + i.schedule.bidirectional  # a stage and its mirror image
    tokens = i.batch_size * i.seq_len
    adapters = layer_adapters(model, i.adapter_rank)
    flops = _step_flops(i, tokens, adapters)
    passes = 3 + i.recompute.matrix_share
    overload = (i.capacity_factor - 1) * passes * tokens * _expert_flops(i)

    def part(
        group: Value,
        replicas: Value,
        shards: Value,
        parameters: Value,
        adapters: Value,
        tables: Value = 0,
    ) -> Part:
        held = copies * imbalance * parameters / (i.pp_size * group)
        weights = weights_size(i, held, copies * imbalance * tables / (i.pp_size * group))
        # Adapters are distributed in the same way as their matrices.
        device_adapters = copies * imbalance * adapters / i.pp_size / group
        return Part(group, replicas, shards, weights, (1 - i.frozen) * held + device_adapters)

    experts, some = expert_parameters(model), model.routed_layers > 0
    expert_group = f.expert_group_size(i.tp_size, i.ep_size)
    expert_replicas = f.data_parallel_size(i.devices, expert_group, i.pp_size, 1)
    replicas = dp_size * i.cp_size
    shards = where(i.zero_stage >= 1, first_known(i.shard_size, replicas), 1)
    return Work(
        dp_size=dp_size,
        sequences=sequences,
        device_sequences=device_sequences,
        device_tokens=device_sequences * i.seq_len,
        tokens=tokens,
        layout=layout,
        imbalance=imbalance,
        copies=copies,
        flops=flops,
        device_flops=imbalance * (flops.hardware + overload) / i.devices,
        hidden_state=f.hidden_state_size(
            i.seq_len, device_sequences, model.hidden_dim, i.precision.training_bytes
        ),
        sequence_shards=where(i.sequence_parallel > 0, i.tp_size, 1),
        common=part(
            i.tp_size,
            replicas,
            shards,
            model.parameters - experts,
            sum_over(model.groups, [each.common for each in adapters]),
            f.embedding_parameters(model.vocab_size, model.hidden_dim, model.embedding_tables),
        ),
        experts=part(
            expert_group,
            where(some, expert_replicas, 1),
            where(some, maximum(1, shards * i.tp_size / expert_group), 1),
            experts,
            sum_over(model.groups, [each.experts for each in adapters]),
        ),
        adapters=adapters,
    )


def _step_flops(i: TrainingInputs, tokens: Value, adapters: list[LayerAdapters]) -> StepFlops:
    """Return the operations of a step: of the model, and with those that are repeated."""
    each, recompute, c = _trained_flops(i), i.recompute, i.conventions.flops_per_mac
    visited = sum_over(i.model.groups, [layer.visited for layer in adapters])
    model_flops = f.training_flops(f.forward_flops(tokens, each.matrix, each.score, each.logit))
    model_flops = model_flops - i.frozen * f.frozen_flops(
        tokens, each.matrix, each.logit, c * visited
    )
    # A fused kernel never keeps the scores, so recomputing them makes no difference.
    score_share = where(i.attention.fused > 0, recompute.matrix_share, recompute.score_share)
    repeated_flops = f.recomputed_flops(
        tokens, each.matrix, each.score, recompute.matrix_share, score_share
    )
    head_flops = c * expansion_parameters(i.model)
    repeated_flops = repeated_flops + tokens * recompute.latent_share * head_flops
    hardware_flops = model_flops + repeated_flops
    wide_model_flops = f.training_flops(tokens * (each.score + each.logit))
    wide_model_flops = wide_model_flops - i.frozen * tokens * each.logit
    if tower := tower_of(i):
        in_tower = tower_passes(i) * tower_flops(tower, i.batch_size * i.images)
        model_flops, hardware_flops = model_flops + in_tower, hardware_flops + in_tower
        wide_model_flops = wide_model_flops + in_tower
    return StepFlops(
        model=model_flops,
        hardware=hardware_flops,
        wide_model=wide_model_flops,
        wide_hardware=wide_model_flops + tokens * score_share * each.score,
    )


def tower_passes(i: TrainingInputs) -> Value:
    """Return the number of tower passes: forward, plus two for backward unless it is frozen."""
    return 3 - 2 * i.frozen


def _trained_flops(i: TrainingInputs) -> TokenFlops:
    """Return the operations of a token, with those of layers for multi-token prediction."""
    model, c = i.model, i.conventions.flops_per_mac
    each, more, count = (
        token_flops(model, i.seq_len, c),
        mtp_flops(model, i.seq_len, c),
        model.mtp_layers,
    )
    return TokenFlops(
        matrix=where(count > 0, each.matrix + count * more.matrix, each.matrix),
        score=where(count > 0, each.score + count * more.score, each.score),
        logit=where(count > 0, each.logit + count * more.logit, each.logit),
    )


def _expert_flops(i: TrainingInputs) -> Value:
    """Return the operations of a token in its experts, forward."""
    parts = [zero_like(i.conventions.flops_per_mac)]
    for group in i.model.groups:
        if (block := group.experts) is not None:
            expert = block.expert_parameters(i.model.hidden_dim)
            visited = group.count * block.per_token * expert
            parts.append(i.conventions.flops_per_mac * visited)
    return sum_of(parts)


def bubble_time(
    i: TrainingInputs, filling: Value, busy: Value, forward: Value, weights: Value
) -> Value:
    """Return the idle time of the stages.

    `filling` is the bubble if each pass waits for the stages before it. `busy` is the mean time of
    a microbatch in the stages that the busiest one waits for, `forward` its forward pass there and
    `weights` the gradients of weights.
    """
    split = f.split_backward_bubble_time(
        forward, busy - forward - weights, weights, i.pp_size, i.microbatch_count
    )
    both = f.bidirectional_bubble_time(forward, busy - forward, weights, i.pp_size)
    many = i.pp_size > 1
    return where(
        (i.schedule.bidirectional > 0) & many,
        both,
        where((i.schedule.split_backward > 0) & many, split, filling),
    )
