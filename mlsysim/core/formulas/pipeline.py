"""Pipelines: idle time of stages, and the microbatches that they hold."""

from mlsysim.core.formula import formula
from mlsysim.core.numeric import Value, ceil, minimum

__all__ = [
    "bidirectional_bubble_time",
    "chunks_in_flight",
    "end_layers",
    "interleaving_factor",
    "layers_per_stage",
    "microbatches_in_flight",
    "pipeline_bubble_fraction",
    "pipeline_bubble_time",
    "pipeline_fill_time",
    "pipeline_transfer_time",
    "split_backward_bubble_time",
]


@formula
def bidirectional_bubble_time(
    forward_time: Value, backward_time: Value, weight_gradient_time: Value, pp_size: Value
) -> Value:
    r"""Idle time of a stage if microbatches enter the pipeline at both ends (DualPipe).

    A forward and a backward pass of opposite directions run as one pass, which takes as long as
    both.

    $$ t_b = \left(\frac{p}{2} - 1\right)(T_F + 2\,T_B - 3\,T_W) $$

    Parameters
    ----------
    forward_time : [s]
        $T_F$, forward pass of a microbatch through a stage.
    backward_time : [s]
        $T_B$, whole backward pass.
    weight_gradient_time : [s]
        $T_W$, part of it that can be postponed.
    pp_size : [1]
        $p$, pipeline stages, an even number.

    Returns
    -------
    time : [s]
        $t_b$, idle time per step.

    References
    ----------
    @liu2024, section 3.2.1 and Table 2
    """
    passes = forward_time + 2 * backward_time - 3 * weight_gradient_time
    return (pp_size / 2 - 1) * passes


@formula
def chunks_in_flight(
    pp_size: Value, microbatch_count: Value, virtual_stages: Value, stage: Value = 0
) -> Value:
    r"""Chunks of microbatches in flight on a stage under interleaved 1F1B.

    Use it for $v > 1$ only: plain 1F1B holds $\min(p - i, m)$. Each stage runs ahead by two chunks
    less than the stage before it.

    $$ k = \min\left((v - 1)\,p + 2\,(p - 1 - i) + 1,\; m\,v\right) $$

    Parameters
    ----------
    pp_size : [1]
        $p$, pipeline stages.
    microbatch_count : [1]
        $m$, microbatches per step, a multiple of the stages.
    virtual_stages : [1]
        $v$, model chunks per stage.
    stage : [1]
        $i$, the stage, counted from 0.

    Returns
    -------
    chunks : [1]
        $k$, chunks in flight; each keeps $1/v$ of a stage's activations of a microbatch.

    References
    ----------
    @megatron_lm, megatron/core/pipeline_parallel/schedules.py, get_pp_rank_microbatches (warmup);
    on the first stage @korthikanti2022, section 4.2.3, times $p\,v$; the minimum by counting.
    """
    ahead = (virtual_stages - 1) * pp_size + 2 * (pp_size - 1 - stage) + 1
    return minimum(ahead, microbatch_count * virtual_stages)


@formula
def end_layers(longest: Value, virtual_stages: Value, spare: Value) -> Value:
    r"""Layers of a stage at an end of the pipeline, which is shorter if layers do not divide.

    If every chunk had as many layers as the longest, some places would be spare. The last chunk,
    which also has the output projection, gives up layers first, and then the first chunk, which has
    the embedding. Without interleaving, a stage keeps at least one layer.

    $$ L_e = L_p - \min\left(\sigma,\; \frac{L_p}{v},\; L_p - 1\right) $$

    Parameters
    ----------
    longest : [1]
        $L_p$, layers of the longest stage.
    virtual_stages : [1]
        $v$, model chunks per stage.
    spare : [1]
        $\sigma$, spare places not taken by later stages.

    Returns
    -------
    layers : [1]
        $L_e$, layers of the stage.

    References
    ----------
    @grattafiori2024, section 3.3.2 (126 layers in 16 stages of 8 chunks); @megatron_bridge,
    DeepSeek-V3 recipe (61 layers in 16 stages: 15 of four, and one with the output)
    """
    return longest - minimum(spare, minimum(longest / virtual_stages, longest - 1))


@formula
def interleaving_factor(pp_size: Value, virtual_stages: Value) -> Value:
    r"""Growth of the first stage's activations under the interleaved schedule.

    Use it for $v > 1$ only: plain 1F1B has the factor 1.

    $$ \lambda = 1 + \frac{p-1}{p\,v} $$

    Parameters
    ----------
    pp_size : [1]
        $p$, pipeline stages.
    virtual_stages : [1]
        $v$, model chunks per stage.

    Returns
    -------
    factor : [1]
        $\lambda$, activations relative to plain 1F1B.

    References
    ----------
    @korthikanti2022, section 4.2.3
    """
    return 1 + (pp_size - 1) / (pp_size * virtual_stages)


@formula
def layers_per_stage(layers: Value, pp_size: Value, virtual_stages: Value) -> Value:
    r"""Layers of the longest stage, if layers are distributed as evenly as possible.

    $$ L_p = v\left\lceil \frac{L}{p\,v} \right\rceil $$

    Parameters
    ----------
    layers : [1]
        $L$, layers of the model.
    pp_size : [1]
        $p$, pipeline stages.
    virtual_stages : [1]
        $v$, model chunks per stage, each as long as the longest.

    Returns
    -------
    layers : [1]
        $L_p$, layers of the longest stage.

    References
    ----------
    Counting; the longest chunk sets the pace of the pipeline.
    """
    return virtual_stages * ceil(layers / (pp_size * virtual_stages))


