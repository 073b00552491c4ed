"""A training step, operator by operator: products, collectives, launches and their overlap."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce
from typing import Any, NamedTuple

from mlsysim.core import formulas as f
from mlsysim.core.forms import replaced
from mlsysim.core.numeric import (
    Value,
    first_known,
    is_zero,
    maximum,
    minimum,
    when,
    where,
    zero_like,
)
from mlsysim.core.types.attention import AttentionKind
from mlsysim.core.types.layers import Experts
from mlsysim.solvers.layer import (
    Device,
    Products,
    Routed,
    attention_time,
    forward,
    head,
    product,
)
from mlsysim.solvers.power import flops_share, within_peak
from mlsysim.solvers.tower import tower_of, tower_pass
from mlsysim.solvers.training.inputs import TrainingInputs
from mlsysim.solvers.training.links import (
    DeviceLinks,
    Link,
    all_reduces,
    context_times,
    exchange_time,
    shard_time,
    stage_transfer_time,
    step_exchanges,
    tensor_all_reduce_time,
)
from mlsysim.solvers.training.memory import training_memory
from mlsysim.solvers.training.work import (
    Times,
    Work,
    answer,
    bubble_time,
    in_mean_layer,
    orthogonalization,
    tower_passes,
    training_work,
)
from mlsysim.solvers.work import (
    adapters_of,
    by_blocks,
    mean_over,
    mean_over_attention,
    sum_of,
)

__all__ = ["operator_step"]


def operator_step(i: TrainingInputs) -> dict[str, Any]:
    """Time one step of distributed training, operator by operator."""
    given, i = i, in_mean_layer(i)
    d, links, s = _device(i), _links(i), i.calibration.software
    w = training_work(i)
    # Overlap of the replicas' communication: the caller's choice or the calibration's
    gather_overlap, gradient_overlap, plain_overlap = (
        first_known(i.gradient_overlap, fitted)
        for fitted in (s.gather_overlap, s.gradient_overlap, s.plain_overlap)
    )
    count, again = i.microbatch_count, i.recompute.matrix_share

    # One mean layer on one microbatch
    layer = _layer(i, d, w.own_tokens, w.own_sequences)
    tensor_time = all_reduces(i, w) * (
        tensor_all_reduce_time(i, w, links) + when(i.tp_size > 1, s.collective_overhead)
    )
    experts_time = exchange_time(i, w, links, s.copies_per_node)
    context_time, context = context_times(i, w, links, layer.attention_of)
    # Products hide a collective over a node's own links; no framework hides one that leaves the
    # node (github.com/NVIDIA/TransformerEngine/issues/1071). No more can be hidden than there is
    # work, and work that hides one communication cannot hide another.
    inside = f.local_ranks(i.tp_size, i.fleet.node.accelerators_per_node) >= i.tp_size
    cover = layer.time - (context_time - context)
    tensor_overlap = first_known(i.tensor_overlap, where(inside, s.tensor_overlap, 0))
    exchange_overlap = first_known(i.exchange_overlap, s.exchange_overlap)
    tensor = f.covered_time(tensor_time, tensor_overlap, cover)
    experts = f.covered_time(experts_time, exchange_overlap, cover - (tensor_time - tensor))
    launch = f.layer_launch_time(
        by_blocks(i.model, s.layer_launch),
        i.model.routed_layers / i.model.layers * s.expert_launch,
        s.elementwise_backward,
        again,
    )
    device_time = layer.time + tensor + experts + context
    layer_time = f.launch_limited_time(device_time, launch, s.launch_exposed)
    # Weights gathered layer by layer, where gradients or weights are sharded
    gathers = shard_time(i, w, links, i.scatter_bytes)
    by_layer = i.zero_stage >= 2
    per_layer = where(
        by_layer, f.gathered_layer_time(layer_time, gathers, gather_overlap), layer_time
    )

    # The pipeline, in the time of its busiest stage
    logits = head(d, i.model, w.own_tokens, i.tp_size)
    loss = f.memory_time(
        f.loss_traffic(w.own_tokens, i.model.vocab_size, i.tp_size, s.loss_bytes), d.memory
    )
    head_time = (
        3 - i.frozen
    ) * logits.time + loss  # each product has two gradients of the same size
    # Layers for multi-token prediction are on the last stage: a mean layer, the projection that
    # joins two hidden states, and the head once more.
    if not is_zero(i.model.mtp_layers):
        extra = per_layer + (3 - i.frozen) * _joined(d, i, w.own_tokens).time + head_time
        head_time = head_time + i.model.mtp_layers * extra
    # The slowest stage sets the pace: the longest, the last with the head, or the first with the
    # tower.
    both = i.schedule.bidirectional > 0  # a device has half of the work of both end stages
    last_layers = where(both, (w.layout.first + w.layout.last) / 2, w.layout.last)
    last_head = where(both, head_time / 2, head_time)
    last_time = last_layers * per_layer + last_head
    whole_model = i.model.layers * per_layer + head_time
    vision = _vision(i, d, w.own_sequences, i.tp_size)
    if vision is not None:
        tower = tower_passes(i) * vision.time
        last_tower = where(both, 1 / 2, where(i.pp_size > 1, 0, 1))
        last_time, whole_model = last_time + last_tower * tower, whole_model + tower
    by_last = last_time >= w.stage_layers * per_layer
    layers = where(by_last, last_layers, w.stage_layers)
    head_share = where(by_last, last_head / head_time, 0)
    around = head_share * head_time
    busiest = layers * per_layer + around
    if vision is not None:
        tower_share = where(by_last, last_tower, 0)
        first_time = w.layout.first * per_layer + tower
        others_time = busiest + tower_share * tower
        by_first = (first_time > others_time) & (i.pp_size > 1) & (i.schedule.bidirectional == 0)
        layers = where(by_first, w.layout.first, layers)
        head_share = where(by_first, 0, head_share)
        tower_share = where(by_first, 1, tower_share)
        around = head_share * head_time + tower_share * tower
        busiest = layers * per_layer + around
    passes = count * busiest
    # The busiest stage waits while the others process the first and last microbatches.
    others = maximum(1, i.pp_size - 1)
    layers_there, head_there = (i.model.layers - layers) / others, (1 - head_share) / others
    bubble = f.pipeline_fill_time(whole_model, busiest, i.virtual_stages)
    if not is_zero(i.schedule.split_backward + i.schedule.bidirectional):
        heads = (head_time, logits.time, (1 - i.frozen) * logits.time)
        around_there = [head_there * each for each in heads]
        if vision is not None:
            tower_there = (1 - tower_share) / others * vision.time
            times = (tower_passes(i) * tower_there, tower_there, (1 - i.frozen) * tower_there)
            around_there = [a + b for a, b in zip(around_there, times, strict=True)]
        work = layer.time + context
        work = work + (1 - tensor_overlap) * tensor_time + (1 - exchange_overlap) * experts_time
        sent = context_time + tensor_time + experts_time
        waits = []
        for each in _paces(
            _Passes(work, layer.forward, layer.weights),
            _Passes(sent, sent / (2 + again), zero_like(sent)),
            (_launches(i, launch), s.launch_exposed),
            (_Passes(gathers, zero_like(gathers), zero_like(gathers)), 1 - gather_overlap),
        ):
            there = (layers_there * a + b for a, b in zip(each, around_there, strict=True))
            wait = bubble_time(i, bubble, *there)
            waits.append(wait - count * layers * (per_layer - each.time))
        # The pace that makes the whole step longest is the slowest.
        postponed = i.schedule.split_backward + i.schedule.bidirectional > 0
        bubble = where(postponed, reduce(maximum, waits), bubble)
    transfer_time = stage_transfer_time(i, w, links)
    transfer = f.covered_time(transfer_time, first_known(i.pipeline_overlap, 0), passes)

    # Once per step. The reduction overlaps the last microbatch's backward pass, and the gathers
    # overlap the first one's forward pass. Work that already hides shards' communication cannot
    # hide this too.
    reduction, weights = step_exchanges(
        i, w, links, where(by_layer, i.scatter_bytes, i.gradient_precision.training_bytes)
    )
    overlap = where(
        by_layer, gather_overlap, where(i.zero_stage >= 1, gradient_overlap, plain_overlap)
    )
    idle = maximum(zero_like(gathers), layer_time - gathers)
    cover = where(by_layer, w.stage_layers * idle, passes / count)
    exposed_reduction = f.covered_time(reduction, overlap, cover * (2 + again) / (3 + again))
    exposed_weights = f.covered_time(weights, overlap, cover / (3 + again))
    once = exposed_reduction + exposed_weights
    updated = w.trained_common / w.shards + w.trained_experts / w.expert_shards
    # The two copies of a stage share the update if replicas do.
    sharing = where(i.zero_stage >= 1, w.copies, 1)
    updated = updated / sharing
    # The constant was fitted to runs with Adam.
    own_bytes, adam_bytes = (
        f.update_bytes(
            state,
            i.conventions.master_bytes,
            i.precision.training_bytes,
            i.gradient_precision.training_bytes,
        )
        for state in (i.optimizer.state_bytes, i.conventions.moment_bytes)
    )
    update_size = updated * s.optimizer_bytes * own_bytes / adam_bytes
    # Newton-Schulz iterations stay in the wide format, whatever the products' format.
    orthogonal = orthogonalization(i, w) / sharing / d.head
    update = f.memory_time(update_size, d.memory) + orthogonal
    step = passes + transfer + bubble + once + update + s.step_overhead

    def whole(per_layer: Value) -> Value:
        return count * layers * per_layer

    # Time that gathers add to a layer
    waiting = maximum(zero_like(gathers), gathers - layer_time) + (1 - gather_overlap) * minimum(
        layer_time, gathers
    )
    exposed = Times(
        data=where(by_layer, whole(waiting) + once, once),
        tensor=whole(tensor),
        pipeline=transfer,
        context=whole(context),
        experts=whole(experts),
    )
    every = Times(
        data=whole(gathers) + reduction + weights,
        tensor=whole(tensor_time),
        pipeline=transfer_time,
        context=whole(context_time),
        experts=whole(experts_time),
    )
    around_streamed = (3 - i.frozen) * logits.memory + loss
    if vision is not None:
        around_streamed = around_streamed + tower_passes(i) * vision.memory
    traffic = f.step_traffic(
        w.stage_layers,
        count,
        layer.streamed,
        d.memory,
        layer.products,
        around_streamed / i.pp_size,
        again,
        i.frozen,
        update_size,
    )
    mbu = f.bandwidth_utilization(traffic, step, i.device.memory.bandwidth)
    outputs = answer(
        i,
        w,
        training_memory(given, w),
        step=step,
        alone=_alone(i, w),
        compute=count * (layers * layer.time + around),
        exposed=exposed,
        every=every,
        bubble=bubble,
        busy=passes,
        update=update,
        host=whole(layer_time - device_time) + s.step_overhead,
        mfu=flops_share(i, w.model_flops, w.wide_model_flops, step, i.devices),
        hfu=flops_share(i, w.hardware_flops, w.wide_hardware_flops, step, i.devices),
        mbu=mbu,
    )
    c = i.calibration
    familiar = c.familiar if c.covered is None else c.familiar * i.covered
    used = maximum(outputs["hfu"], mbu)
    family_low = within_peak(c.family_band_low, used)
    unseen_low = within_peak(c.unseen_band_low, used)
    edges = {
        "family_low": family_low,
        "family_high": c.family_band_high,
        "unseen_low": unseen_low,
        "unseen_high": c.unseen_band_high,
        "low": where(familiar > 0, family_low, unseen_low),
        "high": where(familiar > 0, c.family_band_high, c.unseen_band_high),
    }
    return (
        outputs
        | {"mbu": mbu}
        | {f"step_latency_{name}": edge * step for name, edge in edges.items()}
    )


def _device(i: TrainingInputs) -> Device:
    """Return the rates of a device, by the calibration's constants."""
    m, s = i.calibration.machine, i.calibration.software
    each = i.precision.training_bytes
    # Devices that swap positions for heads cover more of each sequence, with fewer heads.
    length = i.seq_len * i.swap_size / i.cp_size
    return Device(
        product=i.gemm_efficiency * i.peak_rate,
        head=i.wide_gemm_efficiency * i.wide_peak_rate,
        wide_rate=i.wide_peak_rate,
        attention_efficiency=where(
            i.attention.fused > 0,
            s.attention_speed * f.attention_share(length, m.attention_efficiency, m.attention_half),
            i.wide_gemm_efficiency,
        ),
        state_efficiency=m.state_efficiency,
        memory=m.memory_efficiency * i.device.memory.bandwidth,
        weight_bytes=each,
        activation_bytes=each,
        hidden_bytes=i.hidden_bytes,
        ffn_bytes=i.ffn_bytes,
        flops_per_mac=i.conventions.flops_per_mac,
        cast_bytes=i.cast_bytes,
        routing_bytes=i.routing_bytes,
        bias_bytes=s.bias_bytes,
        product_overhead=s.gemm_overhead,
    )


