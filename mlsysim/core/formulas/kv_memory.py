"""Memory of serving: weights beside keys and values, and what fits."""

from mlsysim.core.formula import formula
from mlsysim.core.numeric import Value, floor, maximum, minimum

__all__ = [
    "kv_per_device",
    "largest_batch",
    "longest_context",
    "memory_share",
    "serving_memory",
]


@formula
def kv_per_device(kv_cache: Value, tp_size: Value, kv_heads: Value) -> Value:
    r"""Keys and values that one device of a tensor-parallel group holds.

    Heads are dealt out whole, so a group larger than the number of key and value heads holds
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
def serving_memory(weights: Value, kv_cache: Value) -> Value:
    r"""Memory that weights, keys and values take.

    Activations and the framework's own memory come on top.

    $$ M = M_w + M_{kv} $$

    Parameters
    ----------
    weights : [byte]
        $M_w$, weights.
    kv_cache : [byte]
        $M_{kv}$, keys and values of all sequences.

    Returns
    -------
    size : [byte]
        $M$, bytes.

    References
    ----------
    Kwon et al. (2023), Efficient Memory Management for Large Language Model Serving with
    PagedAttention, section 1, https://arxiv.org/abs/2309.06180
    """
    return weights + kv_cache


@formula
def memory_share(memory: Value, capacity: Value) -> Value:
    r"""Memory that is needed over memory that is there.

    $$ \mu = \frac{M}{M_0} $$

    Parameters
    ----------
    memory : [byte]
        $M$, bytes needed.
    capacity : [byte]
        $M_0$, bytes there.

    Returns
    -------
    share : [1]
        $\mu$, above 1 where the memory does not suffice.

    References
    ----------
    Definition.
    """
    return memory / capacity


@formula
def largest_batch(capacity: Value, weights: Value, kv_per_sequence: Value) -> Value:
    r"""Sequences whose keys and values fit beside the weights.

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
