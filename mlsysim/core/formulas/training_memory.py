"""Memory of training: activations that layers keep, and optimizer state."""

from mlsysim.core.formula import formula
from mlsysim.core.numeric import Value, maximum, minimum, where

__all__ = [
    "activation_memory_per_layer",
    "backward_width",
    "copied_context_width",
    "head_working_memory",
    "hidden_state_size",
    "kept_attention_width",
    "kept_expert_width",
    "kept_latent_width",
    "optimizer_state_size",
    "orthogonalization_flops",
    "recomputed_memory",
    "update_bytes",
    "visiting_memory",
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
    input_bytes: Value,
) -> Value:
    r"""Activations that one layer keeps for the backward pass, on one device.

    Sequence parallelism splits inputs and outputs of both norms, and two dropout masks. Tensor
    parallelism splits queries, keys, values, the attention's output, and the feed-forward block's
    activations. Scores pass through memory unless attention is fused, which keeps one statistic per
    query instead. The norms' outputs are inputs of matrix products, which keep them in the format
    of the product.

    $$ M_l = T\left(\frac{h\,(2e + 2e_x + 2\delta\,e_m)}{n_s}
       + \frac{e\,(w_a + w_c + w_f)}{\mathrm{TP}}
       + \frac{a\,((1-\phi)\,\kappa\,s\,(e + \delta\,(e + e_m)) + \phi\,e_s)}{\mathrm{TP}}\right) $$

    For the GPT block ($w_a = 4h$, $w_f = 8h$, $e = e_x = 2$ and $e_m = 1$ byte, $\phi = 0$) this is
    the paper's $s b h\,(10 + 24/\mathrm{TP} + 5 a s / (h \mathrm{TP}))$, and
    $s b h\,(34 + 5 a s / h)$ on one device. A gate, fewer key heads and no dropout change the
    coefficients. Logits are outside the layers.

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
        $w_c$, width of the attention's output if devices that share a sequence exchange it and keep
        it twice, split by head and split by position; else 0.
    kept_width : [1]
        $w_f$, inner elements per token that the feed-forward block keeps.
    tp_size : [1]
        $\mathrm{TP}$, devices that share each layer.
    sequence_shards : [1]
        $n_s$, devices that share norms and dropouts: all of them with sequence parallelism,
        else 1.
    kept_scores : [1]
        $\kappa$, 1 if the attention scores are kept, 0 if they are recomputed.
    fused_attention : [1]
        $\phi$, 1 if attention is one kernel with scores that never reach memory; else 0.
    dropout : [1]
        $\delta$, 1 if training uses dropout, else 0.
    statistic_bytes : [byte]
        $e_s$, bytes of the softmax's statistic per query and head: 4.
    bytes_per_element : [byte]
        $e$, bytes of one activation.
    mask_bytes : [byte]
        $e_m$, bytes of one element of a dropout mask: 1.
    input_bytes : [byte]
        $e_x$, bytes that a matrix product keeps of one element of its input.

    Returns
    -------
    size : [byte]
        $M_l$, bytes per layer and microbatch.

    References
    ----------
    @korthikanti2022, Eqs. 1, 2 and 4 and Table 2; fused attention: @dao2022, section 3.1 (output
    and statistics are kept); inputs of products in 8 bits: @transformer_engine_1764; two copies
    under context parallelism: @jacobs2023, section 3.1
    """
    masks = dropout * mask_bytes
    norms = hidden_dim * 2 * (bytes_per_element + input_bytes + masks) / sequence_shards
    inner = bytes_per_element * (attention_width + copied_width + kept_width) / tp_size
    # The softmax's output and, with dropout, the remaining elements and the mask
    each = bytes_per_element + dropout * (bytes_per_element + mask_bytes)
    scores = (1 - fused_attention) * kept_scores * seq_len * each
    statistics = fused_attention * statistic_bytes
    return tokens * (norms + inner + heads * (scores + statistics) / tp_size)


