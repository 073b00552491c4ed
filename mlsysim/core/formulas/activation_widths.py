"""Widths of activations: elements per token that layers keep, or hold in a backward pass."""

from mlsysim.core.formula import formula
from mlsysim.core.numeric import Value, minimum

__all__ = [
    "backward_width",
    "copied_context_width",
    "expert_buffer_width",
    "kept_attention_width",
    "kept_expert_width",
    "kept_ffn_width",
]


@formula
def copied_context_width(width: Value, cp_size: Value) -> Value:
    r"""Width of the attention's output that context parallelism keeps a second time.

    Devices that share a sequence turn it from split by position to split by head and back. The
    backward pass needs the attention's output in both forms.

    $$ w_c = \min(1,\; c_p - 1)\,w_a $$

    Parameters
    ----------
    width : [1]
        $w_a$, width of all attention heads together.
    cp_size : [1]
        $c_p$, devices that share each sequence.

    Returns
    -------
    width : [1]
        $w_c$, elements per token; 0 where no sequence is shared.

    References
    ----------
    Jacobs et al. (2023), DeepSpeed Ulysses, section 3.1, https://arxiv.org/abs/2309.14509; kept
    twice: MooreThreads, SimuMax, B200 release v1.2 summary, notes,
    https://github.com/MooreThreads/SimuMax
    """
    return minimum(1, cp_size - 1) * width


@formula
def kept_attention_width(heads: Value, kv_heads: Value, head_dim: Value) -> Value:
    r"""Elements per token that attention keeps: queries, keys, values and its output.

    $$ w_a = 2\,d\,(a + k) $$

    Parameters
    ----------
    heads : [1]
        $a$, attention heads.
    kv_heads : [1]
        $k$, key and value heads.
    head_dim : [1]
        $d$, width of one head.

    Returns
    -------
    width : [1]
        $w_a$, elements per token.

    References
    ----------
    Korthikanti et al. (2022), Reducing Activation Recomputation in Large Transformer Models,
    section 4.1 (attention: 8 s b h for four times h), https://arxiv.org/abs/2205.05198
    """
    return 2 * head_dim * (heads + kv_heads)


@formula
def kept_ffn_width(ffn_dim: Value, mlp_matrices: Value) -> Value:
    r"""Inner elements per token that a feed-forward block keeps for its backward pass.

    What enters the nonlinearity, gate and up alike, and what enters the last matrix.

    $$ w_f = w\,f $$

    Parameters
    ----------
    ffn_dim : [1]
        $f$, inner width of the block.
    mlp_matrices : [1]
        $w$, matrices in the block: 2, or 3 with a gate.

    Returns
    -------
    width : [1]
        $w_f$, elements per token.

    References
    ----------
    Korthikanti et al. (2022), Reducing Activation Recomputation in Large Transformer Models,
    section 4.1 (MLP: 8 s b h into the nonlinearity, 8 s b h out of it),
    https://arxiv.org/abs/2205.05198; with a gate: Shazeer (2020), GLU Variants Improve
    Transformer, Eq. 6, https://arxiv.org/abs/2002.05202
    """
    return mlp_matrices * ffn_dim


@formula
def kept_expert_width(
    experts_per_token: Value,
    hidden_dim: Value,
    expert_ffn_dim: Value,
    shared_ffn_dim: Value,
    mlp_matrices: Value,
) -> Value:
    r"""Inner elements per token that a layer of experts keeps for its backward pass.

    Each expert that a token visits keeps a copy of the token beside what a dense block keeps.

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
        $f_s$, inner width of what every token visits beside its experts.
    mlp_matrices : [1]
        $w$, matrices of an expert.

    Returns
    -------
    width : [1]
        $w_x$, elements per token.

    References
    ----------
    Counting; experts as in Lepikhin et al. (2020), GShard, section 2,
    https://arxiv.org/abs/2006.16668
    """
    inner = experts_per_token * (hidden_dim + mlp_matrices * expert_ffn_dim)
    return inner + mlp_matrices * shared_ffn_dim


@formula
def backward_width(
    experts_per_token: Value, hidden_dim: Value, ffn_dim: Value, mlp_matrices: Value
) -> Value:
    r"""Elements per token of the widest gradient in a feed-forward block's backward pass.

    The gradient of what enters the nonlinearity, gate included. What the block kept of the
    nonlinearity's output is free by then, and pays for the gradient of that output. Experts also
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
    Counting; checked against peaks that Megatron-LM reports: MooreThreads, SimuMax, B200 release
    v1.2 summary, https://github.com/MooreThreads/SimuMax
    """
    return experts_per_token * ((mlp_matrices - 1) * ffn_dim + hidden_dim)


@formula
def expert_buffer_width(expert_ffn_dim: Value, shared_ffn_dim: Value) -> Value:
    r"""Inner width of one expert of each shape.

    $$ f_b = f_x + f_s $$

    Parameters
    ----------
    expert_ffn_dim : [1]
        $f_x$, inner width of one expert.
    shared_ffn_dim : [1]
        $f_s$, inner width of what every token visits beside its experts.

    Returns
    -------
    width : [1]
        $f_b$, columns.

    References
    ----------
    Counting; all experts are of one shape.
    """
    return expert_ffn_dim + shared_ffn_dim
