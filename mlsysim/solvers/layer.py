"""One transformer layer: time of its operators on one device in training, prefill and decode."""

from __future__ import annotations

from dataclasses import dataclass

from mlsysim.core import formulas as f
from mlsysim.core.numeric import Value, where
from mlsysim.core.types import TransformerModel
from mlsysim.core.types.layers import DenseBlock, LatentBlock
from mlsysim.solvers.work import sum_of

__all__ = ["Device", "Experts", "Forward", "Products", "forward", "head", "mean_over"]


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
    """Share of it that attention reaches."""
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
    """Traffic per routed element, to add the biases of experts that have some."""
    product_overhead: Value = 0
    """Fixed time per product."""


@dataclass(frozen=True)
class Products:
    """Matrix products, one after the other."""

    time: Value
    compute: Value
    """Time of their arithmetic alone."""
    memory: Value
    """Time of their memory traffic alone."""

    def __add__(self, other: Products) -> Products:
        return Products(
            self.time + other.time, self.compute + other.compute, self.memory + other.memory
        )


def product(
    d: Device, rows: Value, inner: Value, columns: Value, matrices: Value, rate: Value
) -> Products:
    """Return a matrix product, or those of several matrices that share the rows."""
    compute = f.gemm_compute_time(rows, inner, columns, rate, d.flops_per_mac)
    memory = f.gemm_memory_time(
        rows, inner, columns, matrices, d.memory, d.weight_bytes, d.activation_bytes
    )
    return Products(d.product_overhead + f.roofline_time(compute, memory), compute, memory)


def block(
    d: Device,
    model: TransformerModel,
    rows: Value,
    width: Value,
    shards: Value,
    matrices: Value,
    rate: Value,
) -> Products:
    """Return the products of a feed-forward block, into it (with its gate) and out of it."""
    columns = width / shards
    into = product(d, rows, model.hidden_dim, (model.mlp_matrices - 1) * columns, matrices, rate)
    return into + product(d, rows, columns, model.hidden_dim, matrices, rate)


def projections(d: Device, model: TransformerModel, rows: Value, tp: Value) -> Products:
    """Return the products that make queries, keys and values, and project attention's output."""
    a = model.attention
    if isinstance(a, LatentBlock):
        into = latent_projections(d, model, a, rows, tp)
    else:
        into = product(d, rows, model.hidden_dim, a.qkv_width / tp, 1, d.product)
    return into + product(d, rows, a.width / tp, model.hidden_dim, 1, d.product)


def latent_projections(
    d: Device, model: TransformerModel, a: LatentBlock, rows: Value, tp: Value
) -> Products:
    """Return the products that make a token's short vectors, and those that make heads of them."""
    down = product(d, rows, model.hidden_dim, (a.query_rank + a.latent_width) / tp, 1, d.product)
    return down + up_projections(d, a, rows, tp)


def up_projections(d: Device, a: LatentBlock, rows: Value, tp: Value) -> Products:
    """Return the products that make queries, keys and values of the short vectors."""
    own_heads = a.heads / tp
    queries = product(d, rows, a.query_rank, own_heads * a.key_dim, 1, d.product)
    keys_and_values = own_heads * (a.nope_dim + a.value_dim)
    return queries + product(d, rows, a.kv_rank, keys_and_values, 1, d.product)


@dataclass(frozen=True)
class Experts:
    """The work of a layer's experts on one device."""

    rows: Value
    """Rows of their products: a copy of each token for each expert that it visits."""
    matrices: Value
    """Experts that are visited, so their weights are read."""
    shards: Value
    """Devices that share one expert."""
    rate: Value
    """Arithmetic rate of their products."""


@dataclass(frozen=True)
class Forward:
    """The forward pass of a mean layer, without communication and fixed times."""

    products: Products
    attention: Value
    """Arithmetic of attention."""
    elementwise: Value
    """Norms, residuals, activation functions, and routing to experts."""


def forward(
    d: Device,
    model: TransformerModel,
    tokens: Value,
    context: Value,
    attended_fraction: Value,
    tp: Value,
    sequence_shards: Value,
    experts: dict[int, Experts],
    score_dim: Value = None,
) -> Forward:
    """Return the forward pass of a mean layer over a number of tokens.

    `context` is what each token attends to, `attended_fraction` the share of it that is computed;
    `experts` says, per position of a group among the model's groups, how its experts are met;
    `score_dim` is the mean width of a key and a value where it is not that of the heads.
    """
    a = model.attention
    score_flops = f.layer_score_flops(
        tokens,
        context,
        a.heads,
        a.head_dim if score_dim is None else score_dim,
        tp,
        attended_fraction,
        d.flops_per_mac,
    )
    feed_forward, traffic = [], []
    for position, group in enumerate(model.groups):
        if isinstance(group.feed_forward, DenseBlock):
            feed_forward.append(block(d, model, tokens, group.feed_forward.width, tp, 1, d.product))
            inner = group.feed_forward.width
            moved = _elementwise(d, model, tokens, inner, tp, sequence_shards)
        else:
            met = experts[position]
            routed = block(
                d, model, met.rows, group.feed_forward.width, met.shards, met.matrices, met.rate
            )
            shared = block(d, model, tokens, group.feed_forward.shared_width, tp, 1, d.product)
            feed_forward.append(routed + shared)
            inner = (
                group.feed_forward.experts_per_token * group.feed_forward.width
                + group.feed_forward.shared_width
            )
            moved = _elementwise(d, model, tokens, inner, tp, sequence_shards)
            if d.routing_bytes is not None:
                moved = moved + f.routing_traffic(
                    met.rows,
                    model.hidden_dim,
                    d.routing_bytes,
                    d.cast_bytes,
                    where(group.feed_forward.biases > 0, d.bias_bytes, 0),
                )
        traffic.append(moved)
    return Forward(
        products=projections(d, model, tokens, tp) + _mean_products(model, feed_forward),
        attention=f.compute_time(score_flops, d.wide_rate, d.attention_efficiency),
        elementwise=f.memory_time(mean_over(model, traffic), d.memory),
    )


def _elementwise(
    d: Device,
    model: TransformerModel,
    tokens: Value,
    inner: Value,
    tp: Value,
    sequence_shards: Value,
) -> Value:
    return f.elementwise_traffic(
        tokens,
        model.hidden_dim,
        (model.mlp_matrices - 1) * inner,
        tp,
        sequence_shards,
        d.hidden_bytes,
        d.ffn_bytes,
        d.cast_bytes,
    )


def mean_over(model: TransformerModel, parts: list[Value]) -> Value:
    """Return the mean over all layers, given the value for a layer of each group."""
    if len(parts) == 1:
        return parts[0]
    weighted = [group.count * part for group, part in zip(model.groups, parts, strict=True)]
    return sum_of(weighted) / model.layers


def _mean_products(model: TransformerModel, parts: list[Products]) -> Products:
    return Products(
        mean_over(model, [part.time for part in parts]),
        mean_over(model, [part.compute for part in parts]),
        mean_over(model, [part.memory for part in parts]),
    )


def head(d: Device, model: TransformerModel, rows: Value, tp: Value) -> Products:
    """Return the output projection. Its weights stay in the wide format."""
    columns = model.vocab_size / tp
    compute = f.gemm_compute_time(rows, model.hidden_dim, columns, d.head, d.flops_per_mac)
    memory = f.gemm_memory_time(
        rows, model.hidden_dim, columns, 1, d.memory, d.activation_bytes, d.activation_bytes
    )
    return Products(d.product_overhead + f.roofline_time(compute, memory), compute, memory)
