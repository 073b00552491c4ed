"""One transformer layer: time of its operators on a device in training, prefill and decode."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from mlsysim.core import formulas as f
from mlsysim.core.numeric import Value, is_zero, when, where
from mlsysim.core.types import TransformerModel
from mlsysim.core.types.attention import AttentionKind
from mlsysim.core.types.layers import Experts, FeedForwardKind, LayerGroup
from mlsysim.solvers.work import mean_over, mean_over_attention, sum_of


@dataclass(frozen=True)
class Device:
    """Rates that a device reaches, and bytes that the framework's operators move."""

    product: Value
    """Arithmetic rate of matrix products."""
    head: Value
    """Arithmetic rate of the output projection, which stays in the wide format."""
    wide_rate: Value
    """Peak arithmetic rate in the wide format, in which attention runs."""
    attention_efficiency: Value
    """Share of `wide_rate` that attention reaches."""
    state_efficiency: Value
    """Share of `wide_rate` that linear attention reaches."""
    memory: Value
    """Bandwidth at which weights and activations stream."""
    weight_bytes: Value
    activation_bytes: Value
    hidden_bytes: Value
    """Traffic of element-wise operators per element of the residual stream."""
    ffn_bytes: Value
    """Traffic per element of the feed-forward block's inner width."""
    flops_per_mac: Value
    cast_bytes: Value = 0
    """Traffic per element that is converted to a narrow format."""
    routing_bytes: Value = None
    """Traffic per element that is routed to experts; `None` if it is not known."""
    bias_bytes: Value = 0
    """Traffic per routed element to add experts' biases, if they have any."""
    product_overhead: Value = 0
    """Fixed time per product."""
    attention_bytes: Value = None
    """Bytes per weight of attention, if different from `weight_bytes`."""
    expert_bytes: Value = None
    """Bytes per weight of an expert, if different from `weight_bytes`."""
    head_bytes: Value = None
    """Bytes per weight of the output projection, if different from `activation_bytes`."""
    arithmetic_bytes: Value = 0
    """Bytes of a weight in the format of the arithmetic; narrower ones are converted."""
    unpacking: Value = None
    """Bandwidth at which converted weights stream, relative to others; `None` means the same."""


@dataclass(frozen=True)
class Products:
    """Matrix products that run one after the other."""

    time: Value
    compute: Value
    """Time of their arithmetic alone."""
    memory: Value
    """Time of their memory traffic alone."""
    traffic: Value
    """Bytes that a mean device moves through its memory."""

    def __add__(self, other: Products) -> Products:
        return Products(
            self.time + other.time,
            self.compute + other.compute,
            self.memory + other.memory,
            self.traffic + other.traffic,
        )


def _joined(join: Callable[..., Value], parts: Sequence[Products]) -> Products:
    """Return products whose numbers are joined from those of several ones."""
    return Products(
        join(*[part.time for part in parts]),
        join(*[part.compute for part in parts]),
        join(*[part.memory for part in parts]),
        join(*[part.traffic for part in parts]),
    )


def product(
    d: Device, rows: Value, inner: Value, columns: Value, matrices: Value, rate: Value
) -> Products:
    """Return a matrix product, or the products of several matrices with the same rows."""
    compute = f.gemm_compute_time(rows, inner, columns, rate, d.flops_per_mac)
    bandwidth = d.memory
    if d.unpacking is not None:
        bandwidth = where(d.weight_bytes < d.arithmetic_bytes, d.unpacking, 1) * bandwidth
    memory = f.gemm_memory_time(
        rows, inner, columns, matrices, bandwidth, d.weight_bytes, d.activation_bytes
    )
    return Products(
        d.product_overhead + f.roofline_time(compute, memory),
        compute,
        memory,
        memory * bandwidth,
    )


def block(
    d: Device,
    rows: Value,
    hidden: Value,
    width: Value,
    shards: Value,
    matrices: Value,
    held: Value,
    rate: Value,
) -> Products:
    """Return the products of a feed-forward block, into it (with its gate) and out of it.

    The block has 2 or 3 `matrices`, and `held` blocks share the rows.
    """
    columns = width / shards
    up = product(d, rows, hidden, (matrices - 1) * columns, held, rate)
    return up + product(d, rows, columns, hidden, held, rate)


