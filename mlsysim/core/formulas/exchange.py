"""Exchange between replicas: gradients that are summed up, compressed or not, and how often."""

from mlsysim.core.formula import formula
from mlsysim.core.numeric import Value

__all__ = ["compressed_scatters", "compressed_size", "gradient_exchange_time"]


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
        $\nu$, 1 up to the second stage of state sharding, 1.5 with sharded weights.

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
