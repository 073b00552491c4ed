"""Simulated ranks in one process, and the collectives between them, by the ring algorithm."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from mlsysim.core.calls import methods_checked_by_numpy
from mlsysim.core.errors import ConfigError, ParallelismError, shown

Array = NDArray[np.floating[Any]]
"""An array of one rank. The data of a group are a list of them, one for each rank."""

T = TypeVar("T")


@dataclass(frozen=True)
class Call:
    """One collective that a group has run.

    Attributes
    ----------
    collective : str
        Its name: `"all_reduce"`, `"all_gather"`, `"reduce_scatter"` or `"broadcast"`.
    message_size : int
        [byte] Message size as in the formulas for its time: the data that each rank holds. For an
        all-gather this is the result, for all others the input.
    sent : tuple of int
        [byte] What each rank has sent, counted message by message.
    steps : int
        Number of consecutive messages; all ranks send at once, so one step is one message.
    """

    collective: str
    message_size: int
    sent: tuple[int, ...]
    steps: int


@methods_checked_by_numpy
class Group:
    """Simulated ranks: per-rank data are lists, and collectives count the bytes that they send.

    Parameters
    ----------
    size
        Ranks of the group.

    Attributes
    ----------
    size : int
        Ranks of the group.
    calls : list of Call
        Every collective so far. Clear the list to restart the count.

    Raises
    ------
    ConfigError
        If `size` is not a positive integer.

    Examples
    --------
    >>> import numpy as np
    >>> from mlsysim_course.ranks import Group
    >>> group = Group(4)
    >>> group.all_reduce([np.full(8, float(rank)) for rank in range(4)])[0]
    array([6., 6., 6., 6., 6., 6., 6., 6.])
    >>> group.calls[0]
    Call(collective='all_reduce', message_size=64, sent=(96, 96, 96, 96), steps=6)
    """

    def __init__(self, size: int) -> None:
        try:
            self.size = operator.index(size)
        except TypeError:
            raise ConfigError(
                f"size = {shown(size)} must be a positive integer", argument="size"
            ) from None
        if self.size < 1:
            raise ConfigError(f"size = {size} ranks: a group has one rank or more", argument="size")
        self.calls: list[Call] = []

    def each(self, function: Callable[..., T], *held: Sequence[Any]) -> list[T]:
        """Run the same function on every rank, with the data of that rank.

        Parameters
        ----------
        function
            The computation of a rank.
        held
            For each argument of `function` a sequence with one item for each rank.

        Raises
        ------
        ConfigError
            If there is not one item for each rank.
        """
        for items in held:
            self._check(items)
        return [function(*mine) for mine in zip(*held, strict=True)]

    def sent(self, rank: int = 0) -> int:
        """Return the bytes that a rank has sent in all calls."""
        return sum(call.sent[rank] for call in self.calls)

    def steps(self) -> int:
        """Return the number of consecutive messages in all calls."""
        return sum(call.steps for call in self.calls)

    def count(self, collective: str) -> int:
        """Return how often a collective was called."""
        return sum(call.collective == collective for call in self.calls)

    def all_reduce(self, arrays: Sequence[Array]) -> list[Array]:
        """Give every rank the sum of all arrays.

        It is a reduce-scatter of the flattened arrays, then an all-gather. If their length is not a
        multiple of the ranks, some parts are one element longer than others.

        Raises
        ------
        ConfigError
            If there is not one array for each rank, or they differ in shape or type.
        """
        self._check(arrays, alike=True)
        shape, size = arrays[0].shape, arrays[0].nbytes
        parts = [np.array_split(array.ravel(), self.size) for array in arrays]
        sent = self._reduce_around(parts)
        more = self._gather_around(parts)
        self._note("all_reduce", size, [a + b for a, b in zip(sent, more, strict=True)], 2)
        return [np.concatenate(own).reshape(shape) for own in parts]

    def reduce_scatter(self, arrays: Sequence[Array]) -> list[Array]:
        """Give every rank its part of the sum of all arrays: parts along the first axis.

        Raises
        ------
        ConfigError
            If there is not one array for each rank, or they differ in shape or type.
        ParallelismError
            If the ranks do not divide the first axis.
        """
        self._check(arrays, alike=True)
        parts = [self.split(array) for array in arrays]
        sent = self._reduce_around(parts)
        self._note("reduce_scatter", arrays[0].nbytes, sent, 1)
        return [own[rank] for rank, own in enumerate(parts)]

    def all_gather(self, arrays: Sequence[Array]) -> list[Array]:
        """Give every rank the arrays of all ranks, joined along the first axis.

        Raises
        ------
        ConfigError
            If there is not one array for each rank, or they differ in shape or type.
        """
        self._check(arrays, alike=True)
        nothing = np.empty((0, *arrays[0].shape[1:]), arrays[0].dtype)
        parts = [[nothing] * self.size for _ in arrays]
        for rank, array in enumerate(arrays):
            parts[rank][rank] = array
        sent = self._gather_around(parts)
        self._note("all_gather", sum(array.nbytes for array in arrays), sent, 1)
        return [np.concatenate(own) for own in parts]

    def broadcast(self, array: Array) -> list[Array]:
        """Give every rank the array that the first one holds.

        It uses a binomial tree: in each round, all ranks that have the array forward it.
        """
        sent, steps = [0] * self.size, 0
        have = 1
        while have < self.size:
            for rank in range(min(have, self.size - have)):
                sent[rank] += array.nbytes
            have, steps = 2 * have, steps + 1
        self.calls.append(Call("broadcast", array.nbytes, tuple(sent), steps))
        return [array.copy() for _ in range(self.size)]

    def split(self, array: Array, axis: int = 0) -> list[Array]:
        """Cut a whole array into one equal part for each rank. Nothing is sent.

        Raises
        ------
        ParallelismError
            If the ranks do not divide the axis.
        """
        length = array.shape[axis]
        if length % self.size:
            raise ParallelismError(
                f"{self.size} ranks do not divide the {length} of axis {axis} in an array of shape "
                f"{array.shape}; use a group size that divides it",
                argument="size",
            )
        return [part.copy() for part in np.split(array, self.size, axis=axis)]

    def _check(self, held: Sequence[Any], *, alike: bool = False) -> None:
        if len(held) != self.size:
            raise ConfigError(
                f"{len(held)} items for {self.size} ranks; give one for each", argument="arrays"
            )
        if alike and len({(array.shape, array.dtype) for array in held}) > 1:
            raise ConfigError(
                "arrays of a collective must agree in shape and type, these are "
                + ", ".join(f"{array.shape} {array.dtype}" for array in held),
                argument="arrays",
            )

    def _note(self, collective: str, message_size: int, sent: list[int], rounds: int) -> None:
        steps = rounds * (self.size - 1)
        self.calls.append(Call(collective, message_size, tuple(sent), steps))

    def _reduce_around(self, parts: list[list[Array]]) -> list[int]:
        """Pass parts around the ring, with each rank adding its own; rank r ends with part r.

        Parts that a rank has forwarded are partial sums that it no longer needs.
        """
        sent = [0] * self.size
        for step in range(self.size - 1):
            passed = [(rank - step - 1) % self.size for rank in range(self.size)]
            messages = [parts[rank][part] for rank, part in enumerate(passed)]
            for rank, (part, message) in enumerate(zip(passed, messages, strict=True)):
                neighbor = parts[(rank + 1) % self.size]
                neighbor[part] = neighbor[part] + message
                sent[rank] += message.nbytes
        return sent

    def _gather_around(self, parts: list[list[Array]]) -> list[int]:
        """Pass parts around the ring until every rank has a copy of all."""
        sent = [0] * self.size
        for step in range(self.size - 1):
            passed = [(rank - step) % self.size for rank in range(self.size)]
            messages = [parts[rank][part] for rank, part in enumerate(passed)]
            for rank, (part, message) in enumerate(zip(passed, messages, strict=True)):
                parts[(rank + 1) % self.size][part] = message
                sent[rank] += message.nbytes
        return sent
