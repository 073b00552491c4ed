"""A training step, operator by operator: products, collectives, launches and their overlap."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce
from typing import Any, NamedTuple

from mlsysim.core import formulas as f
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
from mlsysim.solvers.device import edges, flops_share, within_peak
from mlsysim.solvers.layer import Device, Routed, attention_time, forward, head, product
from mlsysim.solvers.tower import tower_of, tower_pass
from mlsysim.solvers.training.inputs import TrainingInputs
from mlsysim.solvers.training.links import (
    DeviceLinks,
    all_reduces,
    context_times,
    exchange_time,
    shard_time,
    stage_transfer_time,
    step_exchanges,
    tensor_all_reduce_time,
)
from mlsysim.solvers.training.memory import training_memory
from mlsysim.solvers.training.result import Communication, StepTimes, result_fields
from mlsysim.solvers.training.work import (
    Work,
    bubble_time,
    in_mean_layer,
    in_share,
    orthogonalization,
    tower_passes,
    training_work,
)
from mlsysim.solvers.work import by_blocks, mean_over, mean_over_attention, sum_of


def operator_step(i: TrainingInputs) -> dict[str, Any]:
    """Time one step of distributed training, operator by operator."""
    given, i = i, in_mean_layer(i)
    machine, s = i.calibration.machine, i.calibration.software
    links = DeviceLinks.of(i).reached(machine.link_efficiency, machine.nic_efficiency)
    d, w, count = _device(i), training_work(i), i.microbatch_count

    layer = _layer(i, d, w, links)
    ends = _ends(i, d, layer.gathered, w.device_tokens, w.device_sequences)
    stage = _busiest_stage(i, w, layer.gathered, ends)
    passes = count * stage.time
    bubble = _bubble(i, layer, ends, stage)
    transfer_time = stage_transfer_time(i, w, links)
    transfer = f.covered_time(transfer_time, first_known(i.pipeline_overlap, 0), passes)
    exchanges = _once_per_step(i, w, links, layer, passes)
    update_size = _update_size(i, w)
    # Newton-Schulz iterations stay in the wide format, whatever the products' format.
    orthogonal = orthogonalization(i, w) / _sharing(i, w) / d.head
    update = f.memory_time(update_size, d.memory) + orthogonal
    step = passes + transfer + bubble + exchanges.exposed + update + s.step_overhead

    def whole(per_layer: Value) -> Value:
        return count * stage.layers * per_layer

    traffic = f.step_traffic(
        w.stage_layers,
        count,
        layer.compute.streamed,
        d.memory,
        layer.compute.products,
        sum_of([end.streamed for end in ends]) / i.pp_size,
        i.recompute.matrix_share,
        i.frozen,
        update_size,
    )
    times = StepTimes(
        step=step,
        alone=_alone(i, w),
        compute=count * (stage.layers * layer.compute.time + _around(ends, stage.shares)),
        exposed=Communication(
            data=whole(layer.gathers.exposed) + exchanges.exposed,
            tensor=whole(layer.tensor.exposed),
            pipeline=transfer,
            context=whole(layer.context.exposed),
            experts=whole(layer.experts.exposed),
        ),
        every=Communication(
            data=whole(layer.gathers.time) + exchanges.time,
            tensor=whole(layer.tensor.time),
            pipeline=transfer_time,
            context=whole(layer.context.time),
            experts=whole(layer.experts.time),
        ),
        bubble=bubble,
        busy=passes,
        update=update,
        host=whole(layer.time - layer.device_time) + s.step_overhead,
        mfu=flops_share(i, w.flops.model, w.flops.wide_model, step, i.devices),
        hfu=flops_share(i, w.flops.hardware, w.flops.wide_hardware, step, i.devices),
        mbu=f.bandwidth_utilization(traffic, step, i.device.memory.bandwidth),
    )
    outputs = result_fields(i, w, training_memory(given, w), times)
    return outputs | {"mbu": times.mbu} | _bands(i, times)


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


class _Passes(NamedTuple):
    """Times of a layer's passes on one microbatch."""

    time: Value
    """Time of all passes."""
    forward: Value
    weights: Value
    """Time of the weights' gradients, which can be postponed."""


