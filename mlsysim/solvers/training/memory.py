"""Memory of the fullest device in a training step: states, activations, working memory."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import NamedTuple

from mlsysim.core import formulas as f
from mlsysim.core.fields import Record
from mlsysim.core.numeric import Value, first_known, is_zero, maximum, minimum, where, zero_like
from mlsysim.core.types.layers import LayerGroup
from mlsysim.solvers.tower import tower_of
from mlsysim.solvers.training.inputs import TrainingInputs
from mlsysim.solvers.training.links import context_memory
from mlsysim.solvers.training.stages import arranged
from mlsysim.solvers.training.work import Work, recomputed_share, weights_size
from mlsysim.solvers.work import expert_parameters, sum_of, sum_over, tower_parameters


class DeviceMemory(NamedTuple):
    """Memory of one device, by purpose."""

    weights: Value
    gradients: Value
    optimizer: Value
    activations: Value
    working: Value
    stage: Value
    """The stage that it has, counted from 0."""

    @property
    def states(self) -> Value:
        """Weights, gradients and the optimizer's state."""
        return self.weights + self.gradients + self.optimizer

    @property
    def total(self) -> Value:
        """All of its memory."""
        return self.states + self.activations + self.working


class _Layer(NamedTuple):
    """The part of a group's layer that is on one device."""

    common: Value
    """Parameters of its matrices, excluding experts."""
    experts: Value
    """Parameters of its experts."""
    buffers: list[tuple[Record, Value]]
    """Its blocks, each with the parameters that need their own gradient buffer."""
    kept: Value
    """Activations that it keeps of one microbatch."""
    whole: Value
    """Activations that its backward pass needs."""
    peak: Value
    """Gradients of activations, recomputed activations, and keys and values of other devices."""


class _Stage(NamedTuple):
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


def usable_memory(i: TrainingInputs) -> Value:
    """Return the memory of a device that a step may use."""
    memory = i.device.memory
    return i.usable_memory * first_known(memory.reported, memory.capacity)


def training_memory(i: TrainingInputs, w: Work) -> DeviceMemory:
    """Return the memory of the fullest device: states, activations, working memory.

    It is the maximum over all stages. The first one holds the most microbatches and the embedding,
    the last one the logits, and a stage between may have more layers, or heavier ones.
    """
    model = i.model
    layers = [_layer(i, w, group) for group in model.groups]
    stack = sum_over(model.groups, [layer.common for layer in layers])
    tower = tower_parameters(model)
    outside = model.parameters - stack - expert_parameters(model) - tower
    table = maximum(zero_like(model.parameters), outside) / model.embedding_tables
    stages = arranged(
        model.groups,
        i.pp_size,
        i.virtual_stages,
        w.layout.first,
        w.layout.last,
        i.schedule.bidirectional,
    )
    one_way = is_zero(i.schedule.bidirectional)
    mirrored = i.schedule.bidirectional > 0
    images = i.images * w.device_sequences

    def held(stage: _Stage) -> DeviceMemory:
        return _held(i, w, table, layers, stage)

    def between(index: Value, counts: list[Value]) -> DeviceMemory:
        return held(_Stage(index, counts, 0, 0, zero_like(tower), zero_like(w.device_sequences)))

    def device(stage: DeviceMemory, image: Callable[[], DeviceMemory]) -> DeviceMemory:
        """Return what a device has: a stage, and its mirror image as well in DualPipe."""
        return stage if one_way else _chosen(mirrored, _together(i, stage, image()), stage)

    alone = where(i.pp_size > 1, 0, 1)  # the first stage is also the last
    tables = where(i.pp_size > 1, 1, model.embedding_tables)
    first = held(_Stage(zero_like(i.pp_size), stages.first, tables, alone, tower, images))
    with_mtp = [_with_mtp(i, *pair) for pair in zip(model.groups, stages.last, strict=True)]
    last = held(_Stage(i.pp_size - 1, with_mtp, 1, 1, zero_like(tower), zero_like(images)))
    fullest = device(first, lambda: last)
    for middle in stages.between:
        image = partial(between, i.pp_size - 1 - middle.index, middle.mirrored)
        other = device(between(middle.index, middle.layers), image)
        fullest = _chosen(other.total > fullest.total, other, fullest)
    if not one_way:
        last = _chosen(mirrored, fullest, last)
    return _chosen(last.total > fullest.total, last, fullest)


def _chosen(condition: Value, one: DeviceMemory, other: DeviceMemory) -> DeviceMemory:
    """Return the contents of one device where the condition holds, else those of the other."""
    return DeviceMemory(*(where(condition, a, b) for a, b in zip(one, other, strict=True)))


