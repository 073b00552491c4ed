"""A training step: what each device computes, sends and waits for."""

from mlsysim.core.formula import formula
from mlsysim.core.numeric import Value, minimum

__all__ = [
    "band_edge",
    "busy_time",
    "communication_time",
    "layer_all_reduce_time",
    "microbatch_size",
    "pipeline_transfer_time",
    "scaling_efficiency",
    "step_time",
]


@formula
def microbatch_size(batch_size: Value, dp_size: Value, microbatch_count: Value) -> Value:
    r"""Sequences in one microbatch of one replica.

    $$ b = \frac{B}{d\,m} $$

    Parameters
    ----------
    batch_size : [1]
        $B$, sequences in the global batch.
    dp_size : [1]
        $d$, data-parallel replicas.
    microbatch_count : [1]
        $m$, microbatches per replica and step.

    Returns
    -------
    sequences : [1]
        $b$, sequences; a schedule needs a whole number.

    References
    ----------
    Narayanan et al. (2021), Efficient Large-Scale Language Model Training on GPU Clusters Using
    Megatron-LM, section 3.1 (m = B / (b d)), https://arxiv.org/abs/2104.04473
    """
    return batch_size / (dp_size * microbatch_count)


@formula
def layer_all_reduce_time(
    all_reduce: Value, all_reduces_per_layer: Value, layers: Value, microbatch_count: Value
) -> Value:
    r"""Time of the all-reduces that tensor parallelism needs in a step.

    Two in the forward and two in the backward pass of every layer: one after the attention
    block, one after the feed-forward block, and their transposes. With sequence parallelism each
    is a reduce-scatter and an all-gather of the same volume. Where the whole forward pass is
    computed again, its two are sent again.

    $$ t_t = c\,L_p\,m\,t_a $$

    Parameters
    ----------
    all_reduce : [s]
        $t_a$, time of one all-reduce of a microbatch's activations.
    all_reduces_per_layer : [1]
        $c$, all-reduces per layer: 4, or 6 where whole layers are recomputed.
    layers : [1]
        $L_p$, layers of a stage.
    microbatch_count : [1]
        $m$, microbatches per step.

    Returns
    -------
    time : [s]
        $t_t$, time per step.

    References
    ----------
    Shoeybi et al. (2019), Megatron-LM: Training Multi-Billion Parameter Language Models Using Model
    Parallelism, section 3 and Figure 4, https://arxiv.org/abs/1909.08053; sequence parallelism:
    Korthikanti et al. (2022), section 4.2.2, https://arxiv.org/abs/2205.05198
    """
    return all_reduces_per_layer * layers * microbatch_count * all_reduce


@formula
def pipeline_transfer_time(
    transfer: Value, microbatch_count: Value, virtual_stages: Value, pp_size: Value
) -> Value:
    r"""Time in which a stage hands activations on and gradients back, not overlapped.

    A single stage has no neighbour and hands nothing on. Where each tensor-parallel rank sends a
    slice, the all-gather that rebuilds the whole at the receiver comes on top (none is needed with
    sequence parallelism).

    $$ t_p = 2\,m\,v\,\min(1,\, p - 1)\,t_1 $$

    Parameters
    ----------
    transfer : [s]
        $t_1$, time of one transfer between neighbouring stages.
    microbatch_count : [1]
        $m$, microbatches per step.
    virtual_stages : [1]
        $v$, model chunks per stage.
    pp_size : [1]
        $p$, pipeline stages.

    Returns
    -------
    time : [s]
        $t_p$, time per step.

    References
    ----------
    Narayanan et al. (2021), Efficient Large-Scale Language Model Training on GPU Clusters Using
    Megatron-LM, sections 2.2.2 (v-fold with interleaving) and 3.2 (b s h per boundary),
    https://arxiv.org/abs/2104.04473
    """
    return 2 * microbatch_count * virtual_stages * minimum(1, pp_size - 1) * transfer


@formula
def busy_time(compute: Value, tensor: Value, pipeline: Value) -> Value:
    r"""Time in which a pipeline stage is busy with the microbatches of a step.

    $$ t = t_c + t_t + t_p $$

    Parameters
    ----------
    compute : [s]
        $t_c$, arithmetic.
    tensor : [s]
        $t_t$, communication within the layers: tensor-parallel, of keys and values, with experts.
    pipeline : [s]
        $t_p$, transfers between stages.

    Returns
    -------
    time : [s]
        $t$, busy time.

    References
    ----------
    Sum of parts that do not overlap.
    """
    return compute + tensor + pipeline


@formula
def communication_time(
    data: Value, tensor: Value, pipeline: Value, context: Value, experts: Value
) -> Value:
    r"""Time that a device spends in communication per step.

    $$ t_m = t_d + t_t + t_p + t_x + t_e $$

    Parameters
    ----------
    data : [s]
        $t_d$, gradients between replicas, and weights that are gathered from them.
    tensor : [s]
        $t_t$, tensor-parallel all-reduces.
    pipeline : [s]
        $t_p$, transfers between stages.
    context : [s]
        $t_x$, keys and values between the ranks that share a sequence.
    experts : [s]
        $t_e$, tokens to experts and back.

    Returns
    -------
    time : [s]
        $t_m$, communication time.

    References
    ----------
    Sum of parts that do not overlap.
    """
    return data + tensor + pipeline + context + experts


@formula
def step_time(busy: Value, bubble: Value, data_parallel: Value) -> Value:
    r"""Time of a training step when nothing overlaps.

    $$ T = t + t_b + t_d $$

    Parameters
    ----------
    busy : [s]
        $t$, time in which a stage is busy.
    bubble : [s]
        $t_b$, time in which it waits for the pipeline to fill and drain.
    data_parallel : [s]
        $t_d$, gradient all-reduce.

    Returns
    -------
    time : [s]
        $T$, step time.

    References
    ----------
    Sum of parts that do not overlap.
    """
    return busy + bubble + data_parallel


@formula
def scaling_efficiency(single_device_time: Value, devices: Value, step: Value) -> Value:
    r"""Time one device of unlimited memory would need, over the device time that is spent.

    $$ \epsilon_s = \frac{t_1}{n\,T} $$

    Parameters
    ----------
    single_device_time : [s]
        $t_1$, time of the whole step on one device of unlimited memory.
    devices : [1]
        $n$, devices.
    step : [s]
        $T$, step time on all of them.

    Returns
    -------
    ratio : [1]
        $\epsilon_s$, scaling efficiency.

    References
    ----------
    Definition of parallel efficiency: speed-up over the number of devices.
    """
    return single_device_time / (devices * step)


@formula
def band_edge(prediction: Value, ratio: Value) -> Value:
    r"""Edge of the band in which a measured time is expected to lie.

    $$ T_\pm = \rho\,T $$

    Parameters
    ----------
    prediction : [s]
        $T$, predicted time.
    ratio : [1]
        $\rho$, measured over predicted time at a percentile of runs that were not fitted on.

    Returns
    -------
    time : [s]
        $T_\pm$, edge of the band.

    References
    ----------
    Counting of residuals: the tenth and ninetieth percentile hold four runs of five.
    """
    return ratio * prediction
