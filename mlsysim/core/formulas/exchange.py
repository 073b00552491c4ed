"""Exchange between replicas: gradients that are summed up, compressed or not, and how often."""

from mlsysim.core.formula import formula
from mlsysim.core.numeric import Value

__all__ = [
    "compressed_scatters",
    "compressed_size",
    "exchange_volume",
    "gradient_exchange_time",
    "weight_gathers",
    "weights_share",
]


@formula
def compressed_size(size: Value, gradient_compression: Value, weights: Value) -> Value:
    r"""Bytes that an all-reduce between replicas moves as if they were gradients.

    Compression makes gradients smaller. The part of the exchange that hands out weights, where
    the optimizer or the weights are sharded, stays as it is.

    $$ M_c = M \left(\frac{1 - w}{\rho} + w\right) $$

    Parameters
    ----------
    size : [byte]
        $M$, gradients.
    gradient_compression : [1]
        $\rho$, bytes of gradients over bytes that are sent of them.
    weights : [1]
        $w$, share of the exchange that carries weights.

    Returns
    -------
    size : [byte]
        $M_c$, bytes.

    References
    ----------
    Counting: a sharded optimizer scatters gradients and gathers weights, half of an all-reduce
    each.
    """
    return size * ((1 - weights) / gradient_compression + weights)


@formula
def compressed_scatters(scatters: Value, gradient_compression: Value) -> Value:
    r"""Volume of the gradients' scatter once they are compressed.

    $$ c = \frac{c_s}{\rho} $$

    Parameters
    ----------
    scatters : [1]
        $c_s$, scatters of the gradients, in volumes of one gather of the weights.
    gradient_compression : [1]
        $\rho$, bytes of gradients over bytes that are sent of them.

    Returns
    -------
    scatters : [1]
        $c$, the same of what is sent.

    References
    ----------
    Definition of the ratio.
    """
    return scatters / gradient_compression


@formula
def gradient_exchange_time(all_reduce: Value, volume: Value) -> Value:
    r"""Time of the exchange between replicas, in volumes of one all-reduce.

    $$ t_d = \nu\,t_1 $$

    Parameters
    ----------
    all_reduce : [s]
        $t_1$, time of the gradients' all-reduce.
    volume : [1]
        $\nu$, exchanges of a step in volumes of one all-reduce.

    Returns
    -------
    time : [s]
        $t_d$, time per step.

    References
    ----------
    Rajbhandari et al. (2020), ZeRO: Memory Optimizations Toward Training Trillion Parameter
    Models, section 7, https://arxiv.org/abs/1910.02054
    """
    return volume * all_reduce


@formula
def weight_gathers(microbatch_count: Value) -> Value:
    r"""Gathers of sharded weights in a step.

    $$ g = 2\,m $$

    Parameters
    ----------
    microbatch_count : [1]
        $m$, microbatches, each with a forward and a backward pass.

    Returns
    -------
    gathers : [1]
        $g$, gathers.

    References
    ----------
    Rajbhandari et al. (2020), ZeRO: Memory Optimizations Toward Training Trillion Parameter
    Models, section 7, https://arxiv.org/abs/1910.02054
    """
    return 2 * microbatch_count


@formula
def exchange_volume(scatters: Value, gathers: Value) -> Value:
    r"""Volume of a step's exchanges, in all-reduces.

    $$ \nu = \frac{s + g}{2} $$

    Parameters
    ----------
    scatters : [1]
        $s$, reduce-scatters of the gradients.
    gathers : [1]
        $g$, all-gathers.

    Returns
    -------
    volume : [1]
        $\nu$, all-reduces of the same volume.

    References
    ----------
    Counting: an all-reduce is a reduce-scatter and an all-gather.
    """
    return (scatters + gathers) / 2


@formula
def weights_share(scatters: Value, gathers: Value) -> Value:
    r"""Share of a sharded exchange that carries weights.

    $$ w = \frac{g}{s + g} $$

    Parameters
    ----------
    scatters : [1]
        $s$, reduce-scatters of the gradients.
    gathers : [1]
        $g$, all-gathers of the weights.

    Returns
    -------
    share : [1]
        $w$, share.

    References
    ----------
    Counting: both move as much.
    """
    return gathers / (scatters + gathers)
