"""Communication of a training step or a pass, and how much of it computation hides."""

from mlsysim.core.formula import formula
from mlsysim.core.numeric import Value, maximum, minimum

__all__ = [
    "covered_time",
    "gathered_layer_time",
    "head_swap_size",
    "layer_all_reduce_time",
    "partial_attention_time",
    "scaling_efficiency",
    "shard_traffic_time",
    "uncovered_time",
]


@formula
def covered_time(communication: Value, overlap: Value, cover: Value) -> Value:
    r"""Exposed part of a communication that can overlap with only one piece of computation.

    $$ t = \max\left((1 - \omega)\,t_m,\; t_m - t_c\right) $$

    Parameters
    ----------
    communication : [s]
        $t_m$, time of the communication.
    overlap : [1]
        $\omega$, share that overlaps with computation if there is enough of it.
    cover : [s]
        $t_c$, computation with which it can overlap.

    Returns
    -------
    time : [s]
        $t$, exposed time.

    References
    ----------
    Definition: no more can be hidden than the time of the computation.
    """
    return maximum((1 - overlap) * communication, communication - cover)


@formula
def gathered_layer_time(layer: Value, gather: Value, overlap: Value) -> Value:
    r"""Time of a layer with sharded weights that are gathered while the previous layer computes.

    The longer of the two hides part of the shorter; the rest is added, because both compete for
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
    @zhao2023, section 3.3
    """
    return maximum(layer, gather) + (1 - overlap) * minimum(layer, gather)


@formula
def head_swap_size(
    tokens: Value,
    width: Value,
    kv_heads: Value,
    head_dim: Value,
    tp_size: Value,
    swap_size: Value,
    bytes_per_element: Value,
) -> Value:
    r"""Bytes of queries, keys, values and output exchanged to swap positions for heads.

    Each device takes part of the heads for all positions. If there are fewer key and value heads
    than devices, several devices get the same one.

    $$ M_u = T\,\left(\frac{2 w_a}{\mathrm{TP}}
       + 2 d_h \max\left(\frac{k}{\mathrm{TP}},\, u\right)\right) e $$

    Parameters
    ----------
    tokens : [token]
        $T$, tokens of a microbatch on the device.
    width : [1]
        $w_a$, width of all attention heads together.
    kv_heads : [1]
        $k$, key and value heads.
    head_dim : [1]
        $d_h$, width of one head.
    tp_size : [1]
        $\mathrm{TP}$, devices that share each layer.
    swap_size : [1]
        $u$, devices that swap positions for heads.
    bytes_per_element : [byte]
        $e$, bytes of one element.

    Returns
    -------
    size : [byte]
        $M_u$, bytes before and after attention together, including the device's own part.

    References
    ----------
    @jacobs2023, section 3.2
    """
    keys = 2 * head_dim * maximum(kv_heads / tp_size, swap_size)
    return tokens * (2 * width / tp_size + keys) * bytes_per_element


@formula
def layer_all_reduce_time(
    all_reduce: Value, all_reduces_per_layer: Value, layers: Value, microbatch_count: Value
) -> Value:
    r"""Time of the all-reduces that tensor parallelism needs in a step.

    Every layer has two in the forward pass and two in the backward pass: one after the attention
    block, one after the feed-forward block, and their transposes. With sequence parallelism each is
    a reduce-scatter and an all-gather of the same volume. If the whole forward pass is recomputed,
    its two all-reduces are repeated.

    $$ t_t = c\,L_p\,m\,t_a $$

    Parameters
    ----------
    all_reduce : [s]
        $t_a$, time of one all-reduce of a microbatch's activations.
    all_reduces_per_layer : [1]
        $c$, all-reduces per layer: 4, or 6 if whole layers are recomputed.
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
    @shoeybi2019, section 3 and Figure 4; sequence parallelism: @korthikanti2022, section 4.2.2
    """
    return all_reduces_per_layer * layers * microbatch_count * all_reduce