def _links(i: TrainingInputs) -> DeviceLinks:
    """Return the links at the share of their bandwidth that collectives reach."""
    node, fabric, m = i.fleet.node, i.fleet.fabric, i.calibration.machine
    port = fabric.bandwidth * node.nics_per_node / node.accelerators_per_node
    return DeviceLinks(
        local=Link(m.link_efficiency * node.scale_up.bandwidth, node.scale_up.latency),
        remote=Link(m.nic_efficiency * port, fabric.latency),
    )


class _Passes(NamedTuple):
    """Times of a layer's passes on one microbatch."""

    time: Value
    """Time of all passes."""
    forward: Value
    weights: Value
    """Time of the weights' gradients, which can be postponed."""


def _launches(i: TrainingInputs, launch: Value) -> _Passes:
    """Return the times to launch the passes.

    A product has two gradients, and other operators have one: the backward pass has as many kernels
    more than the forward pass as there are gradients of weights.
    """
    backward = i.calibration.software.elementwise_backward
    one = launch / (1 + backward + i.recompute.matrix_share)
    return _Passes(launch, one, (1 - i.frozen) * maximum(backward - 1, 0) * one)


def _paces(work: _Passes, sent: _Passes, *others: tuple[_Passes, Value]) -> list[_Passes]:
    """Return a layer's passes for each of the times that may be the longest.

    These are the device's work, the communication that it hides, and others, each with the share
    that is not hidden if it is the shorter one. Only gradients of weights that take part of the
    longest time can fill a gap. If instead the parts of different ones were mixed, a layer could
    take as long with fewer of these gradients, and a faster device would have a longer step.
    """
    paces = [work, sent]
    for other, exposed in others:
        pairs = [pair for each in paces for pair in ((each, other), (other, each))]
        paces = [
            _Passes(*(a + exposed * b for a, b in zip(slow, fast, strict=True)))
            for slow, fast in pairs
        ]
    return paces