def _with_mtp(i: TrainingInputs, group: LayerGroup, count: Value) -> Value:
    """Return the layers of a group on the last stage, with those for multi-token prediction."""
    more = i.model.mtp_layers
    return count if is_zero(more) or group is not i.model.last_group else count + more


def _together(i: TrainingInputs, one: DeviceMemory, image: DeviceMemory) -> DeviceMemory:
    """Return the contents of a device that has a stage and its mirror image, as in DualPipe.

    Each stage is on two devices, so sharded states are divided once more.
    """

    def shared(zero_stage: int, both: Value) -> Value:
        return both / where(i.zero_stage >= zero_stage, 2, 1)

    return DeviceMemory(
        weights=shared(3, one.weights + image.weights),
        gradients=shared(2, one.gradients + image.gradients),
        optimizer=shared(1, one.optimizer + image.optimizer),
        activations=one.activations + image.activations,
        working=maximum(one.working, image.working),
        stage=one.stage,
    )


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
    width, narrow, block = i.model.hidden_dim, _narrow(i), group.feed_forward
    buffers: list[tuple[Record, Value]] = [(a, a.parameters(width)) for a in group.attentions]
    kept_width, gradient_width = zero_like(width), width
    if block is not None:
        buffers.append((block, block.buffered_parameters(width)))
        kept_width = block.kept_width(width, narrow, i.capacity_factor)
        gradient_width = block.gradient_width(width, i.capacity_factor)
    # Under full recomputation a layer keeps its input only.
    input_only = w.hidden_state / w.sequence_shards
    recompute = i.recompute
    copies = i.tp_size / w.sequence_shards
    dropped = recompute.activation_share * narrow * group.inner_width
    for a in group.attentions:
        dropped = dropped + a.recomputed_width(
            narrow, copies, recompute.norm_share, recompute.latent_share
        )
    selected = _activations(i, w, group, kept_width, recompute.kept_scores) - f.recomputed_memory(
        w.device_tokens,
        width,
        narrow * (recompute.norm_share if group.blocks == 2 else recompute.norm_share / 2),
        dropped,
        i.tp_size,
        w.sequence_shards,
        i.precision.training_bytes,
    )
    kept = where(recompute.matrix_share > 0, input_only, selected)
    whole = _activations(i, w, group, kept_width, 1)
    gradients = i.precision.training_bytes * w.device_tokens * (gradient_width / i.tp_size + width)
    # Keys and values of other devices, and their gradients
    visiting = [
        f.visiting_memory(context_memory(i, w, a), i.cp_size / i.swap_size, i.cp_kind.gathers)
        for a in group.attentions
    ]
    return _Layer(
        common=group.unrouted_parameters(width),
        experts=group.routed_parameters(width),
        buffers=buffers,
        kept=kept,
        whole=whole,
        peak=gradients + (whole - kept) + sum_of(visiting or [0]),
    )


def _activations(
    i: TrainingInputs, w: Work, group: LayerGroup, kept_width: Value, kept_scores: Value
) -> Value:
    """Return the activations that one layer keeps of one microbatch."""
    heads: Value = 0
    attention_width: Value = 0
    copied: Value = 0
    for a in group.attentions:
        heads = heads + a.score_heads
        attention_width = attention_width + a.kept_width(_narrow(i), i.tp_size / w.sequence_shards)
        copied = copied + f.copied_context_width(a.width, i.swap_size)
    return f.activation_memory_per_layer(
        w.device_tokens,
        i.seq_len,
        # A layer with only one block has half of the norms and residuals.
        i.model.hidden_dim if group.blocks == 2 else i.model.hidden_dim / 2,
        heads,
        attention_width,
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
) -> DeviceMemory:
    """Return the memory of one device of a stage, by purpose."""

    def over(each: Iterable[Value]) -> Value:
        """Add what the layers of all groups hold."""
        return sum_of([count * part for count, part in zip(stage.layers, each, strict=True)])

    in_layers = over(layer.common for layer in layers)
    common = (in_layers + stage.tables * table + stage.tower) / i.tp_size
    experts = over(layer.experts for layer in layers) / w.experts.group
    adapter_common = over(each.common for each in w.adapters) / i.tp_size
    adapter_experts = over(each.experts for each in w.adapters) / w.experts.group

    def share(zero_stage: int, common: Value, experts: Value) -> Value:
        # Experts have fewer replicas than the rest.
        sharded = i.zero_stage >= zero_stage
        return common / where(sharded, w.common.shards, 1) + experts / where(
            sharded, w.experts.shards, 1
        )

    def adapter_share(zero_stage: int) -> Value:
        return share(zero_stage, adapter_common, adapter_experts)

    def trained(zero_stage: int) -> Value:
        return full * share(zero_stage, common, experts) + adapter_share(zero_stage)

    each, master, full = i.precision.training_bytes, i.conventions.master_bytes, 1 - i.frozen
    held_tables = stage.tables * table / i.tp_size
    tables = full * held_tables / where(i.zero_stage >= 1, w.common.shards, 1)
    state = i.optimizer
    optimizer = f.optimizer_state_size(
        trained(1) - tables, each, state.state_bytes, master
    ) + f.optimizer_state_size(tables, each, state.table_bytes, master)
    some = recomputed_share(i, sum_of(stage.layers))
    in_flight = _in_flight(i, stage.index)
    activations = in_flight * over(some * layer.kept + (1 - some) * layer.whole for layer in layers)
    if tower := tower_of(i):
        # Each layer of the tower keeps its activations, unless the tower is frozen.
        elements = full * stage.images * tower.network.activations_per_sample / i.tp_size
        activations = activations + in_flight * each * elements
    return DeviceMemory(
        weights=weights_size(i, share(3, common, experts), share(3, held_tables, 0))
        + adapter_share(3) * each,
        gradients=trained(2) * i.gradient_precision.training_bytes,
        optimizer=optimizer,
        activations=activations,
        working=_working(
            i,
            w,
            table,
            stage,
            layers,
            weights_size(i, _copied(w, common, experts), _copied(w, held_tables, 0)),
        ),
        stage=stage.index,
    )


