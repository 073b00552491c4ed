"""Linear layers with a matrix that is split over ranks: by columns, or by rows."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mlsysim.core.calls import methods_checked_by_numpy
from mlsysim.core.errors import ConfigError, ParallelismError
from mlsysim_course.ranks.group import Array
from mlsysim_course.ranks.layouts import Layout


@methods_checked_by_numpy
class ColumnParallelLinear:
    r"""$Y = XA + b$ with the columns of $A$ and $b$ distributed; each rank has its columns of $Y$.

    $$ X\,[A_1, A_2] = [X A_1,\ X A_2] $$

    Parameters
    ----------
    layout
        Layout of the input on the ranks.
    weight
        $A$, the whole matrix, (inputs, outputs).
    bias
        $b$, one for each output.
    sections
        Widths of several matrices that are side by side in `weight`, such as queries, keys and
        values. Each of them is distributed separately, so every rank has columns of each.

    Attributes
    ----------
    weight, weight_gradient : list of Array
        What each rank holds of the matrix, and of its gradient after a backward pass.
    bias, bias_gradient : list of Array
        The same of the bias; empty where there is none.

    Raises
    ------
    ConfigError
        If bias or sections do not fit the matrix.
    ParallelismError
        If the ranks do not divide the columns of a section.

    References
    ----------
    Shoeybi et al. (2019), Megatron-LM: Training Multi-Billion Parameter Language Models Using Model
    Parallelism, section 3, https://arxiv.org/abs/1909.08053

    Examples
    --------
    >>> import numpy as np
    >>> from mlsysim_course.ranks import ColumnParallelLinear, Group, Replicated
    >>> layout = Replicated(Group(2))
    >>> layer = ColumnParallelLinear(layout, np.arange(8.0).reshape(2, 4))
    >>> layer.forward(layout.place(np.ones((1, 2))))
    [array([[4., 6.]]), array([[ 8., 10.]])]
    """

    def __init__(
        self,
        layout: Layout,
        weight: Array,
        bias: Array | None = None,
        *,
        sections: Sequence[int] | None = None,
    ) -> None:
        _check(weight, bias)
        self.layout = layout
        self.sections = tuple(sections or weight.shape[1:])
        if sum(self.sections) != weight.shape[1]:
            raise ConfigError(
                f"sections = {self.sections} are {sum(self.sections)} columns, the weight has "
                f"{weight.shape[1]}; give widths that add up to it",
                argument="sections",
            )
        ranks = layout.group.size
        if any(width % ranks for width in self.sections):
            raise ParallelismError(
                f"{ranks} ranks do not divide columns {self.sections} of the weight; use a group "
                "size that divides each of them",
                argument="weight",
            )
        self.weight = self._deal(weight)
        self.bias = [] if bias is None else self._deal(bias)
        self.weight_gradient: list[Array] = []
        self.bias_gradient: list[Array] = []
        self._kept: list[Array] = []

    def forward(self, x: list[Array]) -> list[Array]:
        """Return each rank's columns of the output, of all tokens."""
        entered = self.layout.enter(x)
        self._kept = self.layout.keep(x, entered)
        y = self.layout.group.each(_product, entered, self.weight)
        return self.layout.group.each(np.add, y, self.bias) if self.bias else y

    def backward(self, gradient: list[Array]) -> list[Array]:
        """Return the input's gradient from the outputs' columns; set those of weight and bias."""
        each = self.layout.group.each
        self.weight_gradient = each(_weight_gradient, self.layout.recall(self._kept), gradient)
        self.bias_gradient = each(_over_tokens, gradient) if self.bias else []
        return self.layout.enter_backward(each(_input_gradient, gradient, self.weight))

    def whole(self, held: Sequence[Array]) -> Array:
        """Return the columns that the ranks hold in the order of the whole matrix."""
        cuts = np.cumsum([width // self.layout.group.size for width in self.sections])[:-1]
        parts = [np.split(own, cuts, axis=-1) for own in held]
        return np.concatenate([own[s] for s in range(len(self.sections)) for own in parts], axis=-1)

    def _deal(self, columns: Array) -> list[Array]:
        sections = np.split(columns, np.cumsum(self.sections)[:-1], axis=-1)
        parts = [self.layout.group.split(section, axis=-1) for section in sections]
        return [np.concatenate(own, axis=-1) for own in zip(*parts, strict=True)]


@methods_checked_by_numpy
class RowParallelLinear:
    r"""$Y = XA + b$ with the rows of $A$ and the matching columns of $X$ distributed.

    $$ [X_1, X_2]\,\begin{bmatrix} A_1 \\ A_2 \end{bmatrix} = X_1 A_1 + X_2 A_2 $$

    Each rank has a term of the sum. The bias is added once, after it.

    Parameters
    ----------
    layout
        Layout of the output on the ranks.
    weight
        $A$, the whole matrix, (inputs, outputs).
    bias
        $b$, one for each output; every rank holds it whole.

    Attributes
    ----------
    weight, weight_gradient : list of Array
        What each rank holds of the matrix, and of its gradient after a backward pass.
    bias, bias_gradient : list of Array
        The same of the bias; empty where there is none. Where ranks hold shares of the tokens, the
        gradient is that of a rank's own: `Layout.finish` adds them up, once per step.

    Raises
    ------
    ConfigError
        If the bias does not fit the matrix.
    ParallelismError
        If the ranks do not divide the rows.

    References
    ----------
    Shoeybi et al. (2019), Megatron-LM: Training Multi-Billion Parameter Language Models Using Model
    Parallelism, section 3, https://arxiv.org/abs/1909.08053

    Examples
    --------
    >>> import numpy as np
    >>> from mlsysim_course.ranks import Group, Replicated, RowParallelLinear
    >>> layer = RowParallelLinear(Replicated(Group(2)), np.ones((2, 3)), bias=np.array([1, 2, 3.0]))
    >>> layer.forward([np.array([[10.0]]), np.array([[20.0]])])[1]
    array([[31., 32., 33.]])
    """

    def __init__(self, layout: Layout, weight: Array, bias: Array | None = None) -> None:
        _check(weight, bias)
        self.layout = layout
        self.weight = layout.group.split(weight)
        self.bias = [] if bias is None else [bias.copy() for _ in range(layout.group.size)]
        self.weight_gradient: list[Array] = []
        self.bias_gradient: list[Array] = []
        self._kept: list[Array] = []

    def forward(self, x: list[Array]) -> list[Array]:
        """Return the output from each rank's columns of the input."""
        self._kept = x
        y = self.layout.leave(self.layout.group.each(_product, x, self.weight))
        return self.layout.group.each(np.add, y, self.bias) if self.bias else y

    def backward(self, gradient: list[Array]) -> list[Array]:
        """Return the gradient of each rank's columns; set those of weight and bias."""
        each = self.layout.group.each
        self.bias_gradient = each(_over_tokens, gradient) if self.bias else []
        gradient = self.layout.leave_backward(gradient)
        self.weight_gradient = each(_weight_gradient, self._kept, gradient)
        return each(_input_gradient, gradient, self.weight)

    def whole(self, held: Sequence[Array]) -> Array:
        """Return the rows that the ranks hold in the order of the whole matrix."""
        return np.concatenate(held)


def _check(weight: Array, bias: Array | None) -> None:
    if weight.ndim != 2:
        raise ConfigError(
            f"weight of shape {weight.shape}: give a matrix, (inputs, outputs)", argument="weight"
        )
    if bias is not None and bias.shape != weight.shape[1:]:
        raise ConfigError(
            f"bias of shape {bias.shape} for a weight with {weight.shape[1]} columns; give one "
            "number for each",
            argument="bias",
        )


def _product(x: Array, weight: Array) -> Array:
    # One product for all tokens, because NumPy would multiply each sequence position separately.
    return (x.reshape(-1, x.shape[-1]) @ weight).reshape(*x.shape[:-1], -1)


def _over_tokens(gradient: Array) -> Array:
    summed: Array = gradient.sum(tuple(range(gradient.ndim - 1)))
    return summed


def _input_gradient(gradient: Array, weight: Array) -> Array:
    return _product(gradient, weight.T)


def _weight_gradient(x: Array, gradient: Array) -> Array:
    return x.reshape(-1, x.shape[-1]).T @ gradient.reshape(-1, gradient.shape[-1])
