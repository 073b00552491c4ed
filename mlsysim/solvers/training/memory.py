"""Memory of the fullest device in a training step: states, activations, working memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from mlsysim.core import formulas as f
from mlsysim.core.numeric import Value, first_known, is_zero, maximum, minimum, where, zero_like
from mlsysim.core.types.attention import AttentionKind
from mlsysim.core.types.layers import LayerGroup
from mlsysim.solvers.tower import tower_of
from mlsysim.solvers.training.inputs import TrainingInputs
from mlsysim.solvers.training.links import context_memory
from mlsysim.solvers.training.stages import arranged
from mlsysim.solvers.training.work import Work, recomputed_share
from mlsysim.solvers.work import adapters_of, expert_parameters, sum_of, tower_parameters

__all__ = ["training_memory"]


@dataclass(frozen=True)
class _Layer:
    """The part of a group's layer that is on one device."""

    common: Value
    """Parameters of its matrices, excluding experts."""
    experts: Value
    """Parameters of its experts."""
    group: LayerGroup
    buffered: Value
    """Parameters of its feed-forward block that need their own gradient buffer, one per shape."""
    attention_buffered: tuple[Value, ...]
    """Parameters of each of its attentions that need their own gradient buffer."""
    kept: Value
    """Activations that it keeps of one microbatch."""
    whole: Value
    """Activations that its backward pass needs."""
    gradient_width: Value
    """Elements per token of the widest gradient of its feed-forward block."""
    visiting: Value
    """Keys and values of other devices, and their gradients."""


@dataclass(frozen=True)
class _Stage:
    """Contents of one pipeline stage."""

    index: Value
    """Its position, counted from 0."""
    layers: list[Value]
    """Layers of each group."""
    tables: Value
    output_tables: Value
    tower: Value
    """Parameters of the vision tower."""
    images: Value
    """Images of a microbatch that pass through the tower."""


def training_memory(i: TrainingInputs, w: Work) -> dict[str, Any]:
    """Return the memory of the fullest device: states, activations, working memory.

    It is the maximum over all stages. The first one holds the most microbatches and the embedding,
    the last one the logits, and a stage between may have more layers, or heavier ones.
    """
    model = i.model
    layers = [_layer(i, w, group) for group in model.groups]
    all_experts = expert_parameters(model)
    stack = sum_of(
        [group.count * layer.common for group, layer in zip(model.groups, layers, strict=True)]
    )
    tower = tower_parameters(model)
    outside = maximum(zero_like(model.parameters), model.parameters - stack - all_experts - tower)
    table = outside / model.embedding_tables
    stages = arranged(
        model.groups,
        i.pp_size,
        i.virtual_stages,
        w.layout.first,
        w.layout.last,
        i.schedule.bidirectional,
    )

    def between(index: Value, counts: list[Value]) -> _Stage:
        return _Stage(index, counts, 0, 0, zero_like(tower), zero_like(w.own_sequences))

    def held(stage: _Stage) -> dict[str, Any]:
        return _held(i, w, table, layers, stage)

    alone = where(i.pp_size > 1, 0, 1)  # the first stage is also the last
    tables = where(i.pp_size > 1, 1, model.embedding_tables)
    images = i.images * w.own_sequences
    first = held(_Stage(zero_like(i.pp_size), stages.first, tables, alone, tower, images))
    with_mtp = [_with_mtp(i, *pair) for pair in zip(model.groups, stages.last, strict=True)]
    last = held(_Stage(i.pp_size - 1, with_mtp, 1, 1, zero_like(tower), zero_like(images)))
    one_way = is_zero(i.schedule.bidirectional)
    mirrored = i.schedule.bidirectional > 0
    fullest = first if one_way else _chosen(mirrored, _together(i, first, last), first)
    for middle in stages.between:
        device = held(between(middle.index, middle.layers))
        if not one_way:
            image = held(between(i.pp_size - 1 - middle.index, middle.mirrored))
            device = _chosen(mirrored, _together(i, device, image), device)
        fullest = _chosen(device["memory"] > fullest["memory"], device, fullest)
    if not one_way:
        last = _chosen(mirrored, fullest, last)
    fullest = _chosen(last["memory"] > fullest["memory"], last, fullest)
    memory = i.device.memory
    usable = i.usable_memory * first_known(memory.reported, memory.capacity)
    return {
        **fullest,
        "memory_capacity": usable,
        "fits_memory": fullest["memory"] <= usable,
    }