@dataclass(frozen=True)
class _Layer:
    """A mean layer on one microbatch: forward, backward and recomputed, without communication."""

    time: Value
    forward: Value
    """Time of the forward pass."""
    weights: Value
    """Time of the weights' gradients."""
    attention_of: Callable[[AttentionKind], Value]
    """Compute time of attention, by kind, forward."""
    streamed: Value
    """Time spent only streaming through memory."""
    products: Value
    """Time to stream the data of the forward products."""


def _layer(i: TrainingInputs, d: Device, tokens: Value, sequences: Value) -> _Layer:
    """Return the passes of a mean layer over so many tokens."""
    s = i.calibration.software
    shards = where(i.sequence_parallel > 0, i.tp_size, 1)
    fused = i.attention.fused > 0
    one = forward(
        d,
        i.model,
        tokens,
        i.seq_len,
        i.attention.fused,
        i.tp_size,
        shards,
        {
            position: _experts(i, d, group.experts, tokens)
            for position, group in enumerate(i.model.groups)
            if group.experts is not None
        },
    )

    def scores(a: AttentionKind) -> Value:
        written, each = i.attention.written_scores, i.score_bytes
        return f.score_traffic(sequences, a.score_heads, i.seq_len, i.tp_size, written, each)

    score = f.memory_time(mean_over_attention(i.model, scores), d.memory)
    again = i.recompute.matrix_share
    attention_again = where(fused, again, i.recompute.score_share)
    layer_time = f.layer_time(
        one.products.time,
        one.attention,
        score,
        one.elementwise,
        i.attention_backward,
        s.elementwise_backward,
        again,
        attention_again,
    )
    streams_again, products_again = _modules_again(i, d, tokens, shards)
    layer_time = layer_time + streams_again + products_again
    passes = 1 + s.elementwise_backward
    streamed = (passes + attention_again) * score + (passes + again) * one.elementwise
    streamed = streamed + streams_again
    # Frozen weights have no gradients; their adapters have both.
    visited = mean_over(i.model, [each for _, each in adapters_of(i.model, i.adapter_rank).visited])
    adapter_time = d.flops_per_mac * tokens * visited / i.tp_size / d.product
    layer_time = layer_time - i.frozen * one.products.time + 3 * adapter_time
    forward_time = one.products.time + one.attention + score + one.elementwise
    return _Layer(
        time=layer_time,
        forward=forward_time,
        weights=(1 - i.frozen)
        * one.products.time,  # the same number of operations as the forward pass
        attention_of=lambda a: attention_time(
            d, i.model, a, tokens, i.seq_len, i.attention.fused, i.tp_size
        ),
        streamed=streamed,
        products=one.products.memory,
    )


