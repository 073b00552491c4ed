"""A training step from its operators: every product, collective and launch, and what they hide."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from mlsysim.core import formulas as f
from mlsysim.core.forms import replaced
from mlsysim.core.numeric import Value, first_known, maximum, minimum, where
from mlsysim.core.types.layers import ExpertBlock
from mlsysim.solvers.layer import Device, Experts, forward, head
from mlsysim.solvers.power import flops_share
from mlsysim.solvers.training.inputs import TrainingInputs
from mlsysim.solvers.training.links import (
    DeviceLinks,
    Link,
    all_reduce_time,
    all_reduces,
    context_times,
    exchange_time,
    expert_ring_size,
    gather_time,
    gradient_sizes,
    ring,
    stage_transfer_time,
    tensor_all_reduce_time,
)
from mlsysim.solvers.training.memory import training_memory
from mlsysim.solvers.training.work import Times, Work, answer, training_work

__all__ = ["operator_step"]


def operator_step(i: TrainingInputs) -> dict[str, Any]:
    """Time one step of distributed training, operator by operator."""
    d, links, c = _device(i), _links(i), i.calibration
    w = training_work(i)
    # What replicas send while they compute: a lever of the caller's, or as the calibration has it
    gather_overlap, gradient_overlap, plain_overlap = (
        first_known(i.gradient_overlap, fitted)
        for fitted in (c.gather_overlap, c.gradient_overlap, c.plain_overlap)
    )
    count, again = i.microbatch_count, i.recompute.matrix_share

    # One mean layer on one microbatch
    layer = _layer(i, d, w.own_tokens, w.own_sequences)
    tensor_time = all_reduces(i, w) * (
        tensor_all_reduce_time(i, w, links)
        + where(i.tp_size > 1, c.collective_overhead, 0 * c.collective_overhead)
    )
    experts_time = exchange_time(i, w, links, c.copies_per_node)
    context_time, context = context_times(i, w, links, layer.attention)
    # Products hide a collective over a node's own links: no framework hides one that leaves the
    # node (github.com/NVIDIA/TransformerEngine/issues/1071). No more is hidden than there is work,
    # and what hides one communication hides no other.
    inside = f.local_ranks(i.tp_size, i.fleet.node.accelerators_per_node) >= i.tp_size
    cover = layer.time - (context_time - context)
    tensor = f.covered_time(tensor_time, where(inside, c.tensor_overlap, 0), cover)
    experts = f.covered_time(experts_time, c.exchange_overlap, cover - (tensor_time - tensor))
    launch = f.layer_launch_time(
        c.layer_launch,
        i.model.moe_layers / i.model.layers * c.expert_launch,
        c.elementwise_backward,
        again,
    )
    device_time = layer.time + tensor + experts + context
    layer_time = f.launch_limited_time(device_time, launch, c.launch_exposed)
    # Weights gathered layer by layer, where gradients or weights are sharded
    replicas = ring(i, links, w.replicas, i.tp_size)
    expert_replicas = ring(i, links, expert_ring_size(i, w), w.expert_group)
    gathers = gather_time(i, w, replicas, expert_replicas)
    by_layer = i.zero_stage >= 2
    per_layer = where(
        by_layer, f.gathered_layer_time(layer_time, gathers, gather_overlap), layer_time
    )

    # The pipeline, in the time of its busiest stage
    logits = head(d, i.model, w.own_tokens, i.tp_size)
    loss = f.memory_time(
        f.loss_traffic(w.own_tokens, i.model.vocab_size, i.tp_size, c.loss_bytes), d.memory
    )
    head_time = 3 * logits.time + loss  # a product has two gradients of its own size
    # The longest stage sets the pace, or the last one with the head.
    last_time = w.layout.last * per_layer + head_time
    by_last = last_time >= w.stage_layers * per_layer
    layers, head_time = (
        where(by_last, w.layout.last, w.stage_layers),
        where(by_last, head_time, 0 * head_time),
    )
    busiest = layers * per_layer + head_time
    passes = count * busiest
    whole_model = (i.model.layers - w.layout.last) * per_layer + last_time
    bubble = f.pipeline_fill_time(whole_model, busiest, i.virtual_stages)
    transfer = stage_transfer_time(i, w, links)

    # Once per step. The reduction follows the last microbatch's backward pass, the gathers the
    # first's forward. Gradients that are sharded are scattered layer by layer, above.
    common_size, expert_size = gradient_sizes(i, w)
    reduction = all_reduce_time(i, links, common_size, w.replicas, i.tp_size) + all_reduce_time(
        i, links, expert_size, expert_ring_size(i, w), w.expert_group
    )
    overlap = where(i.zero_stage >= 1, gradient_overlap, plain_overlap)
    exposed_reduction = where(
        by_layer, 0 * reduction, f.covered_time(reduction, overlap, passes / count)
    )
    sharded = i.zero_stage >= 1
    updated = w.own_common / where(sharded, w.replicas, 1) + w.own_experts / where(
        sharded, w.expert_replicas, 1
    )
    update_size = updated * c.optimizer_bytes
    update = f.memory_time(update_size, d.memory)
    step = passes + transfer + bubble + exposed_reduction + update + c.step_overhead

    def whole(per_layer: Value) -> Value:
        return count * layers * per_layer

    # What gathers add to a layer
    waiting = maximum(0 * gathers, gathers - layer_time) + (1 - gather_overlap) * minimum(
        layer_time, gathers
    )
    exposed = Times(
        data=where(by_layer, whole(waiting), exposed_reduction),
        tensor=whole(tensor),
        pipeline=transfer,
        context=whole(context),
        experts=whole(experts),
    )
    every = Times(
        data=where(by_layer, whole(gathers), reduction),
        tensor=whole(tensor_time),
        pipeline=transfer,
        context=whole(context_time),
        experts=whole(experts_time),
    )
    traffic = f.step_traffic(
        w.stage_layers,
        count,
        layer.streamed,
        d.memory,
        layer.products,
        (3 * logits.memory + loss) / i.pp_size,
        again,
        update_size,
    )
    mbu = f.bandwidth_utilization(traffic, step, i.device.memory.bandwidth)
    outputs = answer(
        i,
        w,
        training_memory(i, w),
        step=step,
        alone=_alone(i, d, w),
        compute=count * (layers * layer.time + head_time),
        exposed=exposed,
        every=every,
        bubble=bubble,
        update=update,
        host=whole(layer_time - device_time) + c.step_overhead,
        mfu=flops_share(i, w.model_flops, w.wide_model_flops, step, i.devices),
        hfu=flops_share(i, w.hardware_flops, w.wide_hardware_flops, step, i.devices),
        mbu=mbu,
    )
    low, high = _band(i)
    return outputs | {
        "mbu": mbu,
        "step_latency_low": low * step,
        "step_latency_high": high * step,
    }


def _device(i: TrainingInputs) -> Device:
    """Return what a device reaches with the calibration's constants."""
    c = i.calibration
    each = i.precision.training_bytes
    return Device(
        product=i.gemm_efficiency * i.peak_rate,
        head=i.wide_gemm_efficiency * i.wide_peak_rate,
        wide_rate=i.wide_peak_rate,
        attention_efficiency=where(
            i.attention.fused > 0, c.attention_efficiency, i.wide_gemm_efficiency
        ),
        memory=c.memory_efficiency * i.device.memory.bandwidth,
        weight_bytes=each,
        activation_bytes=each,
        hidden_bytes=i.hidden_bytes,
        ffn_bytes=i.ffn_bytes,
        flops_per_mac=i.conventions.flops_per_mac,
        cast_bytes=i.cast_bytes,
        routing_bytes=i.routing_bytes,
        bias_bytes=c.bias_bytes,
        product_overhead=c.gemm_overhead,
    )


