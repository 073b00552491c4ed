"""Times that run side by side, and what remains in sight of them."""

from mlsysim.core.formula import formula
from mlsysim.core.numeric import Value, maximum, minimum

__all__ = [
    "covered_time",
    "gathered_layer_time",
    "head_time",
    "launch_limited_time",
    "microbatch_time",
    "operator_step_time",
    "pipeline_pass_time",
    "shard_traffic_time",
    "time_sum",
]


@formula
def time_sum(first: Value, second: Value) -> Value:
    r"""Time of two pieces of work, one after the other.

    $$ t = t_1 + t_2 $$

    Parameters
    ----------
    first : [s]
        $t_1$, time of one.
    second : [s]
        $t_2$, time of the other.

    Returns
    -------
    time : [s]
        $t$, time of both.

    References
    ----------
    Sum of parts that do not overlap.
    """
    return first + second


@formula
def launch_limited_time(device: Value, launch: Value, exposed: Value) -> Value:
    r"""Time of work that cannot end before the host has launched it.

    The longer of the two hides most of the shorter, but not all: where the host waits for the
    device, neither does anything for the other.

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
def covered_time(communication: Value, overlap: Value, cover: Value) -> Value:
    r"""Exposed part of a communication that can hide under one piece of computation only.

    $$ t = \max\left((1 - \omega)\,t_m,\; t_m - t_c\right) $$

    Parameters
    ----------
    communication : [s]
        $t_m$, time of the communication.
    overlap : [1]
        $\omega$, share that runs under computation where there is enough of it.
    cover : [s]
        $t_c$, computation that it can run under.

    Returns
    -------
    time : [s]
        $t$, exposed time.

    References
    ----------
    Counting: no more is hidden than there is to hide under.
    """
    return maximum((1 - overlap) * communication, communication - cover)


@formula
def gathered_layer_time(layer: Value, gather: Value, overlap: Value) -> Value:
    r"""Time of a layer whose sharded weights are gathered while the layer before it computes.

    The longer of the two hides part of the shorter; the rest adds up, because both compete for
    memory and for the device's units.

    $$ t = \max(t_l, t_g) + (1 - \omega)\min(t_l, t_g) $$

    Parameters
    ----------
    layer : [s]
        $t_l$, computation of the layer.
    gather : [s]
        $t_g$, gathers of its weights and scatter of its gradients.
    overlap : [1]
        $\omega$, share of the shorter that is hidden.

    Returns
    -------
    time : [s]
        $t$, time per layer and microbatch.

    References
    ----------
    Zhao et al. (2023), PyTorch FSDP, section 3.3, https://arxiv.org/abs/2304.11277
    """
    return maximum(layer, gather) + (1 - overlap) * minimum(layer, gather)


@formula
def shard_traffic_time(gather: Value, gathers: Value, scatters: Value) -> Value:
    r"""Time of the weight gathers and the gradient scatter of one layer and microbatch.

    $$ t_g = (c_g + c_s)\,t_1 $$

    Parameters
    ----------
    gather : [s]
        $t_1$, time of one gather of the layer's weights.
    gathers : [1]
        $c_g$, gathers: forward, and backward unless the weights were kept.
    scatters : [1]
        $c_s$, scatters of the gradients, in volumes of one gather: 1, or 2 in 32 bits.

    Returns
    -------
    time : [s]
        $t_g$, communication per layer and microbatch.

    References
    ----------
    Rajbhandari et al. (2020), ZeRO, section 7.2.2, https://arxiv.org/abs/1910.02054
    """
    return (gathers + scatters) * gather


@formula
def head_time(product: Value, loss: Value) -> Value:
    r"""Time of the output projection and the loss, forward and backward.

    $$ t_v = 3\,t_w + t_q $$

    Parameters
    ----------
    product : [s]
        $t_w$, the projection's product, forward.
    loss : [s]
        $t_q$, memory traffic of logits and loss.

    Returns
    -------
    time : [s]
        $t_v$, time per microbatch on the last stage.

    References
    ----------
    Counting: a product has two gradients of its own size.
    """
    return 3 * product + loss


@formula
def pipeline_pass_time(
    layer: Value, stage_layers: Value, head: Value, microbatch_count: Value
) -> Value:
    r"""Time in which the last stage is busy with all microbatches of a step.

    $$ t = m\,(L_p\,t_l + t_v) $$

    Parameters
    ----------
    layer : [s]
        $t_l$, time per layer and microbatch.
    stage_layers : [1]
        $L_p$, layers of the stage.
    head : [s]
        $t_v$, output projection and loss per microbatch.
    microbatch_count : [1]
        $m$, microbatches per step.

    Returns
    -------
    time : [s]
        $t$, busy time.

    References
    ----------
    Counting; the last stage has the output projection as well as its layers.
    """
    return microbatch_count * (stage_layers * layer + head)


@formula
def operator_step_time(
    busy: Value, bubble: Value, gradient: Value, optimizer: Value, overhead: Value
) -> Value:
    r"""Time of a training step from its parts.

    $$ T = t + t_b + t_d + t_o + t_0 $$

    Parameters
    ----------
    busy : [s]
        $t$, time in which the last stage is busy.
    bubble : [s]
        $t_b$, time in which it waits for the pipeline to fill and drain.
    gradient : [s]
        $t_d$, exposed part of the gradient reduction.
    optimizer : [s]
        $t_o$, update of the parameters.
    overhead : [s]
        $t_0$, fixed time per step.

    Returns
    -------
    time : [s]
        $T$, step time.

    References
    ----------
    Sum of parts that do not overlap.
    """
    return busy + bubble + gradient + optimizer + overhead


@formula
def microbatch_time(busy: Value, microbatch_count: Value) -> Value:
    r"""Time in which a stage is busy with one microbatch, forward and backward.

    $$ t_1 = \frac{t}{m} $$

    Parameters
    ----------
    busy : [s]
        $t$, time in which it is busy with all microbatches of a step.
    microbatch_count : [1]
        $m$, microbatches per step.

    Returns
    -------
    time : [s]
        $t_1$, time of one.

    References
    ----------
    Counting.
    """
    return busy / microbatch_count