@dataclass(frozen=True)
class _Computed:
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


@dataclass(frozen=True)
class _Exchange:
    """Communication, and how much of it computation hides."""

    time: Value
    exposed: Value
    """Time that is not hidden."""
    overlap: Value = 0
    """Share that would be hidden by enough computation."""


@dataclass(frozen=True)
class _Layer:
    """A mean layer on one microbatch, with its communication and the launches of its kernels."""

    compute: _Computed
    tensor: _Exchange
    experts: _Exchange
    context: _Exchange
    gathers: _Exchange
    """Gathers of weights and scatters of gradients, if they are sharded."""
    launch: Value
    """Time for the host to launch its kernels."""
    device_time: Value
    """Computation and exposed communication, without the gathers."""
    time: Value
    """The same, with waits for the host."""
    gathered: Value
    """The same, with waits for the gathers."""


def _layer(i: TrainingInputs, d: Device, w: Work, links: DeviceLinks) -> _Layer:
    """Return a mean layer on one microbatch."""
    s, matrix_share = i.calibration.software, i.recompute.matrix_share
    compute = _computed(i, d, w, w.device_tokens, w.device_sequences)
    tensor_time = all_reduces(i, w) * (
        tensor_all_reduce_time(i, w, links) + when(i.tp_size > 1, s.collective_overhead)
    )
    experts_time = exchange_time(i, w, links, s.copies_per_node)
    context_time, context = context_times(i, w, links, compute.attention_of)
    # Products hide a collective over a node's own links; no framework hides one that leaves the
    # node (github.com/NVIDIA/TransformerEngine/issues/1071). No more can be hidden than there is
    # work, and work that hides one communication cannot hide another.
    inside = f.local_ranks(i.tp_size, i.fleet.node.accelerators_per_node) >= i.tp_size
    cover = compute.time - (context_time - context)
    tensor_overlap = first_known(i.tensor_overlap, where(inside, s.tensor_overlap, 0))
    exchange_overlap = first_known(i.exchange_overlap, s.exchange_overlap)
    tensor = f.covered_time(tensor_time, tensor_overlap, cover)
    experts = f.covered_time(experts_time, exchange_overlap, cover - (tensor_time - tensor))
    launch = f.layer_launch_time(
        by_blocks(i.model, s.layer_launch),
        i.model.routed_layers / i.model.layers * s.expert_launch,
        s.elementwise_backward,
        matrix_share,
    )
    device_time = compute.time + tensor + experts + context
    layer_time = f.launch_limited_time(device_time, launch, s.launch_exposed)
    # Weights are gathered layer by layer where gradients or weights are sharded.
    by_layer = i.zero_stage >= 2
    gathers = shard_time(i, w, links, i.scatter_bytes)
    gather_overlap = first_known(i.gradient_overlap, s.gather_overlap)
    waiting = maximum(zero_like(gathers), gathers - layer_time) + (1 - gather_overlap) * minimum(
        layer_time, gathers
    )
    gathered = f.gathered_layer_time(layer_time, gathers, gather_overlap)
    return _Layer(
        compute=compute,
        tensor=_Exchange(tensor_time, tensor, tensor_overlap),
        experts=_Exchange(experts_time, experts, exchange_overlap),
        context=_Exchange(context_time, context),
        gathers=_Exchange(gathers, where(by_layer, waiting, zero_like(gathers)), gather_overlap),
        launch=launch,
        device_time=device_time,
        time=layer_time,
        gathered=where(by_layer, gathered, layer_time),
    )


class _End(NamedTuple):
    """Work of an end stage besides its layers, on one microbatch."""

    passes: _Passes
    streamed: Value
    """Time to stream its data through memory."""
    first_share: Value
    """Share of it that the first stage has."""
    last_share: Value


