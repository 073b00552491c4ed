"""Activations: what layers keep for the backward pass."""

from mlsysim.core.formula import formula
from mlsysim.core.numeric import Value

__all__ = [
    "activation_memory_per_layer",
    "hidden_state_size",
    "stage_activation_memory",
]


@formula
def activation_memory_per_layer(
    seq_len: Value,
    microbatch_size: Value,
    hidden_dim: Value,
    heads: Value,
    tp_size: Value,
    sequence_shards: Value,
    kept_scores: Value,
    bytes_per_element: Value,
    mask_bytes: Value,
) -> Value:
    r"""Activations that one layer keeps for the backward pass, on one device.

    The paper's coefficients, with the element size in place of its two bytes: at $e$ = 2 bytes
    and $e_m$ = 1 byte they are 10, 24 and 5. They hold for the GPT block (multi-head attention,
    f = 4h, no gate, dropout). A Llama block (f = 3.5h, fused gate, 8 of 64 key heads, no dropout)
    counted in the same way has 8 and 25.5: the gate adds what key heads and masks save. Logits
    stand outside the layers and are not counted.

    $$ M_l = s\,b\,h\left(\frac{4e + 2e_m}{t_s} + \frac{12e}{t}
       + \kappa\,\frac{a\,s\,(2e + e_m)}{h\,t}\right) $$

    Parameters
    ----------
    seq_len : [token]
        $s$, tokens in the sequence.
    microbatch_size : [1]
        $b$, sequences in one microbatch.
    hidden_dim : [1]
        $h$, width of the residual stream.
    heads : [1]
        $a$, attention heads.
    tp_size : [1]
        $t$, devices that share each layer.
    sequence_shards : [1]
        $t_s$, devices that share norms and dropouts: $t$ with sequence parallelism, else 1.
    kept_scores : [1]
        $\kappa$, 1 if the attention scores are kept, 0 if they are recomputed.
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
    1, 2 and 4 and Table 2, https://arxiv.org/abs/2205.05198
    """
    split_by_sequence = (4 * bytes_per_element + 2 * mask_bytes) / sequence_shards
    split_by_tensor = 12 * bytes_per_element / tp_size
    score = heads * seq_len * (2 * bytes_per_element + mask_bytes) / (hidden_dim * tp_size)
    per_element = split_by_sequence + split_by_tensor + kept_scores * score
    return seq_len * microbatch_size * hidden_dim * per_element


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
def stage_activation_memory(
    per_layer: Value, stage_layers: Value, in_flight: Value, interleaving: Value
) -> Value:
    r"""Activations of the first pipeline stage, which holds the most microbatches.

    What one layer computes again comes on top during its backward pass, and is not counted.

    $$ M_a = \lambda\,k\,L_p\,M_l $$

    Parameters
    ----------
    per_layer : [byte]
        $M_l$, bytes per layer and microbatch.
    stage_layers : [1]
        $L_p$, layers of the stage.
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
    return per_layer * stage_layers * in_flight * interleaving
