"""Simulation of orders: a pass starts when its stage is free and its inputs have arrived."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from itertools import islice
from typing import Any, TypeAlias

from mlsysim.core.errors import ConfigError, shown
from mlsysim.schedules.orders import MOST_PASSES, Kind, Order, Pass, pipeline_orders
from mlsysim.schedules.timeline import Event, Time, Timeline, exact, stage_times

_Key: TypeAlias = tuple[str, int, int]
"""Kind, microbatch, and position of the chunk in the model."""


def simulate_pipeline(
    schedule: str = "1f1b",
    *,
    pp_size: int,
    microbatch_count: int,
    forward_time: Time | Sequence[Time] = 1,
    backward_time: Time | Sequence[Time] = 2,
    weight_time: Time | Sequence[Time] | None = None,
    transfer_time: Time = 0,
    virtual_stages: int = 1,
) -> Timeline:
    """Simulate a pipeline schedule, pass by pass.

    Parameters
    ----------
    schedule
        ``"gpipe"``, ``"1f1b"`` or ``"zb-h1"``; see `pipeline_orders`.
    pp_size
        Stages.
    microbatch_count
        Microbatches per step.
    forward_time
        Time of a microbatch's forward pass through a stage, in any unit, the same for all times:
        one number for all stages, or one per stage. Chunks of a stage take equal parts of it.
    backward_time
        Time of the whole backward pass, likewise.
    weight_time
        Part of `backward_time` for the gradients of weights, for which no other stage waits; `None`
        takes half of it. ``"zb-h1"`` runs it as a separate pass, the other schedules at the end of
        the backward pass.
    transfer_time
        Time from the end of a pass to its arrival at another stage. Stages keep computing
        meanwhile.
    virtual_stages
        Model chunks per stage; above 1, ``"1f1b"`` is interleaved.

    Returns
    -------
    timeline
        All passes with their times.

    Raises
    ------
    ConfigError
        If a size or a time is out of range, if the number of times differs from the stages, or if
        the schedule does not exist or has no such form.

    Examples
    --------
    >>> step = simulate_pipeline("1f1b", pp_size=4, microbatch_count=8)
    >>> step.makespan, step.bubble_time
    (33, 9)
    >>> step.bubble_fraction
    0.27
    >>> step.peak_activations
    (4, 3, 2, 1)
    """
    orders = pipeline_orders(
        schedule,
        pp_size=pp_size,
        microbatch_count=microbatch_count,
        virtual_stages=virtual_stages,
    )
    timeline = play(
        orders,
        forward_time=forward_time,
        backward_time=backward_time,
        weight_time=weight_time,
        transfer_time=transfer_time,
    )
    return dataclasses.replace(timeline, schedule=schedule)


def play(
    orders: Sequence[Iterable[Pass]],
    *,
    forward_time: Time | Sequence[Time] = 1,
    backward_time: Time | Sequence[Time] = 2,
    weight_time: Time | Sequence[Time] | None = None,
    transfer_time: Time = 0,
) -> Timeline:
    """Simulate your own orders: modified ones of `pipeline_orders`, or new ones.

    Backwards are split if the orders have passes of kind ``"W"``.

    Parameters
    ----------
    orders
        For each stage, the sequence of passes that it runs.
    forward_time, backward_time, weight_time, transfer_time
        As for `simulate_pipeline`.

    Returns
    -------
    timeline
        All passes with their times.

    Raises
    ------
    ConfigError
        If a stage lacks a pass, repeats one or has one that no other stage has; if the orders
        deadlock; or if a time is out of range.

    Examples
    --------
    >>> step = play([[Pass("F", 0), Pass("B", 0)], [Pass("F", 0), Pass("B", 0)]])
    >>> step.makespan
    6
    """
    queues, microbatches, chunks, split = _shape(orders)
    stages = len(queues)
    forward = stage_times("forward_time", forward_time, stages)
    backward = stage_times("backward_time", backward_time, stages)
    weight = _weight_times(weight_time, backward)
    (transfer,) = stage_times("transfer_time", transfer_time, 1, zero=True)
    durations = []
    for f, b, w in zip(forward, backward, weight, strict=True):
        times = {"F": f, "B": b - w if split else b, "W": w}
        durations.append({kind: exact(time * Fraction(1, chunks)) for kind, time in times.items()})
    events = tuple(_run(queues, durations, transfer, chunks))
    return Timeline(
        schedule="own",
        pp_size=stages,
        microbatch_count=microbatches,
        virtual_stages=chunks,
        events=events,
    )


def _shape(orders: Sequence[Iterable[Pass]]) -> tuple[list[Order], int, int, bool]:
    """Return the orders as lists, their microbatches and chunks, and whether backwards are split.

    Every stage must run every pass once, and there may not be too many passes to simulate.
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


def _weight_times(given: Time | Sequence[Time] | None, backward: list[Time]) -> list[Time]:
    """Return the part of each stage's backward pass for the gradients of weights."""
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


def _run(
    queues: list[Order], durations: list[dict[str, Time]], transfer: Time, chunks: int
) -> Iterator[Event]:
    """Compute the times of every pass, stage by stage; each runs as soon as it can."""
    stages = len(queues)
    ends: dict[_Key, Time] = {}
    events: list[list[Event]] = [[] for _ in queues]
    clock: list[Time] = [0] * stages
    moved = True
    while moved:
        moved = False
        for stage, queue in enumerate(queues):
            while len(events[stage]) < len(queue):
                step = queue[len(events[stage])]
                needs = list(_needs(step, stage, stages, stages * chunks - 1))
                if any(key not in ends for key in needs):
                    break
                # Data that is already on the stage is not sent.
                away = [transfer if key[2] % stages != stage else 0 for key in needs]
                arrivals = [ends[key] + time for key, time in zip(needs, away, strict=True)]
                start = exact(max([clock[stage], *arrivals]))
                end = exact(start + durations[stage][step.kind])
                clock[stage] = ends[step.kind, step.microbatch, step.chunk * stages + stage] = end
                events[stage].append(
                    Event(stage, step.microbatch, step.chunk, step.kind, start, end)
                )
                moved = True
    _refuse_deadlock(queues, events)
    for ran in events:
        yield from ran


def _needs(step: Pass, stage: int, stages: int, last: int) -> Iterator[_Key]:
    """Yield the passes that must end before this one."""
    position = step.chunk * stages + stage
    if step.kind == "F" and position > 0:
        yield "F", step.microbatch, position - 1
    if step.kind == "B":
        yield "F", step.microbatch, position
        if position < last:
            yield "B", step.microbatch, position + 1
    if step.kind == "W":
        yield "B", step.microbatch, position


def _refuse_deadlock(queues: list[Order], events: list[list[Event]]) -> None:
    """Reject orders with passes that could not run."""
    waiting = [
        f"stage {stage} to run {queue[len(ran)]}"
        for stage, (queue, ran) in enumerate(zip(queues, events, strict=True), 1)
        if len(ran) < len(queue)
    ]
    if waiting:
        more = f" and {len(waiting) - 4} more" if len(waiting) > 4 else ""
        raise ConfigError(
            f"the orders wait for each other forever: {', '.join(waiting[:4])}{more}, which needs "
            "a pass that comes later in one of these orders; move that pass forward",
            argument="orders",
        )