def _ends(
    i: TrainingInputs, d: Device, per_layer: Value, tokens: Value, sequences: Value
) -> list[_End]:
    """Return the head, on the last stage, and the vision tower, on the first, if there is one."""
    # With a stage and its mirror image, a device has half of the work of both end stages.
    both = i.schedule.bidirectional > 0
    here, opposite = where(both, 1 / 2, 1), where(both, 1 / 2, where(i.pp_size > 1, 0, 1))
    logits = head(d, i.model, tokens, i.tp_size)
    loss = f.memory_time(
        f.loss_traffic(tokens, i.model.vocab_size, i.tp_size, i.calibration.software.loss_bytes),
        d.memory,
    )
    passes = 3 - i.frozen  # each product has two gradients of the same size
    head_time = passes * logits.time + loss
    # Layers for multi-token prediction are on the last stage: a mean layer, the projection that
    # joins two hidden states, and the head once more.
    if not is_zero(i.model.mtp_layers):
        width = i.model.hidden_dim
        joined = product(d, tokens, 2 * width / i.tp_size, width, 1, d.product)
        extra = per_layer + passes * joined.time + head_time
        head_time = head_time + i.model.mtp_layers * extra
    head_passes = _Passes(head_time, logits.time, (1 - i.frozen) * logits.time)
    ends = [_End(head_passes, passes * logits.memory + loss, opposite, here)]
    if tower := tower_of(i):
        vision = tower_pass(d, tower, sequences * i.images, i.tp_size)
        tower_time = tower_passes(i) * vision.time
        of_tower = _Passes(tower_time, vision.time, (1 - i.frozen) * vision.time)
        ends.append(_End(of_tower, tower_passes(i) * vision.memory, here, opposite))
    return ends


def _around(ends: list[_End], shares: list[Value]) -> Value:
    """Return the time of these shares of the work of the end stages."""
    around: Value = 0
    for share, end in zip(shares, ends, strict=True):
        around = around + share * end.passes.time
    return around


class _Stage(NamedTuple):
    """A pipeline stage on one microbatch."""

    layers: Value
    shares: list[Value]
    """Its shares of the work of the end stages."""
    time: Value


def _busiest_stage(i: TrainingInputs, w: Work, per_layer: Value, ends: list[_End]) -> _Stage:
    """Return the stage that sets the pace: the last, the one with the most layers, or the first."""
    both = i.schedule.bidirectional > 0
    layout, mean = w.layout, (w.layout.first + w.layout.last) / 2

    def stage(layers: Value, shares: list[Value]) -> _Stage:
        stage_time = layers * per_layer + _around(ends, shares)
        return _Stage(layers, shares, stage_time)

    busiest = stage(where(both, mean, layout.last), [end.last_share for end in ends])
    for other in (
        stage(w.stage_layers, [0 for _ in ends]),
        stage(where(both, mean, layout.first), [end.first_share for end in ends]),
    ):
        longer = other.time > busiest.time
        shares = zip(other.shares, busiest.shares, strict=True)
        busiest = _Stage(
            where(longer, other.layers, busiest.layers),
            [where(longer, one, share) for one, share in shares],
            where(longer, other.time, busiest.time),
        )
    return busiest


def _bubble(i: TrainingInputs, layer: _Layer, ends: list[_End], stage: _Stage) -> Value:
    """Return how long the busiest stage waits while others have the first and last microbatches."""
    whole_model = i.model.layers * layer.gathered + sum_of([end.passes.time for end in ends])
    bubble = f.pipeline_fill_time(whole_model, stage.time, i.virtual_stages)
    if is_zero(i.schedule.split_backward + i.schedule.bidirectional):
        return bubble
    others = maximum(1, i.pp_size - 1)
    layers_there = (i.model.layers - stage.layers) / others
    shares_there = [(1 - share) / others for share in stage.shares]
    around_there = [
        sum_of([share * each for share, each in zip(shares_there, passes, strict=True)])
        for passes in zip(*(end.passes for end in ends), strict=True)
    ]
    waits = []
    for pace in _paces(i, layer):
        there = (layers_there * a + b for a, b in zip(pace, around_there, strict=True))
        wait = bubble_time(i, bubble, *there)
        waits.append(wait - i.microbatch_count * stage.layers * (layer.gathered - pace.time))
    # The pace that makes the whole step longest is the slowest.
    postponed = i.schedule.split_backward + i.schedule.bidirectional > 0
    return where(postponed, reduce(maximum, waits), bubble)