def projections(
    d: Device, model: TransformerModel, a: AttentionKind, rows: Value, tp: Value
) -> Products:
    """Return the products for queries, keys, values and the output projection of attention."""
    first, *others = a.projections(model.hidden_dim)
    total = product(d, rows, first.inner, first.columns / tp, 1, d.product)
    for each in others:
        more = product(d, rows, each.inner, each.columns / tp, 1, d.product)
        total = _where(each.present, total + more, total)
    return total + product(d, rows, a.width / tp, model.hidden_dim, 1, d.product)


def _where(condition: Value, one: Products, other: Products) -> Products:
    return _joined(partial(where, condition), [one, other])


@dataclass(frozen=True)
class Routed:
    """The work of a layer's experts on one device."""

    rows: Value
    """Rows of the experts' products: one copy of each token per expert that it visits."""
    matrices: Value
    """Routed experts that are visited, so that their weights are read: on the device for which the
    others wait."""
    shards: Value
    """Devices that share one expert."""
    rate: Value
    """Arithmetic rate of the experts' products."""
    memory: Value = None
    """Bandwidth at which experts' weights stream, if different from that of other weights."""
    mean_matrices: Value = None
    """Experts that a mean device reads, if different from `matrices`."""


@dataclass(frozen=True)
class Forward:
    """The forward pass of a mean layer, without communication and fixed times."""

    products: Products
    attention: Value
    """Arithmetic of attention."""
    elementwise: Value
    """Norms, residuals, activation functions, and routing to experts."""


def attention_time(
    d: Device,
    model: TransformerModel,
    a: AttentionKind,
    tokens: Value,
    context: Value,
    skips: Value,
    tp: Value,
    decode: bool = False,
) -> Value:
    """Return the compute time of one layer's attention scores and values, or of its states.

    Each token is in a sequence of `context` tokens. In decode it is the last one. Otherwise it can
    be any of them, and a kernel with `skips` = 1 leaves out positions that the token does not
    attend to.
    """
    reached = d.attention_efficiency
    if decode:  # a single token updates states without a scan
        each = a.decode_score_flops(1, context, d.flops_per_mac)
    else:
        everywhere = model.attended_fraction
        each = a.score_flops(1, context, everywhere, d.flops_per_mac, skips > 0)
        reached = d.state_efficiency if a.has_state else reached
    flops = tokens * each / tp
    return f.compute_time(flops, d.wide_rate, reached)


def forward(
    d: Device,
    model: TransformerModel,
    tokens: Value,
    context: Value,
    skips: Value,
    tp: Value,
    sequence_shards: Value,
    routed: dict[int, Routed],
    decode: bool = False,
) -> Forward:
    """Return the forward pass of a mean layer over a number of tokens.

    `context` is the length of the sequences; `skips` is 1 if attention leaves out positions that
    tokens do not attend to; `routed` maps the index of each layer group to the work of its experts.
    In decode, a layer has one token of each sequence.
    """
    blocks, traffic = [], []
    for position, group in enumerate(model.groups):
        met = routed.get(position)
        traffic.append(_traffic(d, model, group, tokens, tp, sequence_shards, met))
        if group.feed_forward is not None:
            feed_forward = _feed_forward(d, model, group.feed_forward, tokens, tp, met)
            blocks.append((group.count, feed_forward))
    storing = _storing(d, d.attention_bytes)
    attention = [(n, projections(storing, model, a, tokens, tp)) for n, a in model.attentions]
    products = _mean(model, attention)
    return Forward(
        products=products + _mean(model, blocks) if blocks else products,
        attention=mean_over_attention(
            model, lambda a: attention_time(d, model, a, tokens, context, skips, tp, decode)
        ),
        elementwise=f.memory_time(mean_over(model, traffic), d.memory),
    )


