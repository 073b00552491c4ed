"""Streams: bytes that a training step or a serving engine moves through a device's memory."""

from mlsysim.core.formula import formula
from mlsysim.core.numeric import Value, maximum

__all__ = [
    "batch_cycle_flops",
    "batch_cycle_time",
    "batch_cycle_traffic",
    "layer_stream_time",
    "serving_pass_traffic",
    "step_traffic",
]


@formula
def layer_stream_time(
    score: Value,
    elementwise: Value,
    elementwise_backward: Value,
    matrix_share: Value,
    score_share: Value,
) -> Value:
    r"""Time in which a layer's forward and backward pass only stream through memory.

    $$ t_s = (1 + \beta_e + r_a)\,t_a + (1 + \beta_e + r_w)\,t_e $$

    Parameters
    ----------
    score : [s]
        $t_a$, memory traffic of unfused scores, forward.
    elementwise : [s]
        $t_e$, element-wise operators, forward.
    elementwise_backward : [1]
        $\beta_e$, backward over forward in element-wise operators.
    matrix_share : [1]
        $r_w$, share of the layer that is recomputed.
    score_share : [1]
        $r_a$, share of attention that is recomputed.

    Returns
    -------
    time : [s]
        $t_s$, time per layer and microbatch.

    References
    ----------
    Sum of the two terms of `layer_time` that no arithmetic fills.
    """
    return (1 + elementwise_backward + score_share) * score + (
        1 + elementwise_backward + matrix_share
    ) * elementwise


@formula
def step_traffic(
    stage_layers: Value,
    microbatch_count: Value,
    stream_time: Value,
    bandwidth: Value,
    products: Value,
    head: Value,
    matrix_share: Value,
    update: Value,
) -> Value:
    r"""Bytes that a device moves through its memory in a training step.

    Products are read and written three times, once forward and twice for the gradients. The
    embedding is left out.

    $$ Q = m\,B\,\bigl(L_p\,\bigl[t_s + (3 + r_w)\,t_w\bigr] + t_v\bigr) + Q_u $$

    Parameters
    ----------
    stage_layers : [1]
        $L_p$, layers of a stage.
    microbatch_count : [1]
        $m$, microbatches.
    stream_time : [s]
        $t_s$, time in which a layer streams, per microbatch.
    bandwidth : [byte/s]
        $B$, bandwidth at which it does.
    products : [s]
        $t_w$, time in which a layer's products would stream in a forward pass, arithmetic apart.
    head : [s]
        $t_v$, time in which output projection and loss would stream, in a mean stage.
    matrix_share : [1]
        $r_w$, share of the layer that is recomputed.
    update : [byte]
        $Q_u$, traffic of the optimizer.

    Returns
    -------
    traffic : [byte]
        $Q$, bytes.

    References
    ----------
    Counting; three passes: Narayanan et al. (2021), Efficient Large-Scale Language Model Training
    on GPU Clusters Using Megatron-LM, appendix, https://arxiv.org/abs/2104.04473
    """
    streamed = stream_time + (3 + matrix_share) * products
    return microbatch_count * bandwidth * (stage_layers * streamed + head) + update


@formula
def serving_pass_traffic(
    stream_time: Value,
    bandwidth: Value,
    cache_time: Value,
    cache_bandwidth: Value,
    layers: Value,
    head_time: Value,
) -> Value:
    r"""Bytes that a pass of a serving engine moves through a device's memory.

    $$ Q = L\,(B\,t_s + B_c\,t_c) + B\,t_v $$

    Parameters
    ----------
    stream_time : [s]
        $t_s$, time in which a layer's weights and activations stream.
    bandwidth : [byte/s]
        $B$, bandwidth at which they do.
    cache_time : [s]
        $t_c$, time in which a layer's keys and values stream.
    cache_bandwidth : [byte/s]
        $B_c$, bandwidth at which they do.
    layers : [1]
        $L$, layers.
    head_time : [s]
        $t_v$, time in which the output projection streams.

    Returns
    -------
    traffic : [byte]
        $Q$, bytes.

    References
    ----------
    Counting: time of a stream times its bandwidth.
    """
    layer = bandwidth * stream_time + cache_bandwidth * cache_time
    return layers * layer + bandwidth * head_time


@formula
def batch_cycle_time(output_len: Value, decode_step: Value, prefill: Value) -> Value:
    r"""Time in which a batch is served: its prompts, and its decode steps.

    $$ t = \max(o - 1,\, 0)\,t_d + t_p $$

    Parameters
    ----------
    output_len : [token]
        $o$, tokens generated per request.
    decode_step : [s]
        $t_d$, time of a decode step.
    prefill : [s]
        $t_p$, time of the prefill of the batch's prompts, with the fixed time of a request.

    Returns
    -------
    time : [s]
        $t$, time of the batch.

    References
    ----------
    Sum of parts that do not overlap: the denominator of `continuous_batching_rate`.
    """
    return maximum(output_len - 1, 0) * decode_step + prefill


@formula
def batch_cycle_flops(output_len: Value, decode_step: Value, prefill: Value) -> Value:
    r"""Operations by which a batch is served: its prompts, and its decode steps.

    $$ F = \max(o - 1,\, 0)\,F_d + F_p $$

    Parameters
    ----------
    output_len : [token]
        $o$, tokens generated per request.
    decode_step : [flop]
        $F_d$, operations of a decode step.
    prefill : [flop]
        $F_p$, operations of the prefill of the batch's prompts.

    Returns
    -------
    flops : [flop]
        $F$, operations of the batch.

    References
    ----------
    Counting.
    """
    return maximum(output_len - 1, 0) * decode_step + prefill


@formula
def batch_cycle_traffic(
    output_len: Value, decode_step: Value, sequences: Value, prompts: Value, prefill: Value
) -> Value:
    r"""Bytes that a device moves to serve a batch: for its prompts, and for its decode steps.

    $$ Q = \max(o - 1,\, 0)\,Q_d + \frac{b}{p}\,Q_p $$

    Parameters
    ----------
    output_len : [token]
        $o$, tokens generated per request.
    decode_step : [byte]
        $Q_d$, traffic of a decode step.
    sequences : [1]
        $b$, requests of the batch.
    prompts : [1]
        $p$, prompts that one pass reads.
    prefill : [byte]
        $Q_p$, traffic of such a pass.

    Returns
    -------
    traffic : [byte]
        $Q$, bytes.

    References
    ----------
    Counting.
    """
    return maximum(output_len - 1, 0) * decode_step + sequences / prompts * prefill
