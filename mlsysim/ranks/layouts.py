"""Layout of the residual stream on the ranks, and communication at the ends of a block.

A block begins with a product that is split by columns and ends with one that is split by rows.
The operations between them need no communication. Entry and exit are conjugate: what one does to
activations forward, the other does to gradients backward.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mlsysim.ranks.group import Array, Group

__all__ = ["Layout", "Replicated", "SequenceSharded"]


class Layout:
    """What all layouts can do.

    Parameters
    ----------
    group
        The ranks.
    """

    def __init__(self, group: Group) -> None:
        self.group = group

    def place(self, whole: Array) -> list[Array]:
        """Return what each rank holds of a whole array (tokens first). Nothing is sent."""
        raise NotImplementedError

    def whole(self, held: Sequence[Array]) -> Array:
        """Return the whole array that the ranks hold. Nothing is sent; it is for inspection."""
        raise NotImplementedError

    def enter(self, activations: Sequence[Array]) -> list[Array]:
        """Give each rank the activations of all tokens, as a product split by columns needs."""
        raise NotImplementedError

    def enter_backward(self, gradients: Sequence[Array]) -> list[Array]:
        """Sum the gradients of what has entered, and lay the sum out."""
        raise NotImplementedError

    def leave(self, partial: Sequence[Array]) -> list[Array]:
        """Sum the partial results of a product split by rows, and lay the sum out."""
        raise NotImplementedError

    def leave_backward(self, gradients: Sequence[Array]) -> list[Array]:
        """Give each rank the gradients of all tokens."""
        raise NotImplementedError

    def finish(self, gradients: Sequence[Array]) -> list[Array]:
        """Complete the gradient of a parameter that every rank holds whole, once per step."""
        raise NotImplementedError

    def keep(self, activations: list[Array], entered: list[Array]) -> list[Array]:
        """Choose the activations to keep for backward: a rank's own, or those that entered."""
        return entered

    def recall(self, kept: list[Array]) -> list[Array]:
        """Return what had entered, from what was kept."""
        return kept


class Replicated(Layout):
    """Every rank holds all tokens, so that norms and residuals are computed by each, alike.

    Shoeybi et al. (2019), Figure 3, call the way in $f$ and the way out $g$: $f$ does nothing
    forward and an all-reduce backward, $g$ the reverse.

    Examples
    --------
    >>> import numpy as np
    >>> from mlsysim.ranks import Group, Replicated
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
        """Return what the first rank holds: all hold the same."""
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
        """Hand it on: every rank has seen all tokens."""
        return list(gradients)


class SequenceSharded(Layout):
    """Every rank holds its share of the tokens: sequence parallelism.

    The all-reduces fall into their halves. The way in is an all-gather forward and a reduce-scatter
    backward, the way out the reverse.

    Parameters
    ----------
    group
        The ranks.
    regather
        Whether a product keeps its own tokens only and gathers the others again in the backward
        pass, as Megatron-LM does: less memory, one all-gather more for each way in.

    References
    ----------
    Korthikanti et al. (2022), Reducing Activation Recomputation in Large Transformer Models,
    section 4.2.2, https://arxiv.org/abs/2205.05198
    """

    def __init__(self, group: Group, *, regather: bool = False) -> None:
        super().__init__(group)
        self.regather = regather

    def place(self, whole: Array) -> list[Array]:
        """Cut along the first axis, which is that of tokens in a sequence."""
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
        """All-reduce: every rank has seen its own tokens only."""
        return self.group.all_reduce(gradients)

    def keep(self, activations: list[Array], entered: list[Array]) -> list[Array]:
        """Keep own tokens with `regather`, else those of all ranks."""
        return activations if self.regather else entered

    def recall(self, kept: list[Array]) -> list[Array]:
        """Gather again with `regather`."""
        return self.group.all_gather(kept) if self.regather else kept