def _paces(i: TrainingInputs, layer: _Layer) -> list[_Passes]:
    """Return a layer's passes for each of the times that may be the longest.

    These are the device's work, the communication that it hides, the launches of kernels, and the
    gathers, the latter two with the share that is not hidden if they are shorter. Only gradients of
    weights that take part of the longest time can fill a gap. If instead the parts of different
    ones were mixed, a layer could take as long with fewer of these gradients, and a faster device
    would have a longer step.
    """
    compute, tensor, experts, context = layer.compute, layer.tensor, layer.experts, layer.context
    s, matrix_share = i.calibration.software, i.recompute.matrix_share
    work = compute.time + context.exposed
    work = work + (1 - tensor.overlap) * tensor.time + (1 - experts.overlap) * experts.time
    sent = context.time + tensor.time + experts.time
    # A product has two gradients, and other operators have one: the backward pass has as many
    # kernels more than the forward pass as there are gradients of weights.
    backward = s.elementwise_backward
    launched = layer.launch / (1 + backward + matrix_share)
    launches = _Passes(layer.launch, launched, (1 - i.frozen) * maximum(backward - 1, 0) * launched)
    gathers, none = layer.gathers, zero_like(layer.gathers.time)
    paces = [
        _Passes(work, compute.forward, compute.weights),
        _Passes(sent, sent / (2 + matrix_share), zero_like(sent)),
    ]
    for other, exposed in (
        (launches, s.launch_exposed),
        (_Passes(gathers.time, none, none), 1 - gathers.overlap),
    ):
        pairs = [pair for pace in paces for pair in ((pace, other), (other, pace))]
        paces = [
            _Passes(*(a + exposed * b for a, b in zip(slow, fast, strict=True)))
            for slow, fast in pairs
        ]
    return paces


def _once_per_step(
    i: TrainingInputs, w: Work, links: DeviceLinks, layer: _Layer, passes: Value
) -> _Exchange:
    """Return the exchanges of gradients and weights that happen once per step.

    The reduction overlaps the last microbatch's backward pass, and the gathers overlap the first
    one's forward pass. Work that already hides shards' communication cannot hide this too.
    """
    s, by_layer = i.calibration.software, i.zero_stage >= 2
    matrix_share = i.recompute.matrix_share
    reduction, weights = step_exchanges(
        i, w, links, where(by_layer, i.scatter_bytes, i.gradient_precision.training_bytes)
    )
    fitted = where(i.zero_stage >= 1, s.gradient_overlap, s.plain_overlap)
    overlap = where(by_layer, layer.gathers.overlap, first_known(i.gradient_overlap, fitted))
    gathers = layer.gathers.time
    idle = maximum(zero_like(gathers), layer.time - gathers)
    cover = where(by_layer, w.stage_layers * idle, passes / i.microbatch_count)
    exposed_reduction = f.covered_time(
        reduction, overlap, cover * (2 + matrix_share) / (3 + matrix_share)
    )
    exposed_weights = f.covered_time(weights, overlap, cover / (3 + matrix_share))
    return _Exchange(reduction + weights, exposed_reduction + exposed_weights)


def _sharing(i: TrainingInputs, w: Work) -> Value:
    """Return the devices that share an update: the two copies of a stage do if replicas do."""
    return where(i.zero_stage >= 1, w.copies, 1)


def _update_size(i: TrainingInputs, w: Work) -> Value:
    """Return the memory traffic of a device's update. The constant was fitted to runs with Adam."""
    updated = w.common.trained / w.common.shards + w.experts.trained / w.experts.shards
    state_bytes, adam_bytes = (
        f.update_bytes(
            state,
            i.conventions.master_bytes,
            i.precision.training_bytes,
            i.gradient_precision.training_bytes,
        )
        for state in (i.optimizer.state_bytes, i.conventions.moment_bytes)
    )
    each = i.calibration.software.optimizer_bytes * state_bytes / adam_bytes
    return updated / _sharing(i, w) * each