@formula
def backward_width(
    experts_per_token: Value, hidden_dim: Value, ffn_dim: Value, mlp_matrices: Value
) -> Value:
    r"""Elements per token of the widest gradient in a feed-forward block's backward pass.

    This is the gradient of the nonlinearity's input, including the gate. The kept output of the
    nonlinearity is freed by then, which makes room for the gradient of that output. Experts also
    hold the gradient of every token's copies.

    $$ w_g = k_e\,\left((w - 1)\,f + h\right) $$

    Parameters
    ----------
    experts_per_token : [1]
        $k_e$, experts that each token visits: 1 for a dense layer.
    hidden_dim : [1]
        $h$, width of the residual stream.
    ffn_dim : [1]
        $f$, inner width of the block.
    mlp_matrices : [1]
        $w$, matrices in the block: 2, or 3 with a gate.

    Returns
    -------
    width : [1]
        $w_g$, elements per token.

    References
    ----------
    Counting; compared with peaks that Megatron-LM reports: @simumax, B200 release v1.2 summary
    """
    return experts_per_token * ((mlp_matrices - 1) * ffn_dim + hidden_dim)


@formula
def copied_context_width(width: Value, swap_size: Value) -> Value:
    r"""Width of the attention's output that is kept twice if positions are swapped for heads.

    Devices that share a sequence may exchange it from a split by position to a split by head and
    back. The backward pass needs the attention's output in both forms.

    $$ w_c = \min(1,\; u - 1)\,w_a $$

    Parameters
    ----------
    width : [1]
        $w_a$, width of all attention heads together.
    swap_size : [1]
        $u$, devices that swap positions for heads.

    Returns
    -------
    width : [1]
        $w_c$, elements per token; 0 if nothing is swapped.

    References
    ----------
    @jacobs2023, section 3.1; kept twice: @simumax, B200 release v1.2 summary, notes
    """
    return minimum(1, swap_size - 1) * width


@formula
def head_working_memory(
    tokens: Value,
    hidden_dim: Value,
    vocab_size: Value,
    tp_size: Value,
    sequence_shards: Value,
    bytes_per_element: Value,
    copy_bytes: Value,
) -> Value:
    r"""Memory of the logits and their surroundings when backward begins on the last stage.

    A fused loss overwrites the logits with the gradient; others also hold 32-bit copies and
    gradients. The input and output of the last norm, the gathered input of the output projection,
    and its gradient are added.

    $$ M_v = T\left(\frac{(e + e_c)\,V}{\mathrm{TP}} + 2\,e\,h + \frac{2\,e\,h}{n_s}\right) $$

    Parameters
    ----------
    tokens : [token]
        $T$, tokens of a microbatch on the device.
    hidden_dim : [1]
        $h$, width of the residual stream.
    vocab_size : [1]
        $V$, rows of the output table.
    tp_size : [1]
        $\mathrm{TP}$, devices that share the table.
    sequence_shards : [1]
        $n_s$, devices that share the norm.
    bytes_per_element : [byte]
        $e$, bytes of one logit.
    copy_bytes : [byte]
        $e_c$, bytes per logit that the loss holds besides the logits: 0 if it is fused.

    Returns
    -------
    size : [byte]
        $M_v$, bytes.

    References
    ----------
    @korthikanti2022, section 4.3 (norm, projection and logits); a fused loss: @hsu2024, section 3.2
    """
    logits = (bytes_per_element + copy_bytes) * vocab_size / tp_size
    hidden = bytes_per_element * (2 * hidden_dim + 2 * hidden_dim / sequence_shards)
    return tokens * (logits + hidden)


@formula
def hidden_state_size(
    seq_len: Value, microbatch_size: Value, hidden_dim: Value, bytes_per_element: Value
) -> Value:
    r"""Bytes of the residual stream of one microbatch.

    A layer keeps it under full recomputation, tensor-parallel ranks reduce it after each block, and
    a pipeline stage sends it to the next. With sequence parallelism each tensor-parallel rank keeps
    only a share of it.

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
    @korthikanti2022, Table 2 (full activation recomputation: 2 s b h)
    """
    return seq_len * microbatch_size * hidden_dim * bytes_per_element