def _chosen(condition: Value, one: dict[str, Any], other: dict[str, Any]) -> dict[str, Any]:
    """Return the contents of one device where the condition holds, else those of the other."""
    return {name: where(condition, one[name], other[name]) for name in one}


def _with_mtp(i: TrainingInputs, group: LayerGroup, count: Value) -> Value:
    """Return the layers of a group on the last stage, with those for multi-token prediction."""
    more = i.model.mtp_layers
    return count if is_zero(more) or group is not i.model.last_group else count + more


def _together(i: TrainingInputs, one: dict[str, Any], image: dict[str, Any]) -> dict[str, Any]:
    """Return the contents of a device that has a stage and its mirror image, as in DualPipe.

    Each stage is on two devices, so sharded states are divided once more.
    """
    both = {
        name: (one[name] + image[name]) / where(i.zero_stage >= stage, 2, 1)
        for name, stage in (("weights_memory", 3), ("gradient_memory", 2), ("optimizer_memory", 1))
    }
    both["activation_memory"] = one["activation_memory"] + image["activation_memory"]
    both["working_memory"] = maximum(one["working_memory"], image["working_memory"])
    memory = sum_of(list(both.values()))
    return {"memory": memory, **both, "fullest_stage": one["fullest_stage"]}


def _in_flight(i: TrainingInputs, stage: Value) -> Value:
    """Return the microbatches that a stage holds, in units of its layers."""
    p, m, v = i.pp_size, i.microbatch_count, i.virtual_stages
    alternating = where(
        v > 1, f.chunks_in_flight(p, m, v, stage) / v, f.microbatches_in_flight(p, m, stage)
    )
    # Microbatches that wait for the gradients of weights count too: as many on every stage (Qi et
    # al., 2023, section 2.3).
    split = (i.schedule.split_backward > 0) & (i.schedule.bidirectional == 0)
    waiting = where(split, f.microbatches_in_flight(p, m), alternating)
    return where(i.schedule.all_forward_first > 0, m, waiting)


def _layer(i: TrainingInputs, w: Work, group: LayerGroup) -> _Layer:
    """Return the parameters and activations of a group's layer."""
    width, narrow = i.model.hidden_dim, _narrow(i)
    parts = tuple(a.parameters(width) for a in group.attentions)
    common, experts = group.unrouted_parameters(width), group.routed_parameters(width)
    if (block := group.experts) is not None:
        buffered = block.expert_parameters(width) + block.common_parameters(width)
        visits = i.capacity_factor * block.per_token
        sent = block.token_width(width)
        # The copy of a token and the product of gate and input are inputs of products.
        kept = f.kept_expert_width(
            visits, narrow * sent, block.width, block.shared_width, block.matrices - 1 + narrow
        )
        # Tokens in a narrower space are kept before dispatch and after the sum.
        kept_width = where(block.latent_width > 0, kept + 2 * block.latent_width, kept)
        gradient_width = f.backward_width(visits, sent, block.width, block.matrices)
    elif (dense := group.feed_forward) is not None:
        buffered = dense.parameters(width)
        kept_width = (dense.matrices - 1 + narrow) * dense.inner_width
        gradient_width = f.backward_width(1, width, dense.inner_width, dense.matrices)
    else:
        buffered, kept_width, gradient_width = zero_like(width), zero_like(width), width
    # Under full recomputation a layer keeps its input only.
    input_only = w.hidden_state / w.sequence_shards
    again = i.recompute
    copies = i.tp_size / w.sequence_shards
    dropped = again.activation_share * narrow * group.inner_width
    for a in group.attentions:
        dropped = dropped + a.recomputed_width(narrow, copies, again.norm_share, again.latent_share)
    selected = _activations(i, w, group, kept_width, again.kept_scores) - f.recomputed_memory(
        w.own_tokens,
        width,
        narrow * (again.norm_share if group.blocks == 2 else again.norm_share / 2),
        dropped,
        i.tp_size,
        w.sequence_shards,
        i.precision.training_bytes,
    )
    return _Layer(
        common=common,
        experts=experts,
        group=group,
        buffered=buffered,
        attention_buffered=parts,
        kept=where(i.recompute.matrix_share > 0, input_only, selected),
        whole=_activations(i, w, group, kept_width, 1),
        gradient_width=gradient_width,
        visiting=sum_of([_visiting(i, w, a) for a in group.attentions] or [0]),
    )


