"""Operators of serving: products with few rows, experts that are visited, small all-reduces."""

from mlsysim.core.formula import formula
from mlsysim.core.numeric import Value, maximum, minimum

__all__ = [
    "experts_visited",
    "gemm_compute_time",
    "gemm_memory_time",
    "inference_elementwise_traffic",
    "one_shot_all_reduce_time",
    "parameters_read",
    "stored_weight_bytes",
]


@formula
def gemm_compute_time(
    rows: Value, inner: Value, columns: Value, rate: Value, flops_per_mac: Value
) -> Value:
    r"""Time of the arithmetic of a matrix product.

    $$ t_c = \frac{c\,m\,k\,n}{R} $$

    Parameters
    ----------
    rows : [1]
        $m$, rows of the activations: tokens.
    inner : [1]
        $k$, width that is summed over.
    columns : [1]
        $n$, width of the result.
    rate : [flop/s]
        $R$, arithmetic rate that large products reach.
    flops_per_mac : [flop]
        $c$, operations of one multiply-accumulate: 2.

    Returns
    -------
    time : [s]
        $t_c$, arithmetic of the product.

    References
    ----------
    Counting.
    """
    return flops_per_mac * rows * inner * columns / rate


@formula
def gemm_memory_time(
    rows: Value,
    inner: Value,
    columns: Value,
    matrices: Value,
    bandwidth: Value,
    weight_bytes: Value,
    activation_bytes: Value,
) -> Value:
    r"""Time of the memory traffic of a matrix product whose weights are stored narrowly.

    With few rows the weights are nearly all of it: decode streams them once per token.

    $$ t_m = \frac{e_w\,g\,k\,n + e_a\,m\,(k + n)}{B} $$

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
    bandwidth : [byte/s]
        $B$, memory bandwidth that streams reach.
    weight_bytes : [byte]
        $e_w$, bytes of one stored weight.
    activation_bytes : [byte]
        $e_a$, bytes of one activation.

    Returns
    -------
    time : [s]
        $t_m$, memory traffic of the product.

    References
    ----------
    Pope et al. (2022), Efficiently Scaling Transformer Inference, section 2.1,
    https://arxiv.org/abs/2211.05102
    """
    moved = weight_bytes * matrices * inner * columns
    return (moved + activation_bytes * rows * (inner + columns)) / bandwidth


@formula
def experts_visited(experts: Value, experts_per_token: Value, tokens: Value) -> Value:
    r"""Experts of a layer that at least one token of a pass visits, if all are equally likely.

    $$ g = E\left(1 - \max\left(0,\, 1 - \frac{k_e}{E}\right)^{T}\right) $$

    Parameters
    ----------
    experts : [1]
        $E$, experts of a layer: 1 for a dense layer.
    experts_per_token : [1]
        $k_e$, experts that each token visits.
    tokens : [token]
        $T$, tokens of the pass.

    Returns
    -------
    matrices : [1]
        $g$, experts whose weights are read.

    References
    ----------
    Counting: a token misses an expert with the chance in brackets, independently of the others.
    """
    return experts * (1 - maximum(0, 1 - experts_per_token / experts) ** tokens)


@formula
def parameters_read(
    parameters: Value, expert: Value, experts: Value, visited: Value, moe_layers: Value
) -> Value:
    r"""Parameters that a pass reads: all but the experts that no token visits.

    $$ N_r = N - L_x (E - g) N_1 $$

    Parameters
    ----------
    parameters : [param]
        $N$, parameters stored.
    expert : [param]
        $N_1$, parameters of one expert.
    experts : [1]
        $E$, experts of a layer: 1 for a dense layer.
    visited : [1]
        $g$, experts of a layer that a token visits.
    moe_layers : [1]
        $L_x$, layers that have experts.

    Returns
    -------
    parameters : [param]
        $N_r$, parameters read.

    References
    ----------
    Counting.
    """
    return parameters - moe_layers * (experts - visited) * expert


@formula
def one_shot_all_reduce_time(
    message_size: Value, ranks: Value, bandwidth: Value, overhead: Value
) -> Value:
    r"""Time of an all-reduce among devices that see each other's memory.

    Serving engines sum small messages in one step: each rank reads all others. The fixed cost
    is then that of one barrier, whatever the number of ranks; a single device has none.

    $$ t = \min(1,\, n - 1)\,t_0 + \frac{2(n-1)}{n}\,\frac{m}{B} $$

    Parameters
    ----------
    message_size : [byte]
        $m$, data per rank.
    ranks : [1]
        $n$, devices.
    bandwidth : [byte/s]
        $B$, bandwidth that collectives reach, one direction.
    overhead : [s]
        $t_0$, launch and barrier.

    Returns
    -------
    time : [s]
        $t$, time.

    References
    ----------
    Volume: Patarasuk and Yuan (2009), https://doi.org/10.1016/j.jpdc.2008.09.002; one step: the
    custom all-reduce of TensorRT-LLM and vLLM, https://github.com/NVIDIA/TensorRT-LLM
    """
    return minimum(1, ranks - 1) * overhead + 2 * (ranks - 1) / ranks * message_size / bandwidth


@formula
def inference_elementwise_traffic(
    tokens: Value,
    hidden_dim: Value,
    ffn_dim: Value,
    tp_size: Value,
    hidden_bytes: Value,
    ffn_bytes: Value,
) -> Value:
    r"""Memory traffic of a layer's norms, residuals, rotations and activation functions.

    $$ Q_e = T\left(q_h\,h + \frac{q_f\,f}{t}\right) $$

    Parameters
    ----------
    tokens : [token]
        $T$, tokens of the pass.
    hidden_dim : [1]
        $h$, width of the residual stream.
    ffn_dim : [1]
        $f$, inner width of the feed-forward block, gate included.
    tp_size : [1]
        $t$, devices that share the layer.
    hidden_bytes : [byte]
        $q_h$, bytes moved per element of the residual stream.
    ffn_bytes : [byte]
        $q_f$, bytes moved per element of the inner width.

    Returns
    -------
    traffic : [byte]
        $Q_e$, bytes read and written.

    References
    ----------
    Ivanov et al. (2021), Data Movement Is All You Need, section 3 (element-wise operators are
    bound by memory), https://arxiv.org/abs/2007.00072
    """
    return tokens * (hidden_bytes * hidden_dim + ffn_bytes * ffn_dim / tp_size)


@formula
def stored_weight_bytes(weight_bytes: Value, scale_bytes: Value) -> Value:
    r"""Bytes of a stored weight with its part of the scale that a block of weights shares.

    $$ e_w = e + e_s $$

    Parameters
    ----------
    weight_bytes : [byte]
        $e$, bytes of the weight itself.
    scale_bytes : [byte]
        $e_s$, bytes of scale per weight; 0 for formats without blocks.

    Returns
    -------
    size : [byte]
        $e_w$, bytes per weight.

    References
    ----------
    Rouhani et al. (2023), Microscaling Data Formats for Deep Learning,
    https://arxiv.org/abs/2310.10537
    """
    return weight_bytes + scale_bytes