def _links(i: TrainingInputs) -> DeviceLinks:
    """Return the links with the shares of their bandwidth that collectives reach."""
    node, fabric, c = i.fleet.node, i.fleet.fabric, i.calibration
    port = fabric.bandwidth * node.nics_per_node / node.accelerators_per_node
    return DeviceLinks(
        local=Link(c.link_efficiency * node.scale_up.bandwidth, node.scale_up.latency),
        remote=Link(c.nic_efficiency * port, fabric.latency),
    )


@dataclass(frozen=True)
class _Layer:
    """A mean layer on one microbatch, forward, backward and again, without communication."""

    time: Value
    attention: Value
    """Arithmetic of attention, forward."""
    streamed: Value
    """The part of its time that only streams through memory."""
    products: Value
    """The time in which its products would stream, forward."""


def _layer(i: TrainingInputs, d: Device, tokens: Value, sequences: Value) -> _Layer:
    """Return the passes of a mean layer over so many tokens."""
    c = i.calibration
    shards = where(i.sequence_parallel > 0, i.tp_size, 1)
    fused = i.attention.fused > 0
    one = forward(
        d,
        i.model,
        tokens,
        i.seq_len,
        where(fused, i.model.attended_fraction, 1),
        i.tp_size,
        shards,
        {
            position: _experts(i, d, group.feed_forward, tokens)
            for position, group in enumerate(i.model.groups)
            if isinstance(group.feed_forward, ExpertBlock)
        },
    )
    score = f.memory_time(
        f.score_traffic(
            sequences,
            i.model.heads,
            i.seq_len,
            i.tp_size,
            i.attention.written_scores,
            i.score_bytes,
        ),
        d.memory,
    )
    again = i.recompute.matrix_share
    attention_again = where(fused, again, i.recompute.score_share)
    layer_time = f.layer_time(
        one.products.time,
        one.attention,
        score,
        one.elementwise,
        i.attention.backward,
        c.elementwise_backward,
        again,
        attention_again,
    )
    passes = 1 + c.elementwise_backward
    streamed = (passes + attention_again) * score + (passes + again) * one.elementwise
    return _Layer(layer_time, one.attention, streamed, one.products.memory)