def _bands(i: TrainingInputs, times: StepTimes) -> dict[str, Value]:
    """Return the edges of the bands around a step's time."""
    c = i.calibration
    familiar = c.familiar if c.covered is None else c.familiar * i.covered
    used = maximum(times.hfu, times.mbu)
    family, unseen = within_peak(c.band, used), within_peak(c.unseen_band, used)
    return {
        **edges("step_latency_family", family, times.step),
        **edges("step_latency_unseen", unseen, times.step),
        "step_latency_low": where(familiar > 0, family.low, unseen.low) * times.step,
        "step_latency_high": where(familiar > 0, family.high, unseen.high) * times.step,
    }


def _computed(i: TrainingInputs, d: Device, w: Work, tokens: Value, sequences: Value) -> _Computed:
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
    matrix_share = i.recompute.matrix_share
    score_share = where(fused, matrix_share, i.recompute.score_share)
    layer_time = f.layer_time(
        one.products.time,
        one.attention,
        score,
        one.elementwise,
        i.attention_backward,
        s.elementwise_backward,
        matrix_share,
        score_share,
    )
    module_streams, module_products = _recomputed_modules(i, d, tokens, shards)
    layer_time = layer_time + module_streams + module_products
    passes = 1 + s.elementwise_backward
    streamed = (passes + score_share) * score + (passes + matrix_share) * one.elementwise
    streamed = streamed + module_streams
    # Frozen weights have no gradients; their adapters have both.
    visited = mean_over(i.model, [each.visited for each in w.adapters])
    adapter_time = d.flops_per_mac * tokens * visited / i.tp_size / d.product
    layer_time = layer_time - i.frozen * one.products.time + 3 * adapter_time
    forward_time = one.products.time + one.attention + score + one.elementwise
    if not is_zero(i.weights_stated):
        # Stored weights are read and expanded copies written, in the forward pass, for the
        # gradients of activations, and where products are repeated.
        expansion = f.memory_time(_expanded_traffic(i), d.memory)
        layer_time = layer_time + (2 + matrix_share) * expansion
        streamed = streamed + (2 + matrix_share) * expansion
        forward_time = forward_time + expansion
    return _Computed(
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


def _expanded_traffic(i: TrainingInputs) -> Value:
    """Return the memory traffic to expand the weights of a mean layer once."""
    width, expert_group = i.model.hidden_dim, f.expert_group_size(i.tp_size, i.ep_size)
    weights = [
        group.unrouted_parameters(width) / i.tp_size + group.routed_parameters(width) / expert_group
        for group in i.model.groups
    ]
    both = i.weight_bytes + i.expanded_bytes
    return when(i.expanded_bytes > 0, both * mean_over(i.model, weights))


def _recomputed_modules(
    i: TrainingInputs, d: Device, tokens: Value, sequence_shards: Value
) -> tuple[Value, Value]:
    """Return the times to recompute a mean layer's norms and nonlinearities, and its heads."""
    model, recompute = i.model, i.recompute
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
    elements = recompute.norm_share * norms + recompute.activation_share * inner / i.tp_size
    streams = f.memory_time(tokens * d.activation_bytes * elements, d.memory)

    def heads(a: AttentionKind) -> Value:
        times = [
            product(d, tokens, each.inner, each.columns / i.tp_size, 1, d.product).time
            for each in a.expansions(model.hidden_dim)
        ]
        return recompute.latent_share * sum_of(times) if times else zero_like(streams)

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
        recompute=in_share(i.recompute, 0),
    )
    d = _device(one)  # attention over whole sequences reaches a higher rate
    layer = _computed(one, d, w, w.tokens, i.batch_size)
    ends = _ends(one, d, layer.time, w.tokens, i.batch_size)
    return i.model.layers * layer.time + sum_of([end.passes.time for end in ends])