@formula
def kept_attention_width(heads: Value, kv_heads: Value, head_dim: Value) -> Value:
    r"""Elements per token that attention keeps: queries, keys, values and its output.

    $$ w_a = 2\,d_h\,(a + k) $$

    Parameters
    ----------
    heads : [1]
        $a$, attention heads.
    kv_heads : [1]
        $k$, key and value heads.
    head_dim : [1]
        $d_h$, width of one head.

    Returns
    -------
    width : [1]
        $w_a$, elements per token.

    References
    ----------
    @korthikanti2022, section 4.1 (attention: 8 s b h for four times h)
    """
    return 2 * head_dim * (heads + kv_heads)


@formula
def kept_expert_width(
    experts_per_token: Value,
    hidden_dim: Value,
    expert_ffn_dim: Value,
    shared_ffn_dim: Value,
    mlp_matrices: Value,
) -> Value:
    r"""Inner elements per token that a layer of experts keeps for its backward pass.

    Each expert that a token visits keeps a copy of the token, in addition to what a dense block
    keeps.

    $$ w_x = k_e\,(h + w\,f_x) + w\,f_s $$

    Parameters
    ----------
    experts_per_token : [1]
        $k_e$, experts that each token visits.
    hidden_dim : [1]
        $h$, width of the residual stream.
    expert_ffn_dim : [1]
        $f_x$, inner width of one expert.
    shared_ffn_dim : [1]
        $f_s$, inner width of the shared expert that every token visits.
    mlp_matrices : [1]
        $w$, matrices of an expert.

    Returns
    -------
    width : [1]
        $w_x$, elements per token.

    References
    ----------
    Counting; experts as in @lepikhin2020, section 2
    """
    inner = experts_per_token * (hidden_dim + mlp_matrices * expert_ffn_dim)
    return inner + mlp_matrices * shared_ffn_dim


@formula
def kept_latent_width(heads: Value, key_dim: Value, value_dim: Value) -> Value:
    r"""Elements per token that the heads of latent attention keep.

    These are queries, keys, values and the output, as for plain heads. The latent vectors are added
    separately.

    $$ w_a = 2\,a\,(d_k + d_v) $$

    Parameters
    ----------
    heads : [1]
        $a$, attention heads.
    key_dim : [1]
        $d_k$, width of a query or a key.
    value_dim : [1]
        $d_v$, width of a value.

    Returns
    -------
    width : [1]
        $w_a$, elements per token.

    References
    ----------
    Counting; compared with peaks that Megatron-LM reports: @simumax, B200 release v1.2 summary
    """
    return 2 * heads * (key_dim + value_dim)


@formula
def optimizer_state_size(
    parameters: Value, bytes_per_element: Value, moment_bytes: Value, master_bytes: Value
) -> Value:
    r"""Bytes of an optimizer's state, with a 32-bit master copy of narrower weights.

    With Adam in mixed precision this is 12 bytes per parameter, in addition to 2 for the weights
    and 2 for the gradients: 16 in total.

    $$ M_o = N\,(k_v + [e < k_w]\,k_w) $$

    Parameters
    ----------
    parameters : [param]
        $N$, parameters.
    bytes_per_element : [byte]
        $e$, bytes of one weight.
    moment_bytes : [byte]
        $k_v$, bytes of moments per parameter: 8 for Adam's two.
    master_bytes : [byte]
        $k_w$, bytes of a master weight: 4.

    Returns
    -------
    size : [byte]
        $M_o$, bytes.

    References
    ----------
    @rajbhandari2020, section 3.1
    """
    master = where(bytes_per_element < master_bytes, master_bytes, 0 * master_bytes)
    return parameters * (moment_bytes + master)


