"""Operators of a pass: the cost of each kernel on one device, and of a layer."""

from mlsysim.core.formula import formula
from mlsysim.core.numeric import Value, maximum, minimum

__all__ = [
    "attention_share",
    "elementwise_traffic",
    "fixed_shape_traffic",
    "gemm_compute_time",
    "gemm_memory_time",
    "launch_limited_time",
    "layer_launch_time",
    "layer_time",
    "loss_traffic",
    "score_traffic",
    "step_traffic",
]


@formula
def attention_share(seq_len: Value, most: Value, half: Value) -> Value:
    r"""Share of the peak rate that a fused attention kernel reaches at a sequence length.

    Short sequences fill few tiles and leave most multiprocessors idle; with length, the share
    approaches that of the kernel's main loop.

    $$ \epsilon_a = \epsilon_\infty\,\frac{s}{s + s_{1/2}} $$

    Parameters
    ----------
    seq_len : [token]
        $s$, tokens of a sequence on one device.
    most : [1]
        $\epsilon_\infty$, share that long sequences reach.
    half : [token]
        $s_{1/2}$, length at which half of it is reached.

    Returns
    -------
    share : [1]
        $\epsilon_a$, share of the dense peak rate.

    References
    ----------
    Form: Hockney (1982), Characterization of Computers and Optimization in the FACR(l) Algorithm
    (vectors of half performance); kernels by sequence length: @dao2023, Figure 4, and @shah2024,
    Figure 5
    """
    return most * seq_len / (seq_len + half)


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

    Products in a narrow format convert their inputs: two of each width.

    $$ Q_e = T\left(\frac{(q_h + 2q_c)\,h}{n_s} + \frac{(q_f + 2q_c)\,f}{\mathrm{TP}}\right) $$

    Parameters
    ----------
    tokens : [token]
        $T$, tokens of a microbatch.
    hidden_dim : [1]
        $h$, width of the residual stream.
    ffn_dim : [1]
        $f$, inner width of the feed-forward block, including the gate.
    tp_size : [1]
        $\mathrm{TP}$, devices that share the layer.
    sequence_shards : [1]
        $n_s$, devices that share norms and dropouts: all of them with sequence parallelism,
        else 1.
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
    @ivanov2020, section 3 (element-wise operators are bound by memory)
    """
    hidden = (hidden_bytes + 2 * cast_bytes) * hidden_dim / sequence_shards
    return tokens * (hidden + (ffn_bytes + 2 * cast_bytes) * ffn_dim / tp_size)


@formula
def fixed_shape_traffic(
    dense_parameters: Value,
    gathered_parameters: Value,
    activations: Value,
    batch_size: Value,
    bytes_per_element: Value,
) -> Value:
    r"""Bytes that a network of fixed shape moves through memory for one batch.

    Weights are read once per batch. Each sample's activations are written by one layer and read
    by the next, and it gathers its own rows of any embedding tables. Nothing stays in cache.

    $$ Q = e\,\left[N_w + b\,(N_g + 2A)\right] $$

    Parameters
    ----------
    dense_parameters : [param]
        $N_w$, parameters that every sample uses.
    gathered_parameters : [param]
        $N_g$, parameters that one sample looks up.
    activations : [1]
        $A$, elements that the layers write for one sample.
    batch_size : [sample]
        $b$, samples in the batch.
    bytes_per_element : [byte]
        $e$, bytes of one element.

    Returns
    -------
    traffic : [byte]
        $Q$, bytes read and written.

    References
    ----------
    @williams2009, "Tying the 3Cs to Operational Intensity"
    """
    per_sample = gathered_parameters + 2 * activations
    return bytes_per_element * (dense_parameters + batch_size * per_sample)


@formula
def gemm_compute_time(
    rows: Value, inner: Value, columns: Value, rate: Value, flops_per_mac: Value
) -> Value:
    r"""Time of the arithmetic of a matrix product.

    $$ t_c = \frac{c\,n_r\,k\,n}{R} $$

    Parameters
    ----------
    rows : [1]
        $n_r$, rows of the activations: tokens.
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
    r"""Time of the memory traffic of a matrix product with weights in a narrow format.

    With few rows, weights are nearly all of the traffic: decode streams them once per token.

    $$ t_m = \frac{e_w\,g\,k\,n + e_a\,n_r\,(k + n)}{B} $$

    Parameters
    ----------
    rows : [1]
        $n_r$, rows of the activations: tokens.
    inner : [1]
        $k$, width that is summed over.
    columns : [1]
        $n$, width of the result.
    matrices : [1]
        $g$, weight matrices among which the rows are distributed: 1 for a dense layer.
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
    @pope2022, section 2.1
    """
    moved = weight_bytes * matrices * inner * columns
    return (moved + activation_bytes * rows * (inner + columns)) / bandwidth


