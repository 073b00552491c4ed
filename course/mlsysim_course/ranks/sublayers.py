"""The two blocks of a transformer layer, split over the ranks of a group."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from mlsysim.core.calls import methods_checked_by_numpy
from mlsysim.core.errors import ParallelismError
from mlsysim.core.types import TransformerModel
from mlsysim_course.ranks import functions as local
from mlsysim_course.ranks.group import Array
from mlsysim_course.ranks.layouts import Layout
from mlsysim_course.ranks.linear import ColumnParallelLinear, RowParallelLinear


def attention_widths(model: TransformerModel) -> list[int]:
    """Return the columns of queries, keys and values."""
    return [heads * model.head_dim for heads in (model.heads, model.kv_heads, model.kv_heads)]


def feed_forward_widths(model: TransformerModel) -> list[int]:
    """Return the columns of gate and inner product, or of the latter alone."""
    return [model.ffn_dim] * (2 if model.gated_mlp else 1)


@methods_checked_by_numpy
class Attention:
    """Attention with distributed heads: queries, keys and values by columns, the output by rows.

    Parameters
    ----------
    model
        The transformer; its heads and their width.
    layout
        Layout of input and output on the ranks.
    weights
        Whole arrays: `qkv` (queries, keys and values side by side) and `output`, and `qkv_bias` and
        `output_bias` if there are biases.

    Raises
    ------
    ParallelismError
        If the ranks do not divide the heads, or those of keys and values.
    """

    def __init__(
        self, model: TransformerModel, layout: Layout, weights: Mapping[str, Array]
    ) -> None:
        for name in ("heads", "kv_heads"):
            if getattr(model, name) % layout.group.size:
                raise ParallelismError(
                    f"{layout.group.size} ranks do not divide {name} = {getattr(model, name)} of "
                    f"{model.name}: a head is not split; use a group size that divides it",
                    argument=name,
                )
        self.model, self.layout = model, layout
        self.inside = ColumnParallelLinear(
            layout, weights["qkv"], weights.get("qkv_bias"), sections=attention_widths(model)
        )
        self.outside = RowParallelLinear(layout, weights["output"], weights.get("output_bias"))
        self._kept: list[tuple[Array, Array, Array]] = []

    def forward(self, x: list[Array]) -> list[Array]:
        """Return the block's output, without the residual."""
        self._kept = [self._cut(own) for own in self.inside.forward(x)]
        settings = self.model.head_dim, self.model.causal
        return self.outside.forward([local.attention(*own, *settings) for own in self._kept])

    def backward(self, gradient: list[Array]) -> list[Array]:
        """Return the gradient of the block's input."""
        settings = self.model.head_dim, self.model.causal
        over = []
        for own, up in zip(self._kept, self.outside.backward(gradient), strict=True):
            over.append(np.concatenate(local.attention_backward(*own, *settings, up), axis=-1))
        return self.inside.backward(over)

    def _cut(self, qkv: Array) -> tuple[Array, Array, Array]:
        widths = [width // self.layout.group.size for width in attention_widths(self.model)]
        query, key, value = np.split(qkv, np.cumsum(widths)[:-1], axis=-1)
        return query, key, value


@methods_checked_by_numpy
class FeedForward:
    """The feed-forward block: a product split by columns, GeLU or SwiGLU, a product split by rows.

    Parameters
    ----------
    model
        The transformer; with `gated_mlp`, half of `up` is the gate.
    layout
        Layout of input and output on the ranks.
    weights
        Whole arrays: `up` (with a gate the gate first, side by side) and `down`, and `up_bias` and
        `down_bias` if there are biases.
    """

    def __init__(
        self, model: TransformerModel, layout: Layout, weights: Mapping[str, Array]
    ) -> None:
        self.model, self.layout = model, layout
        self.inside = ColumnParallelLinear(
            layout, weights["up"], weights.get("up_bias"), sections=feed_forward_widths(model)
        )
        self.outside = RowParallelLinear(layout, weights["down"], weights.get("down_bias"))
        self._kept: list[Array] = []

    def forward(self, x: list[Array]) -> list[Array]:
        """Return the block's output, without the residual."""
        self._kept = self.inside.forward(x)
        return self.outside.forward(self.layout.group.each(self._bend, self._kept))

    def backward(self, gradient: list[Array]) -> list[Array]:
        """Return the gradient of the block's input."""
        over = self.outside.backward(gradient)
        return self.inside.backward(self.layout.group.each(self._bend_backward, self._kept, over))

    def _bend(self, inner: Array) -> Array:
        if not self.model.gated_mlp:
            return local.gelu(inner)
        gate, up = np.split(inner, 2, axis=-1)
        return local.silu(gate) * up

    def _bend_backward(self, inner: Array, gradient: Array) -> Array:
        if not self.model.gated_mlp:
            return local.gelu_backward(inner, gradient)
        gate, up = np.split(inner, 2, axis=-1)
        parts = local.silu_backward(gate, gradient * up), gradient * local.silu(gate)
        return np.concatenate(parts, -1)
