"""Shapes of a transformer's matrices on one device, experts included."""

from mlsysim.core.formula import formula
from mlsysim.core.numeric import Value

__all__ = [
    "attention_width",
    "expert_parameters",
    "ffn_input_width",
    "local_experts",
    "mean_ffn_dim",
    "mean_mlp_parameters",
    "mixed_layer_value",
    "qkv_width",
    "sharded_width",
]


@formula
def attention_width(heads: Value, head_dim: Value) -> Value:
    r"""Width of all attention heads together.

    $$ w_a = a\,d $$

    Parameters
    ----------
    heads : [1]
        $a$, attention heads.
    head_dim : [1]
        $d$, width of one head.

    Returns
    -------
    width : [1]
        $w_a$, columns.

    References
    ----------
    Counting.
    """
    return heads * head_dim


@formula
def qkv_width(heads: Value, kv_heads: Value, head_dim: Value) -> Value:
    r"""Columns of the product that makes queries, keys and values.

    $$ w_{qkv} = d\,(a + 2k) $$

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
        $w_{qkv}$, columns.

    References
    ----------
    Counting.
    """
    return head_dim * (heads + 2 * kv_heads)


@formula
def ffn_input_width(ffn_dim: Value, mlp_matrices: Value) -> Value:
    r"""Columns of the products that lead into the feed-forward block, gate included.

    $$ w_f = (w - 1)\,f $$

    Parameters
    ----------
    ffn_dim : [1]
        $f$, inner width of the block.
    mlp_matrices : [1]
        $w$, matrices in the block: 2, or 3 with a gate.

    Returns
    -------
    width : [1]
        $w_f$, columns.

    References
    ----------
    Counting; one matrix leads out again.
    """
    return (mlp_matrices - 1) * ffn_dim


@formula
def sharded_width(width: Value, tp_size: Value) -> Value:
    r"""Columns that one device of a tensor-parallel group holds.

    $$ w_1 = \frac{w}{t} $$

    Parameters
    ----------
    width : [1]
        $w$, columns of the whole matrix.
    tp_size : [1]
        $t$, devices that share the layer.

    Returns
    -------
    width : [1]
        $w_1$, columns on one device.

    References
    ----------
    Shoeybi et al. (2019), Megatron-LM, section 3, https://arxiv.org/abs/1909.08053
    """
    return width / tp_size


@formula
def local_experts(experts: Value, ep_size: Value) -> Value:
    r"""Experts that one device holds.

    $$ g = \frac{E}{e_p} $$

    Parameters
    ----------
    experts : [1]
        $E$, experts of a layer.
    ep_size : [1]
        $e_p$, devices that share the experts.

    Returns
    -------
    experts : [1]
        $g$, experts on one device.

    References
    ----------
    Lepikhin et al. (2020), GShard, section 3, https://arxiv.org/abs/2006.16668
    """
    return experts / ep_size


@formula
def expert_parameters(
    moe_layers: Value, experts: Value, mlp_matrices: Value, hidden_dim: Value, ffn_dim: Value
) -> Value:
    r"""Parameters of all experts of a model.

    $$ N_x = L_x\,E\,w\,h\,f_x $$

    Parameters
    ----------
    moe_layers : [1]
        $L_x$, layers that have experts.
    experts : [1]
        $E$, experts of a layer.
    mlp_matrices : [1]
        $w$, matrices of an expert.
    hidden_dim : [1]
        $h$, width of the residual stream.
    ffn_dim : [1]
        $f_x$, inner width of an expert.

    Returns
    -------
    parameters : [param]
        $N_x$, parameters.

    References
    ----------
    Counting.
    """
    return moe_layers * experts * mlp_matrices * hidden_dim * ffn_dim


@formula
def mixed_layer_value(dense: Value, expert: Value, layers: Value, moe_layers: Value) -> Value:
    r"""Mean time over the layers of a model of which some have experts.

    $$ t = \frac{(L - L_x)\,t_d + L_x\,t_x}{L} $$

    Parameters
    ----------
    dense : [s]
        $t_d$, time of a dense layer.
    expert : [s]
        $t_x$, time of a layer with experts.
    layers : [1]
        $L$, layers.
    moe_layers : [1]
        $L_x$, layers that have experts.

    Returns
    -------
    time : [s]
        $t$, mean time.

    References
    ----------
    Counting.
    """
    return ((layers - moe_layers) * dense + moe_layers * expert) / layers


@formula
def mean_mlp_parameters(
    dense: Value,
    expert: Value,
    shared: Value,
    experts_per_token: Value,
    layers: Value,
    moe_layers: Value,
) -> Value:
    r"""Feed-forward parameters that a token meets in a mean layer.

    $$ N_f = \frac{(L - L_x)\,N_d + L_x\,(k_e N_1 + N_s)}{L} $$

    Parameters
    ----------
    dense : [param]
        $N_d$, parameters of a dense block.
    expert : [param]
        $N_1$, parameters of one expert.
    shared : [param]
        $N_s$, parameters that every token visits beside its experts.
    experts_per_token : [1]
        $k_e$, experts that each token visits.
    layers : [1]
        $L$, layers.
    moe_layers : [1]
        $L_x$, layers that have experts.

    Returns
    -------
    parameters : [param]
        $N_f$, parameters.

    References
    ----------
    Counting.
    """
    routed = experts_per_token * expert + shared
    return ((layers - moe_layers) * dense + moe_layers * routed) / layers


@formula
def mean_ffn_dim(
    ffn_dim: Value,
    expert_ffn_dim: Value,
    shared_ffn_dim: Value,
    experts_per_token: Value,
    layers: Value,
    moe_layers: Value,
) -> Value:
    r"""Inner feed-forward width that a token meets in a mean layer.

    $$ f = \frac{(L - L_x)\,f_d + L_x\,(k_e f_x + f_s)}{L} $$

    Parameters
    ----------
    ffn_dim : [1]
        $f_d$, inner width of a dense block.
    expert_ffn_dim : [1]
        $f_x$, inner width of one expert.
    shared_ffn_dim : [1]
        $f_s$, inner width of what every token visits beside its experts.
    experts_per_token : [1]
        $k_e$, experts that each token visits.
    layers : [1]
        $L$, layers.
    moe_layers : [1]
        $L_x$, layers that have experts.

    Returns
    -------
    width : [1]
        $f$, mean inner width.

    References
    ----------
    Counting.
    """
    routed = experts_per_token * expert_ffn_dim + shared_ffn_dim
    return ((layers - moe_layers) * ffn_dim + moe_layers * routed) / layers