def _feed_forward(
    d: Device,
    model: TransformerModel,
    b: FeedForwardKind,
    tokens: Value,
    tp: Value,
    met: Routed | None,
) -> Products:
    """Return the products of a feed-forward block."""
    hidden = model.hidden_dim
    if not isinstance(b, Experts) or met is None:
        return block(d, tokens, hidden, b.width, tp, b.matrices, 1, d.product)
    storing = _of_experts(d, met)
    width = b.token_width(hidden)
    routed = block(
        storing, met.rows, width, b.width, met.shards, b.matrices, met.matrices, met.rate
    )
    if met.mean_matrices is not None:
        count = met.mean_matrices
        mean = block(storing, met.rows, width, b.width, met.shards, b.matrices, count, met.rate)
        routed = dataclasses.replace(routed, traffic=mean.traffic)
    some = where(b.shared_width > 0, tokens, 0)
    shared = block(d, some, hidden, b.shared_width, tp, b.matrices, 1, d.product)
    around = product(d, tokens, hidden, b.latent_width / tp, 1, d.product) + product(
        d, tokens, b.latent_width / tp, hidden, 1, d.product
    )
    products = routed + shared
    return _where(b.latent_width > 0, products + around, products)


def beside_exchange(
    d: Device, model: TransformerModel, b: Experts, tokens: Value, tp: Value, met: Routed
) -> tuple[Value, Value]:
    """Return the times of shared experts, and of the last product of the routed ones.

    The first can run while tokens are sent, and the second while its results are sent back.
    """
    shared = block(d, tokens, model.hidden_dim, b.shared_width, tp, b.matrices, 1, d.product)
    columns, width = b.width / met.shards, b.token_width(model.hidden_dim)
    last = product(_of_experts(d, met), met.rows, columns, width, met.matrices, met.rate)
    return when(b.shared_width > 0, shared.time), last.time


def _of_experts(d: Device, met: Routed) -> Device:
    """Return a device with the format of experts' weights, and the rate at which they stream."""
    storing = _storing(d, d.expert_bytes)
    return storing if met.memory is None else dataclasses.replace(storing, memory=met.memory)


def _traffic(
    d: Device,
    model: TransformerModel,
    group: LayerGroup,
    tokens: Value,
    tp: Value,
    sequence_shards: Value,
    met: Routed | None,
) -> Value:
    """Return the traffic of a layer's norms, residuals, nonlinearities and routing."""
    b = group.feed_forward
    matrices = 2 if b is None else b.matrices
    traffic = f.elementwise_traffic(
        tokens,
        model.hidden_dim,
        (matrices - 1) * group.inner_width,
        tp,
        sequence_shards,
        # A layer with only one block has half of the norms and residuals.
        d.hidden_bytes if group.blocks == 2 else d.hidden_bytes / 2,
        d.ffn_bytes,
        d.cast_bytes,
    )
    if met is not None and group.experts is not None and d.routing_bytes is not None:
        traffic = traffic + f.routing_traffic(
            met.rows,
            group.experts.token_width(model.hidden_dim),
            d.routing_bytes,
            d.cast_bytes,
            where(group.experts.biases > 0, d.bias_bytes, 0),
        )
    for a in group.attentions:
        if not is_zero(a.streamed_width):
            traffic = traffic + tokens * d.activation_bytes * a.streamed_width / tp
    return traffic


def _storing(d: Device, weight_bytes: Value) -> Device:
    """Return a device with weights in another format; `None` changes nothing."""
    return d if weight_bytes is None else dataclasses.replace(d, weight_bytes=weight_bytes)


def _mean(model: TransformerModel, parts: list[tuple[Value, Products]]) -> Products:
    """Return the mean over all layers, given products and how many layers have them."""
    layers = [count for count, _ in parts]
    if len(parts) == 1 and (layers[0] is model.layers or len(model.groups) == 1):
        return parts[0][1]

    def mean(*values: Value) -> Value:
        return sum_of([n * each for n, each in zip(layers, values, strict=True)]) / model.layers

    return _joined(mean, [products for _, products in parts])


def head(d: Device, model: TransformerModel, rows: Value, tp: Value) -> Products:
    """Return the output projection. Its weights stay in the wide format."""
    columns = model.vocab_size / tp
    compute = f.gemm_compute_time(rows, model.hidden_dim, columns, d.head, d.flops_per_mac)
    memory = f.gemm_memory_time(
        rows,
        model.hidden_dim,
        columns,
        1,
        d.memory,
        d.activation_bytes if d.head_bytes is None else d.head_bytes,
        d.activation_bytes,
    )
    return Products(
        d.product_overhead + f.roofline_time(compute, memory),
        compute,
        memory,
        memory * d.memory,
    )
