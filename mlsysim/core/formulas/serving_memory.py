"""Memory of serving: keys and values, and the sequences that fit in addition to the weights."""

from mlsysim.core.formula import formula
from mlsysim.core.numeric import Value, floor, maximum, minimum

__all__ = [
    "kv_budget",
    "kv_cache_size",
    "kv_per_device",
    "largest_batch",
    "longest_context",
]


@formula
def kv_budget(capacity: Value, weights: Value, share: Value) -> Value:
    r"""Memory that an engine lets weights, keys and values take.

    $$ M_1 = \phi\,M_0 + (1 - \phi)\,M_w $$

    Parameters
    ----------
    capacity : [byte]
        $M_0$, memory of a device.
    weights : [byte]
        $M_w$, weights on it.
    share : [1]
        $\phi$, share of the rest, $M_0 - M_w$, that keys and values may take.

    Returns
    -------
    size : [byte]
        $M_1$, bytes.

    References
    ----------
    Kwon et al. (2023), Efficient Memory Management for Large Language Model Serving with
    PagedAttention, section 4.2, https://arxiv.org/abs/2309.06180
    """
    return share * capacity + (1 - share) * weights


@formula
def kv_cache_size(
    layers: Value,
    kv_heads: Value,
    head_dim: Value,
    tokens: Value,
    bytes_per_element: Value,
) -> Value:
    r"""Bytes of the keys and values that attention keeps for a number of tokens.

    $$ M_{kv} = 2\,L\,k\,d\,T\,e $$

    Parameters
    ----------
    layers : [1]
        $L$, layers.
    kv_heads : [1]
        $k$, key and value heads.
    head_dim : [1]
        $d$, width of one head.
    tokens : [token]
        $T$, tokens kept, over all sequences.
    bytes_per_element : [byte]
        $e$, bytes of one element.

    Returns
    -------
    size : [byte]
        $M_{kv}$, bytes.

    References
    ----------
    Counting; the cache as in Pope et al. (2022), Efficiently Scaling Transformer Inference, section
    2, https://arxiv.org/abs/2211.05102
    """
    return 2 * layers * kv_heads * head_dim * tokens * bytes_per_element


@formula
def kv_per_device(kv_cache: Value, tp_size: Value, kv_heads: Value) -> Value:
    r"""Keys and values that one device of a tensor-parallel group holds.

    Heads are distributed whole, so a group larger than the number of key and value heads holds
    some of them more than once.

    $$ M_1 = \frac{M_{kv}}{\min(t,\, k)} $$

    Parameters
    ----------
    kv_cache : [byte]
        $M_{kv}$, keys and values of the whole model.
    tp_size : [1]
        $t$, devices that share each layer.
    kv_heads : [1]
        $k$, key and value heads.

    Returns
    -------
    size : [byte]
        $M_1$, bytes on one device.

    References
    ----------
    Pope et al. (2022), Efficiently Scaling Transformer Inference, section 3.3,
    https://arxiv.org/abs/2211.05102
    """
    return kv_cache / minimum(tp_size, kv_heads)


@formula
def largest_batch(capacity: Value, weights: Value, kv_per_sequence: Value) -> Value:
    r"""Number of sequences with keys and values that fit in addition to the weights.

    $$ b_{max} = \max\left(0,\; \left\lfloor\frac{M_0 - M_w}{M_1}\right\rfloor\right) $$

    Parameters
    ----------
    capacity : [byte]
        $M_0$, memory of a device.
    weights : [byte]
        $M_w$, weights on it.
    kv_per_sequence : [byte]
        $M_1$, keys and values of one sequence at full length, on it.

    Returns
    -------
    sequences : [1]
        $b_{max}$, sequences; 0 if the weights alone do not fit.

    References
    ----------
    Kwon et al. (2023), Efficient Memory Management for Large Language Model Serving with
    PagedAttention, section 1, https://arxiv.org/abs/2309.06180
    """
    return maximum(0, floor((capacity - weights) / kv_per_sequence))


@formula
def longest_context(
    capacity: Value, weights: Value, kv_per_token: Value, sequences: Value
) -> Value:
    r"""Tokens that each sequence of a batch may hold before memory is full.

    $$ T_{max} = \max\left(0,\; \left\lfloor\frac{M_0 - M_w}{b\,M_2}\right\rfloor\right) $$

    Parameters
    ----------
    capacity : [byte]
        $M_0$, memory of a device.
    weights : [byte]
        $M_w$, weights on it.
    kv_per_token : [byte]
        $M_2$, keys and values of one token, on it.
    sequences : [1]
        $b$, sequences.

    Returns
    -------
    tokens : [token]
        $T_{max}$, tokens per sequence; 0 if the weights alone do not fit.

    References
    ----------
    Kwon et al. (2023), Efficient Memory Management for Large Language Model Serving with
    PagedAttention, section 1, https://arxiv.org/abs/2309.06180
    """
    return maximum(0, floor((capacity - weights) / (sequences * kv_per_token)))
