"""Memory of one device: weights, gradients, optimizer state, keys and values."""

from mlsysim.core.formula import formula
from mlsysim.core.numeric import Value, where

__all__ = [
    "kv_cache_size",
    "memory_sum",
    "optimizer_state_size",
    "tensor_size",
    "tensor_slice",
]


@formula
def tensor_size(elements: Value, bytes_per_element: Value) -> Value:
    r"""Bytes that a number of elements take.

    $$ M = e\,N $$

    Parameters
    ----------
    elements : [1]
        $N$, elements.
    bytes_per_element : [byte]
        $e$, bytes of one element.

    Returns
    -------
    size : [byte]
        $M$, bytes.

    References
    ----------
    Definition.
    """
    return elements * bytes_per_element


@formula
def optimizer_state_size(
    parameters: Value, bytes_per_element: Value, moment_bytes: Value, master_bytes: Value
) -> Value:
    r"""Bytes of Adam's state, with a 32-bit master copy of weights that are narrower.

    In mixed precision that is 12 bytes per parameter beside 2 for the weights and 2 for the
    gradients: 16 in all.

    $$ M_o = N\,(k_v + [e < k_w]\,k_w) $$

    Parameters
    ----------
    parameters : [param]
        $N$, parameters.
    bytes_per_element : [byte]
        $e$, bytes of one weight.
    moment_bytes : [byte]
        $k_v$, bytes of momentum and variance per parameter: 8.
    master_bytes : [byte]
        $k_w$, bytes of a master weight: 4.

    Returns
    -------
    size : [byte]
        $M_o$, bytes.

    References
    ----------
    Rajbhandari et al. (2020), ZeRO: Memory Optimizations Toward Training Trillion Parameter Models,
    section 3.1, https://arxiv.org/abs/1910.02054
    """
    master = where(bytes_per_element < master_bytes, master_bytes, 0 * master_bytes)
    return parameters * (moment_bytes + master)


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
def tensor_slice(size: Value, parts: Value) -> Value:
    r"""Part of a tensor that each of several devices holds or sends.

    $$ M_1 = \frac{M}{t} $$

    Parameters
    ----------
    size : [byte]
        $M$, bytes of the whole.
    parts : [1]
        $t$, equal parts.

    Returns
    -------
    size : [byte]
        $M_1$, bytes of one part.

    References
    ----------
    Narayanan et al. (2021), Efficient Large-Scale Language Model Training on GPU Clusters Using
    Megatron-LM, section 4.1 (scatter/gather between pipeline stages),
    https://arxiv.org/abs/2104.04473; Korthikanti et al. (2022), Reducing Activation Recomputation
    in Large Transformer Models, section 4.2.2 (sequence parallelism),
    https://arxiv.org/abs/2205.05198
    """
    return size / parts


@formula
def memory_sum(
    weights: Value, gradients: Value, optimizer: Value, activations: Value, working: Value
) -> Value:
    r"""Memory that a training step needs on one device.

    $$ M = M_w + M_g + M_o + M_a + M_t $$

    Parameters
    ----------
    weights : [byte]
        $M_w$, weights.
    gradients : [byte]
        $M_g$, gradients.
    optimizer : [byte]
        $M_o$, state of the optimizer.
    activations : [byte]
        $M_a$, activations kept for the backward pass.
    working : [byte]
        $M_t$, buffers that come and go within the backward pass.

    Returns
    -------
    size : [byte]
        $M$, bytes on one device.

    References
    ----------
    Rajbhandari et al. (2020), ZeRO: Memory Optimizations Toward Training Trillion Parameter Models,
    sections 3.1 and 3.2, https://arxiv.org/abs/1910.02054
    """
    return weights + gradients + optimizer + activations + working