@formula
def visiting_memory(own: Value, ranks: Value, gathers: Value) -> Value:
    r"""Memory of other devices' keys and values, and their gradients, during attention.

    In a ring, a device holds one other block at a time. A gather holds the blocks of all devices
    that share a sequence.

    $$ M_c = 2\,M_1\left(\gamma\,(c_p - 1) + (1 - \gamma)\min(1,\; c_p - 1)\right) $$

    Parameters
    ----------
    own : [byte]
        $M_1$, a device's own keys and values in one layer.
    ranks : [1]
        $c_p$, devices that exchange keys and values.
    gathers : [1]
        $\gamma$, 1 if all are gathered, 0 if they travel around a ring.

    Returns
    -------
    size : [byte]
        $M_c$, bytes.

    References
    ----------
    @liu2023, section 3; gathered: @grattafiori2024, section 3.3.2
    """
    visiting = gathers * (ranks - 1) + (1 - gathers) * minimum(1, ranks - 1)
    return 2 * own * visiting


@formula
def recomputed_memory(
    tokens: Value,
    hidden_dim: Value,
    norm_share: Value,
    dropped_width: Value,
    tp_size: Value,
    sequence_shards: Value,
    bytes_per_element: Value,
) -> Value:
    r"""Activations that one layer does not keep because small modules are recomputed.

    These are the outputs of both norms, and of modules that tensor-parallel ranks split.

    $$ M_r = e\,T\left(\frac{2\,h\,\nu}{n_s} + \frac{w_r}{\mathrm{TP}}\right) $$

    Parameters
    ----------
    tokens : [token]
        $T$, tokens of a microbatch on the device.
    hidden_dim : [1]
        $h$, width of the residual stream.
    norm_share : [1]
        $\nu$, share of the norms that is recomputed.
    dropped_width : [1]
        $w_r$, elements per token of the other modules' outputs.
    tp_size : [1]
        $\mathrm{TP}$, devices that share each layer.
    sequence_shards : [1]
        $n_s$, devices that share norms.
    bytes_per_element : [byte]
        $e$, bytes of one activation.

    Returns
    -------
    size : [byte]
        $M_r$, bytes per layer and microbatch.

    References
    ----------
    @liu2024, sections 3.2.3 and 3.3.3
    """
    norms = 2 * hidden_dim * norm_share / sequence_shards
    return bytes_per_element * tokens * (norms + dropped_width / tp_size)


@formula
def update_bytes(
    state_bytes: Value, master_bytes: Value, weight_bytes: Value, gradient_bytes: Value
) -> Value:
    r"""Minimum memory traffic of a parameter's update.

    State and master weight are read and written, the gradient is read, and the weight is written.

    $$ q_u = 2\,(k_v + k_w) + e_g + e $$

    Parameters
    ----------
    state_bytes : [byte]
        $k_v$, bytes of moments per parameter.
    master_bytes : [byte]
        $k_w$, bytes of a master weight.
    weight_bytes : [byte]
        $e$, bytes of a weight.
    gradient_bytes : [byte]
        $e_g$, bytes of a gradient.

    Returns
    -------
    traffic : [byte]
        $q_u$, bytes per parameter.

    References
    ----------
    Counting; states as in @rajbhandari2020, section 3.1
    """
    return 2 * (state_bytes + master_bytes) + gradient_bytes + weight_bytes


@formula
def orthogonalization_flops(
    rows: Value, columns: Value, iterations: Value, flops_per_mac: Value
) -> Value:
    r"""Operations of Muon to orthogonalize the update of one matrix.

    Each Newton-Schulz iteration has two products with the longer side and one without.

    $$ F_o = c\,\tau\,w^2\,(2\,l + w), \quad w = \min(n_r, n_c), \quad l = \max(n_r, n_c) $$

    Parameters
    ----------
    rows : [1]
        $n_r$, rows of the matrix.
    columns : [1]
        $n_c$, columns of the matrix.
    iterations : [1]
        $\tau$, Newton-Schulz iterations: 5.
    flops_per_mac : [flop]
        $c$, operations of one multiply-accumulate: 2.

    Returns
    -------
    flops : [flop]
        $F_o$, operations.

    References
    ----------
    @jordan_muon, runtime analysis (2 (2 n m^2 + m^3) operations per iteration, at most 6 n m^2)
    """
    shorter = minimum(rows, columns)
    longer = maximum(rows, columns)
    return flops_per_mac * iterations * shorter**2 * (2 * longer + shorter)