def _working(
    i: TrainingInputs,
    w: Work,
    table: Value,
    stage: _Stage,
    layers: list[_Layer],
    copied: Value,
) -> Value:
    """Return the temporary memory of the backward pass, at the higher of its two peaks.

    The backward pass begins with the logits and then goes through the layers. Gradients are
    accumulated in place, but each product first writes its own to a buffer, allocated once per
    shape (github.com/NVIDIA/TransformerEngine, module/base.py, get_dummy_wgrad).
    """
    each = i.precision.training_bytes
    buffered = _buffers(stage.layers, layers) + stage.output_tables * table
    buffers = (1 - i.frozen) * buffered / i.tp_size * each
    # The peak is in the layer that needs most.
    layer_peak: Value = 0
    largest: Value = 0
    in_layers: Value = 0
    for count, layer in zip(stage.layers, layers, strict=True):
        layer_peak = maximum(layer_peak, where(count > 0, layer.peak, 0))
        whole = _copied(w, layer.common / i.tp_size, layer.experts / w.experts.group)
        largest = maximum(largest, where(count > 0, whole, 0))
        in_layers = in_layers + count * whole
    # Sharded weights are whole in the layer in use and in the next one, which is gathered
    # meanwhile, or in all layers if they are kept from the forward to the backward pass. The
    # output table is whole while the logits are.
    sharded = maximum(0, i.zero_stage - 2)
    whole_weights = where(i.reshard_after_forward > 0, 0, 1)
    gathered = sharded * (1 - whole_weights)
    logits = stage.output_tables * f.head_working_memory(
        w.device_tokens,
        i.model.hidden_dim,
        i.model.vocab_size,
        i.tp_size,
        w.sequence_shards,
        each,
        i.loss.copy_bytes,
    )
    at_logits = logits + gathered * stage.output_tables * each * _copied(w, table / i.tp_size, 0)
    at_layer = layer_peak + gathered * i.weight_bytes * minimum(2 * largest, in_layers)
    at_layer = at_layer + _expanded(i, w)
    return buffers + sharded * whole_weights * copied + maximum(at_logits, at_layer)


def _expanded(i: TrainingInputs, w: Work) -> Value:
    """Return the largest matrix on a device, expanded before its products."""
    if is_zero(i.weights_stated):
        return 0
    width, largest = i.model.hidden_dim, zero_like(i.tp_size)
    for group in i.model.groups:
        for each in group.matrices(width):
            largest = maximum(largest, each.rows * each.columns / i.tp_size)
        if (block := group.experts) is not None:
            expert = block.expert_matrix(width)
            shards = w.experts.group / i.ep_size
            largest = maximum(largest, expert.rows * expert.columns / shards)
    return i.expanded_bytes * largest


def _copied(w: Work, common: Value, experts: Value) -> Value:
    """Return the parameters that ZeRO-3 gathers into a copy; those with one replica are whole."""
    return where(w.common.shards > 1, common, 0) + where(w.experts.shards > 1, experts, 0)


def _buffers(counts: list[Value], layers: list[_Layer]) -> Value:
    """Return the parameters of each distinct block shape of a stage."""
    sizes: dict[int, Value] = {}
    layers_with: dict[int, list[Value]] = {}
    for count, layer in zip(counts, layers, strict=True):
        for block, size in layer.buffers:
            sizes.setdefault(id(block), size)
            layers_with.setdefault(id(block), []).append(count)
    return sum_of([minimum(1, sum_of(layers_with[key])) * size for key, size in sizes.items()])