def _modules_again(
    i: TrainingInputs, d: Device, tokens: Value, sequence_shards: Value
) -> tuple[Value, Value]:
    """Return the times to recompute a mean layer's norms and nonlinearities, and its heads."""
    model, again = i.model, i.recompute
    # Two norms read and write the residual stream. A nonlinearity reads its input, including the
    # gate, and writes its output.
    norms = by_blocks(model, 4 * model.hidden_dim / sequence_shards)
    inner = mean_over(
        model,
        [
            0 if group.feed_forward is None else group.feed_forward.matrices * group.inner_width
            for group in model.groups
        ],
    )
    elements = again.norm_share * norms + again.activation_share * inner / i.tp_size
    streams = f.memory_time(tokens * d.activation_bytes * elements, d.memory)

    def heads(a: AttentionKind) -> Value:
        times = [
            product(d, tokens, each.inner, each.columns / i.tp_size, 1, d.product).time
            for each in a.expansions(model.hidden_dim)
        ]
        return again.latent_share * sum_of(times) if times else zero_like(streams)

    return streams, mean_over_attention(model, heads)


def _experts(i: TrainingInputs, d: Device, block: Experts, tokens: Value) -> Routed:
    """Return the work of a layer's experts on the busiest device."""
    # Devices of a tensor-parallel group that share one expert
    shards = f.expert_group_size(i.tp_size, i.ep_size) / i.ep_size
    return Routed(
        rows=i.capacity_factor * f.rows_per_device(tokens, block.per_token, i.tp_size, shards),
        matrices=block.count / i.ep_size,
        shards=shards,
        rate=i.calibration.software.expert_efficiency * d.product,
    )