def _experts(i: TrainingInputs, d: Device, block: ExpertBlock, tokens: Value) -> Experts:
    """Return how a layer's experts are met when they are loaded evenly."""
    # Devices of a tensor-parallel group that share one expert
    shards = f.expert_group_size(i.tp_size, i.ep_size) / i.ep_size
    return Experts(
        rows=f.rows_per_device(tokens, block.experts_per_token, i.tp_size, shards),
        matrices=block.experts / i.ep_size,
        shards=shards,
        rate=i.calibration.expert_efficiency * d.product,
    )


def _alone(i: TrainingInputs, d: Device, w: Work) -> Value:
    """Return the time of the whole step on one device that holds it all, and needs no microbatches.

    Every operator has all its rows at once, so that no fleet is faster than its devices.
    """
    one = i.but(
        tp_size=1,
        ep_size=1,
        sequence_parallel=0,
        recompute=replaced(i.recompute, matrix_share=0, score_share=0),
    )
    logits = head(d, one.model, w.tokens, 1)
    loss = f.memory_time(
        f.loss_traffic(w.tokens, one.model.vocab_size, 1, one.calibration.loss_bytes), d.memory
    )
    layer = _layer(one, d, w.tokens, i.batch_size)
    return one.model.layers * layer.time + 3 * logits.time + loss


def _band(i: TrainingInputs) -> tuple[Value, Value]:
    """Return measured over predicted time at the edges of the band for such runs."""
    c = i.calibration
    several, mixed = i.fleet.count > 1, i.model.moe_layers > 0
    return (
        where(mixed, c.expert_band_low, where(several, c.fleet_band_low, c.node_band_low)),
        where(mixed, c.expert_band_high, where(several, c.fleet_band_high, c.node_band_high)),
    )
