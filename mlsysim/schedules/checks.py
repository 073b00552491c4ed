"""Checks of orders and times before they are simulated."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from itertools import islice
from typing import Any, TypeAlias

from mlsysim.core.errors import ConfigError, shown
from mlsysim.schedules.orders import MOST_PASSES, Kind, Order, Pass

__all__ = ["Time", "shape", "stage_times", "weight_times"]

Time: TypeAlias = float | Fraction
"""A time in the caller's unit. Whole numbers and fractions stay exact."""


def shape(orders: Sequence[Iterable[Pass]]) -> tuple[list[Order], int, int, bool]:
    """Return the orders as lists, their microbatches and chunks, and whether backwards are split.

    Raises
    ------
    ConfigError
        If there is no pass or too many, if an item is not a pass, or if a stage does not run all of
        them once.
    """
    queues = _read(orders)
    steps = {step for queue in queues for step in queue}
    if not steps:
        raise ConfigError("orders hold no pass: give some for each stage", argument="orders")
    microbatches = 1 + max(step.microbatch for step in steps)
    chunks = 1 + max(step.chunk for step in steps)
    split = any(step.kind == "W" for step in steps)
    kinds: tuple[Kind, ...] = ("F", "B", "W") if split else ("F", "B")
    if len(queues) * microbatches * chunks * len(kinds) > MOST_PASSES:
        raise ConfigError(
            f"orders name microbatch {shown(microbatches - 1)} and chunk {shown(chunks - 1)}, so "
            f"{len(queues)} stages would run more than the {MOST_PASSES:,} passes that can be "
            "simulated: count microbatches and chunks from 0 without gaps, or give fewer of them",
            argument="orders",
        )
    every = {Pass(kind, i, c) for kind in kinds for i in range(microbatches) for c in range(chunks)}
    for stage, queue in enumerate(queues, 1):
        missing = every - set(queue)
        if missing:
            _refuse(f"the order of stage {stage} lacks {min(missing)}")
        if len(queue) > len(every):
            twice = min(step for step, count in Counter(queue).items() if count > 1)
            _refuse(f"the order of stage {stage} repeats {twice}")
    return queues, microbatches, chunks, split


def _read(orders: Any) -> list[Order]:
    """Read the orders of all stages, up to the most passes that can be simulated."""
    queues: list[Order] = []
    left = MOST_PASSES
    for order in _iterated(orders):
        queue = [_as_pass(step) for step in islice(_iterated(order), left + 1)]
        left -= max(len(queue), 1)
        if left < 0:
            raise ConfigError(
                f"orders hold more than the {MOST_PASSES:,} passes that can be simulated: give "
                "fewer microbatches, or use DistributedSolver, which takes any number",
                argument="orders",
            )
        queues.append(queue)
    return queues


def _iterated(value: Any) -> Iterator[Any]:
    try:
        return iter(value)
    except TypeError as fault:
        raise ConfigError(
            f"orders hold {shown(value)}: give one list of passes for each stage, such as "
            "[[Pass('F', 0), Pass('B', 0)]]",
            argument="orders",
        ) from fault


def _as_pass(step: Any) -> Pass:
    """Return a pass, or a tuple of the same form as a pass."""
    if isinstance(step, tuple) and 2 <= len(step) <= 3:
        candidate = Pass(*step)
        whole = all(isinstance(n, int) and n >= 0 for n in candidate[1:])
        if isinstance(candidate.kind, str) and candidate.kind in ("F", "B", "W") and whole:
            return candidate
    raise ConfigError(
        f"orders hold {shown(step)}: give passes such as Pass('F', 0), of kind 'F', 'B' or 'W'",
        argument="orders",
    )


def _refuse(fault: str) -> None:
    raise ConfigError(
        f"{fault}: each stage runs every pass of every microbatch and chunk once",
        argument="orders",
    )


def stage_times(
    name: str, given: Time | Sequence[Time], stages: int, *, zero: bool = False
) -> list[Time]:
    """Return one time for each stage.

    Raises
    ------
    ConfigError
        If there are more or fewer, or one is not a finite number above zero (or zero, with `zero`).
    """
    if hasattr(given, "magnitude"):
        raise ConfigError(
            f"{name} = {given} has a unit: give plain numbers, all times in one unit of your "
            f"choice, such as {name}.to('ms').magnitude",
            argument=name,
        )
    plain: Any = given.tolist() if hasattr(given, "tolist") else given  # NumPy's
    values = list(plain) if isinstance(plain, list | tuple) else [plain] * stages
    if len(values) != stages:
        raise ConfigError(
            f"{name} has {len(values)} values for {stages} stages: give one each, or one number",
            argument=name,
        )
    for value in values:
        number = isinstance(value, int | float | Fraction) and not isinstance(value, bool)
        # In this order, because an integer may be too large for a float.
        finite = number and abs(value) <= sys.float_info.max
        if not finite or value < 0 or (value == 0 and not zero):
            limit = "of zero or more" if zero else "above zero"
            raise ConfigError(
                f"{name} = {shown(value)}: give a finite number {limit}", argument=name
            )
    return values


def weight_times(given: Time | Sequence[Time] | None, backward: list[Time]) -> list[Time]:
    """Return the part of each stage's backward pass for the gradients of weights.

    Raises
    ------
    ConfigError
        If one is negative or not less than the whole backward pass.
    """
    if given is None:
        return [time * Fraction(1, 2) for time in backward]
    parts = stage_times("weight_time", given, len(backward), zero=True)
    for stage, (part, whole) in enumerate(zip(parts, backward, strict=True), 1):
        if part >= whole:
            raise ConfigError(
                f"weight_time = {part} of stage {stage} is part of backward_time = {whole} and "
                "must be smaller: give less, or a longer backward_time",
                argument="weight_time",
            )
    return parts