@formula
def microbatches_in_flight(pp_size: Value, microbatch_count: Value, stage: Value = 0) -> Value:
    r"""Microbatches in flight on a stage under 1F1B.

    $$ k = \min(p - i, m) $$

    Parameters
    ----------
    pp_size : [1]
        $p$, pipeline stages.
    microbatch_count : [1]
        $m$, microbatches per step.
    stage : [1]
        $i$, the stage, counted from 0. The first stage holds the most.

    Returns
    -------
    microbatches : [1]
        $k$, microbatches in flight.

    References
    ----------
    @narayanan2021, section 2.2.1
    """
    return minimum(pp_size - stage, microbatch_count)


@formula
def pipeline_bubble_fraction(
    pp_size: Value, microbatch_count: Value, virtual_stages: Value
) -> Value:
    r"""Share of the pipeline's time in which a stage idles.

    $$ \beta = \frac{p-1}{m\,v + p - 1} $$

    Parameters
    ----------
    pp_size : [1]
        $p$, pipeline stages.
    microbatch_count : [1]
        $m$, microbatches per step.
    virtual_stages : [1]
        $v$, model chunks per stage: 1 unless the schedule is interleaved.

    Returns
    -------
    share : [1]
        $\beta$, idle share of the whole time.

    References
    ----------
    @huang2019, section 2.3; interleaved: @narayanan2021, section 2.2.2
    """
    return (pp_size - 1) / (microbatch_count * virtual_stages + pp_size - 1)


@formula
def pipeline_bubble_time(
    busy_time: Value, pp_size: Value, microbatch_count: Value, virtual_stages: Value
) -> Value:
    r"""Time added by filling and draining the pipeline to the busy time of a stage.

    $$ t_b = \frac{p-1}{m\,v}\,t $$

    Parameters
    ----------
    busy_time : [s]
        $t$, time in which a stage is busy with all microbatches.
    pp_size : [1]
        $p$, pipeline stages.
    microbatch_count : [1]
        $m$, microbatches per step.
    virtual_stages : [1]
        $v$, model chunks per stage: 1 unless the schedule is interleaved.

    Returns
    -------
    time : [s]
        $t_b$, idle time per step.

    References
    ----------
    @narayanan2021, sections 2.2.1 and 2.2.2
    """
    return (pp_size - 1) / (microbatch_count * virtual_stages) * busy_time


@formula
def pipeline_fill_time(whole: Value, busiest: Value, virtual_stages: Value) -> Value:
    r"""Time added by filling and draining a pipeline with unequal stages.

    The busiest stage waits for one microbatch to pass through all other stages. If all stages take
    equally long, this is $(p-1)/(m\,v)$ of the busy time.

    $$ t_b = \frac{T_1 - t_1}{v} $$

    Parameters
    ----------
    whole : [s]
        $T_1$, time of one microbatch through all stages, forward and backward.
    busiest : [s]
        $t_1$, its time in the busiest stage.
    virtual_stages : [1]
        $v$, model chunks per stage: 1 unless the schedule is interleaved.

    Returns
    -------
    time : [s]
        $t_b$, idle time per step.

    References
    ----------
    @narayanan2021, sections 2.2.1 and 2.2.2 (equal stages); the rest by counting.
    """
    return (whole - busiest) / virtual_stages


@formula
def pipeline_transfer_time(
    transfer: Value, microbatch_count: Value, virtual_stages: Value, pp_size: Value
) -> Value:
    r"""Time to send activations to the next stage and gradients back, not overlapped.

    A single stage has no neighbor and sends nothing. If each tensor-parallel rank sends a slice,
    the all-gather at the receiver is additional (with sequence parallelism none is needed).

    $$ t_p = 2\,m\,v\,\min(1,\, p - 1)\,t_1 $$

    Parameters
    ----------
    transfer : [s]
        $t_1$, time of one transfer between neighboring stages.
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
    @narayanan2021, sections 2.2.2 (v-fold with interleaving) and 3.2 (b s h per boundary)
    """
    return 2 * microbatch_count * virtual_stages * minimum(1, pp_size - 1) * transfer


@formula
def split_backward_bubble_time(
    forward_time: Value,
    input_gradient_time: Value,
    weight_gradient_time: Value,
    pp_size: Value,
    microbatch_count: Value,
) -> Value:
    r"""Idle time of a stage with split backward passes, as in ZB-H1.

    If weight gradients take no longer than the other passes and there are at least as many
    microbatches as stages, this is $(p-1)(T_F + T_B - T_W)$, as published.

    $$ t_b = (p-1)(T_F + T_B) - (\min(p, m) - 1) \min(T_W, T_F, T_B) $$

    Parameters
    ----------
    forward_time : [s]
        $T_F$, forward pass of a microbatch through a stage.
    input_gradient_time : [s]
        $T_B$, part of its backward pass for which the previous stage waits.
    weight_gradient_time : [s]
        $T_W$, part of its backward pass that can be postponed.
    pp_size : [1]
        $p$, pipeline stages.
    microbatch_count : [1]
        $m$, microbatches per step.

    Returns
    -------
    time : [s]
        $t_b$, idle time per step.

    References
    ----------
    @qi2023, section 2.3 and table 2; the two minima by playing the schedule through.
    """
    filled = minimum(weight_gradient_time, minimum(forward_time, input_gradient_time))
    passes = (pp_size - 1) * (forward_time + input_gradient_time)
    return passes - (minimum(pp_size, microbatch_count) - 1) * filled
