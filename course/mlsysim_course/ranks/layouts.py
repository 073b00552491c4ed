"""Layout of the residual stream on the ranks, and communication at the ends of a block.

A block begins with a product that is split by columns and ends with one that is split by rows. The
operations between them need no communication. Entry and exit are conjugate: the operation on
activations in one is the operation on gradients in the other.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mlsysim.core.calls import methods_checked_by_numpy
from mlsysim_course.ranks.group import Array, Group


@methods_checked_by_numpy
class Layout:
    """The interface of all layouts.

    Parameters
    ----------
    group
        The ranks.
    """

    def __init__(self, group: Group) -> None:
        self.group = group

    def place(self, whole: Array) -> list[Array]:
        """Return each rank's part of a whole array (tokens first). Nothing is sent."""
        raise NotImplementedError

    def whole(self, held: Sequence[Array]) -> Array:
        """Return the whole array from the ranks' parts, for inspection. Nothing is sent."""
        raise NotImplementedError

    def enter(self, activations: Sequence[Array]) -> list[Array]:
        """Give each rank the activations of all tokens, for a product split by columns."""
        raise NotImplementedError

    def enter_backward(self, gradients: Sequence[Array]) -> list[Array]:
        """Sum the gradients of the block's input, in this layout."""
        raise NotImplementedError

    def leave(self, partial: Sequence[Array]) -> list[Array]:
        """Sum the partial results of a product split by rows, in this layout."""
        raise NotImplementedError

    def leave_backward(self, gradients: Sequence[Array]) -> list[Array]:
        """Give each rank the gradients of all tokens."""
        raise NotImplementedError

    def finish(self, gradients: Sequence[Array]) -> list[Array]:
        """Complete the gradient of a parameter that every rank holds whole, once per step."""
        raise NotImplementedError

    def keep(self, activations: list[Array], entered: list[Array]) -> list[Array]:
        """Choose the activations to keep for backward: a rank's own, or those of all tokens."""
        return entered

    def recall(self, kept: list[Array]) -> list[Array]:
        """Return the block's input, from the kept activations."""
        return kept


@methods_checked_by_numpy
class Replicated(Layout):
    """Every rank holds all tokens and computes the same norms and residuals.

    Shoeybi et al. (2019), Figure 3, call the entry $f$ and the exit $g$: $f$ does nothing forward
    and an all-reduce backward, $g$ the reverse.

    Examples
    --------
    >>> import numpy as np
    >>> from mlsysim_course.ranks import Group, Replicated
    >>> layout = Replicated(Group(2))
    >>> layout.leave([np.ones(4), np.ones(4)])[1]
    array([2., 2., 2., 2.])

    References
    ----------
    Shoeybi et al. (2019), Megatron-LM: Training Multi-Billion Parameter Language Models Using Model
    Parallelism, section 3, https://arxiv.org/abs/1909.08053
    """

    def place(self, whole: Array) -> list[Array]:
        """Return a copy for each rank."""
        return [whole.copy() for _ in range(self.group.size)]

    def whole(self, held: Sequence[Array]) -> Array:
        """Return the first rank's array: all ranks have the same."""
        return held[0]

    def enter(self, activations: Sequence[Array]) -> list[Array]:
        """Hand them on; the $f$ of the paper, forward."""
        return list(activations)

    def enter_backward(self, gradients: Sequence[Array]) -> list[Array]:
        """All-reduce; the $f$ of the paper, backward."""
        return self.group.all_reduce(gradients)

    def leave(self, partial: Sequence[Array]) -> list[Array]:
        """All-reduce; the $g$ of the paper, forward."""
        return self.group.all_reduce(partial)

    def leave_backward(self, gradients: Sequence[Array]) -> list[Array]:
        """Hand them on; the $g$ of the paper, backward."""
        return list(gradients)

    def finish(self, gradients: Sequence[Array]) -> list[Array]:
        """Return it unchanged: every rank has seen all tokens."""
        return list(gradients)


@methods_checked_by_numpy
class SequenceSharded(Layout):
    """Every rank holds its share of the tokens: sequence parallelism.

    Each all-reduce is divided into its halves. The entry is an all-gather forward and a
    reduce-scatter backward, the exit the reverse.

    Parameters
    ----------
    group
        The ranks.
    regather
        Whether a product keeps only its own tokens and gathers the others again in the backward
        pass, as Megatron-LM does: less memory, but one more all-gather per entry.

    References
    ----------
    Korthikanti et al. (2022), Reducing Activation Recomputation in Large Transformer Models,
    section 4.2.2, https://arxiv.org/abs/2205.05198
    """

    def __init__(self, group: Group, *, regather: bool = False) -> None:
        super().__init__(group)
        self.regather = regather

    def place(self, whole: Array) -> list[Array]:
        """Split along the first axis, the tokens of a sequence."""
        return self.group.split(whole)

    def whole(self, held: Sequence[Array]) -> Array:
        """Join the shares."""
        return np.concatenate(held)

    def enter(self, activations: Sequence[Array]) -> list[Array]:
        """All-gather."""
        return self.group.all_gather(activations)

    def enter_backward(self, gradients: Sequence[Array]) -> list[Array]:
        """Reduce-scatter."""
        return self.group.reduce_scatter(gradients)

    def leave(self, partial: Sequence[Array]) -> list[Array]:
        """Reduce-scatter."""
        return self.group.reduce_scatter(partial)

    def leave_backward(self, gradients: Sequence[Array]) -> list[Array]:
        """All-gather."""
        return self.group.all_gather(gradients)

    def finish(self, gradients: Sequence[Array]) -> list[Array]:
        """All-reduce: every rank has seen only its own tokens."""
        return self.group.all_reduce(gradients)

    def keep(self, activations: list[Array], entered: list[Array]) -> list[Array]:
        """Keep own tokens with `regather`, else those of all ranks."""
        return activations if self.regather else entered

    def recall(self, kept: list[Array]) -> list[Array]:
        """Gather again with `regather`."""
        return self.group.all_gather(kept) if self.regather else kept