@formula
def partial_attention_time(
    tokens: Value,
    heads: Value,
    head_dim: Value,
    bytes_per_element: Value,
    tp_size: Value,
    dcp_size: Value,
    bandwidth: Value,
    overhead: Value,
) -> Value:
    r"""Time to combine attention over parts of the context that are on different ranks.

    Each rank gathers the queries of all heads of the group, attends to its own tokens, and sends
    each head's partial output to the rank that owns the head, with its log-sum-exp, which is as
    wide as two elements. From these, the owner computes the exact output. Each of the two exchanges
    takes one step; a single rank has none.

    $$ t = 2\min(1,\, D - 1)\,t_0
       + \frac{D - 1}{\mathrm{TP}}\,\frac{2\,T\,a\,(d_h + 1)\,e}{B} $$

    Parameters
    ----------
    tokens : [token]
        $T$, tokens of the pass.
    heads : [1]
        $a$, query heads of the model.
    head_dim : [1]
        $d_h$, mean width of a query and of a partial output.
    bytes_per_element : [byte]
        $e$, bytes of one element.
    tp_size : [1]
        $\mathrm{TP}$, devices that share each layer.
    dcp_size : [1]
        $D$, ranks that divide the tokens.
    bandwidth : [byte/s]
        $B$, bandwidth that collectives reach, one direction.
    overhead : [s]
        $t_0$, launch and barrier of an exchange.

    Returns
    -------
    time : [s]
        $t$, time per layer.

    References
    ----------
    @bhatia2025; as engines run it: @sglang_dcp
    """
    size = 2 * tokens * heads * (head_dim + 1) * bytes_per_element / tp_size
    return 2 * minimum(1, dcp_size - 1) * overhead + (dcp_size - 1) * size / bandwidth


@formula
def scaling_efficiency(single_device_time: Value, devices: Value, step: Value) -> Value:
    r"""Time one device with unlimited memory would need, divided by the device time spent.

    $$ \epsilon_s = \frac{t_1}{n\,T} $$

    Parameters
    ----------
    single_device_time : [s]
        $t_1$, time of the whole step on one device with unlimited memory.
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
def shard_traffic_time(gather: Value, gathers: Value, scatter: Value) -> Value:
    r"""Time of the weight gathers and the gradient scatter of one layer and microbatch.

    $$ t_g = c_g\,t_1 + t_s $$

    Parameters
    ----------
    gather : [s]
        $t_1$, time of one gather of the layer's weights.
    gathers : [1]
        $c_g$, gathers: forward, and backward unless the weights were kept.
    scatter : [s]
        $t_s$, time of the scatter of its gradients.

    Returns
    -------
    time : [s]
        $t_g$, communication per layer and microbatch.

    References
    ----------
    @rajbhandari2020, section 7.2.2
    """
    return gathers * gather + scatter


@formula
def uncovered_time(exchange: Value, attention: Value, backward: Value, recomputed: Value) -> Value:
    r"""Time per layer and microbatch in which attention waits for keys and values.

    Keys and values travel while attention processes those that arrived before. They travel around
    the ring once in the forward pass, and again in the backward pass, with their gradients, during
    the longer attention of that pass. If the layer is recomputed, they travel around once more.

    $$ t = (1 + \rho)\,\max(0,\; t_x - t_a) + \max(0,\; 2 t_x - \beta t_a) $$

    Parameters
    ----------
    exchange : [s]
        $t_x$, time of one round.
    attention : [s]
        $t_a$, attention that hides it, forward; zero if nothing overlaps.
    backward : [1]
        $\beta$, attention's backward time divided by its forward time.
    recomputed : [1]
        $\rho$, 1 if whole layers are recomputed, else 0.

    Returns
    -------
    time : [s]
        $t$, exposed time.

    References
    ----------
    @liu2023
    """
    forward = maximum(0 * exchange, exchange - attention)
    back = maximum(0 * exchange, 2 * exchange - backward * attention)
    return (1 + recomputed) * forward + back