def _activations(
    i: TrainingInputs, w: Work, group: LayerGroup, kept_width: Value, kept_scores: Value
) -> Value:
    """Return the activations that one layer keeps of one microbatch."""
    heads: Value = 0
    kept: Value = 0
    copied: Value = 0
    for a in group.attentions:
        heads = heads + a.score_heads
        kept = kept + a.kept_width(_narrow(i), i.tp_size / w.sequence_shards)
        copied = copied + f.copied_context_width(a.width, i.swap_size)
    return f.activation_memory_per_layer(
        w.own_tokens,
        i.seq_len,
        # A layer with only one block has half of the norms and residuals.
        i.model.hidden_dim if group.blocks == 2 else i.model.hidden_dim / 2,
        heads,
        kept,
        copied,
        kept_width,
        i.tp_size,
        w.sequence_shards,
        kept_scores,
        i.attention.fused,
        i.model.drops_out,
        i.conventions.statistic_bytes,
        i.precision.training_bytes,
        i.conventions.mask_bytes,
        i.kept_bytes,
    )


def _narrow(i: TrainingInputs) -> Value:
    """Return the size of an element that a product keeps, divided by that of other elements."""
    return i.kept_bytes / i.precision.training_bytes


def _held(
    i: TrainingInputs, w: Work, table: Value, layers: list[_Layer], stage: _Stage
) -> dict[str, Any]:
    """Return the memory of one device of a stage, by purpose."""
    held = list(zip(stage.layers, layers, strict=True))
    in_layers = _over(stage.layers, [layer.common for layer in layers])
    common = (in_layers + stage.tables * table + stage.tower) / i.tp_size
    experts = _over(stage.layers, [layer.experts for layer in layers]) / w.expert_group

    def share(zero_stage: int, common: Value, experts: Value) -> Value:
        # Experts have fewer replicas than the rest.
        sharded = i.zero_stage >= zero_stage
        return common / where(sharded, w.shards, 1) + experts / where(sharded, w.expert_shards, 1)

    each, rules = i.precision.training_bytes, i.conventions
    adapters = adapters_of(i.model, i.adapter_rank)
    adapted = [
        _over(stage.layers, [part for _, part in parts])
        for parts in (adapters.common, adapters.experts)
    ]
    full = 1 - i.frozen

    def own_adapters(zero_stage: int) -> Value:
        return share(zero_stage, adapted[0] / i.tp_size, adapted[1] / w.expert_group)

    def trained(zero_stage: int) -> Value:
        return full * share(zero_stage, common, experts) + own_adapters(zero_stage)

    weights = (share(3, common, experts) + own_adapters(3)) * each
    gradients = trained(2) * i.gradient_precision.training_bytes
    tables = full * stage.tables * table / i.tp_size / where(i.zero_stage >= 1, w.shards, 1)
    state = i.optimizer
    optimizer = f.optimizer_state_size(
        trained(1) - tables, each, state.state_bytes, rules.master_bytes
    ) + f.optimizer_state_size(tables, each, state.table_bytes, rules.master_bytes)
    some = recomputed_share(i, sum_of(stage.layers))
    in_flight = _in_flight(i, stage.index)
    activations = in_flight * _over(
        stage.layers, [some * layer.kept + (1 - some) * layer.whole for layer in layers]
    )
    if tower := tower_of(i):
        # Each layer of the tower keeps its activations, unless the tower is frozen.
        elements = full * stage.images * tower.network.activations_per_sample / i.tp_size
        activations = activations + in_flight * each * elements
    working = _working(i, w, table, stage, held, common + experts)
    return {
        "memory": weights + gradients + optimizer + activations + working,
        "weights_memory": weights,
        "gradient_memory": gradients,
        "optimizer_memory": optimizer,
        "activation_memory": activations,
        "working_memory": working,
        "fullest_stage": stage.index,
    }


