"""The computation of a rank on its own part between two collectives, forward and backward.

Each backward function takes the arguments of its forward function, and the gradient of its result.
Arrays are laid out as (tokens of a sequence, sequences, width).
"""

from __future__ import annotations

import math

import numpy as np

from mlsysim.core.calls import checked_by_numpy
from mlsysim_course.ranks.group import Array

_EPSILON = 1e-5
# Plain floats, because NumPy's would convert single precision to double.
_SLOPE, _CUBE = math.sqrt(2 / math.pi), 0.044715


@checked_by_numpy
def gelu(x: Array) -> Array:
    r"""Return GeLU in its form with a hyperbolic tangent.

    $$ \tfrac{x}{2}\left(1 + \tanh\left(\sqrt{2/\pi}\,(x + 0.044715\,x^3)\right)\right) $$

    References
    ----------
    PyTorch, torch.nn.functional.gelu, approximate="tanh",
    https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.gelu.html
    """
    bent: Array = np.tanh(_SLOPE * (x + _CUBE * x**3))
    return 0.5 * x * (1 + bent)


@checked_by_numpy
def gelu_backward(x: Array, gradient: Array) -> Array:
    """Return the gradient of the argument of `gelu`."""
    bent: Array = np.tanh(_SLOPE * (x + _CUBE * x**3))
    slope: Array = _SLOPE * (1 + 3 * _CUBE * x**2) * (1 - bent**2)
    result: Array = gradient * 0.5 * (1 + bent + x * slope)
    return result


@checked_by_numpy
def silu(x: Array) -> Array:
    r"""Return $x / (1 + e^{-x})$, the function that SwiGLU gates with."""
    gated: Array = x / (1 + np.exp(-x))
    return gated


@checked_by_numpy
def silu_backward(x: Array, gradient: Array) -> Array:
    """Return the gradient of the argument of `silu`."""
    share: Array = 1 / (1 + np.exp(-x))
    return gradient * share * (1 + x * (1 - share))


@checked_by_numpy
def layer_norm(x: Array, gain: Array, shift: Array) -> Array:
    """Return the last axis with mean zero and variance one, times a gain, plus a shift."""
    normal, _ = _normalize(x)
    return normal * gain + shift


@checked_by_numpy
def layer_norm_backward(x: Array, gain: Array, gradient: Array) -> tuple[Array, Array, Array]:
    """Return the gradients of the argument, of the gain and of the shift of `layer_norm`."""
    normal, deviation = _normalize(x)
    inner = gradient * gain
    mean = inner.mean(-1, keepdims=True)
    along = (inner * normal).mean(-1, keepdims=True)
    others = tuple(range(x.ndim - 1))
    return (
        (inner - mean - normal * along) / deviation,
        (gradient * normal).sum(others),
        gradient.sum(others),
    )


def _normalize(x: Array) -> tuple[Array, Array]:
    centered = x - x.mean(-1, keepdims=True)
    deviation = np.sqrt((centered**2).mean(-1, keepdims=True) + _EPSILON)
    return centered / deviation, deviation


@checked_by_numpy
def attention(query: Array, key: Array, value: Array, head_dim: int, causal: bool) -> Array:
    """Return the outputs of attention heads, side by side.

    Parameters
    ----------
    query
        Queries of some heads, side by side.
    key, value
        Keys and values, of as many heads or fewer; consecutive queries share one.
    head_dim
        Width of a head.
    causal
        Whether a token attends only to itself and earlier tokens.
    """
    q, k, v = _heads(query, key, value, head_dim)
    return _merge(_scores(q, k, causal) @ v)


@checked_by_numpy
def attention_backward(
    query: Array, key: Array, value: Array, head_dim: int, causal: bool, gradient: Array
) -> tuple[Array, Array, Array]:
    """Return the gradients of queries, keys and values of `attention`."""
    q, k, v = _heads(query, key, value, head_dim)
    kept = _scores(q, k, causal)
    over = gradient.reshape(*gradient.shape[:2], -1, head_dim).transpose(1, 2, 0, 3)
    over_kept = over @ v.swapaxes(-1, -2)
    along = (over_kept * kept).sum(-1, keepdims=True)
    over_scores = kept * (over_kept - along) / math.sqrt(head_dim)
    shared = q.shape[1] * head_dim // key.shape[-1]
    return (
        _merge(over_scores @ k),
        _merge(_sum_shared(over_scores.swapaxes(-1, -2) @ q, shared)),
        _merge(_sum_shared(kept.swapaxes(-1, -2) @ over, shared)),
    )


def _heads(query: Array, key: Array, value: Array, head_dim: int) -> tuple[Array, Array, Array]:
    """Return arrays of (sequences, heads, tokens, width), with keys and values once per query."""
    shared = query.shape[-1] // key.shape[-1]
    q, k, v = (
        a.reshape(*a.shape[:2], -1, head_dim).transpose(1, 2, 0, 3) for a in (query, key, value)
    )
    return q, np.repeat(k, shared, axis=1), np.repeat(v, shared, axis=1)


def _scores(q: Array, k: Array, causal: bool) -> Array:
    """Return the attention weights: a softmax over the last axis."""
    scores = q @ k.swapaxes(-1, -2) / math.sqrt(q.shape[-1])
    if causal:
        later = np.triu(np.ones(scores.shape[-2:], bool), 1)
        scores = np.where(later, -np.inf, scores)
    grown = np.exp(scores - scores.max(-1, keepdims=True))
    shares: Array = grown / grown.sum(-1, keepdims=True)
    return shares


def _merge(heads: Array) -> Array:
    merged = heads.transpose(2, 0, 1, 3)
    return merged.reshape(*merged.shape[:2], -1)


def _sum_shared(heads: Array, shared: int) -> Array:
    sequences, count, tokens, width = heads.shape
    summed: Array = heads.reshape(sequences, count // shared, shared, tokens, width).sum(2)
    return summed
