"""Operators of a transformer layer: what each kernel of a pass costs on one device."""

from mlsysim.core.formula import formula
from mlsysim.core.numeric import Value, maximum

__all__ = [
    "gemm_time",
    "layer_launch_time",
    "layer_score_flops",
    "layer_time",
    "rows_per_device",
]


@formula
def gemm_time(
    rows: Value,
    inner: Value,
    columns: Value,
    matrices: Value,
    rate: Value,
    bandwidth: Value,
    bytes_per_element: Value,
    flops_per_mac: Value,
    overhead: Value,
) -> Value:
    r"""Time of a matrix product: a roofline over its shape, and a fixed cost.

    Several weight matrices of one shape may share the rows between them, as experts do.

    $$ t = t_0 + \max\left(\frac{c\,m\,k\,n}{R},\; \frac{e\,(m k + g\,k n + m n)}{B}\right) $$

    Parameters
    ----------
    rows : [1]
        $m$, rows of the activations: tokens.
    inner : [1]
        $k$, width that is summed over.
    columns : [1]
        $n$, width of the result.
    matrices : [1]
        $g$, weight matrices among which the rows are dealt: 1 for a dense layer.
    rate : [flop/s]
        $R$, arithmetic rate that large products reach.
    bandwidth : [byte/s]
        $B$, memory bandwidth that streams reach.
    bytes_per_element : [byte]
        $e$, bytes of one element.
    flops_per_mac : [flop]
        $c$, operations of one multiply-accumulate: 2.
    overhead : [s]
        $t_0$, time of a product of no size.

    Returns
    -------
    time : [s]
        $t$, time of the product.

    References
    ----------
    Williams, Waterman and Patterson (2009), Roofline, https://doi.org/10.1145/1498765.1498785,
    applied to one operator; fitted to NVIDIA's published kernel times, see the page "Accuracy".
    """
    arithmetic = flops_per_mac * rows * inner * columns / rate
    moved = rows * inner + matrices * inner * columns + rows * columns
    return overhead + maximum(arithmetic, bytes_per_element * moved / bandwidth)


@formula
def rows_per_device(
    tokens: Value, experts_per_token: Value, tp_size: Value, expert_tp_size: Value
) -> Value:
    r"""Rows that the products of a device's experts have, when experts are loaded evenly.

    Ranks of a tensor-parallel group that hold different experts deal out the group's tokens.

    $$ m = k_e\,T\,\frac{t_x}{t} $$

    Parameters
    ----------
    tokens : [token]
        $T$, tokens of a microbatch on the device.
    experts_per_token : [1]
        $k_e$, experts that each token visits: 1 for a dense layer.
    tp_size : [1]
        $t$, devices that share each layer.
    expert_tp_size : [1]
        $t_x$, those of them that share each expert.

    Returns
    -------
    rows : [1]
        $m$, rows.

    References
    ----------
    Fedus, Zoph and Shazeer (2021), Switch Transformers, section 2.2,
    https://arxiv.org/abs/2101.03961
    """
    return experts_per_token * tokens * expert_tp_size / tp_size


@formula
def layer_time(
    matrix: Value,
    attention: Value,
    score: Value,
    elementwise: Value,
    attention_backward: Value,
    elementwise_backward: Value,
    matrix_share: Value,
    score_share: Value,
) -> Value:
    r"""Time of a layer's forward and backward pass, with what is computed again.

    Every matrix product has two gradients of its own size. The backward pass of attention and of
    element-wise operators costs a multiple of the forward pass.

    $$ t_l = (3 + r_w)\,t_w + (1 + \beta_a + r_a)\,t_a + (1 + \beta_e + r_a)\,t_s
       + (1 + \beta_e + r_w)\,t_e $$

    Parameters
    ----------
    matrix : [s]
        $t_w$, weight products of the forward pass.
    attention : [s]
        $t_a$, products of queries with keys and of scores with values, forward.
    score : [s]
        $t_s$, memory traffic of unfused scores, forward.
    elementwise : [s]
        $t_e$, element-wise operators, forward.
    attention_backward : [1]
        $\beta_a$, backward over forward in attention: 2 unfused, 2.5 fused.
    elementwise_backward : [1]
        $\beta_e$, backward over forward in element-wise operators.
    matrix_share : [1]
        $r_w$, share of the layer that is recomputed: 1 for full recomputation.
    score_share : [1]
        $r_a$, share of attention that is recomputed.

    Returns
    -------
    time : [s]
        $t_l$, time per layer and microbatch.

    References
    ----------
    Korthikanti et al. (2022), Reducing Activation Recomputation in Large Transformer Models,
    section 6.3 and Table 4, https://arxiv.org/abs/2205.05198; attention backward: Dao (2023),
    FlashAttention-2, section 4.1, https://arxiv.org/abs/2307.08691
    """
    return (
        (3 + matrix_share) * matrix
        + (1 + attention_backward + score_share) * attention
        + (1 + elementwise_backward + score_share) * score
        + (1 + elementwise_backward + matrix_share) * elementwise
    )


@formula
def layer_launch_time(
    launch: Value, expert_launch: Value, elementwise_backward: Value, matrix_share: Value
) -> Value:
    r"""Time in which the host can launch a mean layer's kernels, forward, backward and again.

    $$ t_k = (1 + \beta_e + r_w)\,(t_{k1} + t_{kx}) $$

    Parameters
    ----------
    launch : [s]
        $t_{k1}$, time to launch the forward pass of a layer.
    expert_launch : [s]
        $t_{kx}$, time to launch routing and experts, forward, in the mean over all layers.
    elementwise_backward : [1]
        $\beta_e$, kernels of the backward pass over those of the forward pass.
    matrix_share : [1]
        $r_w$, share of the layer that is recomputed.

    Returns
    -------
    time : [s]
        $t_k$, time per layer and microbatch.

    References
    ----------
    Counting of kernels; a layer cannot finish before its last kernel is launched.
    """
    return (1 + elementwise_backward + matrix_share) * (launch + expert_launch)


@formula
def layer_score_flops(
    tokens: Value,
    seq_len: Value,
    heads: Value,
    head_dim: Value,
    tp_size: Value,
    attended_fraction: Value,
    flops_per_mac: Value,
) -> Value:
    r"""Operations of one layer's attention scores and their product with the values, forward.

    $$ F_a = \frac{2\,c\,T\,s\,a\,d\,\kappa}{t} $$

    Parameters
    ----------
    tokens : [token]
        $T$, tokens of a microbatch on the device.
    seq_len : [token]
        $s$, tokens of a sequence.
    heads : [1]
        $a$, attention heads.
    head_dim : [1]
        $d$, width of one head.
    tp_size : [1]
        $t$, devices that share the layer.
    attended_fraction : [1]
        $\kappa$, share of the positions that the kernel computes.
    flops_per_mac : [flop]
        $c$, operations of one multiply-accumulate: 2.

    Returns
    -------
    flops : [flop]
        $F_a$, operations on one device.

    References
    ----------
    Narayanan et al. (2021), Efficient Large-Scale Language Model Training on GPU Clusters Using
    Megatron-LM, appendix, https://arxiv.org/abs/2104.04473; causal half: Dao (2023),
    FlashAttention-2, section 4.1, https://arxiv.org/abs/2307.08691
    """
    return 2 * flops_per_mac * tokens * seq_len * heads * head_dim * attended_fraction / tp_size
