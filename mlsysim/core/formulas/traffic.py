"""Memory traffic of operators that are bound by it."""

from mlsysim.core.formula import formula
from mlsysim.core.numeric import Value

__all__ = [
    "elementwise_traffic",
    "loss_traffic",
    "routing_traffic",
    "score_traffic",
]


@formula
def elementwise_traffic(
    tokens: Value,
    hidden_dim: Value,
    ffn_dim: Value,
    tp_size: Value,
    sequence_shards: Value,
    hidden_bytes: Value,
    ffn_bytes: Value,
    cast_bytes: Value,
) -> Value:
    r"""Memory traffic of norms, residuals, dropouts and activation functions, forward.

    Products in a narrow format have their inputs converted: two of each width.

    $$ Q_e = T\left(\frac{(q_h + 2q_c)\,h}{t_s} + \frac{(q_f + 2q_c)\,f}{t}\right) $$

    Parameters
    ----------
    tokens : [token]
        $T$, tokens of a microbatch.
    hidden_dim : [1]
        $h$, width of the residual stream.
    ffn_dim : [1]
        $f$, inner width of the feed-forward block, gate included.
    tp_size : [1]
        $t$, devices that share the layer.
    sequence_shards : [1]
        $t_s$, devices that share norms and dropouts: $t$ with sequence parallelism, else 1.
    hidden_bytes : [byte]
        $q_h$, bytes moved per element of the residual stream.
    ffn_bytes : [byte]
        $q_f$, bytes moved per element of the inner width.
    cast_bytes : [byte]
        $q_c$, bytes moved per element that is converted to a narrow format; 0 without one.

    Returns
    -------
    traffic : [byte]
        $Q_e$, bytes read and written.

    References
    ----------
    Ivanov et al. (2021), Data Movement Is All You Need, section 3 (element-wise operators are
    bound by memory), https://arxiv.org/abs/2007.00072
    """
    hidden = (hidden_bytes + 2 * cast_bytes) * hidden_dim / sequence_shards
    return tokens * (hidden + (ffn_bytes + 2 * cast_bytes) * ffn_dim / tp_size)


@formula
def score_traffic(
    sequences: Value,
    heads: Value,
    seq_len: Value,
    tp_size: Value,
    written_scores: Value,
    bytes_per_score: Value,
) -> Value:
    r"""Memory traffic of attention scores that are not fused with their products.

    $$ Q_s = \frac{\sigma\,b\,a\,s^2\,q_s}{t} $$

    Parameters
    ----------
    sequences : [1]
        $b$, sequences of a microbatch.
    heads : [1]
        $a$, attention heads.
    seq_len : [token]
        $s$, tokens of a sequence.
    tp_size : [1]
        $t$, devices that share the layer.
    written_scores : [1]
        $\sigma$, share of the scores that pass through memory: 0 for fused attention.
    bytes_per_score : [byte]
        $q_s$, bytes moved per such score in the forward pass.

    Returns
    -------
    traffic : [byte]
        $Q_s$, bytes read and written.

    References
    ----------
    Dao et al. (2022), FlashAttention, section 2.2 (standard attention writes and reads the score
    matrix), https://arxiv.org/abs/2205.14135
    """
    scores = written_scores * sequences * heads * seq_len * seq_len
    return scores * bytes_per_score / tp_size


@formula
def loss_traffic(tokens: Value, vocab_size: Value, tp_size: Value, bytes_per_logit: Value) -> Value:
    r"""Memory traffic of the logits and their loss, forward and backward.

    $$ Q_v = \frac{T\,V\,q_v}{t} $$

    Parameters
    ----------
    tokens : [token]
        $T$, tokens of a microbatch.
    vocab_size : [1]
        $V$, size of the vocabulary.
    tp_size : [1]
        $t$, devices that share the projection.
    bytes_per_logit : [byte]
        $q_v$, bytes moved per logit.

    Returns
    -------
    traffic : [byte]
        $Q_v$, bytes read and written.

    References
    ----------
    Wijmans et al. (2024), Cut Your Losses in Large-Vocabulary Language Models, section 1,
    https://arxiv.org/abs/2411.09009
    """
    return tokens * vocab_size * bytes_per_logit / tp_size


@formula
def routing_traffic(
    rows: Value, hidden_dim: Value, routing_bytes: Value, cast_bytes: Value, bias_bytes: Value
) -> Value:
    r"""Memory traffic of sorting tokens by expert and putting their results together, forward.

    Each copy of a token is converted to a narrow format on its own, on the way to an expert and on
    the way back.

    $$ Q_x = m\,h\,(q_x + 2q_c + q_b) $$

    Parameters
    ----------
    rows : [1]
        $m$, rows of the device's experts: a copy of each token for each expert that it visits.
    hidden_dim : [1]
        $h$, width of the residual stream.
    routing_bytes : [byte]
        $q_x$, bytes moved per routed element.
    cast_bytes : [byte]
        $q_c$, bytes moved per element that is converted to a narrow format; 0 without one.
    bias_bytes : [byte]
        $q_b$, bytes moved per routed element to add the experts' biases; 0 without these.

    Returns
    -------
    traffic : [byte]
        $Q_x$, bytes read and written.

    References
    ----------
    Gale et al. (2022), MegaBlocks: Efficient Sparse Training with Mixture-of-Experts, section 5.2
    (permutation of tokens), https://arxiv.org/abs/2211.15841
    """
    return rows * hidden_dim * (routing_bytes + 2 * cast_bytes + bias_bytes)
