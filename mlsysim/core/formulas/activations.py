"""Activations: what layers keep for the backward pass."""

from mlsysim.core.formula import formula
from mlsysim.core.numeric import Value

__all__ = [
    "activation_memory_per_layer",
    "hidden_state_size",
    "layer_stack_size",
    "stage_activation_memory",
]


@formula
def activation_memory_per_layer(
    tokens: Value,
    seq_len: Value,
    hidden_dim: Value,
    heads: Value,
    attention_width: Value,
    copied_width: Value,
    kept_width: Value,
    tp_size: Value,
    sequence_shards: Value,
    kept_scores: Value,
    fused_attention: Value,
    dropout: Value,
    statistic_bytes: Value,
    bytes_per_element: Value,
    mask_bytes: Value,
) -> Value:
    r"""Activations that one layer keeps for the backward pass, on one device.

    Split by sequence: inputs and outputs of both norms, and two dropout masks. Split by tensor:
    queries, keys, values, the attention's output, and what the feed-forward block keeps. Scores
    pass through memory unless attention is fused, which keeps one statistic per query instead.

    $$ M_l = T\left(\frac{h\,(4e + 2\delta\,e_m)}{t_s}
       + \frac{e\,(w_a + w_c + w_f)}{t}
       + \frac{a\,((1-\phi)\,\kappa\,s\,(2e + \delta\,e_m) + \phi\,e_s)}{t}\right) $$

    For the GPT block ($w_a = 4h$, $w_f = 8h$, $e = 2$ and $e_m = 1$ byte, $\phi = 0$) this is the
    paper's $s b h\,(10 + 24/t + 5 a s / (h t))$, and $s b h\,(34 + 5 a s / h)$ on one
    device. A gate, fewer key heads and no dropout change the coefficients. Logits stand outside
    the layers.

    Parameters
    ----------
    tokens : [token]
        $T$, tokens of a microbatch on the device.
    seq_len : [token]
        $s$, tokens in a sequence.
    hidden_dim : [1]
        $h$, width of the residual stream.
    heads : [1]
        $a$, attention heads.
    attention_width : [1]
        $w_a$, elements per token of queries, keys, values and the attention's output.
    copied_width : [1]
        $w_c$, width of the attention's output where devices that share a sequence exchange it
        and keep it twice, split by head and split by position; else 0.
    kept_width : [1]
        $w_f$, inner elements per token that the feed-forward block keeps.
    tp_size : [1]
        $t$, devices that share each layer.
    sequence_shards : [1]
        $t_s$, devices that share norms and dropouts: $t$ with sequence parallelism, else 1.
    kept_scores : [1]
        $\kappa$, 1 if the attention scores are kept, 0 if they are recomputed.
    fused_attention : [1]
        $\phi$, 1 if attention is one kernel, whose scores never reach memory; else 0.
    dropout : [1]
        $\delta$, 1 if training drops elements out, else 0.
    statistic_bytes : [byte]
        $e_s$, bytes of the softmax's statistic per query and head: 4.
    bytes_per_element : [byte]
        $e$, bytes of one activation.
    mask_bytes : [byte]
        $e_m$, bytes of one element of a dropout mask: 1.

    Returns
    -------
    size : [byte]
        $M_l$, bytes per layer and microbatch.

    References
    ----------
    Korthikanti et al. (2022), Reducing Activation Recomputation in Large Transformer Models, Eqs.
    1, 2 and 4 and Table 2, https://arxiv.org/abs/2205.05198; fused attention: Dao et al. (2022),
    FlashAttention, section 3.1 (output and statistics are kept),
    https://arxiv.org/abs/2205.14135; two copies under context parallelism: Jacobs et al. (2023),
    DeepSpeed Ulysses, section 3.1, https://arxiv.org/abs/2309.14509
    """
    masks = dropout * mask_bytes
    norms = hidden_dim * (4 * bytes_per_element + 2 * masks) / sequence_shards
    inner = bytes_per_element * (attention_width + copied_width + kept_width) / tp_size
    scores = (1 - fused_attention) * kept_scores * seq_len * (2 * bytes_per_element + masks)
    statistics = fused_attention * statistic_bytes
    return tokens * (norms + inner + heads * (scores + statistics) / tp_size)


@formula
def layer_stack_size(dense: Value, expert: Value, dense_layers: Value, moe_layers: Value) -> Value:
    r"""Activations that a stack of layers keeps for one microbatch.

    $$ M_s = L_d\,M_d + L_x\,M_x $$

    Parameters
    ----------
    dense : [byte]
        $M_d$, kept by a dense layer.
    expert : [byte]
        $M_x$, kept by a layer with experts.
    dense_layers : [1]
        $L_d$, dense layers.
    moe_layers : [1]
        $L_x$, layers with experts.

    Returns
    -------
    size : [byte]
        $M_s$, bytes per microbatch.

    References
    ----------
    Counting.
    """
    return dense_layers * dense + moe_layers * expert


@formula
def hidden_state_size(
    seq_len: Value, microbatch_size: Value, hidden_dim: Value, bytes_per_element: Value
) -> Value:
    r"""Bytes of the residual stream of one microbatch.

    It is what a layer keeps under full recomputation, what tensor-parallel ranks reduce after
    each block, and what one pipeline stage hands to the next. Sequence parallelism keeps only a
    share of it on each tensor-parallel rank.

    $$ M_h = e\,s\,b\,h $$

    Parameters
    ----------
    seq_len : [token]
        $s$, tokens in the sequence.
    microbatch_size : [1]
        $b$, sequences in one microbatch.
    hidden_dim : [1]
        $h$, width of the residual stream.
    bytes_per_element : [byte]
        $e$, bytes of one activation.

    Returns
    -------
    size : [byte]
        $M_h$, bytes.

    References
    ----------
    Korthikanti et al. (2022), Reducing Activation Recomputation in Large Transformer Models, Table
    2 (full activation recomputation: 2 s b h), https://arxiv.org/abs/2205.05198
    """
    return seq_len * microbatch_size * hidden_dim * bytes_per_element


@formula
def stage_activation_memory(stack: Value, in_flight: Value, interleaving: Value) -> Value:
    r"""Activations of a pipeline stage for all the microbatches that it holds.

    What a layer computes again comes on top during its backward pass: see `working_memory`.

    $$ M_a = \lambda\,k\,M_s $$

    Parameters
    ----------
    stack : [byte]
        $M_s$, bytes that the stage's layers keep for one microbatch.
    in_flight : [1]
        $k$, microbatches held at once.
    interleaving : [1]
        $\lambda$, growth under the interleaved schedule, 1 without.

    Returns
    -------
    size : [byte]
        $M_a$, bytes on one device.

    References
    ----------
    Korthikanti et al. (2022), Reducing Activation Recomputation in Large Transformer Models,
    section 4.2.3 and Eq. 5, https://arxiv.org/abs/2205.05198
    """
    return interleaving * in_flight * stack