def _over(layers: list[Value], each: list[Value]) -> Value:
    """Add what the layers of all groups hold."""
    return sum_of([count * part for count, part in zip(layers, each, strict=True)])


def _working(
    i: TrainingInputs,
    w: Work,
    table: Value,
    stage: _Stage,
    held: list[tuple[Value, _Layer]],
    parameters: Value,
) -> Value:
    """Return the temporary memory of the backward pass, at the higher of its two peaks.

    The backward pass begins with the logits and then goes through the layers. Gradients are
    accumulated in place, but each product first writes its own to a buffer, allocated once per
    shape (github.com/NVIDIA/TransformerEngine, module/base.py, get_dummy_wgrad).
    """
    each = i.precision.training_bytes
    buffers = (1 - i.frozen) * (_buffers(held) + stage.output_tables * table) / i.tp_size * each
    # The peak is in the layer that needs most.
    layer_peak: Value = 0
    largest: Value = 0
    in_layers: Value = 0
    for count, layer in held:
        layer_peak = maximum(layer_peak, where(count > 0, _layer_peak(i, w, layer), 0))
        whole = layer.common / i.tp_size + layer.experts / w.expert_group
        largest = maximum(largest, where(count > 0, whole, 0))
        in_layers = in_layers + count * whole
    # Sharded weights are whole in the layer in use and in the next one, which is gathered
    # meanwhile, or in all layers if they are kept from the forward to the backward pass. The
    # output table is whole while the logits are.
    sharded = maximum(0, i.zero_stage - 2) * each
    two = minimum(2 * largest, in_layers)
    kept = where(i.reshard_after_forward > 0, 0, 1)
    logits = stage.output_tables * f.head_working_memory(
        w.own_tokens,
        i.model.hidden_dim,
        i.model.vocab_size,
        i.tp_size,
        w.sequence_shards,
        each,
        i.loss.copy_bytes,
    )
    at_logits = logits + sharded * (1 - kept) * stage.output_tables * table / i.tp_size
    at_layer = layer_peak + sharded * (1 - kept) * two
    return buffers + sharded * kept * parameters + maximum(at_logits, at_layer)


def _layer_peak(i: TrainingInputs, w: Work, layer: _Layer) -> Value:
    """Return the gradients of activations and the recomputed activations of one layer."""
    widths = layer.gradient_width / i.tp_size + i.model.hidden_dim
    gradients = i.precision.training_bytes * w.own_tokens * widths
    return gradients + (layer.whole - layer.kept) + layer.visiting


def _buffers(held: list[tuple[Value, _Layer]]) -> Value:
    """Return the parameters of each distinct block shape of a stage."""
    shapes: dict[int, list[tuple[Value, Value]]] = {}
    for count, layer in held:
        attention = zip(layer.group.attentions, layer.attention_buffered, strict=True)
        for part, size in (*attention, (layer.group.feed_forward, layer.buffered)):
            if part is not None:
                shapes.setdefault(id(part), []).append((count, size))
    return sum_of(
        [
            minimum(1, sum_of([count for count, _ in found])) * found[0][1]
            for found in shapes.values()
        ]
    )


def _visiting(i: TrainingInputs, w: Work, a: AttentionKind) -> Value:
    """Return the memory of other devices' keys and values and their gradients, in one layer."""
    own = context_memory(i, w, a)
    return f.visiting_memory(own, i.cp_size / i.swap_size, i.cp_kind.gathers)