@formula
def launch_limited_time(device: Value, launch: Value, exposed: Value) -> Value:
    r"""Time of work that cannot end before the host has launched it.

    The longer of the two hides most of the shorter, but not all: while the host waits for the
    device, it launches nothing.

    $$ t = \max(t_g, t_k) + \xi\,\min(t_g, t_k) $$

    Parameters
    ----------
    device : [s]
        $t_g$, time of the work on the device.
    launch : [s]
        $t_k$, time to launch it.
    exposed : [1]
        $\xi$, share of the shorter that is not hidden.

    Returns
    -------
    time : [s]
        $t$, time.

    References
    ----------
    Counting: the device waits for its last kernel.
    """
    return maximum(device, launch) + exposed * minimum(device, launch)


@formula
def layer_launch_time(
    launch: Value, expert_launch: Value, elementwise_backward: Value, matrix_share: Value
) -> Value:
    r"""Time for the host to launch a mean layer's kernels: forward, backward and recomputed.

    $$ t_k = (1 + \beta_e + r_w)\,(t_{k1} + t_{kx}) $$

    Parameters
    ----------
    launch : [s]
        $t_{k1}$, time to launch the forward pass of a layer.
    expert_launch : [s]
        $t_{kx}$, time to launch routing and experts, forward, as an average over all layers.
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
    r"""Time of a layer's forward and backward pass, including recomputation.

    Every matrix product has two gradients of the same size. The backward pass of attention and of
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
        $\beta_a$, backward relative to forward in attention: 2 unfused, 2.5 fused.
    elementwise_backward : [1]
        $\beta_e$, backward relative to forward in element-wise operators.
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
    @korthikanti2022, section 6.3 and Table 4; attention backward: @dao2023, section 4.1
    """
    return (
        (3 + matrix_share) * matrix
        + (1 + attention_backward + score_share) * attention
        + (1 + elementwise_backward + score_share) * score
        + (1 + elementwise_backward + matrix_share) * elementwise
    )


@formula
def loss_traffic(tokens: Value, vocab_size: Value, tp_size: Value, bytes_per_logit: Value) -> Value:
    r"""Memory traffic of the logits and their loss, forward and backward.

    $$ Q_v = \frac{T\,V\,q_v}{\mathrm{TP}} $$

    Parameters
    ----------
    tokens : [token]
        $T$, tokens of a microbatch.
    vocab_size : [1]
        $V$, size of the vocabulary.
    tp_size : [1]
        $\mathrm{TP}$, devices that share the projection.
    bytes_per_logit : [byte]
        $q_v$, bytes moved per logit.

    Returns
    -------
    traffic : [byte]
        $Q_v$, bytes read and written.

    References
    ----------
    @wijmans2024, section 1
    """
    return tokens * vocab_size * bytes_per_logit / tp_size


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

    $$ Q_s = \frac{\sigma\,b\,a\,s^2\,q_s}{\mathrm{TP}} $$

    Parameters
    ----------
    sequences : [1]
        $b$, sequences of a microbatch.
    heads : [1]
        $a$, attention heads.
    seq_len : [token]
        $s$, tokens of a sequence.
    tp_size : [1]
        $\mathrm{TP}$, devices that share the layer.
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
    @dao2022, section 2.2 (standard attention writes and reads the score matrix)
    """
    scores = written_scores * sequences * heads * seq_len * seq_len
    return scores * bytes_per_score / tp_size


@formula
def step_traffic(
    stage_layers: Value,
    microbatch_count: Value,
    stream_time: Value,
    bandwidth: Value,
    products: Value,
    head: Value,
    matrix_share: Value,
    frozen: Value,
    update: Value,
) -> Value:
    r"""Bytes that a device moves through its memory in a training step.

    Products read and write memory three times: once forward and twice for the gradients. Frozen
    weights have no gradients. The embedding is left out.

    $$ Q = m\,B\,\bigl(L_p\,\bigl[t_s + (3 - f + r_w)\,t_w\bigr] + t_v\bigr) + Q_u $$

    Parameters
    ----------
    stage_layers : [1]
        $L_p$, layers of a stage.
    microbatch_count : [1]
        $m$, microbatches.
    stream_time : [s]
        $t_s$, time in which a layer streams data, per microbatch.
    bandwidth : [byte/s]
        $B$, bandwidth at which it streams.
    products : [s]
        $t_w$, time to stream the data of a layer's products in a forward pass, without arithmetic.
    head : [s]
        $t_v$, time to stream the data of output projection and loss, in a mean stage.
    matrix_share : [1]
        $r_w$, share of the layer that is recomputed.
    frozen : [1]
        $f$, 1 if the weights are frozen and only their adapters are trained, else 0.
    update : [byte]
        $Q_u$, traffic of the optimizer.

    Returns
    -------
    traffic : [byte]
        $Q$, bytes.

    References
    ----------
    Counting; three passes: @narayanan2021, appendix
    """
    streamed = stream_time + (3 - frozen + matrix_share) * products
    return microbatch_count * bandwidth * (stage_layers * streamed + head) + update
