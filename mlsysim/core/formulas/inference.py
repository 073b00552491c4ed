"""A forward pass on one device: its operations and its traffic."""

from mlsysim.core.formula import formula
from mlsysim.core.numeric import Value

__all__ = [
    "batch_flops",
    "fixed_shape_traffic",
    "streamed_size",
    "transformer_pass_traffic",
]


@formula
def batch_flops(batch_size: Value, flops_per_sample: Value) -> Value:
    r"""Operations of a batch whose samples all cost the same.

    $$ F = b\,F_s $$

    Parameters
    ----------
    batch_size : [sample]
        $b$, samples in the batch.
    flops_per_sample : [flop]
        $F_s$, operations of one sample.

    Returns
    -------
    flops : [flop]
        $F$, operations of the batch.

    References
    ----------
    Counting.
    """
    return batch_size * flops_per_sample


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
    Counting of compulsory traffic, in the sense of Williams, Waterman and Patterson (2009),
    Roofline, "Tying the 3Cs to Operational Intensity", https://doi.org/10.1145/1498765.1498785
    """
    per_sample = gathered_parameters + 2 * activations
    return bytes_per_element * (dense_parameters + batch_size * per_sample)


@formula
def transformer_pass_traffic(weights: Value, kv_cache: Value) -> Value:
    r"""Bytes that a transformer's forward pass must move: weights in, keys and values out.

    Activations are left out. With few tokens they are small beside the weights; with many, and
    widths of a thousand or more, the arithmetic takes longer than their traffic.

    $$ Q = M_w + M_{kv} $$

    Parameters
    ----------
    weights : [byte]
        $M_w$, weights.
    kv_cache : [byte]
        $M_{kv}$, keys and values of all tokens.

    Returns
    -------
    traffic : [byte]
        $Q$, bytes read and written.

    References
    ----------
    Pope et al. (2022), Efficiently Scaling Transformer Inference, section 2 (memory costs),
    https://arxiv.org/abs/2211.05102
    """
    return weights + kv_cache


@formula
def streamed_size(time: Value, bandwidth: Value) -> Value:
    r"""Bytes that pass through memory in a time at a given bandwidth.

    $$ Q = B\,t_m $$

    Parameters
    ----------
    time : [s]
        $t_m$, time of the traffic.
    bandwidth : [byte/s]
        $B$, bandwidth that streams reach.

    Returns
    -------
    traffic : [byte]
        $Q$, bytes read and written.

    References
    ----------
    Definition of bandwidth.
    """
    return bandwidth * time
