"""A layer on one device with whole matrices, head by head, and derivatives without a backward pass.

Everything is analytic, so a step along the imaginary axis gives derivatives to rounding.
"""

import numpy as np

TINY = 1e-30


def softmax(scores):
    grown = np.exp(scores - scores.real.max())
    return grown / grown.sum()


def norm(x, gain, shift):
    centered = x - x.mean(-1)[..., None]
    return centered / np.sqrt((centered * centered).mean(-1) + 1e-5)[..., None] * gain + shift


def attend(model, h, w):
    """Attention of one sequence, one head and one token after the other."""
    d, per = model.head_dim, model.heads // model.kv_heads
    qkv = h @ w["qkv"] + w.get("qkv_bias", 0)
    keys, values = model.heads * d, (model.heads + model.kv_heads) * d
    read = []
    for head in range(model.heads):
        q = qkv[:, head * d : (head + 1) * d]
        k = qkv[:, keys + head // per * d : keys + (head // per + 1) * d]
        v = qkv[:, values + head // per * d : values + (head // per + 1) * d]
        seen = [t + 1 if model.causal else len(h) for t in range(len(h))]
        read.append([softmax(k[:n] @ q[t] / d**0.5) @ v[:n] for t, n in enumerate(seen)])
    return np.concatenate(read, -1) @ w["output"] + w.get("output_bias", 0)


def feed_forward(model, h, w):
    inner = h @ w["up"] + w.get("up_bias", 0)
    if model.gated_mlp:
        gate, up = inner[..., : model.ffn_dim], inner[..., model.ffn_dim :]
        inner = gate / (1 + np.exp(-gate)) * up
    else:
        inner = inner / 2 * (1 + np.tanh((2 / np.pi) ** 0.5 * (inner + 0.044715 * inner**3)))
    return inner @ w["down"] + w.get("down_bias", 0)


def layer(model, x, w):
    """The layer of an array (tokens, sequences, width)."""
    result = []
    for one in x.swapaxes(0, 1):
        one = one + attend(model, norm(one, w["attention_gain"], w["attention_shift"]), w)
        inner = norm(one, w["feed_forward_gain"], w["feed_forward_shift"])
        result.append(one + feed_forward(model, inner, w))
    return np.stack(result, 1)


def slope(function, at, along):
    """Derivative of an analytic function in a direction, to rounding."""
    return function(at + 1j * TINY * along).imag / TINY
