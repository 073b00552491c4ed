"""Operations per token of a transformer, and the weights that a pass reads."""

from __future__ import annotations

from dataclasses import dataclass

from mlsysim.core import formulas as f
from mlsysim.core.numeric import Value, first_known
from mlsysim.core.types import NetworkFabric, Precision, TransformerModel
from mlsysim.core.types.layers import DenseBlock, ExpertBlock, FeedForward, LatentBlock

__all__ = [
    "TokenFlops",
    "attention_parameters",
    "attention_sides",
    "block_sides",
    "expert_parameters",
    "group_bandwidth",
    "inner_width",
    "kv_cache",
    "latent_up_parameters",
    "stored_bytes",
    "stored_weights",
    "token_flops",
    "weights_read",
]


@dataclass(frozen=True)
class TokenFlops:
    """Forward operations per token."""

    matrix: Value
    """In the layers' weight matrices."""
    score: Value
    """In attention scores and their product with the values."""
    logit: Value
    """In the output projection."""


def group_bandwidth(link: NetworkFabric, bandwidth: Value, ranks: Value) -> Value:
    """Return what a group of a node's devices gets of each one's bandwidth over its links."""
    peers: Value = link.peers
    return first_known(f.mesh_bandwidth(bandwidth, ranks, peers), bandwidth)


def token_flops(model: TransformerModel, seq_len: Value, flops_per_mac: Value) -> TokenFlops:
    """Return the operations of one token of a sequence."""
    a = model.attention
    attention = attention_parameters(model)
    matrix = sum_of(
        [
            f.matrix_flops(
                group.count,
                attention,
                visited_parameters(model, group.feed_forward),
                flops_per_mac,
            )
            for group in model.groups
        ]
    )
    return TokenFlops(
        matrix=matrix,
        score=f.attention_score_flops(
            model.layers, a.heads, a.head_dim, seq_len, a.attended_fraction, flops_per_mac
        ),
        logit=f.logit_flops(model.vocab_size, model.hidden_dim, flops_per_mac),
    )


def attention_parameters(model: TransformerModel) -> Value:
    """Return the parameters of one layer's attention."""
    a = model.attention
    if isinstance(a, LatentBlock):
        return f.latent_attention_parameters(
            model.hidden_dim,
            a.heads,
            a.query_rank,
            a.kv_rank,
            a.nope_dim,
            a.rope_dim,
            a.value_dim,
        )
    return f.attention_parameters(model.hidden_dim, a.heads, a.kv_heads, a.head_dim)


def attention_sides(model: TransformerModel) -> Value:
    """Return both sides of all matrices of one layer's attention."""
    a, h = model.attention, model.hidden_dim
    if isinstance(a, LatentBlock):
        queries = h + 2 * a.query_rank + a.heads * a.key_dim
        keys_and_values = h + a.latent_width + a.kv_rank + a.heads * (a.nope_dim + a.value_dim)
        return queries + keys_and_values + a.width + h
    return 4 * h + 2 * a.width + 2 * a.kv_heads * a.head_dim


def block_sides(model: TransformerModel, block: FeedForward, width: Value) -> Value:
    """Return both sides of the matrices of a feed-forward block so wide."""
    return block.matrices * (model.hidden_dim + width)


def inner_width(block: FeedForward) -> Value:
    """Return the inner elements of a feed-forward block that a token passes."""
    if isinstance(block, DenseBlock):
        return block.width
    return block.experts_per_token * block.width + block.shared_width


def latent_up_parameters(model: TransformerModel) -> Value:
    """Return the parameters that make latent attention's heads of short vectors; else none."""
    a = model.attention
    if not isinstance(a, LatentBlock):
        return 0 * model.hidden_dim
    return a.heads * (a.query_rank * a.key_dim + a.kv_rank * (a.nope_dim + a.value_dim))


def sum_of(parts: list[Value]) -> Value:
    """Add the values of all layer groups."""
    total = parts[0]
    for part in parts[1:]:
        total = total + part
    return total


def visited_parameters(model: TransformerModel, block: FeedForward) -> Value:
    """Return the feed-forward parameters that a token uses in a layer."""
    if isinstance(block, DenseBlock):
        return f.mlp_parameters(model.hidden_dim, block.width, block.matrices)
    expert = f.mlp_parameters(model.hidden_dim, block.width, block.matrices)
    shared = f.mlp_parameters(model.hidden_dim, block.shared_width, block.matrices)
    return block.experts_per_token * expert + shared


def expert_parameters(model: TransformerModel) -> Value:
    """Return the parameters of all experts of a model; none if it is dense."""
    found = [
        group.count
        * group.feed_forward.experts
        * f.mlp_parameters(model.hidden_dim, group.feed_forward.width, group.feed_forward.matrices)
        for group in model.groups
        if isinstance(group.feed_forward, ExpertBlock)
    ]
    return sum_of(found) if found else model.moe_layers * model.parameters


def stored_bytes(stored: Precision) -> Value:
    """Return the bytes of one weight of a layer, with its share of scale factors."""
    return stored.bytes_per_element + stored.scale_bytes


def stored_weights(model: TransformerModel, stored: Precision) -> Value:
    """Return the bytes of all weights; embeddings and output stay in 16 bits or more."""
    embeddings = f.embedding_parameters(model.vocab_size, model.hidden_dim, model.embedding_tables)
    return f.stored_weights(
        model.parameters,
        embeddings,
        stored.bytes_per_element,
        stored.scale_bytes,
        stored.training_bytes,
    )


def weights_read(model: TransformerModel, stored: Precision, tokens: Value) -> Value:
    """Return the bytes of the weights that a pass over a number of tokens reads."""
    read = stored_weights(model, stored)
    for group in model.groups:
        block = group.feed_forward
        if isinstance(block, ExpertBlock):
            visited = f.experts_visited(block.experts, block.experts_per_token, tokens)
            expert = f.mlp_parameters(model.hidden_dim, block.width, block.matrices)
            idle = group.count * (block.experts - visited) * expert
            read = read - idle * stored_bytes(stored)
    return read


def kv_cache(model: TransformerModel, tokens: Value, bytes_per_element: Value) -> Value:
    """Return the keys and values of a number of tokens, in all layers."""
    a = model.attention
    return f.kv_cache_size(model.layers, a.cached_heads, a.cached_dim, tokens, bytes_per_element)