def _alone(i: TrainingInputs, w: Work) -> Value:
    """Return the time of the whole step on one device with unlimited memory and no microbatches.

    Every operator processes all its rows at once, so a fleet cannot beat the sum of its devices.
    """
    one = i.but(
        tp_size=1,
        cp_size=1,
        ulysses_size=1,
        ep_size=1,
        capacity_factor=1,
        sequence_parallel=0,
        recompute=replaced(
            i.recompute,
            matrix_share=0,
            score_share=0,
            norm_share=0,
            activation_share=0,
            latent_share=0,
        ),
    )
    d = _device(one)  # attention over whole sequences reaches a higher rate
    logits = head(d, one.model, w.tokens, 1)
    loss = f.memory_time(
        f.loss_traffic(w.tokens, one.model.vocab_size, 1, one.calibration.software.loss_bytes),
        d.memory,
    )
    layer = _layer(one, d, w.tokens, i.batch_size)
    head_time = (3 - i.frozen) * logits.time + loss
    if not is_zero(one.model.mtp_layers):
        extra = layer.time + (3 - i.frozen) * _joined(d, one, w.tokens).time + head_time
        head_time = head_time + one.model.mtp_layers * extra
    time = one.model.layers * layer.time + head_time
    vision = _vision(one, d, i.batch_size, 1)
    return time if vision is None else time + tower_passes(one) * vision.time


def _vision(i: TrainingInputs, d: Device, sequences: Value, tp: Value) -> Products | None:
    """Return the forward pass of the vision tower over the images of some sequences, if any."""
    tower = tower_of(i)
    return None if tower is None else tower_pass(d, tower, sequences * i.images, tp)


def _joined(d: Device, i: TrainingInputs, tokens: Value) -> Products:
    """Return the product that combines two hidden states for multi-token prediction."""
    width = i.model.hidden_dim
    return product(d, tokens, 2 * width / i.tp_size, width, 1, d.product)
