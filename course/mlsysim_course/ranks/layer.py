"""A layer of a transformer on the ranks of a group, forward and backward."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from mlsysim.core.calls import checked_by_numpy, methods_checked_by_numpy
from mlsysim.core.errors import ConfigError
from mlsysim.core.types import TransformerModel
from mlsysim_course.ranks import functions as local
from mlsysim_course.ranks.group import Array
from mlsysim_course.ranks.layouts import Layout
from mlsysim_course.ranks.sublayers import (
    Attention,
    FeedForward,
    attention_widths,
    feed_forward_widths,
)


@methods_checked_by_numpy
class TransformerLayer:
    """A layer: norm, attention, residual, norm, feed-forward block, residual. No dropout.

    On a group of one rank it is the layer of a single device.

    Parameters
    ----------
    model
        The transformer to which the layer belongs.
    layout
        Layout of the residual stream on the ranks.
    weights
        Whole arrays by name, those of the two blocks and `attention_gain`, `attention_shift`,
        `feed_forward_gain`, `feed_forward_shift` of the norms. `random_weights` makes some.

    Raises
    ------
    ConfigError
        If a weight is missing or does not fit.
    ParallelismError
        If the ranks do not divide heads or columns.

    Examples
    --------
    >>> from dataclasses import replace
    >>> from mlsysim import Models
    >>> from mlsysim_course.ranks import Group, Replicated, TransformerLayer, random_weights
    >>> model = replace(
    ...     Models.Llama3_8B,
    ...     hidden_dim=16,
    ...     heads=4,
    ...     kv_heads=2,
    ...     head_dim=4,
    ...     ffn_dim=24,
    ...     parameters=None,
    ... )
    >>> layout = Replicated(Group(2))
    >>> layer = TransformerLayer(model, layout, random_weights(model))
    >>> y = layer.forward(layout.place(np.ones((5, 3, 16))))
    >>> x_gradient = layer.backward(y)
    >>> layout.group.count("all_reduce")
    4
    """

    def __init__(
        self, model: TransformerModel, layout: Layout, weights: Mapping[str, Array]
    ) -> None:
        _check(model, weights)
        self.layout = layout
        self.attention = Attention(model, layout, weights)
        self.feed_forward = FeedForward(model, layout, weights)
        size = layout.group.size
        self._norms = {
            name: [weights[name].copy() for _ in range(size)]
            for block in ("attention", "feed_forward")
            for name in (f"{block}_gain", f"{block}_shift")
        }
        self._norm_gradients: dict[str, list[Array]] = {}
        self._kept: dict[str, list[Array]] = {}

    def forward(self, x: list[Array]) -> list[Array]:
        """Return the layer's output for the residual stream, in the same layout."""
        for name, block in self._blocks():
            self._kept[name] = x
            norm = self._norms[f"{name}_gain"], self._norms[f"{name}_shift"]
            x = self._each(np.add, x, block.forward(self._each(local.layer_norm, x, *norm)))
        return x

    def backward(self, gradient: list[Array]) -> list[Array]:
        """Return the gradient of the layer's input."""
        for name, block in reversed(self._blocks()):
            over = self._each(
                local.layer_norm_backward,
                self._kept[name],
                self._norms[f"{name}_gain"],
                block.backward(gradient),
            )
            self._norm_gradients[f"{name}_gain"] = [gain for _, gain, _ in over]
            self._norm_gradients[f"{name}_shift"] = [shift for _, _, shift in over]
            gradient = self._each(np.add, gradient, [x for x, _, _ in over])
        return gradient

    def gradients(self) -> dict[str, Array]:
        """Return the gradients of all weights after a backward pass, whole, by name.

        If tokens are sharded, gradients of norms, and of biases added after a sum over ranks, are
        completed here by all-reduces, which are counted. A training step needs them once.
        """
        found = {name: self._finish(held) for name, held in self._norm_gradients.items()}
        pairs = ("qkv", "output"), ("up", "down")
        for (_, block), (first, second) in zip(self._blocks(), pairs, strict=True):
            found[first] = block.inside.whole(block.inside.weight_gradient)
            found[second] = block.outside.whole(block.outside.weight_gradient)
            if block.inside.bias:
                found[f"{first}_bias"] = block.inside.whole(block.inside.bias_gradient)
            if block.outside.bias:
                found[f"{second}_bias"] = self._finish(block.outside.bias_gradient)
        return found

    def _each(self, function: Callable[..., Any], *held: list[Array]) -> list[Any]:
        return self.layout.group.each(function, *held)

    def _finish(self, held: list[Array]) -> Array:
        return self.layout.finish(held)[0]

    def _blocks(self) -> list[tuple[str, Attention | FeedForward]]:
        return [("attention", self.attention), ("feed_forward", self.feed_forward)]


@checked_by_numpy
def random_weights(
    model: TransformerModel, *, biases: bool = True, seed: int = 0
) -> dict[str, Array]:
    """Return random weights for one layer, by name, in double precision.

    Parameters
    ----------
    model
        The transformer.
    biases
        Whether products have biases.
    seed
        Seed of the random numbers.

    Examples
    --------
    >>> from mlsysim import Models
    >>> from mlsysim_course.ranks import random_weights
    >>> random_weights(Models.MPT.MPT_125M)["qkv"].shape
    (768, 2304)
    """
    random = np.random.default_rng(seed)
    weights: dict[str, Array] = {}
    for name, shape in _shapes(model).items():
        noise = random.standard_normal(shape) / np.sqrt(shape[0])
        weights[name] = 1 + noise if name.endswith("_gain") else noise
        if biases and len(shape) == 2:
            weights[f"{name}_bias"] = random.standard_normal(shape[1])
    return weights


def _check(model: TransformerModel, weights: Mapping[str, Array]) -> None:
    shapes = _shapes(model)
    biases = {f"{name}_bias": shape[1:] for name, shape in shapes.items() if len(shape) == 2}
    wrong = [name for name in shapes if name not in weights]
    for name, array in weights.items():
        if array.shape != shapes.get(name, biases.get(name)):
            wrong.append(name)
    if wrong:
        raise ConfigError(
            f"weights: {', '.join(sorted(wrong))} missing, unknown or of another shape than "
            f"{model.name} needs; random_weights(model) has all names and shapes",
            argument="weights",
        )


def _shapes(model: TransformerModel) -> dict[str, tuple[int, ...]]:
    if model.stack:
        raise ConfigError(
            f"model = {model.name} has layers that are not all alike, but this is a single layer: "
            "give a model that is described by heads and ffn_dim",
            argument="model",
        )
    hidden = model.hidden_dim
    return {
        "attention_gain": (hidden,),
        "attention_shift": (hidden,),
        "qkv": (hidden, sum(attention_widths(model))),
        "output": (model.heads * model.head_dim, hidden),
        "feed_forward_gain": (hidden,),
        "feed_forward_shift": (hidden,),
        "up": (hidden, sum(feed_forward_widths(model))),
        "down": (model.ffn_dim, hidden),
    }
