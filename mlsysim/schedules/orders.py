"""Orders: the sequence of passes that each stage of a pipeline runs."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Literal, NamedTuple, TypeAlias

from mlsysim.core.errors import ConfigError, ParallelismError, UnknownEntryError, shown

MOST_PASSES = 1_000_000
"""Most passes over all stages; simulating them takes half a minute and half a gigabyte."""

Kind: TypeAlias = Literal["F", "B", "W"]
"""Forward, backward, and the part of a backward pass that computes only gradients of weights."""


class Pass(NamedTuple):
    """One pass of one microbatch through one model chunk of a stage.

    Attributes
    ----------
    kind : str
        ``"F"`` for forward, ``"B"`` for backward. If backward passes are split, ``"B"`` computes
        the gradient of the input, for which the previous stage waits, and ``"W"`` that of the
        weights.
    microbatch, chunk : int
        Counted from zero.
    """

    kind: Kind
    microbatch: int
    chunk: int = 0

    def __str__(self) -> str:
        return f"{self.kind}{self.microbatch + 1}" + (
            f" of chunk {self.chunk + 1}" * bool(self.chunk)
        )


Order: TypeAlias = list[Pass]
"""The passes of one stage."""


def pipeline_orders(
    schedule: str, *, pp_size: int, microbatch_count: int, virtual_stages: int = 1
) -> list[Order]:
    """List the passes of each stage in the order in which the stage runs them.

    Parameters
    ----------
    schedule
        ``"gpipe"``: all forwards, then all backwards. ``"1f1b"``: as many forwards as there are
        later stages, then one forward and one backward in turn. ``"zb-h1"``: the same with split
        backwards, where stage ``i`` postpones its weight gradients by ``i`` microbatches.
    pp_size
        Stages.
    microbatch_count
        Microbatches per step.
    virtual_stages
        Model chunks per stage. Above 1, ``"1f1b"`` is interleaved: it takes `pp_size` microbatches
        through a chunk before moving to the next chunk.

    Returns
    -------
    orders
        One list of `Pass` for each stage, the first stage first.

    Raises
    ------
    ConfigError
        If a size is not a positive integer, if there are more than a million passes, if the
        schedule does not exist or has no interleaved form, or if the interleaved schedule cannot
        distribute the microbatches.

    References
    ----------
    Huang et al. (2019), GPipe, https://arxiv.org/abs/1811.06965; Narayanan et al. (2021),
    Efficient Large-Scale Language Model Training on GPU Clusters Using Megatron-LM, section 2.2,
    https://arxiv.org/abs/2104.04473; Qi et al. (2023), Zero Bubble Pipeline Parallelism, section
    2.1, https://arxiv.org/abs/2401.10241

    Examples
    --------
    >>> for order in pipeline_orders("1f1b", pp_size=2, microbatch_count=3):
    ...     print(*order)
    F1 F2 B1 F3 B2 B3
    F1 B1 F2 B2 F3 B3
    """
    pp_size = _count("pp_size", pp_size)
    microbatch_count = _count("microbatch_count", microbatch_count)
    virtual_stages = _count("virtual_stages", virtual_stages)
    if not isinstance(schedule, str) or schedule not in _ORDERS:
        raise UnknownEntryError.build(schedule, "schedule", _ORDERS)
    each = 3 if schedule == "zb-h1" else 2
    if pp_size * microbatch_count * virtual_stages * each > MOST_PASSES:
        sizes = {
            "pp_size": pp_size,
            "microbatch_count": microbatch_count,
            "virtual_stages": virtual_stages,
        }
        raise ConfigError(
            f"pp_size x microbatch_count x virtual_stages = {shown(pp_size)} x "
            f"{shown(microbatch_count)} x {shown(virtual_stages)}, with {each} passes each, is "
            f"more than the {MOST_PASSES:,} passes that can be simulated: choose smaller sizes, "
            "or use DistributedSolver, which has no such limit",
            argument=max(sizes, key=lambda name: sizes[name]),
        )
    if virtual_stages == 1:
        return [_ORDERS[schedule](i, pp_size, microbatch_count) for i in range(pp_size)]
    if schedule != "1f1b":
        raise ConfigError(
            f"schedule = {shown(schedule)} has no interleaved form here, but virtual_stages = "
            f"{virtual_stages}: choose schedule = '1f1b', or virtual_stages = 1",
            argument="virtual_stages",
        )
    if microbatch_count % pp_size:
        raise ParallelismError(
            f"microbatch_count = {microbatch_count} is not a multiple of pp_size = {pp_size}, "
            "which the interleaved schedule needs: choose a multiple, or virtual_stages = 1",
            argument="microbatch_count",
        )
    return [_interleaved(i, pp_size, microbatch_count, virtual_stages) for i in range(pp_size)]


def _count(name: str, size: int) -> int:
    """Return a size as an integer, including NumPy integers."""
    try:
        whole = 0 if isinstance(size, bool) else operator.index(size)
    except TypeError:
        whole = 0
    if whole < 1:
        raise ConfigError(
            f"{name} = {shown(size)}: give a whole number of 1 or more", argument=name
        )
    return whole


def _gpipe(stage: int, stages: int, microbatches: int) -> Order:
    forwards = [Pass("F", i) for i in range(microbatches)]
    return forwards + [Pass("B", i) for i in reversed(range(microbatches))]


def _one_forward_one_backward(stage: int, stages: int, microbatches: int) -> Order:
    forwards = [Pass("F", i) for i in range(microbatches)]
    backwards = [Pass("B", i) for i in range(microbatches)]
    return _in_turn(forwards, backwards, ahead=stages - 1 - stage)


def _zb_h1(stage: int, stages: int, microbatches: int) -> Order:
    """1F1B with split backwards: weight gradients follow `stage` microbatches later."""
    order = []
    for step in _one_forward_one_backward(stage, stages, microbatches):
        order.append(step)
        if step.kind == "B" and step.microbatch >= stage:
            order.append(Pass("W", step.microbatch - stage))
    return order + [Pass("W", i) for i in range(max(microbatches - stage, 0), microbatches)]


def _interleaved(stage: int, stages: int, microbatches: int, chunks: int) -> Order:
    """1F1B over chunks: rounds of as many microbatches as there are stages, chunk after chunk.

    The last chunk's backward comes first, and a stage runs ahead by twice the number of later
    stages, because forwards and backwards travel in opposite directions.
    """
    rounds = [range(first, first + stages) for first in range(0, microbatches, stages)]
    forwards = [Pass("F", i, c) for r in rounds for c in range(chunks) for i in r]
    backwards = [Pass("B", i, c) for r in rounds for c in reversed(range(chunks)) for i in r]
    ahead = (chunks - 1) * stages + 2 * (stages - 1 - stage)
    return _in_turn(forwards, backwards, ahead)


def _in_turn(forwards: Order, backwards: Order, ahead: int) -> Order:
    """Run `ahead` forwards, then one forward and one backward in turn, then the rest."""
    order = forwards[:ahead]
    for position, backward in enumerate(backwards):
        order += forwards[ahead + position : ahead + position + 1]
        order.append(backward)
    return order


_ORDERS: dict[str, Callable[[int, int, int], Order]] = {
    "gpipe": _gpipe,
    "1f1b": _one_forward_one_backward,
    "zb-h1": _zb_h1,
}
